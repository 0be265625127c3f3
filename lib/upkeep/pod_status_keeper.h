// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/pod_status.h>
#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/executor.h"
#include "events/event_log.h"
#include "podstatus/pod_status.h"

namespace devmgr::upkeep {

/// Sets the status of the pods of the source, and has those deleted that are
/// over, where the sink takes it (ObjectSink::IsNodeAgent). What is said
/// follows from podstatus/pod_status.h. Changes within a moment are one. Lives
/// on its executor.
class PodStatusKeeper {
 public:
  static constexpr std::chrono::milliseconds kPause{100};

  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    events::EventLog& events;
    ObjectSink* sink = nullptr;  ///< Null: nothing is ever done.
    /// Null: what runs is not known, and only rejected pods have a status.
    const RuntimeSource* runtime = nullptr;
    std::string node_name;
    std::function<std::shared_ptr<const ObjectSnapshot>()> objects;
    /// Nothing: the ledger does not know the pod.
    std::function<std::optional<PodInfo>(const PodUid&)> pod_info;
    std::function<WallTime()> now;
  };
  explicit PodStatusKeeper(Parts parts);
  ~PodStatusKeeper();

  void Start();
  /// The source has other objects.
  void OnObjects();
  /// The runtime runs something else, or it is known again what it runs.
  void OnRuntime();
  /// The ledger, or the health of devices, says something else of these.
  void OnPods(const std::set<PodUid>& pods);
  /// The pod is to fail, once nothing of it runs. May come before Start.
  void OnAction(const PodAction& action);

 private:
  struct Known {
    std::shared_ptr<const Pod> pod;
    std::shared_ptr<const PodRun> run;
    std::optional<ReportedPodStatus> last;
    bool is_finished = false;
  };

  void See(std::shared_ptr<const Pod> pod);
  void Forget(const PodUid& uid);
  /// All that `objects` lacks, which is complete.
  void ForgetAllBut(const ObjectSnapshot& objects);
  void Arm();
  void Look();
  void LookAt(const PodUid& uid, const RuntimeSnapshot* runtime, Known* known);

  const Parts parts_;
  const bool is_agent_;
  /// Of the source, as they were looked at last; null: not yet.
  std::shared_ptr<const ObjectSnapshot> objects_;
  std::map<PodUid, Known> pods_;  ///< Of the source.
  /// Of pods of the source, and of some that it may have yet.
  std::map<PodUid, podstatus::PodFailure> failures_;
  std::set<PodUid> changed_;
  bool was_known_ = false;  ///< What runs.
  TimerId timer_ = 0;
};

}  // namespace devmgr::upkeep
