// SPDX-License-Identifier: Apache-2.0
#include "pods/actuator.h"

#include <algorithm>
#include <utility>

#include "admission/judge.h"
#include "admission/release_hold.h"
#include "device/pod_needs.h"

namespace devmgr::pods {

using admission::AfterStep;
using admission::PodGoal;
using admission::StepOutcome;
using admission::Wake;

namespace {

/// Time alone changes nothing for a pod that is not admitted, is rejected or
/// released, or waits for a claim.
StepOutcome OutcomeOfPrepare(const absl::Status& status) {
  if (status.ok()) return StepOutcome::kPrepared;
  const bool held_up = absl::IsNotFound(status) || absl::IsCancelled(status) ||
                       absl::IsFailedPrecondition(status);
  return held_up ? StepOutcome::kHeldUp : StepOutcome::kPrepareFailed;
}

std::string_view ResultOf(const absl::StatusOr<Verdict>& verdict) {
  if (!verdict.ok()) return "error";
  switch (verdict->kind) {
    case Verdict::Kind::kAdmit:
      return "admit";
    case Verdict::Kind::kWait:
      return "wait";
    case Verdict::Kind::kReject:
      break;
  }
  return "reject";
}

}  // namespace

Actuator::Actuator(Parts parts)
    : parts_(std::move(parts)), gate_(parts_.executor) {
  Post([this] { Begin(); });
}

void Actuator::Want(std::shared_ptr<const Pod> pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const PodUid uid{pod->metadata.uid};
  Entry& entry = EntryOf(uid);
  NameEntry(uid, entry, pod->metadata.FullName());
  entry.pod = std::move(pod);
  entry.wanted = true;
  StepAnew(uid, "object");
}

void Actuator::Unwant(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  EntryOf(pod).wanted = false;
  Step(pod);
}

void Actuator::OnObjects() {
  DEVMGR_ASSERT_ON(parts_.executor);
  ArmSweep();
  if (parts_.follow_source) FollowSource();
}

/// A repair may have made its devices void; an operator may have it released
/// although it may run.
void Actuator::OnPod(const PodInfo& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto found = entries_.find(pod.uid);
  if (found == entries_.end()) return;
  if (found->second.held && pod.state == PodState::kReleasing) {
    return Step(pod.uid);
  }
  if (pod.state == PodState::kEvicting &&
      !std::exchange(found->second.evicting, true)) {
    return StepAnew(pod.uid, "object");
  }
  if (!found->second.ready || !found->second.wanted ||
      pod.state != PodState::kPreparing) {
    return;
  }
  found->second.ready = false;
  Step(pod.uid);
}

void Actuator::OnWake(const std::vector<WaitingFor>& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  ArmSweep();
  const std::set<WaitingFor> all(changes.begin(), changes.end());
  Remember(all);
  std::map<PodUid, std::string_view> woken;
  std::map<PodUid, std::string_view> lined;
  for (const WaitingFor& what : all) {
    const auto begin = parts_.executor.Now();
    const auto waiting = waiting_.find(what);
    CountHint(what, waiting != waiting_.end(), begin);
    if (waiting == waiting_.end()) continue;
    const bool in_turn = admission::WakeBy(what.kind) == Wake::kInTurn;
    auto& those = in_turn ? lined : woken;
    for (const PodUid& uid : waiting->second) {
      those.emplace(uid, WaitingForKindName(what.kind));
    }
  }
  for (const auto& [uid, cause] : woken) {
    if (parts_.metrics != nullptr) parts_.metrics->OnWoken(cause);
    StepAnew(uid, cause);
  }
  for (const auto& [uid, cause] : lined) {
    if (woken.count(uid) == 0) JoinLine(uid, cause);
  }
  ArmAudit();
}

void Actuator::CountHint(const WaitingFor& what, bool queues,
                         std::chrono::steady_clock::time_point begin) const {
  if (parts_.metrics == nullptr) return;
  const bool counts = what.kind == WaitingFor::Kind::kResource;
  parts_.metrics->OnQueueingHint(
      counts ? "NodeResourcesFit" : "DynamicResources",
      WaitingForKindName(what.kind), queues, parts_.executor.Now() - begin);
}

void Actuator::JoinLine(const PodUid& uid, std::string_view cause) {
  Entry& entry = EntryOf(uid);
  if (entry.place.has_value()) return;
  const state::PodRecord* record = parts_.state.FindPod(uid);
  entry.place =
      Place{entry.pod != nullptr ? -std::int64_t{entry.pod->spec.priority} : 0,
            record != nullptr ? record->first_seen_ms : 0, uid};
  entry.cause = cause;
  line_.insert(*entry.place);
  ArmLine();
}

void Actuator::LeaveLine(Entry& entry) {
  if (!entry.place.has_value()) return;
  line_.erase(*entry.place);
  entry.place.reset();
}

/// In a turn of its own: what else happens in this one is seen then, too.
void Actuator::ArmLine() {
  if (std::exchange(line_armed_, true)) return;
  Post([this] {
    line_armed_ = false;
    ServeLine();
  });
}

void Actuator::ServeLine() {
  while (!in_front_.has_value() && !line_.empty()) {
    const PodUid uid = std::get<PodUid>(*line_.begin());
    Entry& entry = EntryOf(uid);
    LeaveLine(entry);
    if (entry.activity != Activity::kIdle) continue;  // It has seen it all.
    if (parts_.fails_alike && parts_.fails_alike(uid)) continue;
    in_front_ = uid;
    if (parts_.metrics != nullptr) parts_.metrics->OnWoken(entry.cause);
    StepAnew(uid, entry.cause);
  }
  if (line_.empty()) ArmAudit();
}

void Actuator::OnServed(const PodUid& uid) {
  if (in_front_ != uid) return;
  in_front_.reset();
  ArmLine();
}

void Actuator::ArmAudit() {
  if (!parts_.would_admit || std::exchange(audit_armed_, true)) return;
  Post([this] {
    audit_armed_ = false;
    Audit();
  });
}

/// It comes again when the last step has ended.
void Actuator::Audit() {
  if (busy_ > 0 || !line_.empty()) return;
  bool unsure = false;
  for (auto& [uid, entry] : entries_) {
    if (!entry.waits || !entry.wanted || entry.pod == nullptr ||
        !parts_.would_admit(*entry.pod)) {
      entry.suspected = 0;
      continue;
    }
    if (++entry.suspected < kSureAfter) unsure = true;
    if (entry.suspected == kSureAfter && parts_.metrics != nullptr) {
      parts_.metrics->OnMissedWakeup();
    }
  }
  if (unsure) ArmAudit();
}

void Actuator::OnRuntime() {
  OnWake({admission::RuntimeAwaited(parts_.runtime->Describe())});
}

void Actuator::OnJudgeAgain(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!entries_.contains(pod)) return;
  if (parts_.metrics != nullptr) parts_.metrics->OnWoken("turn");
  StepAnew(pod, "turn");
}

