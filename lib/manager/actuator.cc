// SPDX-License-Identifier: Apache-2.0
#include <devmgr/actuator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "admission/judge.h"

namespace devmgr {
namespace {

/// All of it lives on the manager's thread, where observers, completions and
/// RunAfter tasks run.
class ActuatorImpl final : public Actuator, public DeviceManagerObserver {
 public:
  ActuatorImpl(DeviceManager& manager, ActuatorOptions options)
      : manager_(manager), options_(options) {
    manager_.AddObserver(this);
    Post([this] { Begin(); });
  }

  ~ActuatorImpl() override {
    manager_.RemoveObserver(this);
    // From here on nothing that was posted or started finds this alive.
    manager_.RunAndWait([this] { alive_.reset(); });
  }

  bool follows_source() const override { return options_.follow_source; }

  void Want(const Pod& pod) override {
    Post([this, pod = std::make_shared<const Pod>(pod)] { WantPod(pod); });
  }

  void Unwant(const PodUid& pod) override {
    Post([this, pod] {
      Entry& entry = entries_[pod];
      entry.wanted = false;
      Step(pod);
    });
  }

  void OnObjects() override {
    ArmSweep();
    if (options_.follow_source) FollowSource();
  }

  /// A repair may have made its devices void.
  void OnPod(const PodInfo& pod, bool gone) override {
    const auto found = entries_.find(pod.uid);
    if (gone || found == entries_.end() || !found->second.ready ||
        !found->second.wanted || pod.state != PodState::kPreparing) {
      return;
    }
    found->second.ready = false;
    Step(pod.uid);
  }

  void OnWake(const std::vector<WaitingFor>& changes) override {
    ArmSweep();
    const std::set<WaitingFor> all(changes.begin(), changes.end());
    Remember(all);
    std::vector<PodUid> woken;
    for (const auto& [uid, entry] : entries_) {
      if (!entry.busy && admission::Wakes(all, entry.waiting_for)) {
        woken.push_back(uid);
      }
    }
    for (const PodUid& uid : woken) {
      entries_[uid].delay = options_.min_retry;
      Step(uid);
    }
  }

  void OnJudgeAgain(const PodUid& pod) override {
    const auto found = entries_.find(pod);
    if (found == entries_.end()) return;
    found->second.delay = options_.min_retry;
    Step(pod);
  }

 private:
  /// So many changes are kept apart; the oldest of more are merged.
  static constexpr std::size_t kMostChanges = 1'000;

  struct Entry {
    ObjectName name;
    std::shared_ptr<const Pod> pod;  ///< Null: known from the ledger only.
    std::shared_ptr<const MalformedPod> malformed;
    bool wanted = true;
    bool busy = false;   ///< An operation is under way.
    bool again = false;  ///< Something changed meanwhile.
    bool ready = false;  ///< It was prepared, and is as far as we heard.
    std::vector<WaitingFor> waiting_for;
    std::uint64_t seen = 0;  ///< Changes before it became busy.
    std::chrono::milliseconds delay{0};
    std::uint64_t retry = 0;  ///< Number of the retry that is due next.
  };

  /// Keeps what changed for pods that are busy, once for all of them.
  void Remember(const std::set<WaitingFor>& changes) {
    if (busy_ == 0) return;
    changes_.push_back(changes);
    if (changes_.size() <= kMostChanges) return;
    // The first holds all that was merged before: it is not to be walked.
    changes_[0].merge(changes_[1]);
    std::swap(changes_[0], changes_[1]);
    changes_.pop_front();
    ++forgotten_;
  }

  /// The step of a pod is over. Whether something that the pod waits for
  /// changed meanwhile.
  bool EndStep(Entry& entry) {
    entry.busy = false;
    const std::uint64_t kept = std::max(entry.seen, forgotten_) - forgotten_;
    const bool missed =
        std::any_of(changes_.begin() + static_cast<std::ptrdiff_t>(kept),
                    changes_.end(), [&](const auto& all) {
                      return admission::Wakes(all, entry.waiting_for);
                    });
    if (--busy_ == 0) {
      forgotten_ += changes_.size();
      changes_.clear();
    }
    return missed;
  }

  /// Runs `task` on the manager's thread, unless this is gone by then.
  void Post(std::function<void()> task,
            std::chrono::milliseconds delay = std::chrono::milliseconds(0)) {
    manager_.RunAfter(
        delay, [alive = std::weak_ptr<int>(alive_), task = std::move(task)] {
          if (!alive.expired()) task();
        });
  }

  /// Pods of the ledger stay wanted until somebody says otherwise.
  void Begin() {
    for (const PodInfo& pod : manager_.Pods()) {
      Entry& entry = entries_[pod.uid];
      entry.name = pod.name;
      if (pod.state == PodState::kReleasing) entry.wanted = false;
    }
    if (options_.follow_source) FollowSource();
    std::vector<PodUid> all;
    for (const auto& [uid, entry] : entries_) all.push_back(uid);
    for (const PodUid& uid : all) Step(uid);
  }

