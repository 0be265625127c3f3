// SPDX-License-Identifier: Apache-2.0
//
// How a pod is admitted, from the object to the verdict. See pod_lifecycle.h.
#include <memory>
#include <utility>
#include <vector>

#include "admission/changed_request.h"
#include "admission/device_request.h"
#include "admission/device_verdict.h"
#include "api/names.h"
#include "api/pod.h"
#include "api/quote.h"
#include "claim/claim_names.h"
#include "claim/eviction.h"
#include "claim/held_hardware.h"
#include "claim/imported_pod.h"
#include "claim/replaced_claim.h"
#include "common/status.h"
#include "control/local_objects.h"
#include "device/pod_needs.h"
#include "pods/pod_lifecycle.h"

namespace devmgr::pods {
namespace {

using state::PodPhase;
using state::PodRecord;

/// Of why a pod is rejected.
constexpr std::size_t kMaxMessageBytes = 4096;

/// What the ledger needs to remember a pod, be it a broken one.
absl::Status CheckIdentity(const Pod& pod) {
  if (pod.metadata.name.empty()) return InvalidArgumentError("pod has no name");
  const std::string name = pod.metadata.FullName().ToString();
  if (api::FindInvalidUtf8(name) != std::string::npos) {
    return InvalidArgumentError("pod {}: the name is not UTF-8",
                                api::Quoted(name));
  }
  if (pod.metadata.uid.empty()) {
    return InvalidArgumentError("pod {} has no UID", api::Quoted(name));
  }
  if (const std::string text = api::CheckUid(pod.metadata.uid); !text.empty()) {
    return InvalidArgumentError("pod {}: {}", api::Quoted(name), text);
  }
  return absl::OkStatus();
}

MalformedPod Malformed(Pod pod, const std::vector<api::PodProblem>& broken) {
  const api::PodProblem problem = api::Summary(broken);
  return {std::move(pod), {"", 0, problem.field, problem.message}};
}

}  // namespace

void PodLifecycle::Admit(OperationId id, Pod pod,
                         DeviceManager::AdmitDone done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  if (absl::Status status = CheckIdentity(pod); !status.ok()) {
    done(std::move(status));
    return;
  }
  if (claim::IsImported(parts_.state, PodUid{pod.metadata.uid})) {
    return Recognize(id, pod, std::move(done),
                     [this, id, pod](DeviceManager::AdmitDone next) {
                       Admit(id, pod, std::move(next));
                     });
  }
  if (Verdict verdict =
          claim::CheckEviction(parts_.state, PodUid{pod.metadata.uid});
      verdict.kind != Verdict::Kind::kAdmit) {
    return done(std::move(verdict));
  }
  // Those of manifests have been through this, those of an embedder have not.
  api::DefaultPod(pod);
  if (const auto broken = api::ValidatePod(pod); !broken.empty()) {
    Reject(id, Malformed(std::move(pod), broken), std::move(done));
    return;
  }
  if (const auto paused = WhyPaused(pod)) {
    return RecordVerdict(id, IdentityOf(pod), *paused, std::move(done));
  }
  if (parts_.claims != nullptr) return ProvideClaims(id, pod, done);
  AdmitWithClaims(id, std::move(pod), {}, std::move(done));
}

void PodLifecycle::Recognize(
    OperationId id, const Pod& pod, DeviceManager::AdmitDone done,
    std::function<void(DeviceManager::AdmitDone)> then) {
  simple_.insert(id);
  const PodUid uid{pod.metadata.uid};
  parts_.ledger.Submit(
      [shown = std::make_shared<const Pod>(pod)](const state::State& state) {
        return claim::RecordShown(state, *shown);
      },
      parts_.executor,
      [this, id, uid, done = std::move(done),
       then = std::move(then)](const absl::Status& status) {
        if (simple_.erase(id) == 0) return done(CancelledError("cancelled"));
        if (!status.ok()) return done(status);
        known_.notes.erase(uid);
        then(done);
      });
}

void PodLifecycle::FinishUnshown(OperationId id, const PodRecord& pod) {
  Verdict wait = claim::WaitToBeShown(pod);
  const absl::Status status =
      FailedPreconditionError("prepare dynamic resources: {}", wait.message);
  Note(pod.uid, std::move(wait));
  Finish(id, status);
}

std::optional<Verdict> PodLifecycle::WhyPaused(const Pod& pod) const {
  if (parts_.authority == nullptr) return std::nullopt;
  return parts_.authority->WhyPaused(pod,
                                     parts_.plan_options.extended_resources);
}

bool PodLifecycle::WouldAdmit(Pod pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!CheckIdentity(pod).ok()) return false;
  if (claim::CheckEviction(parts_.state, PodUid{pod.metadata.uid}).kind !=
      Verdict::Kind::kAdmit) {
    return false;
  }
  api::DefaultPod(pod);
  if (!api::ValidatePod(pod).empty() || WhyPaused(pod)) return false;
  const auto objects = parts_.objects.Current();
  admission::Judgement judgement;
  const auto judge = [&](const Pod& provided, const ObjectSnapshot& with) {
    judgement = admission::Judge(provided, Input(with));
    return judgement.verdict;
  };
  const absl::StatusOr<Verdict> verdict =
      parts_.claims != nullptr ? parts_.claims->WouldProvide(pod, judge)
                               : judge(pod, *objects);
  if (!verdict.ok() || verdict->kind != Verdict::Kind::kAdmit) return false;
  std::vector<device::DeviceNeed> needs =
      device::NeedsOf(pod, parts_.plan_options.extended_resources);
  if (ChangedRequest(pod, needs, *objects).kind != Verdict::Kind::kAdmit) {
    return false;
  }
  return parts_.devices.WouldAdmit(RequestOf(judgement, pod, std::move(needs)));
}