void Actuator::OnAuthority() {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<PodUid> all;
  for (const auto& [uid, entry] : entries_) {
    if (entry.waits || entry.activity != Activity::kIdle) all.push_back(uid);
  }
  for (const PodUid& uid : all) StepAnew(uid, "authority");
}

bool Actuator::IsUnwanted(const PodUid& pod) const {
  const auto found = entries_.find(pod);
  return found != entries_.end() && !found->second.wanted;
}

Actuator::Entry& Actuator::EntryOf(const PodUid& uid) {
  return entries_.try_emplace(uid, parts_.retries).first->second;
}

void Actuator::NameEntry(const PodUid& uid, Entry& entry,
                         const ObjectName& name) {
  names_.erase({entry.name, uid});
  entry.name = name;
  names_.emplace(name, uid);
}

/// Keeps what changed for pods that are busy, once for all of them.
void Actuator::Remember(const std::set<WaitingFor>& changes) {
  if (busy_ == 0) return;
  changes_.push_back(changes);
  if (changes_.size() <= kMostChanges) return;
  // The first holds all that was merged before: it is not to be walked.
  changes_[0].merge(changes_[1]);
  std::swap(changes_[0], changes_[1]);
  changes_.pop_front();
  ++forgotten_;
}

/// The step of a pod is over. Whether it is to be looked at again, because
/// something that it waits for changed meanwhile.
Wake Actuator::EndStep(Entry& entry) {
  Wake wake =
      entry.activity == Activity::kBusyAndChanged ? Wake::kAtOnce : Wake::kNot;
  entry.activity = Activity::kIdle;
  const std::uint64_t kept = std::max(entry.seen, forgotten_) - forgotten_;
  for (auto all = changes_.begin() + static_cast<std::ptrdiff_t>(kept);
       all != changes_.end() && wake != Wake::kAtOnce; ++all) {
    wake = std::max(wake, admission::WakeBy(*all, entry.waiting_for));
  }
  if (--busy_ == 0) {
    forgotten_ += changes_.size();
    changes_.clear();
  }
  return wake;
}

