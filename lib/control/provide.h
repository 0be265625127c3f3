// SPDX-License-Identifier: Apache-2.0
//
// The claims of one pod, as a control plane would provide them: made, allocated
// together, reserved for the pod. What is decided is one batch of the ledger.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/features.h"
#include "allocator/figures.h"
#include "allocator/refusals.h"
#include "cel/selector_cache.h"
#include "claim/published_hardware.h"
#include "control/eviction_plan.h"
#include "control/held_devices.h"
#include "control/held_elsewhere.h"
#include "control/local_inventory.h"
#include "control/quota.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::control {

// Why a pod waits for its claims, or is rejected over them.
inline constexpr char kCannotAllocate[] = "CannotAllocateClaims";
inline constexpr char kClaimInUse[] = "ClaimCannotBeReserved";
inline constexpr char kExceededQuota[] = "ExceededQuota";
inline constexpr char kTooManyDevices[] = "TooManyExtendedResources";

/// What counts besides the pod.
struct ProvideInput {
  const state::State& state;
  /// Of the source, with what this node decided (local_objects.h).
  const ObjectSnapshot& objects;
  std::string node_name;
  /// Whether an extended resource is to be had through claims now.
  std::function<bool(const ResourceName&)> served_by_class;
  /// Devices of others cannot be had, so they are not looked at.
  std::function<bool(const std::string& driver)> driver_registered;
  bool extended_resources = true;  ///< Feature gate DRAExtendedResource.
  std::int64_t now_ms = 0;
  std::function<std::uint64_t()> random;  ///< For UIDs and names.
  /// Of the slices of `objects`. Null: nothing is known of any hardware.
  claim::PublishedHardware* hardware = nullptr;
  /// Claims that pods have to leave are reserved for no more. Null: there are
  /// none.
  const EvictionPlan* evictions = nullptr;
  /// What the search may cost; nothing: what the provider was made with.
  std::optional<std::uint64_t> steps = std::nullopt;
  /// Ends the search once it is true. Borrowed for the call; may be null.
  const std::atomic<bool>* interrupted = nullptr;
  QuotaRule quota_rule = QuotaRule::kStrict;
  /// Whether a device may be chosen for a request that the container uses.
  /// Null: each may.
  std::function<bool(const ContainerName& container, const ResourceSlice& slice,
                     const SliceDevice& device)>
      admits = nullptr;
  /// Searches among all devices, as if no claim held any. What is found cannot
  /// be committed.
  bool none_held = false;
  /// As allocator::Limits has it.
  std::function<void()> before_step = nullptr;
  /// Claims come as they would be read back from the ledger, or it is an error
  /// that they cannot. False: as they were made, which is enough for what is
  /// never committed.
  bool read_back = true;
};

/// What could be had of drivers at a moment: by driver, or
/// WaitingFor::kAnyDriver, a number for what is published and one for what is
/// held. Searches that differ in nothing else end alike.
using FreeDevices =
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

/// kAdmit: with `changes`, the pod has its claims once they are committed on
/// this very `state`; without, it has them, or they are no business of ours,
/// and `waiting_for` of the verdict says when they could be.
/// kWait: there is no device now, or something is missing. kReject: never.
struct Provision {
  Verdict verdict;
  std::vector<state::Change> changes;
  std::vector<ObjectName> claims;  ///< That are made, allocated or reserved.
  /// Of a wait for devices: what it failed on.
  FreeDevices failed_on = {};
  // Of a wait: by request and device what refuses it, with what of it is held
  // by the hardware; or by quota.
  std::vector<allocator::RequestRefusals> refusals = {};
  HeldElsewhere::Holders elsewhere = {};
  std::vector<QuotaExcess> exceeded = {};
};

/// Keeps what stays the same from one pod to the next: the inventory of the
/// slices, what claims hold, compiled selectors. Lives on one thread.
class ClaimProvider {
 public:
  /// `feature_gates` by name; `steps` is what one search may cost, as
  /// allocator::Limits has it.
  ClaimProvider(const std::map<std::string, bool>& feature_gates,
                std::uint64_t steps)
      : steps_(steps),
        selectors_(kSelectors),
        inventory_(allocator::FeaturesOf(feature_gates)) {}

  /// `pod` is shown with its local status. Unavailable when the search was
  /// given up before its end; it may be tried again.
  absl::StatusOr<Provision> Provide(const Pod& pod, const ProvideInput& input);

  /// Whether what `failed_on` has is what there is by now: a pod that failed on
  /// it would do so again, if for nothing but devices.
  bool IsSame(const FreeDevices& failed_on, const ProvideInput& input);

  /// Of the last Provide(), whatever came of it; 0: nothing was searched.
  std::uint64_t last_steps() const { return last_steps_; }

  /// Of all searches since it was called last.
  SearchFigures TakeFigures() { return std::exchange(figures_, {}); }

  /// What of the devices is held, as Provide() would find it.
  allocator::Figures Figures(const ProvideInput& input);

 private:
  class Attempt;
  FreeDevices FreeNow(const std::set<std::string>& drivers) const;
  Verdict WhyNone(const allocator::Outcome& outcome, const Attempt& attempt,
                  const ProvideInput& input,
                  const HeldElsewhere::Holders& elsewhere) const;
  /// What `pod` cannot have; empty: any pod.
  HeldElsewhere::Devices HeldFor(const PodUid& pod, const ProvideInput& input);

  static constexpr std::size_t kSelectors = 1'000;  ///< Kept compiled.

  const std::uint64_t steps_;
  cel::SelectorCache selectors_;
  LocalInventory inventory_;
  HeldDevices held_;
  HeldElsewhere elsewhere_;
  std::uint64_t last_steps_ = 0;
  SearchFigures figures_;
};

}  // namespace devmgr::control