void PodLifecycle::ProvideClaims(OperationId id, const Pod& pod,
                                 const DeviceManager::AdmitDone& done) {
  simple_.insert(id);
  const LocalClaims::Judge judge = [this](const Pod& provided,
                                          const ObjectSnapshot& objects) {
    return admission::Judge(provided, Input(objects)).verdict;
  };
  parts_.claims->Provide(
      pod, judge,
      [this, id, done](const absl::StatusOr<Verdict>& verdict, Pod provided) {
        if (simple_.erase(id) == 0) return done(CancelledError("cancelled"));
        if (!verdict.ok()) return done(verdict.status());
        if (verdict->kind == Verdict::Kind::kAdmit) {
          return AdmitWithClaims(id, std::move(provided), verdict->waiting_for,
                                 done);
        }
        Verdict settled = *verdict;
        const claim::PodIdentity identity = IdentityOf(provided);
        admission::SettleRejection(parts_.state.FindPod(identity.uid),
                                   &settled);
        RecordVerdict(id, identity, settled, done);
      },
      [this, id, pod, judge, done](const LocalClaims::Proposal& proposal) {
        return JoinDevices(id, pod, judge, proposal, done);
      });
}

bool PodLifecycle::JoinDevices(OperationId id, const Pod& pod,
                               const LocalClaims::Judge& judge,
                               const LocalClaims::Proposal& proposal,
                               const DeviceManager::AdmitDone& done) {
  const Pod& shown = proposal.pod;
  const admission::Judgement judgement =
      admission::Judge(shown, Input(*proposal.objects));
  if (judgement.from_ledger || judgement.book_anew) return false;
  std::vector<device::DeviceNeed> needs =
      device::NeedsOf(shown, parts_.plan_options.extended_resources);
  if (needs.empty() && !parts_.devices.JudgesAll()) return false;
  if (Refusal(shown, needs, *proposal.objects).kind != Verdict::Kind::kAdmit) {
    return false;
  }
  if (simple_.erase(id) == 0) {
    done(CancelledError("cancelled"));
    return true;
  }
  DeviceRequest request = RequestOf(judgement, shown, std::move(needs));
  request.claims = std::make_shared<const ClaimsBeside>(
      ClaimsBeside{*parts_.claims, pod, judge});
  const claim::PodIdentity identity = request.pod;
  parts_.devices.Start(
      id, std::move(request),
      [this, id, pod, identity, done](const absl::StatusOr<Verdict>& verdict,
                                      std::vector<WaitingFor> waiting_for) {
        if (IsClaimsDiffer(verdict.status())) {
          return ProvideClaims(id, pod, done);
        }
        if (verdict.ok() && verdict->kind == Verdict::Kind::kAdmit) {
          // Prepare finds it with its claims.
          admitted_[identity.uid] = std::make_shared<const Pod>(
              control::WithLocalStatus(pod, parts_.state));
        }
        OnDevices(id, identity, verdict, std::move(waiting_for), done);
      });
  return true;
}

