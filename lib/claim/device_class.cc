// SPDX-License-Identifier: Apache-2.0
#include "claim/device_class.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"

namespace devmgr::claim {
namespace {

/// What is not known is older than anything else.
std::int64_t CreatedAt(const DeviceClass& item) {
  return api::UnixSecondsOf(item.metadata.creation_timestamp)
      .value_or(std::numeric_limits<std::int64_t>::min());
}

/// Of two classes with one explicit name, in the order of their own names.
bool GivesWayTo(const DeviceClass* owner, const DeviceClass& item) {
  return owner == nullptr || CreatedAt(*owner) < CreatedAt(item);
}

}  // namespace

std::map<ResourceName, const DeviceClass*> ClassesByResource(
    const ObjectMap<DeviceClass>& classes) {
  std::map<ResourceName, const DeviceClass*> owners;
  for (const auto& [name, item] : classes) {  // in order of their names
    if (item->extended_resource_name.empty()) continue;
    const DeviceClass*& owner = owners[item->extended_resource_name];
    if (GivesWayTo(owner, *item)) owner = item.get();
  }
  return owners;
}

const DeviceClass* ResourceClasses::Find(const ResourceName& resource) const {
  if (!api::CanBeDraExtendedResource(resource)) return nullptr;
  if (const auto name = ClassOfImplicitName(resource); !name.empty()) {
    const auto found = classes_.find({"", std::string(name)});
    return found != classes_.end() ? found->second.get() : nullptr;
  }
  const DeviceClass* owner = nullptr;
  for (const auto& [name, item] : classes_) {
    const bool has_it = item->extended_resource_name == resource.value;
    if (has_it && GivesWayTo(owner, *item)) owner = item.get();
  }
  return owner;
}

std::string ResourceClasses::WhyNone(const ResourceName& resource) const {
  const std::string quoted = api::Quoted(resource.value);
  const std::string_view name = ClassOfImplicitName(resource);
  if (name.empty()) {
    return fmt::format("no DeviceClass has the extendedResourceName {}",
                       quoted);
  }
  if (!api::CanBeDraExtendedResource(resource)) {
    return fmt::format("{} is the implicit name of no DeviceClass: {}", quoted,
                       api::CheckQualifiedName(resource));
  }
  return fmt::format("{} means the DeviceClass {}, which does not exist",
                     quoted, api::Quoted(name));
}

std::string_view ClassOfImplicitName(std::string_view resource) {
  if (!resource.starts_with(api::kImplicitResourcePrefix)) return {};
  return resource.substr(api::kImplicitResourcePrefix.size());
}

std::vector<std::string> DriversNamedBy(const DeviceClass& item) {
  static constexpr std::string_view kDriver = "device.driver";
  static constexpr std::string_view kBlank = " \t\n";
  std::vector<std::string> drivers;
  for (const std::string_view selector : item.selectors) {
    for (std::size_t at = selector.find(kDriver); at != std::string_view::npos;
         at = selector.find(kDriver, at + 1)) {
      std::string_view rest = selector.substr(at + kDriver.size());
      const auto skip_blanks = [&rest] {
        rest.remove_prefix(
            std::min(rest.find_first_not_of(kBlank), rest.size()));
      };
      skip_blanks();
      if (!rest.starts_with("==")) continue;
      rest.remove_prefix(2);
      skip_blanks();
      if (rest.empty() || (rest[0] != '"' && rest[0] != '\'')) continue;
      const std::size_t end = rest.find(rest[0], 1);
      if (end != std::string_view::npos) {
        drivers.emplace_back(rest.substr(1, end - 1));
      }
    }
  }
  return drivers;
}

}  // namespace devmgr::claim
