// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>
#include <devmgr/metrics.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "common/executor.h"
#include "control/eviction_plan.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "pods/object_book.h"
#include "state/state.h"

namespace devmgr::pods {

/// Has pods leave devices that have taints with NoExecute: those with claims
/// that this node allocated. That a pod has to leave is on disk before its
/// action is asked for. One timer, for the nearest deadline. Lives on the
/// manager's thread.
class TaintEvictions {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    const ObjectBook& objects;
    events::EventLog& events;
    MetricsSink& metrics;
    /// False: another party evicts. Then it is only known which claims are to
    /// be had by no more pods.
    bool evicts = true;
    std::function<std::int64_t()> now_ms;
    std::function<void(const PodAction&)> act_on_pod;
    /// Pods that wait for these may have them now.
    std::function<void(const std::vector<WaitingFor>&)> wake;
  };
  explicit TaintEvictions(Parts parts) : parts_(std::move(parts)) {}
  ~TaintEvictions();
  TaintEvictions(const TaintEvictions&) = delete;
  TaintEvictions& operator=(const TaintEvictions&) = delete;

  /// Asks once more for what an earlier manager has decided. Once, at first.
  void Start();

  /// The source has other objects.
  void OnObjects();

  /// Claims were allocated or reserved, or pods have others.
  void OnCommitted(const ledger::Changes& changes);

  /// Something of the pod runs that has to leave: asks for its end.
  void Stop(const PodUid& pod);

  /// As of the last change of objects.
  const control::EvictionPlan& plan() const { return plan_; }

 private:
  using Rules = ObjectMap<DeviceTaintRule>;

  void Look();
  /// These claims may be had by more pods again.
  void WakeFor(const std::vector<ObjectName>& claims);
  void Evict(const PodUid& pod, const control::DueEviction& due);
  void OnRecorded(const PodUid& pod, const control::DueEviction& due,
                  const absl::Status& status);
  void Act(const state::PodRecord& pod, PodAction::Kind kind);
  /// Counts what rules with effect None would do, once for what they say.
  void CountDryRuns();

  const Parts parts_;
  control::EvictionPlan plan_;
  std::set<PodUid> recording_;
  std::set<PodUid> stop_next_;  ///< After what is being recorded was said.
  Rules counted_;  ///< As they were when dry runs were counted last.
  TimerId timer_ = 0;
};

}  // namespace devmgr::pods