void PodLifecycle::AdmitWithClaims(OperationId id, Pod pod,
                                   const std::vector<WaitingFor>& or_for,
                                   DeviceManager::AdmitDone done) {
  const auto objects = parts_.objects.Current();
  admission::Judgement judgement = admission::Judge(pod, Input(*objects));
  const claim::PodIdentity identity = IdentityOf(pod);
  if (judgement.book_anew) {
    ReleaseReplaced(id, identity.uid, judgement.verdict, std::move(done));
    return;
  }
  if (judgement.verdict.kind != Verdict::Kind::kAdmit) {
    admission::CompleteWait(parts_.devices.policy().authority, or_for,
                            &judgement.verdict);
    ReportDoubleClaim(identity, judgement.verdict);
    RecordVerdict(id, identity, judgement.verdict, std::move(done));
    return;
  }
  std::vector<device::DeviceNeed> needs =
      device::NeedsOf(pod, parts_.plan_options.extended_resources);
  if (const Verdict refusal = Refusal(pod, needs, *objects);
      refusal.kind != Verdict::Kind::kAdmit) {
    Refuse(identity, refusal);
    done(refusal);
    return;
  }
  DeviceRequest request = RequestOf(judgement, pod, std::move(needs));
  if (judgement.from_ledger) {
    AdmitDevices(id, std::move(request), std::move(done));
    return;
  }
  // Prepare finds the pod once the devices are there, too.
  done = [this, admitted = std::make_shared<const Pod>(std::move(pod)),
          done = std::move(done)](absl::StatusOr<Verdict> verdict) {
    if (verdict.ok() && verdict->kind == Verdict::Kind::kAdmit) {
      admitted_[PodUid{admitted->metadata.uid}] = admitted;
    }
    done(std::move(verdict));
  };
  AdmitDevices(id, std::move(request), std::move(done));
}

void PodLifecycle::ReportDoubleClaim(const claim::PodIdentity& pod,
                                     const Verdict& verdict) {
  if (verdict.reason != claim::kDeviceDoubleClaimed) return;
  const Verdict* note = NoteOf(pod.uid);
  if (note != nullptr && note->message == verdict.message) return;
  parts_.events.Add(true, verdict.reason, "Pod", pod.name, verdict.message);
}

Verdict PodLifecycle::ChangedRequest(
    const Pod& pod, const std::vector<device::DeviceNeed>& needs,
    const ObjectSnapshot& objects) const {
  const PodRecord* record = parts_.state.FindPod(PodUid{pod.metadata.uid});
  if (record == nullptr) return {};
  return admission::CheckUnchanged(pod, *record, needs, parts_.state, objects,
                                   parts_.plan_options,
                                   parts_.devices.policy());
}

