// SPDX-License-Identifier: Apache-2.0
//
// How pods give up what they hold: those that are gone, and those that have to
// leave their devices. See actuator.h.
#include <functional>
#include <memory>
#include <utility>

#include "admission/release_hold.h"
#include "pods/actuator.h"

namespace devmgr::pods {

using admission::StepOutcome;

/// A container may have begun since the runtime was looked at.
void Actuator::End(const PodUid& uid, PodStep step) {
  Entry& entry = EntryOf(uid);
  if (parts_.runtime != nullptr && MayBeInUse(uid) &&
      !std::exchange(entry.runtime_asked, true)) {
    const WallTime since = parts_.now();
    entry.asking_since = since;
    const std::function<void(const PodUid&)> asked = gate_.Pass<PodUid>(
        [this, step](const PodUid& pod) { EndUnlessItRuns(pod, step); });
    if (parts_.runtime->Refresh([asked, uid] { asked(uid); })) {
      return Post([this, uid, since] { ShowAsking(uid, since); },
                  kShowAskingAfter);
    }
  }
  EndUnlessItRuns(uid, step);
}

void Actuator::ShowAsking(const PodUid& uid, WallTime since) {
  const auto found = entries_.find(uid);
  if (found == entries_.end() || found->second.asking_since != since) return;
  if (found->second.wanted && !IsEvicting(uid)) return;
  parts_.lifecycle.HoldEnd(
      uid, admission::WhyReleaseAsks(parts_.runtime->Describe(), since));
}

void Actuator::EndUnlessItRuns(const PodUid& uid, PodStep step) {
  Entry& entry = EntryOf(uid);
  entry.asking_since.reset();
  if (step == PodStep::kEnd && entry.wanted && parts_.runtime != nullptr &&
      MayBeInUse(uid)) {
    return OnOutcome(uid, StepOutcome::kEndHeld);
  }
  if (const auto wait = WhyNotEnded(uid, step); wait.has_value()) {
    return HoldEnd(uid, *wait, step);
  }
  const OperationId id = parts_.next_operation();
  if (step == PodStep::kEvict) {
    parts_.lifecycle.Evict(id, uid, DoneWithEnd(uid, step));
  } else {
    parts_.lifecycle.End(id, uid, DoneWithEnd(uid, step));
  }
}

std::optional<Verdict> Actuator::WhyNotEnded(const PodUid& uid,
                                             PodStep step) const {
  if (!MayBeInUse(uid)) return std::nullopt;
  if (parts_.runtime != nullptr) {
    return admission::WhyReleaseWaits(*parts_.runtime->Snapshot(), uid,
                                      parts_.runtime->Describe());
  }
  // No container has ever had what it holds.
  const bool was_ready = !parts_.state.FindPod(uid)->boot_id.empty();
  if (step == PodStep::kEnd || !was_ready) return std::nullopt;
  return admission::WhyEvictionWaits();
}

void Actuator::HoldEnd(const PodUid& uid, const Verdict& wait, PodStep step) {
  Entry& entry = EntryOf(uid);
  entry.waiting_for = wait.waiting_for;
  entry.held = true;
  parts_.lifecycle.HoldEnd(uid, wait);
  const bool runs = wait.reason == admission::kContainersRunning;
  if (step == PodStep::kEvict && runs && parts_.stop &&
      !std::exchange(entry.told_to_stop, true)) {
    parts_.stop(uid);
  }
  OnOutcome(uid, step == PodStep::kEvict ? StepOutcome::kEvictHeld
                                         : StepOutcome::kEndHeld);
}

/// It holds something, and none of it is being taken from it yet.
bool Actuator::MayBeInUse(const PodUid& uid) const {
  const state::PodRecord* pod = parts_.state.FindPod(uid);
  return pod != nullptr && pod->phase != state::PodPhase::kReleasing &&
         (!pod->claims.empty() || !pod->holds.empty());
}

DeviceManager::Done Actuator::DoneWithEnd(const PodUid& uid, PodStep step) {
  return [this, alive = std::weak_ptr<int>(alive_), uid,
          step](const absl::Status& status) {
    if (alive.expired()) return;
    if (!status.ok()) EntryOf(uid).waiting_for = WaitingForOf(uid);
    if (step == PodStep::kEvict) {
      return OnOutcome(
          uid, status.ok() ? StepOutcome::kEvicted : StepOutcome::kEvictFailed);
    }
    OnOutcome(uid, status.ok() ? StepOutcome::kEnded : StepOutcome::kEndFailed);
  };
}

bool Actuator::IsEvicting(const PodUid& uid) const {
  const state::PodRecord* pod = parts_.state.FindPod(uid);
  return pod != nullptr && state::IsEvicting(*pod);
}

}  // namespace devmgr::pods
