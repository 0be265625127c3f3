// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30 as a claim that the search knows.
// The objects stay as they are stored: a claim is made of them for each attempt
// anew.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <span>

#include "api/structured_parameters.h"

namespace devmgr::allocator {

/// What a claim of v1alpha2 may refer to. Borrowed.
struct NamedResourceObjects {
  std::span<const api::ResourceClass> classes;
  std::span<const api::ResourceClassParameters> class_parameters;
  std::span<const api::ResourceClaimParameters> claim_parameters;
};

struct NamedResourceClaim {
  /// Request `r-i-j` is request j of entry i for drivers, for one device.
  ResourceClaim claim;
  /// The class of its requests, with configuration and no selectors: filters
  /// are selectors of requests, as each is for one driver alone.
  DeviceClass device_class;
  bool is_shareable = false;  ///< Any number of pods may use it.
};

/// Looks up what `spec`, that of `claim`, refers to.
///   Unavailable         something is missing, which is named: again when it is
///                       there
///   InvalidArgument     there are several parameters generated from one object
///   FailedPrecondition  the driver's own controller allocates claims of the
///                       class
absl::StatusOr<NamedResourceClaim> MakeNamedResourceClaim(
    const ResourceClaim& claim, const api::OldClaimSpec& spec,
    const NamedResourceObjects& objects);

}  // namespace devmgr::allocator
