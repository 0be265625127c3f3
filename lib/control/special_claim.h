// SPDX-License-Identifier: Apache-2.0
//
// The claim that is made for the extended resources of a pod that a device
// class serves (KEP-5004): one per pod, for all of them together.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/objects.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace devmgr::control {

/// What a special claim has in place of a name until it is given one. It cannot
/// be the name of an object.
inline constexpr char kWorkingClaimName[] = "<extended-resources>";

/// Marks special claims, with the value `true`. By itself it proves nothing:
/// any client that may create claims may write it.
inline constexpr char kExtendedResourceClaimAnnotation[] =
    "resource.kubernetes.io/extended-resource-claim";

/// What one claim may be allocated, and so what a pod may have of extended
/// resources by claim in all.
inline constexpr std::int64_t kMaxDevicesPerClaim = 32;

/// A special claim, and what the status of the pod says of it.
struct SpecialClaim {
  /// Owned by the pod, not allocated, named kWorkingClaimName.
  ResourceClaim claim;
  /// By resource; of each first the containers that run on, then init
  /// containers that end. One of those may have several requests, as it uses
  /// devices of containers that start later.
  std::vector<ContainerExtendedResourceRequest> mappings;
};

/// The claim that the pod needs for what its containers request of extended
/// resources by names that `served_by_class`; nothing when that is nothing.
/// Quantities that are no integers count as nothing.
///   InvalidArgument  more than kMaxDevicesPerClaim devices in all
///   NotFound         no class has one of the names, and why
absl::StatusOr<std::optional<SpecialClaim>> BuildSpecialClaim(
    const Pod& pod, const ObjectMap<DeviceClass>& classes,
    const std::function<bool(const ResourceName&)>& served_by_class);

/// May a special claim that the pod has already be kept, as it asks for what
/// would be asked for now?
bool IsAsWanted(const ResourceClaim& special, const SpecialClaim& wanted);

}  // namespace devmgr::control
