// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/runtime_source.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/next_step.h"
#include "common/back_off.h"
#include "common/executor.h"
#include "common/executor_gate.h"
#include "pods/object_book.h"
#include "pods/pod_lifecycle.h"
#include "state/state.h"

namespace devmgr::pods {

/// Drives wanted pods to Ready and unwanted ones to released: admits, prepares,
/// retries, unprepares. Level-triggered. Which step is next, and what follows
/// from it, is in next_step.h. Lives on the manager's thread.
class Actuator {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    const state::State& state;  ///< The durable projection on this thread.
    PodLifecycle& lifecycle;
    const ObjectBook& objects;
    /// True: the pods of the source are wanted, and a pod of the ledger that a
    /// complete snapshot lacks is released. False: only what Want and Unwant
    /// say; pods of the ledger stay wanted over a restart.
    bool follow_source = true;
    RetryOptions retries;
    /// The pod as people see it; nothing when the ledger does not know it.
    std::function<std::optional<PodInfo>(const PodUid&)> pod_info;
    std::function<OperationId()> next_operation;
    std::function<WallTime()> now;
    /// What runs of pods that are to be released; null: that is not asked for.
    /// That it has changed comes by OnRuntime.
    RuntimeSource* runtime = nullptr;
  };
  explicit Actuator(Parts parts);
  Actuator(const Actuator&) = delete;
  Actuator& operator=(const Actuator&) = delete;

  void Want(std::shared_ptr<const Pod> pod);
  void Unwant(const PodUid& pod);

  /// The source has other objects.
  void OnObjects();
  /// The pod looks different to people; it is still there.
  void OnPod(const PodInfo& pod);
  /// Something that pods may wait for changed.
  void OnWake(const std::vector<WaitingFor>& changes);
  /// The runtime runs other things, or it is or is not known what it runs.
  void OnRuntime();
  /// A pod that waits for devices of plugins can have them now, or has waited
  /// long enough.
  void OnJudgeAgain(const PodUid& pod);
  /// It is known, and is to be released.
  bool IsUnwanted(const PodUid& pod) const;

 private:
  /// So many changes are kept apart; the oldest of more are merged.
  static constexpr std::size_t kMostChanges = 1'000;
  /// A runtime that has not answered by then is named.
  static constexpr std::chrono::milliseconds kShowAskingAfter{1'000};

  enum class Activity {
    kIdle,
    kBusy,            ///< A step is under way.
    kBusyAndChanged,  ///< The same, and the next one begins right after it.
  };

  struct Entry {
    explicit Entry(const RetryOptions& retries)
        : back_off(retries.first, retries.last) {}
    ObjectName name;
    std::shared_ptr<const Pod> pod;  ///< Null: known from the ledger only.
    std::shared_ptr<const MalformedPod> malformed;
    bool wanted = true;
    Activity activity = Activity::kIdle;
    /// The runtime was asked since the pod ceased to be wanted.
    bool runtime_asked = false;
    /// Since when its answer is waited for.
    std::optional<WallTime> asking_since;
    bool held = false;   ///< It waits for the end of what runs of it.
    bool ready = false;  ///< It was prepared, and is as far as was heard.
    std::vector<WaitingFor> waiting_for;
    std::uint64_t seen = 0;  ///< Changes before it became busy.
    BackOff back_off;
    std::uint64_t retry = 0;  ///< Number of the retry that is due next.
  };

  /// Makes the entry if there is none.
  Entry& EntryOf(const PodUid& uid);
  void Remember(const std::set<WaitingFor>& changes);
  bool EndStep(Entry& entry);
  void Post(Task task,
            std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  void Begin();
  void ArmSweep();
  void Sweep();
  bool IsWhereItShouldBe(const PodUid& uid, const Entry& entry) const;
  void NameEntry(const PodUid& uid, Entry& entry, const ObjectName& name);
  void FollowAllOfSource();
  void FollowSource();
  bool FollowPod(const ObjectName& name, std::shared_ptr<const Pod> pod);
  bool FollowMalformed(const ObjectName& name,
                       std::shared_ptr<const MalformedPod> malformed);
  std::vector<PodUid> Gone(const ObjectSnapshot& objects,
                           const std::set<ObjectName>& names) const;
  admission::PodGoal GoalOf(const PodUid& uid, const Entry& entry) const;
  void StepAnew(const PodUid& uid);
  void Step(const PodUid& uid);
  void Take(admission::PodStep step, const PodUid& uid, const Entry& entry);
  void Start(admission::PodStep step, const PodUid& uid,
             const std::shared_ptr<const Pod>& pod,
             const std::shared_ptr<const MalformedPod>& malformed);
  /// Ends it when nothing of it runs.
  void End(const PodUid& uid);
  void EndUnlessItRuns(const PodUid& uid);
  /// Says for whose answer the pod waits, when that takes its time.
  void ShowAsking(const PodUid& uid, WallTime since);
  bool MayBeInUse(const PodUid& uid) const;
  DeviceManager::AdmitDone DoneWithVerdict(const PodUid& uid);
  DeviceManager::Done DoneWithPrepare(const PodUid& uid);
  DeviceManager::Done DoneWithEnd(const PodUid& uid);
  void OnVerdict(const PodUid& uid, const absl::StatusOr<Verdict>& verdict);
  void OnOutcome(const PodUid& uid, admission::StepOutcome outcome);
  void NoteWaiting(const PodUid& uid, const Entry& entry, bool idle);
  void RetryLater(const PodUid& uid, Entry& entry);
  static std::chrono::milliseconds Jitter(const PodUid& uid,
                                          std::uint64_t retry,
                                          std::chrono::milliseconds delay);
  bool IsReleasing(const PodUid& uid) const;
  std::vector<WaitingFor> WaitingForOf(const PodUid& uid) const;

  const Parts parts_;
  const ExecutorGate gate_;
  std::map<PodUid, Entry> entries_;
  std::set<std::pair<ObjectName, PodUid>> names_;  ///< Of the entries.
  /// What idle entries wait for, and which ones.
  std::map<WaitingFor, std::set<PodUid>> waiting_;
  /// Of the source, as it was followed last; null: not yet.
  std::shared_ptr<const ObjectSnapshot> followed_;
  std::size_t busy_ = 0;  ///< How many entries are busy.
  /// The changes since the first of these became busy, oldest first.
  std::deque<std::set<WaitingFor>> changes_;
  std::uint64_t forgotten_ = 0;  ///< Changes before the first of `changes_`.
  bool sweep_armed_ = false;
  /// What was posted or started finds out by this that the actuator is gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace devmgr::pods
