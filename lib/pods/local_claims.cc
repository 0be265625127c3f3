// SPDX-License-Identifier: Apache-2.0
#include "pods/local_claims.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "claim/held_hardware.h"
#include "claim/prepare_intent.h"
#include "common/status.h"
#include "control/admin_access.h"
#include "control/authority.h"
#include "control/local_objects.h"
#include "control/outlook.h"
#include "control/quota.h"
#include "control/release.h"

namespace devmgr::pods {
namespace {

constexpr std::chrono::milliseconds kReleaseRetry{1'000};
/// Of one search; a pod that needs more waits, and is tried again.
constexpr std::uint64_t kMaxSteps = 200'000;
/// As a scheduler calls what it does for claims.
constexpr char kPlugin[] = "DynamicResources";

/// `default/gpu: gpu.example.com/node-a/gpu-0, ...`.
std::string DevicesText(const ResourceClaim& claim) {
  std::vector<std::string> devices;
  for (const auto& result : claim.status.allocation->results) {
    devices.push_back(
        fmt::format("{}/{}/{}", result.driver, result.pool, result.device));
  }
  return fmt::format("{}: {}", claim.metadata.FullName().ToString(),
                     fmt::join(devices, ", "));
}

void AddDevicesOf(const std::string& driver, std::vector<WaitingFor>* freed) {
  freed->push_back({WaitingFor::Kind::kFreeDevices, driver});
  freed->push_back({WaitingFor::Kind::kFreeDevices, WaitingFor::kAnyDriver});
}

/// It has devices, or is getting them: quotas count it.
bool Pays(const std::shared_ptr<const state::PodRecord>& pod) {
  return pod != nullptr && pod->phase != state::PodPhase::kWaiting &&
         pod->phase != state::PodPhase::kRejected;
}

/// Whether what was chosen beside `seen` may be had.
///   Aborted  it is to be chosen anew
absl::Status CheckChoice(const state::State& state, state::Party configured,
                         const decltype(state::State::local_claims)& seen,
                         const control::Provision& provision) {
  DEVMGR_RETURN_IF_ERROR(control::CheckAllocates(state, configured));
  if (!(state.local_claims == seen)) {
    return AbortedError("other claims were allocated meanwhile");
  }
  return claim::CheckHardwareFree(state, provision.changes);
}

state::Decision ClaimsAlone(const state::State& state,
                            const claim::PodIdentity& pod,
                            std::int64_t now_ms) {
  state::Decision decision =
      claim::RecordSeen(state, pod, now_ms, "its claims are allocated");
  decision.kind = state::DecisionKind::kClaimsAllocated;
  decision.pods = {pod.name};
  return decision;
}

/// One batch of `rest` and of what the provision changes.
absl::StatusOr<state::Decision> Beside(absl::StatusOr<state::Decision> rest,
                                       const control::Provision& provision) {
  if (!rest.ok()) return rest;
  rest->claims = provision.claims;
  rest->changes.insert(rest->changes.end(), provision.changes.begin(),
                       provision.changes.end());
  return rest;
}

}  // namespace

LocalClaims::LocalClaims(Parts parts)
    : parts_(std::move(parts)), provider_(parts_.feature_gates, kMaxSteps) {
  if (parts_.align == nullptr) return;
  steering_.emplace(provider_, parts_.numa_nodes);
}

control::ProvideInput LocalClaims::Input(const state::State& state,
                                         const ObjectSnapshot& objects) const {
  return {state,
          objects,
          parts_.node_name,
          parts_.served_by_class,
          parts_.driver_registered,
          parts_.extended_resources,
          parts_.now_ms(),
          parts_.random,
          parts_.hardware,
          parts_.evictions};
}

control::Outlook LocalClaims::Ahead(const ObjectSnapshot& objects) const {
  std::vector<state::Change> changes;
  for (const auto& [number, each] : writes_) {
    changes.insert(changes.end(), each.begin(), each.end());
  }
  return control::OutlookWith(changes, parts_.state, objects);
}

std::shared_ptr<const ObjectSnapshot> LocalClaims::Objects() {
  auto objects = parts_.objects.Current();
  const std::uint64_t version =
      parts_.withheld_version ? parts_.withheld_version() : 0;
  if (version == 0) return objects;
  if (version != rules_version_ ||
      !objects->device_taint_rules.SharesAllWith(source_rules_)) {
    rules_version_ = version;
    source_rules_ = objects->device_taint_rules;
    rules_ = source_rules_;
    for (const state::DeviceKey& device : parts_.withheld()) {
      auto rule = std::make_shared<const DeviceTaintRule>(
          control::UnhealthyTaint(device));
      rules_.insert_or_assign(rule->metadata.FullName(), std::move(rule));
    }
  }
  auto tainted = std::make_shared<ObjectSnapshot>(*objects);
  tainted->device_taint_rules = rules_;
  return tainted;
}

void LocalClaims::Provide(const Pod& original, const Judge& judge,
                          const Done& then, const Join& join) {
  DEVMGR_ASSERT_ON(parts_.executor);
  Decide({original, judge,
          [this, then](const absl::StatusOr<Verdict>& verdict, const Pod& pod) {
            if (parts_.on_decided) {
              parts_.on_decided(PodUid{pod.metadata.uid});
            }
            then(verdict, pod);
          },
          join});
}

LocalClaims::Found LocalClaims::Find(const Pod& pod, const Judge& judge) {
  const control::Outlook ahead = Ahead(*Objects());
  auto provision = Search(pod, ahead);
  if (!provision.ok()) return {provision.status(), {}, {}, std::nullopt};
  if (provision->verdict.kind != Verdict::Kind::kAdmit ||
      provision->changes.empty()) {
    return {absl::OkStatus(), std::move(provision->verdict),
            std::move(provision->failed_on), std::nullopt};
  }
  control::Outlook outlook =
      control::OutlookWith(provision->changes, ahead.state, ahead.objects);
  Pod shown = control::WithLocalStatus(pod, outlook.state);
  Verdict verdict = judge(shown, outlook.objects);
  if (verdict.kind != Verdict::Kind::kAdmit) {
    return {absl::OkStatus(), std::move(verdict), {}, std::nullopt};
  }
  return {absl::OkStatus(),
          {},
          {},
          Proposal{std::move(shown),
                   std::make_shared<const ObjectSnapshot>(
                       std::move(outlook.objects)),
                   *std::move(provision), ahead.state.local_claims}};
}

std::optional<LocalClaims::Proposal> LocalClaims::Propose(const Pod& original,
                                                          const Judge& judge) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (offered_ != nullptr &&
      offered_->pod.metadata.uid == original.metadata.uid) {
    return *std::exchange(offered_, nullptr);
  }
  if (draining_ || !parts_.authority.Allocates()) return std::nullopt;
  return Find(control::WithLocalStatus(original, parts_.state), judge).proposal;
}

void LocalClaims::Decide(const Attempt& attempt) {
  if (draining_) {
    waiting_.push_back(attempt);
    return;
  }
  Pod pod = control::WithLocalStatus(attempt.pod, parts_.state);
  const PodUid uid{pod.metadata.uid};
  // The claims that it has by now it will not have.
  if (giving_back_.contains(uid)) {
    waiting_.push_back(attempt);
    return;
  }
  failed_on_.erase(uid);
  if (!parts_.authority.Allocates()) {
    const auto paused =
        parts_.authority.WhyPaused(pod, parts_.extended_resources);
    return attempt.done(paused.value_or(Verdict{}), std::move(pod));
  }
  Found found = Find(pod, attempt.judge);
  if (found.proposal.has_value()) {
    if (attempt.join) {
      offered_ = &*found.proposal;
      const bool joined = attempt.join(*found.proposal);
      offered_ = nullptr;
      if (joined) return;
    }
    return CommitAlone(attempt, *found.proposal);
  }
  // That there is nothing to be done, or that something is lacking, is said of
  // what is on disk only.
  if (!writes_.empty()) {
    draining_ = true;
    waiting_.push_back(attempt);
    return;
  }
  if (!found.status.ok()) return attempt.done(found.status, std::move(pod));
  if (!found.failed_on.empty()) failed_on_[uid] = std::move(found.failed_on);
  attempt.done(std::move(found.verdict), std::move(pod));
}

absl::StatusOr<control::Provision> LocalClaims::Along(
    const Pod& pod, const control::ProvideInput& input, bool dry) {
  auto plain = provider_.Provide(pod, input);
  const bool has_choice = plain.ok() && !plain->changes.empty() &&
                          plain->verdict.kind == Verdict::Kind::kAdmit;
  if (!steering_ || !has_choice) return plain;
  const auto align = [&](const std::shared_ptr<const Pod>& provided,
                         std::vector<device::DeviceNeed> needs,
                         const admission::ClaimHints& hints) {
    DeviceRequest request{
        {PodUid{provided->metadata.uid}, provided->metadata.FullName()},
        provided->spec.priority,
        std::move(needs)};
    request.object = provided;
    return parts_.align(request, hints, dry);
  };
  return steering_->Steer(pod, input, *std::move(plain), align);
}

absl::StatusOr<control::Provision> LocalClaims::Search(
    const Pod& pod, const control::Outlook& ahead) {
  const auto begin = parts_.executor.Now();
  provider_.TakeFigures();  // Of searches that decided nothing.
  auto provision = Along(pod, Input(ahead.state, ahead.objects), /*dry=*/false);
  const bool found =
      provision.ok() && provision->verdict.kind == Verdict::Kind::kAdmit;
  if (provider_.last_steps() > 0) {
    parts_.metrics.OnAllocatorSearch(
        !provision.ok() ? "interrupted" : (found ? "found" : "none"),
        provider_.last_steps());
    parts_.metrics.OnSearchFigures(provider_.TakeFigures());
    parts_.metrics.OnSchedulingStep(
        kPlugin, "Filter",
        !provision.ok() ? "Error" : (found ? "Success" : "Unschedulable"),
        parts_.executor.Now() - begin);
  }
  return provision;
}

void LocalClaims::CountCommit(const control::Provision& provision,
                              std::chrono::nanoseconds took, bool failed) {
  parts_.metrics.OnSchedulingStep(kPlugin, "PreBind",
                                  failed ? "Error" : "Success", took);
  for (const state::Change& change : provision.changes) {
    const auto* put = std::get_if<state::PutLocalClaim>(&change);
    if (put == nullptr) continue;
    const state::LocalClaimRecord& claim = *put->claim;
    if (claim.origin == state::ClaimOrigin::kSource) continue;
    parts_.metrics.OnClaimCreated(
        claim.origin == state::ClaimOrigin::kExtendedResources,
        control::WantsAdminAccess(claim.object->spec), failed);
  }
}

void LocalClaims::CommitAlone(const Attempt& attempt,
                              const Proposal& proposal) {
  Commit(proposal, nullptr,
         [this, attempt](const absl::Status& status, bool stale) {
           if (stale) {
             waiting_.push_back(attempt);
           } else if (!status.ok()) {
             attempt.done(status, attempt.pod);
           } else {
             attempt.done(Verdict{},
                          control::WithLocalStatus(attempt.pod, parts_.state));
           }
         });
}

void LocalClaims::Commit(const Proposal& proposal, const Rest& rest,
                         const Written& written) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const claim::PodIdentity identity{PodUid{proposal.pod.metadata.uid},
                                    proposal.pod.metadata.FullName()};
  const std::uint64_t write = ++last_write_;
  writes_[write] = proposal.provision.changes;
  const auto stale = std::make_shared<std::atomic<bool>>(false);
  parts_.ledger.Submit(
      [identity, provision = proposal.provision, seen = proposal.seen, rest,
       stale, configured = parts_.authority.configured(),
       now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        const absl::Status chosen =
            CheckChoice(state, configured, seen, provision);
        *stale = !chosen.ok();
        DEVMGR_RETURN_IF_ERROR(chosen);
        return rest ? Beside(rest(state), provision)
                    : Beside(ClaimsAlone(state, identity, now), provision);
      },
      parts_.executor,
      [this, write, proposal, stale, written,
       begin = parts_.executor.Now()](const absl::Status& status) {
        if (!absl::IsAborted(status)) {
          CountCommit(proposal.provision, parts_.executor.Now() - begin,
                      !status.ok());
        }
        if (status.ok()) TellAllocated(proposal.pod, proposal.provision);
        OnWritten(write, status, [&] { written(status, *stale); });
      });
}

