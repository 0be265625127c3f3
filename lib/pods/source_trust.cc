// SPDX-License-Identifier: Apache-2.0
#include "pods/source_trust.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "admission/source_absence.h"
#include "claim/object_uid.h"
#include "common/status.h"

namespace devmgr::pods {
namespace {

bool Has(const ObjectSnapshot& snapshot, const ObjectName& pod) {
  return snapshot.pods.contains(pod) || snapshot.malformed_pods.contains(pod);
}

/// A part of the source answers for this pod by itself.
bool IsVouchedFor(const ObjectSnapshot& snapshot, const state::PodRecord& pod) {
  return snapshot.vouched_pods.contains(pod.name) ||
         snapshot.gone_pods.contains(pod.uid);
}

}  // namespace

SourceTrust::SourceTrust(Parts parts)
    : parts_(std::move(parts)),
      name_(parts_.source.Describe()),
      pods_(parts_.state) {}

const state::SourceRecord* SourceTrust::Record() const {
  return parts_.state.FindSource({name_});
}

/// One that has never brought pods has nothing to lose; then only those count
/// that are from files beyond doubt, and those that were imported: their
/// kubelet had them from what is this node's source now.
bool SourceTrust::IsFromSource(const state::PodRecord& pod) const {
  return pod.imported || Record() != nullptr || pods_.SeenIn(pod.name) != 0 ||
         parts_.state.FindIdentity("Pod", pod.name) != nullptr;
}

/// A pod for which the source as a whole has to answer.
bool SourceTrust::CountsFor(const ObjectSnapshot& snapshot,
                            const state::PodRecord& pod) const {
  return pod.phase != state::PodPhase::kReleasing && IsFromSource(pod) &&
         !IsVouchedFor(snapshot, pod);
}

SourceTrust::Count SourceTrust::CountPods(
    const ObjectSnapshot& snapshot) const {
  Count count;
  for (const PodUid& uid : pods_.lacking()) {
    const state::PodRecord* pod = parts_.state.FindPod(uid);
    if (pod == nullptr || !CountsFor(snapshot, *pod)) continue;
    const bool was_removed = pods_.SeenIn(pod->name) != 0 &&
                             pods_.SeenIn(pod->name) == snapshot.watch;
    if (was_removed || confirmed_.contains(pod->name)) continue;
    count.unexplained.push_back(pod->name);
  }
  if (count.unexplained.empty()) return count;
  std::sort(count.unexplained.begin(), count.unexplained.end());
  for (const auto& [uid, pod] : parts_.state.pods) {
    if (CountsFor(snapshot, *pod)) ++count.held;
  }
  return count;
}

std::shared_ptr<const ObjectSnapshot> SourceTrust::WithGoneOfParts(
    std::shared_ptr<const ObjectSnapshot> snapshot) const {
  if (snapshot->parts.empty()) return snapshot;
  std::vector<PodUid> gone;
  for (const PodUid& uid : pods_.lacking()) {
    const state::PodRecord* pod = parts_.state.FindPod(uid);
    if (pod == nullptr) continue;
    const auto last = pods_.PartOf(pod->name);
    if (!last.has_value() || last->index >= snapshot->parts.size()) continue;
    const ObjectSnapshot::Part& part = snapshot->parts[last->index];
    const bool was_removed = part.watch != 0 && part.watch == last->watch;
    if (part.complete && (part.vouched || was_removed)) gone.push_back(uid);
  }
  if (gone.empty()) return snapshot;
  auto known = std::make_shared<ObjectSnapshot>(*snapshot);
  for (const PodUid& uid : gone) known->gone_pods.insert(uid);
  return known;
}

std::shared_ptr<const ObjectSnapshot> SourceTrust::Judge(
    std::shared_ptr<const ObjectSnapshot> snapshot) {
  DEVMGR_ASSERT_ON(parts_.executor);
  pods_.Follow(*snapshot);
  snapshot = WithGoneOfParts(std::move(snapshot));
  if (snapshot->vouched) return snapshot;
  found_marker_ = snapshot->marker;
  if (!snapshot->complete) return snapshot;
  Count count = CountPods(*snapshot);
  admission::Absence absence;
  absence.source = name_;
  absence.held = count.held;
  absence.unexplained = count.unexplained.size();
  absence.doubted =
      std::any_of(missing_.begin(), missing_.end(), [&](const auto& pod) {
        return std::binary_search(count.unexplained.begin(),
                                  count.unexplained.end(), pod);
      });
  if (Record() != nullptr) absence.known_marker = Record()->marker;
  absence.marker = snapshot->marker;
  absence.marker_problem = snapshot->marker_problem;
  const auto why = admission::WhyNotBelieved(absence);
  if (!why.has_value()) {
    if (in_doubt()) {
      parts_.events.Add(false, "SourceBelieved", "Node", {"", parts_.node_name},
                        fmt::format("{} is trusted again", name_));
    }
    missing_.clear();
    return snapshot;
  }
  const bool is_new = missing_ != count.unexplained;
  missing_ = std::move(count.unexplained);
  if (is_new) OnDoubt(*why);
  auto doubted = std::make_shared<ObjectSnapshot>(*snapshot);
  doubted->complete = false;
  ManifestProblem problem;
  problem.message = fmt::format("{} {}", name_, *why);
  doubted->problems.insert(doubted->problems.begin(), std::move(problem));
  return doubted;
}

void SourceTrust::OnDoubt(const std::string& why) {
  parts_.events.Add(true, "SourceInDoubt", "Node", {"", parts_.node_name},
                    fmt::format("{} {}", name_, why));
}

void SourceTrust::OnPublished(const ObjectSnapshot& snapshot) {
  DEVMGR_ASSERT_ON(parts_.executor);
  pods_.NoteParts(snapshot);
  if (snapshot.vouched || !snapshot.complete) return;
  std::erase_if(confirmed_, [&](const ObjectName& pod) {
    return Has(snapshot, pod) || parts_.state.PodsNamed(pod).empty();
  });
  pods_.NoteSeen(snapshot);
  if (!pods_.has_own()) return;
  const state::SourceRecord* record = Record();
  if (record == nullptr ||
      (!snapshot.marker.empty() && snapshot.marker != record->marker)) {
    Remember(snapshot.marker);
  } else if (snapshot.marker.empty()) {
    // Again with each snapshot: what could not be written may be by now.
    parts_.source.Mark(record->marker, snapshot.watch);
  }
}

state::PutSource SourceTrust::NewRecord(const state::State& state,
                                        const std::string& marker) const {
  auto record = std::make_shared<state::SourceRecord>();
  record->name = name_;
  const state::SourceRecord* known = state.FindSource({name_});
  if (!marker.empty()) {
    record->marker = marker;
  } else if (known != nullptr) {
    record->marker = known->marker;
  } else {
    record->marker = claim::DeriveUid(parts_.boot_id + "\n" + name_, "Source",
                                      {}, state.seq + 1);
  }
  record->since_ms = parts_.now_ms();
  return state::PutSource{std::move(record)};
}

/// The ledger first: a marker that it does not know proves nothing.
void SourceTrust::Remember(const std::string& marker) {
  if (std::exchange(remembering_, true)) return;
  parts_.ledger.Submit(
      [this, marker](const state::State& state) {
        state::Decision decision;
        decision.kind = state::DecisionKind::kSource;
        decision.message = fmt::format("{} has brought pods", name_);
        decision.changes.push_back(NewRecord(state, marker));
        return decision;
      },
      parts_.executor,
      [this](const absl::Status& status) {
        remembering_ = false;
        // After an error with the next snapshot.
        if (status.ok()) OnPublished(*Judge(parts_.source.Snapshot()));
      });
}

void SourceTrust::Confirm(const std::string& reason,
                          std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (reason.empty()) return done(InvalidArgumentError("there is no reason"));
  if (!in_doubt()) {
    return done(FailedPreconditionError(
        "{} is trusted already; there is nothing to confirm", name_));
  }
  const std::vector<ObjectName> missing = missing_;
  const std::string marker = found_marker_;
  const std::string message = fmt::format(
      "an operator confirmed that {} is complete without {} pod{}: {}", name_,
      missing.size(), missing.size() == 1 ? "" : "s", reason);
  parts_.ledger.Submit(
      [this, missing, marker, message](const state::State& state) {
        state::Decision decision;
        decision.kind = state::DecisionKind::kSource;
        decision.pods = missing;
        decision.message = message;
        decision.changes.push_back(NewRecord(state, marker));
        return decision;
      },
      parts_.executor,
      [this, missing, message, done](const absl::Status& status) {
        if (status.ok()) {
          confirmed_.insert(missing.begin(), missing.end());
          parts_.events.Add(true, "SourceConfirmed", "Node",
                            {"", parts_.node_name}, message);
        }
        done(status);
      });
}

}  // namespace devmgr::pods