Verdict PodLifecycle::Refusal(const Pod& pod,
                              const std::vector<device::DeviceNeed>& needs,
                              const ObjectSnapshot& objects) {
  const PodUid uid{pod.metadata.uid};
  Verdict refusal = ChangedRequest(pod, needs, objects);
  if (refusal.kind != Verdict::Kind::kAdmit) return refusal;
  if (parts_.state.FindPod(uid) == nullptr) return {};
  // It asks again for what it was given.
  const Verdict* note = known_.notes.Find(uid);
  if (note != nullptr && note->kind == Verdict::Kind::kReject) {
    known_.notes.erase(uid);
    parts_.on_pod_changed(uid);
  }
  return {};
}

void PodLifecycle::Refuse(const claim::PodIdentity& pod,
                          const Verdict& refusal) {
  admitted_.erase(pod.uid);
  const Verdict* note = NoteOf(pod.uid);
  if (note != nullptr && note->message == refusal.message) return;
  Note(pod.uid, refusal);
  parts_.events.Add(true, refusal.reason, "Pod", pod.name, refusal.message);
}

DeviceRequest PodLifecycle::RequestOf(
    const admission::Judgement& judgement, const Pod& pod,
    std::vector<device::DeviceNeed> needs) const {
  const claim::PodIdentity identity = IdentityOf(pod);
  const PodRecord* record = parts_.state.FindPod(identity.uid);
  if (judgement.from_ledger) {
    DeviceRequest request = RequestOf(*record);
    request.priority = pod.spec.priority;
    return request;
  }
  DeviceRequest request{
      WithSide(identity, pod), pod.spec.priority,
      admission::WithoutGivenBack(std::move(needs), record, parts_.boot_id)};
  if (parts_.devices.IsAligning()) {
    request.object = std::make_shared<const Pod>(pod);
  }
  if (judgement.plan.claims.empty()) {
    request.without_claims = {judgement.plan.needs, parts_.boot_id};
  }
  return request;
}

claim::PodIdentity PodLifecycle::WithSide(claim::PodIdentity identity,
                                          const Pod& pod) const {
  identity.local = parts_.authority != nullptr &&
                   parts_.authority->authority() == Authority::kSplit &&
                   !api::IsFromApiServer(pod);
  return identity;
}

DeviceRequest PodLifecycle::RequestOf(const PodRecord& pod) const {
  DeviceRequest request{{pod.uid, pod.name, pod.local}};
  request.aligned_to = pod.alignment;
  admission::DeviceNeeds needs = admission::NeedsOfBooked(pod, parts_.boot_id);
  request.needs = std::move(needs.needs);
  request.trust_held = needs.trust_held;
  return request;
}

void PodLifecycle::AdmitDevices(OperationId id, DeviceRequest request,
                                DeviceManager::AdmitDone done) {
  const bool is_judged =
      request.object != nullptr && parts_.devices.JudgesAll();
  if (request.needs.empty() && !is_judged) return done(Verdict{});
  const claim::PodIdentity pod = request.pod;
  parts_.devices.Start(id, std::move(request),
                       [this, id, pod, done = std::move(done)](
                           const absl::StatusOr<Verdict>& verdict,
                           std::vector<WaitingFor> waiting_for) {
                         OnDevices(id, pod, verdict, std::move(waiting_for),
                                   done);
                       });
}

void PodLifecycle::OnDevices(OperationId id, const claim::PodIdentity& pod,
                             const absl::StatusOr<Verdict>& verdict,
                             std::vector<WaitingFor> waiting_for,
                             const DeviceManager::AdmitDone& done) {
  if (verdict.ok() && verdict->kind == Verdict::Kind::kAdmit) {
    done(*verdict);
    return;
  }
  admitted_.erase(pod.uid);
  if (parts_.claims != nullptr) parts_.claims->GiveBack(pod.uid);
  if (verdict.ok()) {
    Verdict settled = *verdict;
    admission::SettleRejection(parts_.state.FindPod(pod.uid), &settled);
    RecordVerdict(id, pod, settled, done);
    return;
  }
  const absl::Status& failure = verdict.status();
  if (absl::IsCancelled(failure)) return done(failure);
  const std::string message = MessageOf(failure);
  parts_.events.Add(true, admission::kFailedAllocate, "Pod", pod.name, message);
  // It waits as any other, so it is recorded as one that does, once.
  RecordVerdict(id, pod,
                {Verdict::Kind::kWait, admission::kFailedAllocate, message,
                 std::move(waiting_for)},
                [done, failure](const absl::StatusOr<Verdict>& recorded) {
                  const bool cancelled = absl::IsCancelled(recorded.status());
                  done(cancelled ? recorded.status() : failure);
                });
}