void LocalClaims::OnWritten(std::uint64_t write, const absl::Status& status,
                            const std::function<void()>& then) {
  writes_.erase(write);
  // Those behind it were made as if it held.
  if (!status.ok() && !writes_.empty()) draining_ = true;
  then();
  DecideWaiting();
}

void LocalClaims::DecideWaiting() {
  if (!writes_.empty()) return;
  draining_ = false;
  for (const Attempt& each : std::exchange(waiting_, {})) Decide(each);
}

void LocalClaims::TellAllocated(const Pod& pod,
                                const control::Provision& provision) {
  std::vector<std::string> claims;
  for (const state::Change& change : provision.changes) {
    claims.push_back(
        DevicesText(*std::get<state::PutLocalClaim>(change).claim->object));
  }
  parts_.events.Add(
      false, "ClaimsAllocated", "Pod", pod.metadata.FullName(),
      fmt::format("allocated and reserved: {}", fmt::join(claims, "; ")));
}

void LocalClaims::GiveBack(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const std::int64_t now = parts_.now_ms();
  if (control::UnwindClaims(parts_.state, pod, now).changes.empty()) return;
  giving_back_.insert(pod);
  parts_.ledger.Submit(
      [pod, now](const state::State& state) {
        return control::UnwindClaims(state, pod, now);
      },
      parts_.executor,
      [this, pod](const absl::Status&) {
        giving_back_.erase(giving_back_.find(pod));
        DecideWaiting();
      });
}

