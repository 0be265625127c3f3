// SPDX-License-Identifier: Apache-2.0
//
// Which devices claims would get on a node: the choice that Kubernetes'
// structured allocator makes of ResourceSlices, over plain objects. Nothing is
// recorded, and no driver is called.
#pragma once

#include <devmgr/export.h>
#include <devmgr/objects.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr {

/// What is chosen from, and for which claims. The order of slices, classes and
/// taint rules makes no difference.
struct AllocationInput {
  /// The node on which the devices have to be usable. Its name and its labels
  /// count, and its `declared_features`.
  Node node;
  /// Those of all nodes: devices of others are counted, not chosen.
  std::vector<ResourceSlice> slices;
  std::vector<DeviceClass> classes;
  /// Claims with an allocation hold its devices; the others are allocated, in
  /// this order.
  std::vector<ResourceClaim> claims;
  std::vector<DeviceTaintRule> taint_rules;
  /// What claims of v1alpha2 (`spec.old`) refer to: structured parameters of
  /// Kubernetes 1.30.
  std::vector<ResourceClass> resource_classes;
  std::vector<ResourceClassParameters> resource_class_parameters;
  std::vector<ResourceClaimParameters> resource_claim_parameters;
  /// Feature gates by name, such as `DRADerivedAttributes`. Those that change
  /// what is allocated are listed in docs/feature-gates.md: all of them are on,
  /// but DRADerivedAttributes, unless it is said here. Other names change
  /// nothing; CheckFeatureGates() knows which names there are.
  std::map<std::string, bool> feature_gates;
};

struct AllocationLimits {
  /// One step is each attempt to satisfy a claim, a request or an alternative,
  /// or to take a device for it.
  std::uint64_t steps = 1'000'000;
  /// Ends the search once it is true. Borrowed for the call; may be null.
  const std::atomic<bool>* interrupted = nullptr;
};

enum class AllocationOutcome {
  kSolved,  ///< Also when there was nothing to allocate.
  /// Not with these slices and these holders; or the parameters of a claim of
  /// v1alpha2 are missing, and `message` names them.
  kNoSolution,
  kHereNotNow,  ///< A pool is incomplete or invalid: when slices change.
  kBadInput,    ///< A claim or class is wrong; `message` says how.
  kInterrupted,
};
/// As the enumerator: `NoSolution`.
DEVMGR_EXPORT std::string_view AllocationOutcomeName(AllocationOutcome outcome);

/// Why one device is not given to a request: the first of the tests that
/// refuses it.
struct RefusedDevice {
  std::string driver;
  std::string pool;
  std::string device;
  /// `not-on-node`, `request-selector`, `busy` and so on; `none` for a device
  /// that would do, where it is others that are missing.
  std::string reason;
  /// What about it: the claim that holds it, the counter, the key of the taint,
  /// the expression with the attribute that is missing. May be empty.
  std::string detail;
  friend bool operator==(const RefusedDevice&, const RefusedDevice&) = default;
};

/// Why one request, or one alternative of it, got no devices.
struct RefusedRequest {
  std::string claim;    ///< `namespace/name`.
  std::string request;  ///< `req` or `req/sub`.
  std::int64_t wanted = 0;
  std::int64_t found = 0;  ///< In the attempt that got furthest.
  /// In order of trial; of more than 1,000 the first ones.
  std::vector<RefusedDevice> devices;
  /// By reason, of all devices.
  std::vector<std::pair<std::string, std::size_t>> counts;
};

struct AllocatedClaims {
  AllocationOutcome outcome = AllocationOutcome::kNoSolution;
  /// Solved: the claims that had no allocation, in their order, with
  /// `status.allocation` and the finalizer that a scheduler writes before it.
  /// Otherwise none: all claims are allocated, or none is.
  /// Those of v1alpha2 have it in both forms: results, and handles.
  std::vector<ResourceClaim> claims;
  std::string message;  ///< Why not, for people; may be empty.
  std::vector<RefusedRequest> refusals;
  std::uint64_t steps = 0;
};

/// Allocates what is not allocated in `input`. Takes microseconds for usual
/// claims and ends within `limits`, whatever the input is. Pure: any number of
/// threads may call it.
DEVMGR_EXPORT AllocatedClaims AllocateClaims(
    const AllocationInput& input, const AllocationLimits& limits = {});

}  // namespace devmgr