void PodLifecycle::Reject(OperationId id, const MalformedPod& pod,
                          DeviceManager::AdmitDone done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  if (absl::Status status = CheckIdentity(pod.pod); !status.ok()) {
    done(std::move(status));
    return;
  }
  if (claim::IsImported(parts_.state, PodUid{pod.pod.metadata.uid})) {
    return Recognize(id, pod.pod, std::move(done),
                     [this, id, pod](DeviceManager::AdmitDone next) {
                       Reject(id, pod, std::move(next));
                     });
  }
  Verdict verdict{Verdict::Kind::kReject,
                  claim::kInvalidPod,
                  api::Readable(pod.problem.ToString(), kMaxMessageBytes),
                  {}};
  // What the ledger decided about this UID stands: its containers may run.
  const PodRecord* record = parts_.state.FindPod(PodUid{pod.pod.metadata.uid});
  if (record != nullptr && (IsLive(*record) || !record->claims.empty())) {
    verdict = {};
    done(verdict);
    return;
  }
  RecordVerdict(id, IdentityOf(pod.pod), verdict, std::move(done));
}

void PodLifecycle::RecordVerdict(OperationId id, const claim::PodIdentity& pod,
                                 const Verdict& verdict,
                                 DeviceManager::AdmitDone done) {
  admitted_.erase(pod.uid);
  const bool reject = verdict.kind == Verdict::Kind::kReject;
  if (reject) {
    parts_.devices.Forget(pod.uid);
  } else if (!admission::WaitsForPlugins(verdict)) {
    parts_.devices.StepAside(pod.uid);
  }
  simple_.insert(id);
  const auto finish = [this, id, pod, verdict, reject,
                       done](const absl::Status& status) {
    if (simple_.erase(id) == 0) {
      done(CancelledError("cancelled"));
      return;
    }
    if (!status.ok()) {
      done(status);
      return;
    }
    Note(pod.uid, verdict);
    if (reject || verdict.reason == claim::kDeviceHeldElsewhere) {
      parts_.events.Add(true, verdict.reason, "Pod", pod.name, verdict.message);
    }
    done(verdict);
  };
  const PodRecord* known = parts_.state.FindPod(pod.uid);
  if (known != nullptr && (!reject || known->phase == PodPhase::kRejected)) {
    finish(absl::OkStatus());  // nothing new for the ledger
    return;
  }
  parts_.ledger.Submit(
      [pod, verdict, reject, now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        if (reject) return claim::RejectPod(state, pod, now, verdict);
        return claim::RecordSeen(state, pod, now, verdict.message);
      },
      parts_.executor, finish);
}

void PodLifecycle::ReleaseReplaced(OperationId id, const PodUid& pod,
                                   const Verdict& verdict,
                                   DeviceManager::AdmitDone done) {
  simple_.insert(id);
  admitted_.erase(pod);
  parts_.ledger.Submit(
      [pod, terms = Terms(pod), boot_id = parts_.boot_id](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::GiveUpReplaced(state, pod, terms, boot_id);
      },
      parts_.executor,
      [this, id, pod, verdict, done](const absl::Status& status) {
        if (simple_.erase(id) == 0) return done(CancelledError("cancelled"));
        if (!status.ok()) return done(status);
        Note(pod, verdict);
        done(verdict);
      });
}

}  // namespace devmgr::pods