  void ArmSweep() {
    if (std::exchange(sweep_armed_, true)) return;
    Post(
        [this] {
          sweep_armed_ = false;
          Sweep();
        },
        options_.sweep);
  }

  /// What nobody was woken for is done all the same, if late.
  void Sweep() {
    if (options_.follow_source) FollowSource();
    std::vector<PodUid> astray;
    for (const auto& [uid, entry] : entries_) {
      if (!entry.busy && !IsWhereItShouldBe(uid, entry)) astray.push_back(uid);
    }
    for (const PodUid& uid : astray) Step(uid);
  }

  bool IsWhereItShouldBe(const PodUid& uid, const Entry& entry) const {
    if (!entry.wanted) return false;
    const auto pod = manager_.PodInfoOf(uid);
    return pod.ok() && (pod->state == PodState::kReady ||
                        pod->state == PodState::kRejected);
  }

  void WantPod(const std::shared_ptr<const Pod>& pod) {
    const PodUid uid{pod->metadata.uid};
    Entry& entry = entries_[uid];
    entry.name = pod->metadata.FullName();
    entry.pod = pod;
    entry.wanted = true;
    entry.delay = options_.min_retry;
    Step(uid);
  }

  static bool IsOver(const Pod& pod) {
    return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
  }

  void FollowSource() {
    const auto objects = manager_.Objects();
    std::vector<PodUid> changed;
    for (const auto& [name, pod] : objects->pods) {
      const PodUid uid{pod->metadata.uid};
      const bool wanted = !IsOver(*pod);
      if (!wanted && !entries_.contains(uid)) continue;
      Entry& entry = entries_[uid];
      entry.name = name;
      if (entry.pod == pod && entry.wanted == wanted) continue;
      entry.pod = pod;
      entry.malformed = nullptr;
      entry.wanted = wanted;
      changed.push_back(uid);
    }
    for (const auto& [name, malformed] : objects->malformed_pods) {
      const PodUid uid{malformed->pod.metadata.uid};
      Entry& entry = entries_[uid];
      entry.name = name;
      if (entry.malformed == malformed) continue;
      entry.malformed = malformed;
      changed.push_back(uid);
    }
    for (const PodUid& uid : Gone(*objects)) {
      entries_[uid].wanted = false;
      changed.push_back(uid);
    }
    for (const PodUid& uid : changed) {
      entries_[uid].delay = options_.min_retry;
      Step(uid);
    }
  }

  /// Wanted pods that are gone: a complete snapshot lacks them, or their name
  /// belongs to another UID now. All else proves nothing.
  std::vector<PodUid> Gone(const ObjectSnapshot& objects) const {
    std::vector<PodUid> gone;
    for (const auto& [uid, entry] : entries_) {
      if (!entry.wanted) continue;
      const std::string* present = UidOf(objects, entry.name);
      if (present != nullptr ? *present != uid.value : objects.complete) {
        gone.push_back(uid);
      }
    }
    return gone;
  }

  static const std::string* UidOf(const ObjectSnapshot& objects,
                                  const ObjectName& name) {
    const auto pod = objects.pods.find(name);
    if (pod != objects.pods.end()) return &pod->second->metadata.uid;
    const auto malformed = objects.malformed_pods.find(name);
    if (malformed == objects.malformed_pods.end()) return nullptr;
    return &malformed->second->pod.metadata.uid;
  }

  /// Takes the next step for a pod, unless one is under way.
  void Step(const PodUid& uid) {
    const auto found = entries_.find(uid);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (entry.busy) {
      entry.again = true;
      return;
    }
    entry.busy = true;
    ++busy_;
    entry.seen = forgotten_ + changes_.size();
    entry.again = false;
    entry.waiting_for.clear();
    ++entry.retry;  // a retry that is due later is void
    if (!entry.wanted || IsReleasing(uid)) {
      manager_.StartEndPod(uid, Then(&ActuatorImpl::OnEnded, uid));
    } else if (entry.malformed != nullptr) {
      manager_.StartRejectPod(*entry.malformed,
                              ThenVerdict(&ActuatorImpl::OnVerdict, uid));
    } else if (entry.pod != nullptr) {
      manager_.StartAdmitPod(*entry.pod,
                             ThenVerdict(&ActuatorImpl::OnVerdict, uid));
    } else {
      manager_.StartPreparePod(uid, Then(&ActuatorImpl::OnPrepared, uid));
    }
  }

