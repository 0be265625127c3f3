// SPDX-License-Identifier: Apache-2.0
#include "cel/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "api/quote.h"
#include "cel/compare.h"
#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::shared_ptr<const std::string> Share(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

/// The size at which a description is cut.
constexpr std::size_t kMaxDescription = 200;

void AppendTo(std::string& text, const Value& value);

void AppendSequence(std::string& text, char open, char close, std::size_t count,
                    auto append) {
  text += open;
  for (std::size_t i = 0; i < count && text.size() < kMaxDescription; ++i) {
    if (i > 0) text += ", ";
    append(i);
  }
  text += text.size() < kMaxDescription ? std::string(1, close) : "...";
}

void AppendTo(std::string& text, const Value& value) {
  std::visit(
      Overloaded{
          [&](Null) { text += "null"; },
          [&](bool b) { text += b ? "true" : "false"; },
          [&](std::int64_t i) { text += std::to_string(i); },
          [&](std::uint64_t u) { text += std::to_string(u) + "u"; },
          [&](double d) { text += fmt::format("{}", d); },
          [&](const String& s) {
            text += '"' + api::Readable(*s.text, kMaxDescription) + '"';
          },
          [&](const Bytes& b) { text += "b" + api::Quoted(*b.data); },
          [&](Duration d) { text += fmt::format("duration({}ns)", d.nanos); },
          [&](Timestamp t) {
            text += fmt::format("timestamp({}s+{}ns)", t.seconds, t.nanos);
          },
          [&](const TypeValue& t) { text += TypeName(*t.type); },
          [&](const List& list) {
            AppendSequence(
                text, '[', ']', list->elements.size(),
                [&](std::size_t i) { AppendTo(text, list->elements[i]); });
          },
          [&](const Map& map) {
            AppendSequence(text, '{', '}', map->entries().size(),
                           [&](std::size_t i) {
                             AppendTo(text, map->entries()[i].key);
                             text += ": ";
                             AppendTo(text, map->entries()[i].value);
                           });
          },
          [&](const Optional& optional) {
            text += optional.value ? "optional.of(" : "optional.none(";
            if (optional.value) AppendTo(text, *optional.value);
            text += ")";
          },
          [&](const QuantityValue& q) {
            const Int128 whole = *q.nanos / 1'000'000'000;
            text += fmt::format("quantity({})", static_cast<double>(whole));
          },
          [&](const SemverValue& s) {
            text += fmt::format("semver({}.{}.{})", s.version->major,
                                s.version->minor, s.version->patch);
          },
          [&](const Error& error) { text += "error: " + *error.message; },
      },
      value.data());
}

}  // namespace

Value Value::Text(std::string text) {
  const std::size_t characters = CountCharacters(text);
  return Of(String{Share(std::move(text)), characters});
}
Value Value::OfBytes(std::string data) {
  return Of(Bytes{Share(std::move(data))});
}
Value Value::ListOf(std::vector<Value> elements) {
  auto list = std::make_shared<ListObject>();
  for (const Value& element : elements) {
    list->depth = std::max(list->depth, DepthOf(element) + 1);
  }
  list->elements = std::move(elements);
  return Of(List(std::move(list)));
}
Value Value::OptionalOf(Value value) {
  const int depth = DepthOf(value) + 1;
  return Of(Optional{std::make_shared<const Value>(std::move(value)), depth});
}
Value Value::Quantity(Int128 nanos) {
  return Of(QuantityValue{std::make_shared<const Int128>(nanos)});
}
Value Value::Version(Semver version) {
  return Of(SemverValue{std::make_shared<const Semver>(std::move(version))});
}
Value Value::Failed(std::string message) {
  return Of(Error{Share(std::move(message))});
}

int DepthOf(const Value& value) {
  if (const auto* list = value.As<List>()) return (*list)->depth;
  if (const auto* map = value.As<Map>()) return (*map)->depth;
  const auto* optional = value.As<Optional>();
  return optional != nullptr ? optional->depth : 0;
}

bool IsLegalKey(const Value& value) {
  return value.Is<bool>() || value.Is<std::int64_t>() ||
         value.Is<std::uint64_t>() || value.Is<String>();
}