/// Runs `task` on the manager's thread, unless this is gone by then.
void Actuator::Post(Task task, std::chrono::milliseconds delay) {
  Task guarded = [alive = std::weak_ptr<int>(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  };
  if (delay.count() <= 0) return parts_.executor.Post(std::move(guarded));
  parts_.executor.PostAfter(delay, std::move(guarded));
}

/// Pods of the ledger stay wanted until the source or Unwant says otherwise.
void Actuator::Begin() {
  for (const auto& [uid, pod] : parts_.state.pods) {
    Entry& entry = EntryOf(uid);
    NameEntry(uid, entry, pod->name);
    // One that was evicted stays known as such while it is wanted.
    if (pod->phase == state::PodPhase::kReleasing && !pod->eviction) {
      entry.wanted = false;
    }
  }
  if (parts_.follow_source) FollowAllOfSource();
  std::vector<PodUid> all;
  for (const auto& [uid, entry] : entries_) all.push_back(uid);
  for (const PodUid& uid : all) Step(uid);
}

void Actuator::ArmSweep() {
  if (std::exchange(sweep_armed_, true)) return;
  Post(
      [this] {
        sweep_armed_ = false;
        Sweep();
      },
      parts_.retries.sweep);
}

/// What no change woke is done all the same, if late.
void Actuator::Sweep() {
  if (parts_.follow_source) FollowAllOfSource();
  std::vector<PodUid> astray;
  for (const auto& [uid, entry] : entries_) {
    if (entry.activity != Activity::kIdle) continue;
    if (!IsWhereItShouldBe(uid, entry)) astray.push_back(uid);
  }
  for (const PodUid& uid : astray) {
    EntryOf(uid).cause = "sweep";
    Step(uid);
  }
}

bool Actuator::IsWhereItShouldBe(const PodUid& uid, const Entry& entry) const {
  if (!entry.wanted) return false;
  if (entry.waits && !entry.waiting_for.empty() &&
      std::all_of(entry.waiting_for.begin(), entry.waiting_for.end(),
                  [](const auto& what) {
                    return admission::IsNeverMissed(what.kind);
                  })) {
    return true;
  }
  const auto pod = parts_.pod_info(uid);
  return pod.has_value() &&
         (pod->state == PodState::kReady || pod->state == PodState::kRejected ||
          (pod->state == PodState::kEvicting && entry.held));
}

PodGoal Actuator::GoalOf(const PodUid& uid, const Entry& entry) const {
  if (!entry.wanted) return PodGoal::kGone;
  if (IsEvicting(uid)) return PodGoal::kEvicting;
  // A pod that gives up its claims does so to the end; then it is admitted
  // anew.
  if (IsReleasing(uid)) return PodGoal::kReleasing;
  if (entry.malformed != nullptr) return PodGoal::kMalformed;
  return entry.pod != nullptr ? PodGoal::kWanted : PodGoal::kHeld;
}

/// Something is different for the pod: what failed before says nothing.
void Actuator::StepAnew(const PodUid& uid, std::string_view cause) {
  Entry& entry = EntryOf(uid);
  entry.back_off.Reset();
  if (entry.activity == Activity::kIdle) entry.cause = cause;
  Step(uid);
}

/// Takes the next step for a pod, unless one is under way.
void Actuator::Step(const PodUid& uid) {
  const auto found = entries_.find(uid);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.activity != Activity::kIdle) {
    entry.activity = Activity::kBusyAndChanged;
    return;
  }
  entry.activity = Activity::kBusy;
  ++busy_;
  LeaveLine(entry);
  entry.seen = forgotten_ + changes_.size();
  NoteWaiting(uid, entry, false);
  entry.waiting_for.clear();
  entry.waits = false;
  entry.suspected = 0;
  ++entry.retry;  // a retry that is due later is void
  entry.held = false;
  if (entry.wanted && !IsEvicting(uid)) entry.runtime_asked = false;
  Take(admission::NextStep(GoalOf(uid, entry)), uid);
}

