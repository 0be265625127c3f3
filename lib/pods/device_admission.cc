// SPDX-License-Identifier: Apache-2.0
#include "pods/device_admission.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "admission/device_request.h"
#include "common/status.h"
#include "device/merge_edits.h"

namespace devmgr::pods {
namespace {

/// Somebody else may be faster; twice in a row he is not.
constexpr int kMostPlans = 2;

}  // namespace

DeviceAdmission::DeviceAdmission(Parts parts)
    : parts_(std::move(parts)), queue_(parts_.queue) {}

DeviceAdmission::~DeviceAdmission() { parts_.executor.Cancel(timer_); }

void DeviceAdmission::Start(OperationId id, DeviceRequest request, Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(CancelledError("the manager stops"), {});
  Shared& operation = operations_[request.pod.uid];
  if (operation != nullptr) {
    operation->askers[id] = std::move(done);
    return;
  }
  operation = std::make_shared<Operation>();
  operation->askers[id] = std::move(done);
  operation->request = std::move(request);
  LeaveOutUnserved(&operation->request);
  Plan(Shared(operation));
}

void DeviceAdmission::LeaveOutUnserved(DeviceRequest* request) const {
  if (parts_.policy.profile != Profile::kStrictKubelet) return;
  std::erase_if(request->needs, [&](const auto& need) {
    return !parts_.devices.IsServed(need.resource);
  });
}

bool DeviceAdmission::WouldAdmit(const DeviceRequest& request) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (request.needs.empty() && (request.object == nullptr || !JudgesAll())) {
    return true;
  }
  const auto aligned = Aligned(request, {});
  if (!aligned.ok() || !aligned->plan.shortages.empty()) return false;
  const admission::WaitQueue::Place place = PlaceOf(request);
  return !place.takes ||
         !queue_
              .FirstBefore(request.pod.uid, place, parts_.now_ms(), FreeCount())
              .has_value();
}

void DeviceAdmission::Cancel(OperationId id) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [pod, operation] : operations_) {
    const auto asker = operation->askers.find(id);
    if (asker == operation->askers.end()) continue;
    const Done done = std::move(asker->second);
    operation->askers.erase(asker);
    done(CancelledError("cancelled"), {});
    return;
  }
}

void DeviceAdmission::Stop() {
  DEVMGR_ASSERT_ON(parts_.executor);
  stopped_ = true;
  const std::map<PodUid, Shared> operations = std::move(operations_);
  operations_.clear();
  for (const auto& [pod, operation] : operations) {
    for (const auto& [id, done] : std::exchange(operation->askers, {})) {
      done(CancelledError("the manager stops"), {});
    }
  }
}

void DeviceAdmission::FreeUnanswered() {
  DEVMGR_ASSERT_ON(parts_.executor);
  static constexpr char kMessage[] =
      "the manager ended before the plugin had answered; its devices are free "
      "again";
  for (const auto& [uid, pod] : parts_.state.pods) {
    if (!claim::HasReserved(*pod)) continue;
    parts_.events.Add(true, "AllocateOutcomeUnknown", "Pod", pod->name,
                      kMessage);
  }
  // After a failure, a pod that comes again frees its own.
  parts_.ledger.Submit(
      [](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::FreeAllReserved(state, kMessage);
      });
}

bool DeviceAdmission::FreeLeftovers(const Shared& operation) {
  const auto* pod = parts_.state.FindPod(operation->request.pod.uid);
  const bool leftovers = pod != nullptr && claim::HasReserved(*pod);
  if (leftovers) {
    Free(operation, "an earlier admission did not end",
         [this, operation] { Plan(operation); });
  }
  return leftovers;
}

void DeviceAdmission::CatchUp(
    const Shared& operation,
    void (DeviceAdmission::*next)(const Shared& operation)) {
  std::set<ResourceName> resources;
  for (const device::DeviceNeed& need : operation->request.needs) {
    resources.insert(need.resource);
  }
  parts_.plugins.WhenCurrent({resources.begin(), resources.end()},
                             [this, operation, next](const absl::Status& status,
                                                     const std::string& late) {
                               if (status.ok() && !operation->askers.empty()) {
                                 return (this->*next)(operation);
                               }
                               if (!status.ok()) {
                                 operation->failure = status;
                                 operation->failed_resource = late;
                               }
                               EndEarly(operation);
                             });
}

void DeviceAdmission::EndEarly(const Shared& operation) {
  const auto* pod = parts_.state.FindPod(operation->request.pod.uid);
  const bool holds = pod != nullptr && claim::HasReserved(*pod);
  if (operation->askers.empty()) {
    if (holds) return Free(operation, "cancelled", nullptr);
    return Finish(operation, CancelledError("cancelled"));
  }
  if (!holds) return FailedCall(operation);
  Free(operation, MessageOf(operation->failure),
       [this, operation] { FailedCall(operation); });
}

void DeviceAdmission::Plan(const Shared& operation) {
  if (FreeLeftovers(operation)) return;
  CatchUp(operation, &DeviceAdmission::PlanNow);
}