absl::StatusOr<Verdict> LocalClaims::WouldProvide(const Pod& original,
                                                  const Judge& judge) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const Pod pod = control::WithLocalStatus(original, parts_.state);
  const auto objects = Objects();
  if (!parts_.authority.Allocates()) return judge(pod, *objects);
  auto provision = Along(pod, Input(parts_.state, *objects), /*dry=*/true);
  if (!provision.ok()) return provision.status();
  if (provision->verdict.kind != Verdict::Kind::kAdmit) {
    return std::move(provision->verdict);
  }
  const control::Outlook outlook =
      control::OutlookWith(provision->changes, parts_.state, *objects);
  return judge(control::WithLocalStatus(pod, outlook.state), outlook.objects);
}

bool LocalClaims::FailsAlike(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto found = failed_on_.find(pod);
  return found != failed_on_.end() && parts_.authority.Allocates() &&
         provider_.IsSame(found->second, Input(parts_.state, *Objects()));
}

std::vector<WaitingFor> LocalClaims::Freed(
    const ledger::Changes& changes) const {
  std::vector<WaitingFor> freed;
  const auto objects = parts_.objects.Current();
  for (const auto& [before, now] : changes.pods) {
    if (!Pays(before) || Pays(now)) continue;
    const auto* pod = objects->pods.Find(before->name);
    if (pod == nullptr || (*pod)->metadata.uid != before->uid.value) continue;
    const auto keys = control::PaidNoMore(**pod);
    freed.insert(freed.end(), keys.begin(), keys.end());
  }
  for (const auto& [before, now] : changes.claims) {
    if (now != nullptr) continue;
    for (const auto& [driver, part] : before->drivers) {
      AddDevicesOf(driver, &freed);
    }
  }
  for (const auto& [before, now] : changes.local_claims) {
    if (before == nullptr || !before->object->status.allocation) continue;
    if (now != nullptr && now->object->status.allocation) continue;
    const ObjectMeta& metadata = before->object->metadata;
    const auto* shown = objects->claims.Find(metadata.FullName());
    if (shown == nullptr || (*shown)->metadata.uid == metadata.uid) continue;
    for (const auto& result : before->object->status.allocation->results) {
      AddDevicesOf(result.driver, &freed);
    }
  }
  return freed;
}

void LocalClaims::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  bool is_over = false;
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) failed_on_.erase(before->uid);
    is_over =
        is_over || now == nullptr || now->phase == state::PodPhase::kRejected;
  }
  for (const auto& [before, now] : changes.claims) {
    is_over = is_over || now == nullptr;
  }
  if (is_over) Release();
}

void LocalClaims::Release() {
  if (releasing_) {
    again_ = true;
    return;
  }
  const std::int64_t now = parts_.now_ms();
  if (control::ReleaseClaims(parts_.state, now).changes.empty()) return;
  releasing_ = true;
  parts_.ledger.Submit(
      [now](const state::State& state) -> absl::StatusOr<state::Decision> {
        return control::ReleaseClaims(state, now);
      },
      parts_.executor,
      [this](const absl::Status& status) {
        releasing_ = false;
        const bool again = std::exchange(again_, false);
        if (!status.ok()) {
          parts_.executor.PostAfter(kReleaseRetry, [this] { Release(); });
        } else if (again) {
          Release();
        }
      });
}

}  // namespace devmgr::pods