/// In a turn of its own: rooms that are in the middle of a change may have
/// brought us here.
void Actuator::Take(PodStep step, const PodUid& uid) {
  Post([this, step, uid] { Start(step, uid); });
}

/// What changed since the step was taken is seen by it.
void Actuator::Start(PodStep step, const PodUid& uid) {
  Entry& entry = EntryOf(uid);
  entry.seen = forgotten_ + changes_.size();
  if (step != PodStep::kPrepare) {
    step = admission::NextStep(GoalOf(uid, entry));
    entry.activity = Activity::kBusy;
  }
  // Those behind it need not wait for a runtime or a driver.
  if (step != PodStep::kAdmit) OnServed(uid);
  if (step == PodStep::kEnd || step == PodStep::kEvict) return End(uid, step);
  const OperationId id = parts_.next_operation();
  switch (step) {
    case PodStep::kEnd:
    case PodStep::kEvict:
      break;
    case PodStep::kReject:
      return parts_.lifecycle.Reject(id, *entry.malformed,
                                     DoneWithVerdict(uid));
    case PodStep::kAdmit:
      ++entry.judged;
      entry.judging = parts_.executor.Now();
      return parts_.lifecycle.Admit(id, *entry.pod, DoneWithVerdict(uid));
    case PodStep::kPrepare:
      return parts_.lifecycle.Prepare(id, uid, DoneWithPrepare(uid));
  }
}

DeviceManager::AdmitDone Actuator::DoneWithVerdict(const PodUid& uid) {
  return [this, alive = std::weak_ptr<int>(alive_),
          uid](const absl::StatusOr<Verdict>& verdict) {
    if (!alive.expired()) OnVerdict(uid, verdict);
  };
}

DeviceManager::Done Actuator::DoneWithPrepare(const PodUid& uid) {
  return [this, alive = std::weak_ptr<int>(alive_),
          uid](const absl::Status& status) {
    if (alive.expired()) return;
    Entry& entry = EntryOf(uid);
    entry.ready = status.ok();
    if (!status.ok()) entry.waiting_for = WaitingForOf(uid);
    OnOutcome(uid, IsReleasing(uid) ? StepOutcome::kReplaced
                                    : OutcomeOfPrepare(status));
  };
}

void Actuator::OnVerdict(const PodUid& uid,
                         const absl::StatusOr<Verdict>& verdict) {
  Entry& entry = EntryOf(uid);
  CountVerdict(uid, entry, verdict);
  OnServed(uid);
  if (!verdict.ok()) {
    entry.waiting_for = WaitingForOf(uid);
    return OnOutcome(uid, StepOutcome::kAdmitFailed);
  }
  entry.waiting_for = verdict->waiting_for;
  entry.waits = verdict->kind == Verdict::Kind::kWait;
  if (verdict->kind == Verdict::Kind::kAdmit) {
    return OnOutcome(uid, StepOutcome::kAdmitted);
  }
  OnOutcome(uid, IsReleasing(uid) ? StepOutcome::kReplaced
                                  : StepOutcome::kNotAdmitted);
}

