// SPDX-License-Identifier: Apache-2.0
//
// The functions of quantities and versions. Quantities are calculated exactly;
// only `asApproximateFloat` is approximate, as its name says.
#include <array>
#include <limits>
#include <optional>

#include "api/quantity.h"
#include "api/quote.h"
#include "cel/function.h"

namespace devmgr::cel {
namespace {

using std::int64_t;

constexpr Int128 kNano = 1'000'000'000;

std::optional<Int128> ReadQuantity(const std::string& text) {
  const auto quantity = api::ParseQuantity(text);
  if (!quantity.ok()) return std::nullopt;
  return static_cast<Int128>(quantity->whole) * kNano + quantity->nanos;
}

Int128 Nanos(const Args& args, std::size_t i) {
  return *args.As<QuantityValue>(i).nanos;
}

Value ParseQuantity(const Args& args) {
  const std::optional<Int128> nanos = ReadQuantity(args.Text(0));
  if (!nanos) {
    return Value::Failed("not a quantity: " + api::Quoted(args.Text(0)));
  }
  return Value::Quantity(*nanos);
}

std::optional<int64_t> WholeNumber(Int128 nanos) {
  const Int128 whole = nanos / kNano;
  if (nanos % kNano != 0 || whole > std::numeric_limits<int64_t>::max() ||
      whole < std::numeric_limits<int64_t>::min()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(whole);
}

Value AsInteger(const Args& args) {
  const std::optional<int64_t> number = WholeNumber(Nanos(args, 0));
  return number ? Value::Int(*number)
                : Value::Failed("cannot convert value to integer");
}

Value AsFloat(const Args& args) {
  return Value::Double(
      static_cast<double>(static_cast<long double>(Nanos(args, 0)) / 1e9L));
}

int64_t Sign(Int128 number) { return number > 0 ? 1 : number < 0 ? -1 : 0; }

Value CompareQuantities(const Args& args) {
  return Value::Int(Sign(Nanos(args, 0) - Nanos(args, 1)));
}

/// The second argument, which is a quantity or an int, in billionths.
Int128 Operand(const Args& args) {
  const auto* number = args[1].As<int64_t>();
  return number != nullptr ? static_cast<Int128>(*number) * kNano
                           : Nanos(args, 1);
}
Value AddQuantity(const Args& args) {
  Int128 sum = 0;
  if (__builtin_add_overflow(Nanos(args, 0), Operand(args), &sum)) {
    return Value::Failed("quantity overflow");
  }
  return Value::Quantity(sum);
}
Value SubtractQuantity(const Args& args) {
  Int128 difference = 0;
  if (__builtin_sub_overflow(Nanos(args, 0), Operand(args), &difference)) {
    return Value::Failed("quantity overflow");
  }
  return Value::Quantity(difference);
}

const Semver& Version(const Args& args, std::size_t i) {
  return *args.As<SemverValue>(i).version;
}

std::optional<Semver> ReadVersion(const Args& args) {
  return ParseSemver(args.Text(0), args.size() > 1 && args.As<bool>(1));
}
Value ParseVersion(const Args& args) {
  std::optional<Semver> version = ReadVersion(args);
  if (!version) {
    return Value::Failed("not a semantic version: " +
                         api::Quoted(args.Text(0)));
  }
  return Value::Version(*std::move(version));
}
Value IsVersion(const Args& args) {
  return Value::Bool(ReadVersion(args).has_value());
}

Value CompareVersions(const Args& args) {
  const auto order = Compare(Version(args, 0), Version(args, 1));
  return Value::Int(order > 0 ? 1 : order < 0 ? -1 : 0);
}

template <std::uint64_t Semver::*kNumber>
Value VersionNumber(const Args& args) {
  const std::uint64_t number = Version(args, 0).*kNumber;
  // Upstream converts a number above 2^63 - 1 as Go does: it wraps around.
  return Value::Int(static_cast<int64_t>(number));
}

constexpr auto kKubernetesRows = std::to_array<FunctionRow>({
    {"quantity", "string_to_quantity", "(string) -> quantity", ParseQuantity},
    {"isQuantity", "is_quantity_string", "(string) -> bool",
     [](const Args& args) {
       return Value::Bool(ReadQuantity(args.Text(0)).has_value());
     }},
    {"sign", "quantity_sign", "(quantity) -> int",
     [](const Args& args) { return Value::Int(Sign(Nanos(args, 0))); }},
    {"isGreaterThan", "quantity_is_greater_than", "quantity.(quantity) -> bool",
     [](const Args& args) {
       return Value::Bool(Nanos(args, 0) > Nanos(args, 1));
     }},
    {"isLessThan", "quantity_is_less_than", "quantity.(quantity) -> bool",
     [](const Args& args) {
       return Value::Bool(Nanos(args, 0) < Nanos(args, 1));
     }},
    {"compareTo", "quantity_compare_to", "quantity.(quantity) -> int",
     CompareQuantities},
    {"asApproximateFloat", "quantity_get_float", "quantity.() -> double",
     AsFloat},
    {"asInteger", "quantity_get_int", "quantity.() -> int", AsInteger},
    {"isInteger", "quantity_is_integer", "quantity.() -> bool",
     [](const Args& args) {
       return Value::Bool(WholeNumber(Nanos(args, 0)).has_value());
     }},
    {"add", "quantity_add", "quantity.(quantity) -> quantity", AddQuantity},
    {"add", "quantity_add_int", "quantity.(int) -> quantity", AddQuantity},
    {"sub", "quantity_sub", "quantity.(quantity) -> quantity",
     SubtractQuantity},
    {"sub", "quantity_sub_int", "quantity.(int) -> quantity", SubtractQuantity},
    {"semver", "string_to_semver", "(string) -> semver", ParseVersion},
    {"semver", "string_bool_to_semver", "(string, bool) -> semver",
     ParseVersion},
    {"isSemver", "is_semver_string", "(string) -> bool", IsVersion},
    {"isSemver", "is_semver_string_bool", "(string, bool) -> bool", IsVersion},
    {"isGreaterThan", "semver_is_greater_than", "semver.(semver) -> bool",
     [](const Args& args) {
       return Value::Bool(Compare(Version(args, 0), Version(args, 1)) > 0);
     }},
    {"isLessThan", "semver_is_less_than", "semver.(semver) -> bool",
     [](const Args& args) {
       return Value::Bool(Compare(Version(args, 0), Version(args, 1)) < 0);
     }},
    {"compareTo", "semver_compare_to", "semver.(semver) -> int",
     CompareVersions},
    {"major", "semver_major", "semver.() -> int",
     VersionNumber<&Semver::major>},
    {"minor", "semver_minor", "semver.() -> int",
     VersionNumber<&Semver::minor>},
    {"patch", "semver_patch", "semver.() -> int",
     VersionNumber<&Semver::patch>},
});

}  // namespace

std::span<const FunctionRow> KubernetesFunctions() { return kKubernetesRows; }

}  // namespace devmgr::cel