  DeviceManager::Done Then(void (ActuatorImpl::*next)(const PodUid&,
                                                      const absl::Status&),
                           const PodUid& uid) {
    return [this, alive = std::weak_ptr<int>(alive_), next,
            uid](const absl::Status& status) {
      if (!alive.expired()) (this->*next)(uid, status);
    };
  }

  DeviceManager::AdmitDone ThenVerdict(
      void (ActuatorImpl::*next)(const PodUid&, const absl::StatusOr<Verdict>&),
      const PodUid& uid) {
    return [this, alive = std::weak_ptr<int>(alive_), next,
            uid](const absl::StatusOr<Verdict>& verdict) {
      if (!alive.expired()) (this->*next)(uid, verdict);
    };
  }

  void OnVerdict(const PodUid& uid, const absl::StatusOr<Verdict>& verdict) {
    Entry& entry = entries_[uid];
    if (!verdict.ok()) {
      entry.waiting_for = WaitingForOf(uid);
      Rest(uid, true);
      return;
    }
    entry.waiting_for = verdict->waiting_for;
    if (verdict->kind == Verdict::Kind::kAdmit && entry.wanted) {
      manager_.StartPreparePod(uid, Then(&ActuatorImpl::OnPrepared, uid));
      return;
    }
    // It gives up claims that were replaced, and is admitted anew after that.
    if (IsReleasing(uid)) entry.again = true;
    Rest(uid, false);
  }

  void OnPrepared(const PodUid& uid, const absl::Status& status) {
    // Time alone changes nothing for a pod that is not admitted, rejected,
    // being released, or waits for a claim.
    const bool retry = !status.ok() && !absl::IsNotFound(status) &&
                       !absl::IsCancelled(status) &&
                       !absl::IsFailedPrecondition(status);
    entries_[uid].ready = status.ok();
    if (!status.ok()) entries_[uid].waiting_for = WaitingForOf(uid);
    Rest(uid, retry);
  }

  void OnEnded(const PodUid& uid, const absl::Status& status) {
    Entry& entry = entries_[uid];
    if (!status.ok()) {
      entry.waiting_for = WaitingForOf(uid);
      Rest(uid, true);
      return;
    }
    if (!entry.wanted) {
      EndStep(entry);
      entries_.erase(uid);
      return;
    }
    entry.again = true;  // It is wanted again, and admitted anew.
    Rest(uid, false);
  }

  /// A pod that gives up its claims does so to the end, wanted or not; then it
  /// is admitted anew.
  bool IsReleasing(const PodUid& uid) const {
    const auto pod = manager_.PodInfoOf(uid);
    return pod.ok() && pod->state == PodState::kReleasing;
  }

  std::vector<WaitingFor> WaitingForOf(const PodUid& uid) {
    const auto pod = manager_.PodInfoOf(uid);
    return pod.ok() ? pod->waiting_for : std::vector<WaitingFor>();
  }

  /// The step is over; goes on at once if something changed meanwhile, later
  /// if `retry`, else when woken.
  void Rest(const PodUid& uid, bool retry) {
    Entry& entry = entries_[uid];
    const bool missed = EndStep(entry);
    if (missed || entry.again) {
      entry.delay = options_.min_retry;
      Step(uid);
      return;
    }
    if (!retry) return;
    entry.delay =
        std::clamp(entry.delay, options_.min_retry, options_.max_retry);
    const std::uint64_t number = ++entry.retry;
    const std::chrono::milliseconds delay = entry.delay + Jitter(uid, entry);
    entry.delay = std::min(entry.delay * 2, options_.max_retry);
    Post(
        [this, uid, number] {
          const auto found = entries_.find(uid);
          if (found == entries_.end() || found->second.busy) return;
          if (found->second.retry == number) Step(uid);
        },
        delay);
  }

  /// Up to a fifth of the delay, so that pods that failed together do not come
  /// back together. Taken from the pod and the number of its retry: another for
  /// each, and the same whenever the same happens again.
  static std::chrono::milliseconds Jitter(const PodUid& uid,
                                          const Entry& entry) {
    const std::uint64_t hash =
        (std::hash<PodUid>()(uid) + entry.retry) * 0x9E3779B97F4A7C15;
    const auto step = static_cast<std::int64_t>(hash >> 58);  // below 64
    return entry.delay * step / (5 * 64);
  }

  DeviceManager& manager_;
  const ActuatorOptions options_;
  std::map<PodUid, Entry> entries_;
  std::size_t busy_ = 0;  ///< How many entries are busy.
  /// The changes since the first of these became busy, oldest first.
  std::deque<std::set<WaitingFor>> changes_;
  std::uint64_t forgotten_ = 0;  ///< Changes before the first of `changes_`.
  bool sweep_armed_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<Actuator> Actuator::Start(DeviceManager& manager,
                                          ActuatorOptions options) {
  return std::make_unique<ActuatorImpl>(manager, options);
}

}  // namespace devmgr
