// SPDX-License-Identifier: Apache-2.0
#include "cel/compare.h"

#include <algorithm>

namespace devmgr::cel {
namespace {

constexpr double kTwo63 = 9223372036854775808.0;
constexpr double kTwo64 = 18446744073709551616.0;

std::partial_ordering CompareIntUint(std::int64_t a, std::uint64_t b) {
  if (a < 0) return std::partial_ordering::less;
  return static_cast<std::uint64_t>(a) <=> b;
}

/// Compares a whole number with a double. Unless the double is beyond all
/// numbers of the type, the number is converted, so that the last bits of a
/// large one do not count. cel-go does the same.
template <typename Whole>
std::partial_ordering CompareWithDouble(Whole a, double b, double lowest,
                                        double highest) {
  if (b < lowest) return std::partial_ordering::greater;
  if (b > highest) return std::partial_ordering::less;
  return static_cast<double>(a) <=> b;
}

std::partial_ordering Inverse(std::partial_ordering order) {
  return 0 <=> order;
}

bool IsNumber(const Value& value) {
  return value.Is<std::int64_t>() || value.Is<std::uint64_t>() ||
         value.Is<double>();
}

std::partial_ordering CompareNumbers(const Value& a, const Value& b) {
  const auto* ai = a.As<std::int64_t>();
  const auto* au = a.As<std::uint64_t>();
  const auto* bi = b.As<std::int64_t>();
  const auto* bu = b.As<std::uint64_t>();
  const auto* ad = a.As<double>();
  const auto* bd = b.As<double>();
  if (ai != nullptr && bi != nullptr) return *ai <=> *bi;
  if (au != nullptr && bu != nullptr) return *au <=> *bu;
  if (ad != nullptr && bd != nullptr) return *ad <=> *bd;
  if (ai != nullptr && bu != nullptr) return CompareIntUint(*ai, *bu);
  if (au != nullptr && bi != nullptr) return Inverse(CompareIntUint(*bi, *au));
  if (ad != nullptr) return Inverse(CompareNumbers(b, a));
  return ai != nullptr ? CompareWithDouble(*ai, *bd, -kTwo63, kTwo63)
                       : CompareWithDouble(*au, *bd, 0.0, kTwo64);
}

/// The work of a comparison: one unit for a number, or for some dozens of
/// bytes.
constexpr std::size_t kBytesPerUnit = 64;

bool EqualTexts(const std::string& a, const std::string& b, Work& work) {
  return a.size() == b.size() && work.Spend(a.size() / kBytesPerUnit) && a == b;
}

bool EqualLists(const ListObject& a, const ListObject& b, Work& work) {
  return std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(),
                    b.elements.end(), [&](const Value& x, const Value& y) {
                      return Equal(x, y, work);
                    });
}

bool EqualMaps(const MapObject& a, const MapObject& b, Work& work) {
  return a.entries().size() == b.entries().size() &&
         std::all_of(a.entries().begin(), a.entries().end(),
                     [&](const MapEntry& entry) {
                       const Value* other = b.Find(entry.key);
                       return other != nullptr &&
                              Equal(entry.value, *other, work);
                     });
}

bool EqualOptionals(const Optional& a, const Optional& b, Work& work) {
  if (!a.value || !b.value) return !a.value && !b.value;
  return Equal(*a.value, *b.value, work);
}

int KeyClass(const Value& key) {
  if (key.Is<bool>()) return 0;
  if (IsNumber(key)) return 1;
  return key.Is<String>() ? 2 : 3;
}

}  // namespace

bool Equal(const Value& a, const Value& b, Work& work) {
  if (!work.Spend(1)) return false;
  if (IsNumber(a) && IsNumber(b)) return CompareNumbers(a, b) == 0;
  if (a.data().index() != b.data().index()) return false;
  if (a.Is<String>()) return EqualTexts(a.text(), b.text(), work);
  if (const auto* x = a.As<bool>()) return *x == *b.As<bool>();
  if (const auto* x = a.As<Bytes>()) {
    return EqualTexts(*x->data, *b.As<Bytes>()->data, work);
  }
  if (const auto* x = a.As<Duration>()) {
    return x->nanos == b.As<Duration>()->nanos;
  }
  if (const auto* x = a.As<Timestamp>()) {
    const auto* y = b.As<Timestamp>();
    return x->seconds == y->seconds && x->nanos == y->nanos;
  }
  if (const auto* x = a.As<TypeValue>()) {
    return TypeName(*x->type) == TypeName(*b.As<TypeValue>()->type);
  }
  if (const auto* x = a.As<List>()) {
    return EqualLists(**x, **b.As<List>(), work);
  }
  if (const auto* x = a.As<Map>()) return EqualMaps(**x, **b.As<Map>(), work);
  if (const auto* x = a.As<Optional>()) {
    return EqualOptionals(*x, *b.As<Optional>(), work);
  }
  if (const auto* x = a.As<QuantityValue>()) {
    return *x->nanos == *b.As<QuantityValue>()->nanos;
  }
  if (const auto* x = a.As<SemverValue>()) {
    return Compare(*x->version, *b.As<SemverValue>()->version) == 0;
  }
  return a.Is<Null>();
}

Order OrderOf(const Value& a, const Value& b) {
  if (IsNumber(a) && IsNumber(b)) return {true, CompareNumbers(a, b)};
  if (a.data().index() != b.data().index()) return {};
  if (const auto* x = a.As<bool>()) return {true, *x <=> *b.As<bool>()};
  if (a.Is<String>()) return {true, a.text().compare(b.text()) <=> 0};
  if (const auto* x = a.As<Bytes>()) {
    return {true, x->data->compare(*b.As<Bytes>()->data) <=> 0};
  }
  if (const auto* x = a.As<Duration>()) {
    return {true, x->nanos <=> b.As<Duration>()->nanos};
  }
  if (const auto* x = a.As<Timestamp>()) {
    const auto* y = b.As<Timestamp>();
    if (x->seconds != y->seconds) return {true, x->seconds <=> y->seconds};
    return {true, x->nanos <=> y->nanos};
  }
  return {};
}

bool KeyBefore(const Value& a, const Value& b) {
  const auto* a_text = a.As<String>();
  const auto* b_text = b.As<String>();
  if (a_text != nullptr && b_text != nullptr) {
    return *a_text->text < *b_text->text;
  }
  const int a_class = KeyClass(a);
  const int b_class = KeyClass(b);
  if (a_class != b_class) return a_class < b_class;
  return a_class < 3 && OrderOf(a, b).order == std::partial_ordering::less;
}

}  // namespace devmgr::cel
