// SPDX-License-Identifier: Apache-2.0
//
// The entry of the room: which devices the claims of a pod get, by the rules of
// resource.k8s.io v1 and with the results of Kubernetes' structured allocator,
// which takes the first fit. Values in, values out: no clock, no disk, no
// thread. README.md has the search in one page.
#pragma once

#include <devmgr/metrics.h>
#include <devmgr/objects.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/features.h"
#include "allocator/refusals.h"
#include "cel/selector_cache.h"

namespace devmgr::allocator {

class Inventory;

/// What there is, borrowed. The order of objects makes no difference.
struct World {
  const Node* node = nullptr;
  /// Of all nodes: those of others are counted, and their devices use counters.
  std::vector<const ResourceSlice*> slices;
  /// None while the feature gate DRADeviceTaintRules is off.
  std::vector<const DeviceTaintRule*> taint_rules;
};

/// What one search may cost. What goes beyond ends as kInterrupted.
struct Limits {
  /// One is each attempt to satisfy a claim, a request, an alternative or a
  /// device of it.
  std::uint64_t steps = 1'000'000;
  /// Ends the search once it is true. Borrowed for the call; may be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called before each step, where a search in no hurry may pause. Null:
  /// nothing is.
  std::function<void()> before_step = nullptr;
};

/// What is made of a selector that fails on a device, as on a missing
/// attribute.
enum class SelectorErrors {
  kBadInput,  ///< The claim is bad input, as upstream has it.
  kNoMatch,   ///< The device does not match; Outcome::warnings has the error.
};

struct Options {
  Limits limits;
  SelectorErrors selector_errors = SelectorErrors::kBadInput;
  /// Fills Outcome::refusals when there is no solution.
  bool explain = false;
  /// Whether a device may be chosen for a request of the claim of this place,
  /// `req` or `req/sub`, besides all else; not asked for admin access. Null:
  /// each may.
  std::function<bool(std::size_t claim, std::string_view request,
                     const ResourceSlice& slice, const SliceDevice& device)>
      admits = nullptr;
  /// Skips devices that are like one which was tried, and places where too few
  /// are left. The result is the same; it is here so that tests can hold one
  /// against the other.
  bool reduce_symmetry = true;
  /// Makes the ID of a share: a UUID that no other share has. Without it, IDs
  /// follow from the claim's UID, the request and the device.
  std::function<std::string()> new_share_id;
  /// Selectors that were compiled. Borrowed for the call; may be null.
  cel::SelectorCache* selectors = nullptr;
};

enum class Result {
  kSolved,
  /// There is none now: again when slices, classes, claims or allocations
  /// change.
  kNoSolution,
  /// A pool is incomplete or invalid: again when slices change.
  kHereNotNow,
  /// A claim or class is wrong, or needs a feature that is off.
  kBadInput,
  /// The steps were spent, or the caller wants no more: again later.
  kInterrupted,
};

std::string_view ResultName(Result result);

/// What one claim gets.
struct Allocation {
  AllocationResult allocation;
  /// The counters that its devices use, for the record. A state that is built
  /// with them does not depend on what slices say later.
  std::vector<DeviceCharge> charges;
};

struct Outcome {
  Result result = Result::kNoSolution;
  /// One for each claim, in their order, when solved; else empty.
  std::vector<Allocation> allocations;
  /// Why there is no solution; empty when it is for want of devices alone.
  std::string message;
  /// Of selectors that failed and were taken as no match.
  std::vector<std::string> warnings;
  std::vector<RequestRefusals> refusals;
  std::uint64_t steps = 0;
  SearchFigures figures;
};

/// The pools of `world` that are usable on its node, in order of trial, and
/// their devices. It is made once for many searches; any number of threads may
/// share it. It refers to the objects of `world`, which have to outlive it.
std::shared_ptr<const Inventory> TakeInventory(const World& world,
                                               const Features& features = {});

/// Devices for all `claims`, or for none. `held` is what claims have already.
/// The claims have passed validation and have no allocation.
Outcome Allocate(const Inventory& inventory,
                 std::span<const DeviceClass* const> classes,
                 const AllocatedState& held,
                 std::span<const ResourceClaim* const> claims,
                 const Options& options = {});

/// Many searches in one inventory, as for all pods that wait when a device has
/// come: what selectors and attributes say of its devices is kept from one
/// search to the next, and so is what follows from a state until another one is
/// given. The outcomes are those of Allocate(). It belongs to one thread at a
/// time.
class Judge {
 public:
  /// Borrows the classes, and what `options` borrows.
  Judge(std::shared_ptr<const Inventory> inventory,
        std::vector<const DeviceClass*> classes, Options options = {});
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  Outcome Allocate(const AllocatedState& held,
                   std::span<const ResourceClaim* const> claims);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace devmgr::allocator
