// SPDX-License-Identifier: Apache-2.0
#include "cel/device.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "api/quote.h"
#include "cel/semver.h"

namespace devmgr::cel {
namespace {

constexpr std::string_view kDeviceType = "kubernetes.DRADevice";

Value OfScalar(std::int64_t number) { return Value::Int(number); }
Value OfScalar(bool flag) { return Value::Bool(flag); }
Value OfScalar(const SharedText& text) { return Value::Text(text.str()); }
/// A version was checked when the object was read. A wrong one is an error of
/// the expression that looks at it.
Value OfScalar(const DeviceVersion& version) {
  std::optional<Semver> parsed = ParseSemver(version.value, false);
  return parsed ? Value::Version(*std::move(parsed))
                : Value::Failed("not a semantic version: " +
                                api::Quoted(version.value));
}
template <typename T>
Value OfScalar(const RareVector<T>& values) {
  std::vector<Value> elements;
  elements.reserve(values.size());
  for (const auto& value : values) {
    Value element = OfScalar(static_cast<const T&>(value));
    if (element.IsError()) return element;
    elements.push_back(std::move(element));
  }
  return Value::ListOf(std::move(elements));
}

Value OfAttribute(const DeviceAttribute& attribute) {
  return std::visit([](const auto& value) { return OfScalar(value); },
                    attribute);
}

Value OfCapacity(const DeviceCapacity& capacity) {
  const Quantity& quantity = capacity.value;
  return Value::Quantity(static_cast<Int128>(quantity.whole) * 1'000'000'000 +
                         quantity.nanos);
}

/// A map without domains. One that is looked up nevertheless is an empty map.
Map NoDomains() {
  static const auto kNone = std::make_shared<const Value>(
      Value::Of(Map(std::make_shared<MapObject>())));
  auto map = std::make_shared<MapObject>();
  map->fallback = kNone;
  return map;
}

/// A map by domain of maps by name. A name without a domain belongs to the
/// domain of the driver.
template <typename T, typename Convert>
Value ByDomain(const SortedMap<T>& values, const Value& driver,
               Convert convert) {
  static const Value kEmpty = Value::Of(NoDomains());
  if (values.empty()) return kEmpty;
  const std::string_view own = driver.text();
  std::map<std::string_view, Map> domains;
  for (const auto& [full_name, value] : values) {
    const std::string_view name = full_name;
    const std::size_t slash = name.find('/');
    const bool is_own = slash == std::string_view::npos;
    Map& domain = domains[is_own ? own : name.substr(0, slash)];
    if (!domain) {
      domain = std::make_shared<MapObject>();
      domain->Reserve(values.size());
    }
    domain->Insert(
        Value::Text(std::string(is_own ? name : name.substr(slash + 1))),
        convert(value));
  }
  Map outer = NoDomains();
  for (auto& [domain, inner] : domains) {
    outer->Insert(domain == own ? driver : Value::Text(std::string(domain)),
                  Value::Of(std::move(inner)));
  }
  return Value::Of(std::move(outer));
}

Environment MakeEnvironment() {
  Environment environment;
  const std::string type(kDeviceType);
  environment.variables["device"] = ObjectType(type);
  auto& fields = environment.fields[type];
  fields["driver"] = ParseType("string");
  fields["attributes"] = ParseType("map(string, map(string, dyn))");
  fields["capacity"] = ParseType("map(string, map(string, quantity))");
  fields["allowMultipleAllocations"] = ParseType("bool");
  return environment;
}

/// A variable of Kubernetes 1.30 and the type of its values.
struct OldKind {
  std::string_view variable;
  std::string_view type;
};
constexpr auto kOldKinds = std::to_array<OldKind>({
    {"attributes.quantity", "quantity"},
    {"attributes.bool", "bool"},
    {"attributes.int", "int"},
    {"attributes.intslice", "list(int)"},
    {"attributes.string", "string"},
    {"attributes.stringslice", "list(string)"},
    {"attributes.version", "semver"},
});

/// The variable of Kubernetes 1.30 that has attributes of this kind. Lists of
/// bools and of versions are newer and have none.
std::string_view OldVariable(const DeviceAttribute& value) {
  constexpr std::array<std::string_view, 8> kVariables = {
      "attributes.int",         "attributes.bool",
      "attributes.string",      "attributes.version",
      "attributes.intslice",    "",
      "attributes.stringslice", ""};
  return kVariables[value.index()];
}

Environment MakeOldEnvironment() {
  Environment environment;
  for (const OldKind& kind : kOldKinds) {
    environment.variables[std::string(kind.variable)] =
        MapType(ParseType("string"), ParseType(kind.type));
  }
  return environment;
}

/// `name` without its domain if that is the domain of the driver.
std::string OldName(std::string_view name, std::string_view driver) {
  const bool is_own = name.size() > driver.size() && name.starts_with(driver) &&
                      name[driver.size()] == '/';
  return std::string(is_own ? name.substr(driver.size() + 1) : name);
}

}  // namespace

const Environment& OldDeviceEnvironment() {
  static const Environment environment = MakeOldEnvironment();
  return environment;
}

OldDevice MakeOldDevice(std::string_view driver, const SliceDevice& device) {
  std::map<std::string_view, Map> maps;
  for (const OldKind& kind : kOldKinds) {
    maps[kind.variable] = std::make_shared<MapObject>();
  }
  const auto insert = [&](std::string_view variable, std::string_view name,
                          Value value) {
    if (variable.empty()) return;
    maps[variable]->Insert(Value::Text(OldName(name, driver)),
                           std::move(value));
  };
  for (const auto& [name, value] : device.attributes) {
    insert(OldVariable(value), name, OfAttribute(value));
  }
  for (const auto& [name, capacity] : device.capacity) {
    insert("attributes.quantity", name, OfCapacity(capacity));
  }
  OldDevice variables;
  for (auto& [variable, map] : maps) {
    variables[std::string(variable)] = Value::Of(std::move(map));
  }
  return variables;
}

const Environment& DeviceEnvironment() {
  static const Environment environment = MakeEnvironment();
  return environment;
}

Value MakeDevice(std::string_view driver, const SliceDevice& device) {
  // All devices share the names of the fields.
  static const std::array kFields = {
      Value::Text("allowMultipleAllocations"), Value::Text("attributes"),
      Value::Text("capacity"), Value::Text("driver")};
  Value name = Value::Text(std::string(driver));
  auto map = std::make_shared<MapObject>();
  map->Reserve(kFields.size());
  map->Insert(kFields[0], Value::Bool(device.allow_multiple_allocations));
  map->Insert(kFields[1], ByDomain(device.attributes, name, OfAttribute));
  map->Insert(kFields[2], ByDomain(device.capacity, name, OfCapacity));
  map->Insert(kFields[3], std::move(name));
  return Value::Of(Map(std::move(map)));
}

Value MakeUnknownDevice(const std::string& driver) {
  auto map = std::make_shared<MapObject>();
  map->Insert(Value::Text("driver"), Value::Text(driver));
  for (const char* field :
       {"allowMultipleAllocations", "attributes", "capacity"}) {
    map->Insert(Value::Text(field), Value::Failed("the device is unknown"));
  }
  return Value::Of(Map(std::move(map)));
}

}  // namespace devmgr::cel
