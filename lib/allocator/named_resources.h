// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30 as a claim that the search knows,
// and what it gets in the form of that version. The objects stay as they are
// stored: a claim is made of them for each attempt anew.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace devmgr::allocator {

/// What a claim of v1alpha2 may refer to. Borrowed.
struct NamedResourceObjects {
  std::span<const ResourceClass> classes;
  std::span<const ResourceClassParameters> class_parameters;
  std::span<const ResourceClaimParameters> claim_parameters;
};

struct NamedResourceClaim {
  /// Request `r-i-j` is request j of entry i for drivers, for one device.
  ResourceClaim claim;
  /// The class of its requests, with configuration and no selectors: filters
  /// are selectors of requests, as each is for one driver alone. Its name is
  /// none that a DeviceClass can have.
  DeviceClass device_class;
  bool is_shareable = false;  ///< Any number of pods may use it.
  std::string driver;         ///< That of the class.
  /// The parameters in the handle of each driver, which names no devices yet.
  std::map<std::string, StructuredResourceHandle> handles;
  std::map<std::string, std::string> vendor_parameters;  ///< By request.
};

/// Looks up what `spec`, that of `claim`, refers to.
///   Unavailable         something is missing, which is named: again when it is
///                       there
///   InvalidArgument     there are several parameters generated from one object
///   FailedPrecondition  the driver's own controller allocates claims of the
///                       class
absl::StatusOr<NamedResourceClaim> MakeNamedResourceClaim(
    const ResourceClaim& claim, const OldClaimSpec& spec,
    const NamedResourceObjects& objects);

/// Adds to `allocation`, what the claim got on `node`, all that its old form
/// has: the handles of its drivers, the node by its label as Kubernetes 1.30
/// did, and whether it is shareable. A claim without devices has an empty
/// handle of the class's driver.
void AddOldForm(const NamedResourceClaim& made, std::string_view node,
                AllocationResult& allocation);

}  // namespace devmgr::allocator