void Actuator::CountVerdict(const PodUid& uid, const Entry& entry,
                            const absl::StatusOr<Verdict>& verdict) {
  if (parts_.metrics == nullptr) return;
  const std::string_view result = ResultOf(verdict);
  parts_.metrics->OnJudgement(entry.cause, result);
  const state::PodRecord* record = parts_.state.FindPod(uid);
  const bool wants =
      entry.pod != nullptr && (!entry.pod->spec.resource_claims.empty() ||
                               !device::NeedsOf(*entry.pod, false).empty());
  const bool counts = !parts_.schedules || parts_.schedules();
  if (!wants || !counts || entry.judged == 0) return;
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::milliseconds>(
          parts_.now().time_since_epoch())
          .count();
  const std::int64_t waited =
      record != nullptr ? std::max<std::int64_t>(now - record->first_seen_ms, 0)
                        : 0;
  parts_.metrics->OnSchedulingAttempt(
      result, parts_.executor.Now() - entry.judging, entry.judged,
      std::chrono::milliseconds(waited));
}

void Actuator::OnOutcome(const PodUid& uid, StepOutcome outcome) {
  Entry& entry = EntryOf(uid);
  const AfterStep after = admission::Follow(outcome, entry.wanted);
  if (after == AfterStep::kPrepare) {
    return Take(PodStep::kPrepare, uid);
  }
  OnServed(uid);
  const Wake wake = EndStep(entry);
  if (after == AfterStep::kForget) {
    names_.erase({entry.name, uid});
    LeaveLine(entry);
    entries_.erase(uid);
    return ArmAudit();
  }
  NoteWaiting(uid, entry, true);
  ArmAudit();
  if (wake == Wake::kAtOnce || after == AfterStep::kRepeat) {
    return StepAnew(uid, "repeat");
  }
  if (after == AfterStep::kRetry) RetryLater(uid, entry);
  if (wake == Wake::kInTurn) JoinLine(uid, "repeat");
}

/// An idle entry is woken by what it waits for, a busy one finds out itself.
void Actuator::NoteWaiting(const PodUid& uid, const Entry& entry, bool idle) {
  for (const WaitingFor& what : entry.waiting_for) {
    if (idle) {
      waiting_[what].insert(uid);
    } else if (const auto found = waiting_.find(what);
               found != waiting_.end()) {
      found->second.erase(uid);
      if (found->second.empty()) waiting_.erase(found);
    }
  }
}

void Actuator::RetryLater(const PodUid& uid, Entry& entry) {
  const std::uint64_t number = ++entry.retry;
  const std::chrono::milliseconds delay = entry.back_off.Next();
  Post(
      [this, uid, number] {
        const auto found = entries_.find(uid);
        if (found == entries_.end()) return;
        const Entry& due = found->second;
        if (due.activity != Activity::kIdle || due.retry != number) return;
        EntryOf(uid).cause = "retry";
        Step(uid);
      },
      delay + Jitter(uid, number, delay));
}

/// Up to a fifth of the delay, so that pods that failed together do not come
/// back together. Taken from the pod and the number of its retry: another for
/// each, and the same whenever the same happens again.
std::chrono::milliseconds Actuator::Jitter(const PodUid& uid,
                                           std::uint64_t retry,
                                           std::chrono::milliseconds delay) {
  const std::uint64_t hash =
      (std::hash<PodUid>()(uid) + retry) * 0x9E3779B97F4A7C15;
  const auto step = static_cast<std::int64_t>(hash >> 58);  // below 64
  return delay * step / (5 * 64);
}

bool Actuator::IsReleasing(const PodUid& uid) const {
  const state::PodRecord* pod = parts_.state.FindPod(uid);
  return pod != nullptr && pod->phase == state::PodPhase::kReleasing;
}

std::vector<WaitingFor> Actuator::WaitingForOf(const PodUid& uid) const {
  const auto pod = parts_.pod_info(uid);
  return pod.has_value() ? pod->waiting_for : std::vector<WaitingFor>();
}

}  // namespace devmgr::pods
