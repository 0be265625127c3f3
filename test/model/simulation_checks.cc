// SPDX-License-Identifier: Apache-2.0
//
// What a simulation checks: after each batch, after each operation, and when
// all has come to rest.
#include <fmt/core.h>

#include <utility>

#include "claim/claim_names.h"
#include "common/status.h"
#include "model/simulation.h"
#include "state/views.h"
#include "view/device_changes.h"

namespace devmgr::model {
namespace {

std::string Text(const ClaimInfo& claim) {
  std::string text = fmt::format("{} {} {}", claim.name.name, claim.uid.value,
                                 claim.state.name());
  for (const auto& pod : claim.pods) text += " " + pod;
  for (const auto& driver : claim.drivers) {
    text += fmt::format(" {} {}", driver.driver, driver.state.name());
    for (const auto& id : driver.cdi_devices) text += " " + id;
  }
  return text;
}

std::string Text(const PodInfo& pod) {
  std::string text = fmt::format("{} {}", pod.name.name, pod.uid.value);
  for (const auto& claim : pod.claims) text += " " + claim;
  for (const auto& container : pod.containers) text += " " + container.value;
  return text;
}

}  // namespace

void Simulation::OnBatch(const state::Batch& batch, bool told) {
  ++counts_.decisions;
  Complain("answers do not change", history_.Add(ledger_, batch));
  const std::size_t given_up = rules_.given_up.size();
  NoteGivenUp(ledger_, batch, &rules_.given_up);
  if (rules_.given_up.size() > given_up) ++counts_.given_up;
  if (batch.decision.kind == state::DecisionKind::kDebt) ++counts_.debts;
  const absl::Status applied = state::Apply(ledger_, batch);
  if (!applied.ok())
    Complain("decisions follow each other", MessageOf(applied));
  for (const auto& violation : state::CheckInvariants(ledger_, boot_id_)) {
    Complain("the invariants hold", violation);
  }
  for (const state::Change& change : batch.decision.changes) {
    if (const auto* erased = std::get_if<state::ErasePod>(&change)) {
      gone_.push_back(erased->uid);
      if (gone_.size() > 5) gone_.pop_front();
    }
    const auto* put = std::get_if<state::PutPod>(&change);
    if (put != nullptr && put->pod->phase == state::PodPhase::kReady) {
      ++counts_.pods_ready;
    }
    if (put != nullptr && put->pod->phase == state::PodPhase::kRejected &&
        put->pod->reason == claim::kInvalidPod) {
      invalid_.insert(put->pod->uid.value);
    }
  }
  unseen_.push_back(batch);
  untold_.push_back(batch);
  if (told) told_ = ledger_;
  if (told) untold_.clear();
}

void Simulation::CheckAlways() {
  if (!(disk_.Load() == ledger_)) {
    Complain("the store is the sum of its decisions", "it is not");
  }
  const NodeInfo node = life_.manager->View()->Node();
  CatchUp(node);
  CheckViews();
  CheckChanges();
  CheckAnswers();
  CheckIdentities();
}

/// What was in doubt is told once the ledger works again.
void Simulation::CatchUp(const NodeInfo& node) {
  if (!disk_.in_doubt()) {
    told_ = ledger_;
    untold_.clear();
  }
  while (!unseen_.empty() && unseen_.front().seq <= node.ledger_sequence) {
    state::Apply(seen_, unseen_.front()).IgnoreError();
    unseen_.pop_front();
  }
  if (seen_.seq != node.ledger_sequence) {
    Complain("memory is the projection of the ledger",
             fmt::format("it is at {}, the ledger has {}", node.ledger_sequence,
                         ledger_.seq));
  }
}

void Simulation::CheckViews() {
  std::vector<std::string> expected;
  std::vector<std::string> shown;
  for (const auto& [uid, pod] : seen_.pods) {
    expected.push_back(Text(state::PodInfoOf(*pod, seen_)));
  }
  for (const auto& [uid, claim] : seen_.claims) {
    expected.push_back(Text(state::ClaimInfoOf(*claim, seen_)));
  }
  for (const PodInfo& pod : life_.manager->View()->Pods()) {
    shown.push_back(Text(pod));
    const state::PodRecord* record = seen_.FindPod(pod.uid);
    const bool ready = record != nullptr &&
                       record->phase == state::PodPhase::kReady &&
                       record->boot_id == boot_id_;
    if (ready != (pod.state == PodState::kReady)) {
      Complain("memory is the projection of the ledger",
               fmt::format("pod {} is shown as {}", pod.uid.value,
                           PodStateName(pod.state)));
    }
  }
  for (const ClaimInfo& claim : life_.manager->View()->Claims()) {
    shown.push_back(Text(claim));
  }
  if (shown == expected) return;
  Complain("memory is the projection of the ledger",
           fmt::format("{} records instead of {}, or others", shown.size(),
                       expected.size()));
}

void Simulation::CheckChanges() {
  for (bool more = true; more;) {
    const auto some =
        life_.manager->Changes(changes_from_, std::chrono::milliseconds(0));
    // The disk cannot be read now.
    if (absl::IsUnavailable(some.status())) return;
    if (!some.ok()) {
      return Complain("changes go on after a token", MessageOf(some.status()));
    }
    held_.Take(some->changes);
    changes_from_ = some->next;
    more = some->more;
  }
  Complain("what is allocated is released once", held_.complaint());
  counts_.allocations = held_.allocations();
  HeldByStream snapshot;
  snapshot.Take(view::HoldingsOf(seen_, {}));
  if (snapshot.held() == held_.held()) return;
  Complain("what is allocated is released, or still held",
           fmt::format("{} devices by the changes, {} by the ledger",
                       held_.held().size(), snapshot.held().size()));
}

void Simulation::CheckAnswers() {
  for (const auto& [uid, pod] : told_.pods) {
    const auto answer = life_.manager->PodDevicesOf(uid);
    const bool ready =
        pod->phase == state::PodPhase::kReady && pod->boot_id == boot_id_;
    if (answer.ok() != ready) {
      Complain(
          "Ready pods resolve, and no others",
          fmt::format("{} pod {} ({}): {}", PodPhaseName(pod->phase),
                      pod->name.name, uid.value, MessageOf(answer.status())));
    }
    if (!answer.ok()) continue;
    Complain("answers are what the drivers said",
             CheckAnswer(told_, drivers_, objects_, **answer));
  }
  for (const PodUid& uid : gone_) {
    if (told_.FindPod(uid) != nullptr || untold_.size() > 0) continue;
    if (!life_.manager->PodDevicesOf(uid).ok()) continue;
    Complain("Ready pods resolve, and no others",
             fmt::format("pod {} is gone", uid.value));
  }
}

/// A UID that was made up stays with its object, whatever the source sees of it
/// meanwhile; but a pod that was rejected as invalid is another one once it is
/// mended.
void Simulation::CheckIdentities() {
  const auto needed = MadeUpUids();
  std::erase_if(identities_, [&](const auto& known) {
    return !needed.contains(known.first);
  });
  for (const auto& [key, uid] : identities_) {
    if (needed.at(key) == uid || invalid_.contains(uid)) continue;
    Complain("identities stay",
             fmt::format("{} {} was {}", key.first, key.second.name, uid));
  }
}

/// Of all objects without a UID; empty where the ledger has none yet.
std::map<state::IdentityKey, std::string> Simulation::MadeUpUids() const {
  std::map<state::IdentityKey, std::string> uids;
  const auto add = [&](const std::string& kind, const ObjectMeta& object) {
    if (!object.uid.empty()) return;
    const auto* identity = told_.FindIdentity(kind, object.FullName());
    uids[{kind, object.FullName()}] = identity != nullptr ? identity->uid : "";
  };
  for (const auto& [name, pod] : objects_.pods()) add("Pod", pod->metadata);
  for (const auto& [name, claim] : objects_.claims()) {
    add("ResourceClaim", claim->metadata);
  }
  return uids;
}

void Simulation::CheckRest() {
  CatchUp(life_.manager->View()->Node());
  identities_ = MadeUpUids();
  if (seen_.seq != ledger_.seq) {
    Complain("the manager knows what is on disk",
             fmt::format("it knows {} of {}", seen_.seq, ledger_.seq));
  }
  Complain("what can be done is done at last",
           model::CheckRest(ledger_, drivers_, objects_, boot_id_, dropped_,
                            rules_));
  CheckFsck();
  for (const PodInfo& pod : life_.manager->View()->Pods()) {
    if (dropped_.contains(pod.uid.value)) continue;
    if (judged_.contains(pod.uid.value)) continue;
    Complain("who waits, waits for something",
             CheckWait(pod, ledger_, objects_, rules_));
  }
}

/// The product's own check finds nothing wrong either.
void Simulation::CheckFsck() {
  const auto report = life_.manager->maintenance().Fsck(FsckMode::kCheck);
  if (!report.ok()) {
    Complain("fsck finds nothing", MessageOf(report.status()));
    return;
  }
  for (const FsckFinding& finding : report->findings) {
    if (!finding.error) continue;
    Complain("fsck finds nothing",
             fmt::format("{}: {}", finding.object, finding.message));
  }
}

/// What the last manager has to say, for whoever reads the story.
void Simulation::TellTheEnd() {
  for (const EventInfo& event : life_.manager->Events(0)) {
    story_.push_back(fmt::format("  event {} {}: {}", event.reason,
                                 event.object.name, event.message));
  }
  for (const PodInfo& pod : life_.manager->View()->Pods()) {
    story_.push_back(fmt::format("  pod {}: {} {} {}", Text(pod),
                                 PodStateName(pod.state), pod.reason,
                                 pod.message));
  }
  for (const ClaimInfo& claim : life_.manager->View()->Claims()) {
    story_.push_back("  claim " + Text(claim));
  }
}

}  // namespace devmgr::model
