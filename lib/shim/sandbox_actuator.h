// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/device_manager.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/executor.h"
#include "common/objects_by_uid.h"
#include "cri/messages.h"
#include "shim/pod_book.h"

namespace devmgr::shim {

/// `actuate: cri`: holds what would run a sandbox until its pod is Ready, and
/// releases pods that are over. Pods come either from the manager's source,
/// which the runtime and the source both have to lack, or from an embedder that
/// wants them by himself; then their sandboxes alone decide. Lives on
/// `executor`.
///
/// A pod keeps its place while no call for it is held.
class SandboxActuator {
 public:
  using Done = std::function<void(absl::Status)>;

  /// All borrowed; must be destroyed once `executor` has stopped. `book` is
  /// changed before this hears of it.
  SandboxActuator(DeviceManager& manager, const PodBook& book,
                  bool pods_from_source, std::shared_ptr<Executor> executor);
  ~SandboxActuator();

  using Time = std::chrono::steady_clock::time_point;
  struct Patience {
    Time unknown;  ///< For a pod that neither source nor ledger knows.
    Time ready;
  };

  /// `call` is to run a sandbox of `pod`. Ends with OK when that is Ready, and
  /// not at all when the call is over before.
  ///   NotFound            it is not known
  ///   Unavailable         not Ready in time; the message says what it waits
  ///                       for
  ///   FailedPrecondition  it is rejected, evicted, malformed or over
  void Admit(std::uint64_t call, const cri::SandboxIdentity& pod,
             const Patience& patience, Done done);
  /// Of any call, also one that was not admitted.
  void OnCallOver(std::uint64_t call);

  /// The last sandbox of a pod has left the book.
  void OnLastSandboxGone(const PodUid& pod);
  /// There may be sandboxes that the book lacks, until OnLook: nothing is
  /// released meanwhile, and no pod of the source is newly wanted, since what
  /// it would get may be in use.
  void OnDoubt() { in_doubt_ = true; }
  bool in_doubt() const { return in_doubt_; }
  /// The runtime has not listed what it runs; calls that wait for that get
  /// `why`.
  void OnLookFailed(const absl::Status& why);
  /// The book was compared with the runtime.
  void OnLook();

 private:
  class Watcher;
  struct Run {
    cri::SandboxIdentity pod;
    Patience patience;
    Done done;  ///< Null: it was answered.
    TimerId timer = 0;
    std::shared_ptr<const Pod> wanted;  ///< As the source had it.
  };

  void OnChange();
  /// What the manager has now, with what is found in it by UID.
  std::shared_ptr<const ObjectSnapshot> Look();
  void JudgeRuns();
  void WantAsInSource(Run& run);
  void JudgeRun(Run& run);
  /// Nothing: it is held on.
  std::optional<absl::Status> Verdict(const Run& run) const;
  void Arm(std::uint64_t call, Time when);

  bool IsRunBy(const PodUid& pod) const;
  void ReleaseIfOver(const PodUid& pod);
  void ReleaseAllThatAreOver();
  void ReleaseThoseThatAreOver(const ObjectSnapshot* before,
                               const ObjectSnapshot& now);
  bool IsOverForSource(const PodUid& pod);

  DeviceManager& manager_;
  const PodBook& book_;
  const bool pods_from_source_;
  const std::shared_ptr<Executor> executor_;
  std::map<std::uint64_t, Run> runs_;  ///< By call, until it is over.
  /// Pods that may be over: without sandbox when last looked at.
  std::set<PodUid> idle_;
  std::shared_ptr<const ObjectSnapshot> judged_;  ///< By which `idle_` was.
  std::shared_ptr<const ObjectSnapshot> looked_at_;
  ObjectsByUid<Pod> pods_;  ///< Of that.
  ObjectsByUid<MalformedPod> malformed_pods_;
  bool in_doubt_ = true;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<Observation> observation_;  ///< Of `watcher_`.
};

}  // namespace devmgr::shim