void DeviceAdmission::PlanNow(const Shared& operation) {
  if (!ProposeClaims(operation)) return;
  const auto begin = parts_.executor.Now();
  device::PodPlan plan;
  if (!Align(operation, &plan)) return;
  if (policy().authority != Authority::kScheduler) {
    parts_.metrics.OnSchedulingStep(
        "NodeResourcesFit", "Filter",
        plan.shortages.empty() ? "Success" : "Unschedulable",
        parts_.executor.Now() - begin);
  }
  if (!plan.shortages.empty()) {
    Judge(operation, std::move(plan.shortages));
    return;
  }
  if (plan.Complete() && plan.reservations.empty()) {
    return ReserveNothing(operation);
  }
  // What its own containers have goes to no pod before it.
  const bool adopts =
      plan.Complete() && parts_.devices.IsAdoption(plan.reservations);
  if (!adopts && !MayGo(operation)) return;
  if (!plan.questions.empty()) {
    Ask(operation, plan.questions);
    return;
  }
  operation->plan = std::move(plan.reservations);
  if (!Refused(operation)) Reserve(operation);
}

void DeviceAdmission::Ask(
    const Shared& operation,
    const std::vector<device::PreferenceQuestion>& questions) {
  operation->missing = questions.size();
  operation->failure = absl::OkStatus();
  for (const device::PreferenceQuestion& question : questions) {
    const auto answered =
        [this, operation,
         key = device::NeedKey(question.container, question.resource)](
            absl::StatusOr<std::vector<DeviceId>> ids) {
          if (ids.ok()) {
            operation->preferences[key] = *std::move(ids);
          } else if (operation->failure.ok()) {
            operation->failure = ids.status();
            operation->failed_resource = key.second;
          }
          if (--operation->missing > 0) return;
          if (operation->askers.empty()) {
            Finish(operation, CancelledError("cancelled"));
          } else if (operation->failure.ok()) {
            Plan(operation);
          } else {
            FailedCall(operation);
          }
        };
    parts_.plugins.GetPreferredAllocation(
        question.resource,
        parts_.devices.PrimaryOf(question.resource).value_or(0),
        {question.available, question.must_include,
         static_cast<int>(question.size)},
        IdentityFor(operation->request.pod, question.container), answered);
  }
}

bool DeviceAdmission::Refused(const Shared& operation) {
  for (const device::Reservation& planned : operation->plan) {
    operation->failure = parts_.plugins.CheckAllocate(
        planned.resource,
        parts_.devices.PrimaryOf(planned.resource).value_or(0));
    if (operation->failure.ok()) continue;
    parts_.metrics.OnAllocate(planned.resource, {}, /*failed=*/true);
    operation->failed_resource = planned.resource;
    FailedCall(operation);
    return true;
  }
  return false;
}

void DeviceAdmission::PlanAgain(const Shared& operation,
                                const absl::Status& why) {
  if (operation->plans >= kMostPlans) return Finish(operation, why);
  operation->preferences.clear();
  operation->answers.clear();
  Plan(operation);
}

bool DeviceAdmission::IsOutdated(const Shared& operation) {
  const absl::Status usable =
      device::CheckStillUsable(operation->plan, parts_.devices.inventories());
  if (usable.ok()) return false;
  Free(operation, MessageOf(usable),
       [this, operation, usable] { PlanAgain(operation, usable); });
  return true;
}

void DeviceAdmission::Allocate(const Shared& operation) {
  if (IsOutdated(operation)) return;
  operation->missing = operation->plan.size();
  operation->failure = absl::OkStatus();
  for (const device::Reservation& reserved : operation->plan) {
    std::vector<DeviceId> ids;
    for (const device::HeldDevice& device : reserved.devices) {
      ids.push_back(device.id);
    }
    const device::NeedKey key(reserved.container, reserved.resource);
    parts_.plugins.Allocate(
        reserved.resource,
        parts_.devices.PrimaryOf(reserved.resource).value_or(0), ids,
        IdentityFor(operation->request.pod, reserved.container),
        [this, operation, key, begin = parts_.executor.Now()](
            absl::StatusOr<device::ContainerEdits> edits) {
          parts_.metrics.OnAllocate(key.second, parts_.executor.Now() - begin,
                                    !edits.ok());
          if (edits.ok()) {
            operation->answers[key] = {
                *std::move(edits),
                parts_.devices.OptionsOf(key.second).pre_start_required};
          } else {
            if (plugin::OutcomeIsUnknown(edits.status())) {
              parts_.events.Add(true, "AllocateOutcomeUnknown", "Pod",
                                operation->request.pod.name,
                                MessageOf(edits.status()));
            }
            if (operation->failure.ok()) {
              operation->failure = edits.status();
              operation->failed_resource = key.second;
            }
          }
          if (--operation->missing == 0) OnAllocated(operation);
        });
  }
}

