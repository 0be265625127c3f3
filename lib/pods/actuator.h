// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/metrics.h>
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
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "admission/judge.h"
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
    MetricsSink* metrics = nullptr;  ///< Null: judgements are not counted.
    /// The pod waits for devices and would wait for them again, as what could
    /// be had is what it failed on. Null: that is not known of any.
    std::function<bool(const PodUid&)> fails_alike;
    /// PodLifecycle::WouldAdmit, for the audit of wake-ups; null: there is
    /// none.
    std::function<bool(const Pod&)> would_admit;
    /// A pod that has to leave its devices runs: it is to be stopped. Once for
    /// each pod.
    std::function<void(const PodUid&)> stop = {};
    /// This node decides which pods have devices, as a scheduler: then attempts
    /// are counted. Null: it does.
    std::function<bool()> schedules = {};
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
  /// The claims of a pod that is being admitted are allocated, or are not.
  void OnClaimsDecided(const PodUid& pod) { OnServed(pod); }
  /// The runtime runs other things, or it is or is not known what it runs.
  void OnRuntime();
  /// A pod that waits for devices of plugins can have them now, or has waited
  /// long enough.
  void OnJudgeAgain(const PodUid& pod);
  /// Another party allocates devices, or that is being handed over: pods that
  /// wait are judged anew.
  void OnAuthority();
  /// It is known, and is to be released.
  bool IsUnwanted(const PodUid& pod) const;

 private:
  using PodStep = admission::PodStep;
  /// So many changes are kept apart; the oldest of more are merged.
  static constexpr std::size_t kMostChanges = 1'000;
  /// A runtime that has not answered by then is named.
  static constexpr std::chrono::milliseconds kShowAskingAfter{1'000};

  /// How often in a row, with all else that was posted in between, the audit
  /// has to find that a pod could be admitted: a wake-up may be under way.
  static constexpr int kSureAfter = 4;

  /// Of pods that wait for devices of claims: those of high priority first, of
  /// one priority those that came first.
  using Place = std::tuple<std::int64_t, std::int64_t, PodUid>;

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
    /// The same as the source has it, without what this node decided.
    std::shared_ptr<const Pod> read;
    std::shared_ptr<const MalformedPod> malformed;
    bool wanted = true;
    Activity activity = Activity::kIdle;
    /// The runtime was asked since the pod ceased to be wanted.
    bool runtime_asked = false;
    /// Since when its answer is waited for.
    std::optional<WallTime> asking_since;
    bool held = false;          ///< It waits for the end of what runs of it.
    bool evicting = false;      ///< It has to leave its devices, as was heard.
    bool told_to_stop = false;  ///< Parts::stop was called.
    bool ready = false;  ///< It was prepared, and is as far as was heard.
    bool waits = false;  ///< By its last verdict.
    std::string_view cause = "object";              ///< What it is judged for.
    int judged = 0;                                 ///< So often.
    std::chrono::steady_clock::time_point judging;  ///< Since when.
    std::optional<Place> place;                     ///< In the line.
    int suspected = 0;  ///< By the audit, so often in a row.
    std::vector<WaitingFor> waiting_for;
    std::uint64_t seen = 0;  ///< Changes before it became busy.
    BackOff back_off;
    std::uint64_t retry = 0;  ///< Number of the retry that is due next.
  };

  /// Makes the entry if there is none.
  Entry& EntryOf(const PodUid& uid);
  void Remember(const std::set<WaitingFor>& changes);
  admission::Wake EndStep(Entry& entry);
  /// Has the pod judged again in its turn, for this reason.
  void CountHint(const WaitingFor& what, bool queues,
                 std::chrono::steady_clock::time_point begin) const;
  void JoinLine(const PodUid& uid, std::string_view cause);
  void LeaveLine(Entry& entry);
  void ArmLine();
  void ServeLine();
  /// The pod that was judged in its turn has its devices, or has none.
  void OnServed(const PodUid& uid);
  void ArmAudit();
  void Audit();
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
  void StepAnew(const PodUid& uid, std::string_view cause);
  void Step(const PodUid& uid);
  void Take(PodStep step, const PodUid& uid);
  void Start(PodStep step, const PodUid& uid);
  /// Ends it, or has it leave its devices, when nothing of it runs.
  void End(const PodUid& uid, PodStep step);
  void EndUnlessItRuns(const PodUid& uid, PodStep step);
  /// Where no runtime says what runs, a pod that has to leave may run until it
  /// is gone.
  std::optional<Verdict> WhyNotEnded(const PodUid& uid, PodStep step) const;
  void HoldEnd(const PodUid& uid, const Verdict& wait, PodStep step);
  /// Says for whose answer the pod waits, when that takes its time.
  void ShowAsking(const PodUid& uid, WallTime since);
  bool MayBeInUse(const PodUid& uid) const;
  bool IsEvicting(const PodUid& uid) const;
  DeviceManager::AdmitDone DoneWithVerdict(const PodUid& uid);
  DeviceManager::Done DoneWithPrepare(const PodUid& uid);
  DeviceManager::Done DoneWithEnd(const PodUid& uid, PodStep step);
  void OnVerdict(const PodUid& uid, const absl::StatusOr<Verdict>& verdict);
  void CountVerdict(const PodUid& uid, const Entry& entry,
                    const absl::StatusOr<Verdict>& verdict);
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
  /// Pods that are judged one after the other, so that one sees what is left by
  /// those before it.
  std::set<Place> line_;
  std::optional<PodUid> in_front_;  ///< It is being judged in its turn.
  bool line_armed_ = false;
  bool audit_armed_ = false;
  /// What was posted or started finds out by this that the actuator is gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace devmgr::pods