namespace {

/// The key by which a map is searched for `key`. A double is no legal key, but
/// one that is a whole number finds the key of that amount.
std::optional<Value> WholeKey(const Value& key) {
  const auto* number = key.As<double>();
  if (number == nullptr) return key;
  if (std::trunc(*number) != *number) return std::nullopt;
  if (*number >= -9223372036854775808.0 && *number < 9223372036854775808.0) {
    return Value::Int(static_cast<std::int64_t>(*number));
  }
  if (*number >= 0 && *number < 18446744073709551616.0) {
    return Value::Uint(static_cast<std::uint64_t>(*number));
  }
  return std::nullopt;
}

}  // namespace

std::size_t MapObject::PlaceOf(const Value& key, bool& found) const {
  const auto place =
      std::lower_bound(order_.begin(), order_.end(), key,
                       [&](std::uint32_t index, const Value& wanted) {
                         return KeyBefore(entries_[index].key, wanted);
                       });
  found = place != order_.end() && !KeyBefore(key, entries_[*place].key);
  return static_cast<std::size_t>(place - order_.begin());
}

const Value* MapObject::Find(const Value& key) const {
  bool found = false;
  if (!key.Is<double>()) {
    const std::size_t place = PlaceOf(key, found);
    return found ? &entries_[order_[place]].value : nullptr;
  }
  const std::optional<Value> whole = WholeKey(key);
  if (!whole) return nullptr;
  const std::size_t place = PlaceOf(*whole, found);
  return found ? &entries_[order_[place]].value : nullptr;
}

bool MapObject::Insert(Value key, Value value) {
  bool found = false;
  const std::size_t place = PlaceOf(key, found);
  if (found) return false;
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place),
                static_cast<std::uint32_t>(entries_.size()));
  depth = std::max(depth, DepthOf(value) + 1);
  entries_.push_back({std::move(key), std::move(value)});
  return true;
}

void MapObject::Set(Value key, Value value) {
  bool found = false;
  const std::size_t place = PlaceOf(key, found);
  if (!found) {
    Insert(std::move(key), std::move(value));
    return;
  }
  depth = std::max(depth, DepthOf(value) + 1);
  entries_[order_[place]].value = std::move(value);
}

TypeRef TypeOf(const Value& value) {
  const auto dyn = [] { return SimpleType(TypeKind::kDyn); };
  return std::visit(
      Overloaded{
          [](Null) { return SimpleType(TypeKind::kNull); },
          [](bool) { return SimpleType(TypeKind::kBool); },
          [](std::int64_t) { return SimpleType(TypeKind::kInt); },
          [](std::uint64_t) { return SimpleType(TypeKind::kUint); },
          [](double) { return SimpleType(TypeKind::kDouble); },
          [](const String&) { return SimpleType(TypeKind::kString); },
          [](const Bytes&) { return SimpleType(TypeKind::kBytes); },
          [](Duration) { return SimpleType(TypeKind::kDuration); },
          [](Timestamp) { return SimpleType(TypeKind::kTimestamp); },
          [](const TypeValue& t) { return TypeType(t.type); },
          [&](const List&) { return ListType(dyn()); },
          [&](const Map&) { return MapType(dyn(), dyn()); },
          [&](const Optional&) { return OptionalType(dyn()); },
          [](const QuantityValue&) {
            return ObjectType(std::string(kQuantityTypeName));
          },
          [](const SemverValue&) {
            return ObjectType(std::string(kSemverTypeName));
          },
          [](const Error&) { return SimpleType(TypeKind::kError); },
      },
      value.data());
}

std::uint64_t SizeOf(const Value& value, bool through_optional) {
  if (const auto* text = value.As<String>()) return text->characters;
  if (const auto* bytes = value.As<Bytes>()) return bytes->data->size();
  if (const auto* list = value.As<List>()) return (*list)->elements.size();
  if (const auto* map = value.As<Map>()) return (*map)->entries().size();
  const auto* optional = value.As<Optional>();
  if (through_optional && optional != nullptr && optional->value) {
    return SizeOf(*optional->value);
  }
  return 1;
}

std::string Describe(const Value& value) {
  std::string text;
  AppendTo(text, value);
  return text;
}

}  // namespace devmgr::cel
