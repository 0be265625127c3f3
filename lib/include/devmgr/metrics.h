// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/export.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace devmgr {

/// What searches for devices of claims have asked.
struct SearchFigures {
  struct Verdicts {
    std::uint64_t matches = 0;
    std::uint64_t mismatches = 0;
    std::uint64_t errors = 0;

    Verdicts& operator+=(const Verdicts& more) {
      matches += more.matches;
      mismatches += more.mismatches;
      errors += more.errors;
      return *this;
    }
  };
  Verdicts evaluated;      ///< Selectors in CEL, each on one device.
  Verdicts known;          ///< The same again, in the same search.
  std::uint64_t cost = 0;  ///< Units of CEL, of those that were evaluated.
  /// Devices that were tried for a request and would do, but for the devices
  /// that were chosen before them, by what refused them.
  std::uint64_t counter = 0;
  std::uint64_t compatibility_group = 0;
  std::uint64_t constraint = 0;
  std::uint64_t capacity = 0;

  SearchFigures& operator+=(const SearchFigures& more) {
    evaluated += more.evaluated;
    known += more.known;
    cost += more.cost;
    counter += more.counter;
    compatibility_group += more.compatibility_group;
    constraint += more.constraint;
    capacity += more.capacity;
    return *this;
  }
};

/// Hears what a metric can only learn as it happens; everything else can be
/// read off the views of a DeviceManager at any time. All methods have empty
/// defaults.
///
/// Thread: one, the manager's own, in order of what happened.
/// Locks: none is held.
/// Limits: do not block, throw, or call blocking methods of the manager.
///
/// Names are valid names of extended resources, but chosen by plugins: a sink
/// that counts by name should bound how many names there can be.
class DEVMGR_EXPORT MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  /// A device plugin called Register on the registry socket, whether or not it
  /// was taken in; `invalid` in place of a name that is none. Plugins of the
  /// registration directory do not count, as upstream.
  virtual void OnRegistration(const ResourceName& /*resource*/) {}
  /// An Allocate call to the plugin of `resource` ended, so long after it was
  /// asked for. A call that was refused before it was sent (no connection,
  /// breaker, quarantine, too many waiting) ended, too, with a failure.
  virtual void OnAllocate(const ResourceName& /*resource*/,
                          std::chrono::nanoseconds /*took*/, bool /*failed*/) {}
  /// A pod's claims were prepared, or unprepared, or that failed.
  virtual void OnClaimsPrepared(std::chrono::nanoseconds /*took*/,
                                bool /*failed*/) {}
  virtual void OnClaimsUnprepared(std::chrono::nanoseconds /*took*/,
                                  bool /*failed*/) {}
  /// A call to a DRA driver ended. `method`: the full path. `code`: gRPC's
  /// name of it, `OK`.
  virtual void OnDriverCall(const std::string& /*driver*/,
                            const std::string& /*method*/,
                            const std::string& /*code*/,
                            std::chrono::nanoseconds /*took*/) {}
  /// A driver was not called about a claim, because all its devices in it do
  /// without (feature gate DRAOptionalNodeOperations).
  virtual void OnPrepareSkipped(const std::string& /*driver*/) {}
  virtual void OnUnprepareSkipped(const std::string& /*driver*/) {}
  /// A pod action (Host::act_on_pod). `action` as PodActionKindName; `outcome`:
  /// `requested`; `held_back`: not taken, because so much fails at once; or
  /// `failed`: it could not be recorded, and is tried again.
  virtual void OnPodAction(std::string_view /*action*/,
                           const std::string& /*reason*/,
                           std::string_view /*outcome*/) {}
  /// A pod was evicted because of a taint, so long after that was due.
  virtual void OnTaintEviction(std::chrono::nanoseconds /*late*/) {}
  /// The ledger could not be written, or not be opened again after that.
  virtual void OnLedgerWriteFailed() {}
  /// A pod was judged, by the manager itself (DeviceManagerOptions::actuate).
  /// `event`: what it was judged for, as docs/metrics.md lists it; `result`:
  /// `admit`, `wait`, `reject` or `error`.
  virtual void OnJudgement(std::string_view /*event*/,
                           std::string_view /*result*/) {}
  /// A pod that wants devices was judged by NUMA alignment, which took so long,
  /// and was refused or not; under TopologyPolicy::kNone all are admitted. A
  /// pod that waits is judged again for each try.
  virtual void OnTopologyAdmission(std::chrono::nanoseconds /*took*/,
                                   bool /*refused*/) {}
  /// Under TopologyPolicy::kSingleNumaNode: containers, or with `pod_scope` the
  /// containers of a pod, have their devices on one NUMA node; or they were
  /// refused, because they could not.
  virtual void OnAlignedContainers(bool /*pod_scope*/, bool /*aligned*/,
                                   std::size_t /*containers*/) {}
  /// The same judgement took so long, from its begin to the verdict. Of pods
  /// that want devices. `attempts`: how often the pod has been judged by now;
  /// `waited`: since it was first seen.
  virtual void OnSchedulingAttempt(std::string_view /*result*/,
                                   std::chrono::nanoseconds /*took*/,
                                   int /*attempts*/,
                                   std::chrono::nanoseconds /*waited*/) {}
  /// A step of a judgement, in the terms of a scheduler: `plugin`
  /// `DynamicResources` or `NodeResourcesFit`; `point` `Filter` or `PreBind`;
  /// `status` `Success`, `Unschedulable` or `Error`.
  virtual void OnSchedulingStep(std::string_view /*plugin*/,
                                std::string_view /*point*/,
                                std::string_view /*status*/,
                                std::chrono::nanoseconds /*took*/) {}
  /// A pod that waits is judged again because of `event`, as of OnJudgement.
  virtual void OnWoken(std::string_view /*event*/) {}
  /// This node made a claim for a pod, from a template or for its extended
  /// resources, or failed to.
  virtual void OnClaimCreated(bool /*extended_resources*/,
                              bool /*admin_access*/, bool /*failed*/) {}
  /// A search for devices of claims ended after so many steps. `result`:
  /// `found`, `none`, or `interrupted`.
  virtual void OnAllocatorSearch(std::string_view /*result*/,
                                 std::uint64_t /*steps*/) {}
  /// The same search; a search along NUMA nodes may be several.
  virtual void OnSearchFigures(const SearchFigures& /*figures*/) {}
  /// Something has changed, `event` as of OnJudgement, and it took so long to
  /// find out whether pods wait for it: `plugin` as of OnSchedulingStep.
  virtual void OnQueueingHint(std::string_view /*plugin*/,
                              std::string_view /*event*/, bool /*queues*/,
                              std::chrono::nanoseconds /*took*/) {}
  /// PolicyOptions::audit_wakeups has found a pod that could have been admitted
  /// and that nothing woke.
  virtual void OnMissedWakeup() {}
};

}  // namespace devmgr