void DeviceAdmission::OnAllocated(const Shared& operation) {
  if (operation->askers.empty()) {
    Free(operation, "cancelled", nullptr);
  } else if (!operation->failure.ok()) {
    Free(operation, MessageOf(operation->failure),
         [this, operation] { FailedCall(operation); });
  } else {
    CatchUp(operation, &DeviceAdmission::Conclude);
  }
}

void DeviceAdmission::Conclude(const Shared& operation) {
  if (IsOutdated(operation)) return;
  operation->failure = CheckConflicts(*operation);
  if (operation->failure.ok()) return Identify(operation);
  Free(operation, MessageOf(operation->failure),
       [this, operation] { FailedCall(operation); });
}

absl::Status DeviceAdmission::CheckConflicts(Operation& operation) const {
  absl::Status refusal;
  std::map<ContainerName, std::vector<device::ResourceEdits>> containers;
  for (const auto& [key, answer] : operation.answers) {
    containers[key.first].push_back({key.second, answer.edits});
  }
  for (auto& [container, edits] : containers) {
    for (const auto& conflict :
         device::MergeEdits(std::move(edits)).conflicts) {
      const std::string text = fmt::format("container '{}': {}", container,
                                           device::ConflictText(conflict));
      parts_.events.Add(true, "DeviceEditConflict", "Pod",
                        operation.request.pod.name, text);
      if (!parts_.refuse_edit_conflicts || !refusal.ok()) continue;
      refusal = FailedPreconditionError("{}", text);
      operation.failed_resource = conflict.dropped_from;
    }
  }
  return refusal;
}

void DeviceAdmission::Commit(const Shared& operation) {
  parts_.ledger.Submit(
      [pod = operation->request.pod.uid, answers = operation->answers,
       without_claims = operation->request.without_claims,
       hardware = operation->hardware](const state::State& state) {
        return claim::CommitDevices(state, pod, answers, without_claims,
                                    hardware);
      },
      parts_.executor,
      [this, operation](const absl::Status& status) {
        if (absl::IsAborted(status)) {
          // Another pod was faster.
          const auto clash = claim::FindClash(
              parts_.state, operation->request.pod.uid, operation->hardware);
          if (clash.has_value()) {
            return YieldHardware(operation, clash->first, clash->second);
          }
        }
        if (!status.ok()) {
          Finish(operation, status);
          return;
        }
        Forget(operation->request.pod.uid);
        Finish(operation, Verdict{});
      });
}

void DeviceAdmission::Free(const Shared& operation, const std::string& why,
                           std::function<void()> next) {
  parts_.ledger.Submit(
      [pod = operation->request.pod.uid,
       why](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::FreeReserved(state, pod, why);
      },
      parts_.executor,
      [this, operation, next = std::move(next)](const absl::Status& freed) {
        if (!freed.ok()) {
          Finish(operation, freed);
        } else if (operation->askers.empty()) {
          Finish(operation, CancelledError("cancelled"));
        } else if (next != nullptr) {
          next();
        } else {
          // Somebody asks for it again.
          operation->plans = 0;
          PlanAgain(operation, absl::OkStatus());
        }
      });
}

void DeviceAdmission::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) {
      Forget(before->uid);
    } else {
      FreeStray(now->uid);
    }
  }
  for (const ledger::ClaimedResources& claimed : changes.claimed) {
    for (const ResourceName& resource : claimed.given_up) OnResource(resource);
  }
  for (const auto& [name, passage] : changes.resources) OnResource(name);
  DropAlignments(changes);
}

void DeviceAdmission::OnResource(const ResourceName& resource) {
  DEVMGR_ASSERT_ON(parts_.executor);
  GiveTurns({resource});
}

void DeviceAdmission::Forget(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  unaligned_.erase(pod);
  const std::set<ResourceName> resources = queue_.Leave(pod);
  if (!resources.empty()) GiveTurns(resources);
}

void DeviceAdmission::StepAside(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  unaligned_.erase(pod);
  const std::set<ResourceName> resources = queue_.StepAside(pod);
  if (!resources.empty()) GiveTurns(resources);
}

void DeviceAdmission::Finish(const Shared& operation,
                             const absl::StatusOr<Verdict>& result,
                             const std::vector<WaitingFor>& waiting_for) {
  const auto found = operations_.find(operation->request.pod.uid);
  if (found != operations_.end() && found->second == operation) {
    operations_.erase(found);
  }
  FreeStray(operation->request.pod.uid);
  for (const auto& [id, done] : std::exchange(operation->askers, {})) {
    done(result, waiting_for);
  }
}

void DeviceAdmission::FreeStray(const PodUid& uid) {
  if (stopped_ || operations_.contains(uid)) return;
  const state::PodRecord* pod = parts_.state.FindPod(uid);
  if (pod == nullptr || !claim::HasReserved(*pod)) return;
  parts_.ledger.Submit(
      [uid](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::FreeReserved(state, uid,
                                   "the write of the reservation had failed");
      });
}

plugin::PodIdentity DeviceAdmission::IdentityFor(
    const claim::PodIdentity& pod, const ContainerName& container) {
  return {pod.uid.value, pod.name.ns, pod.name.name, container};
}

}  // namespace devmgr::pods
