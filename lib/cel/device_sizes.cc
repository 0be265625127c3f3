// SPDX-License-Identifier: Apache-2.0
#include "cel/device_sizes.h"

#include <span>
#include <string_view>

namespace devmgr::cel {
namespace {

// The names are those of the API's constants.
constexpr std::uint64_t kDeviceMaxDomainLength = 63;
constexpr std::uint64_t kDeviceMaxIdLength = 32;
constexpr std::uint64_t kDriverNameMaxLength = 63;
constexpr std::uint64_t kMaxAttributesAndCapacities = 32;
/// The larger one of two limits: 64 characters of a string, 48 elements of a
/// list.
constexpr std::uint64_t kMaxAttributeSize = 64;

SizeRange UpTo(std::uint64_t size) { return {0, size}; }

bool IsElement(std::string_view part) {
  return part == "@values" || part == "@items";
}

/// The size of what `rest` leads to within the attributes or capacities.
std::optional<SizeRange> MapSize(std::span<const std::string> rest,
                                 bool is_attributes) {
  if (rest.empty()) return UpTo(kMaxAttributesAndCapacities);
  if (rest[0] == "@keys") {
    if (rest.size() > 1) return std::nullopt;
    return UpTo(kDeviceMaxDomainLength);
  }
  // A domain is never selected as a field, since its name contains dots.
  if (!IsElement(rest[0])) return std::nullopt;
  rest = rest.subspan(1);
  if (rest.empty()) return UpTo(kMaxAttributesAndCapacities);
  if (rest.size() > 1) return std::nullopt;
  if (rest[0] == "@keys") return UpTo(kDeviceMaxIdLength);
  if (is_attributes && rest[0] != "@indices") return UpTo(kMaxAttributeSize);
  // A quantity has no size.
  if (IsElement(rest[0])) return UpTo(0);
  return std::nullopt;
}

}  // namespace

std::optional<SizeRange> DeviceSize(const std::vector<std::string>& path) {
  if (path.empty() || path[0] != "device") return std::nullopt;
  if (path.size() == 1) return UpTo(0);
  const std::span<const std::string> rest = std::span(path).subspan(2);
  if (path[1] == "attributes") return MapSize(rest, true);
  if (path[1] == "capacity") return MapSize(rest, false);
  if (!rest.empty()) return std::nullopt;
  if (path[1] == "driver") return UpTo(kDriverNameMaxLength);
  if (path[1] == "allowMultipleAllocations") return UpTo(1);
  return std::nullopt;
}

}  // namespace devmgr::cel
