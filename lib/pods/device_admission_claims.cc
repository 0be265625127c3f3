// SPDX-License-Identifier: Apache-2.0
//
// What is planned for a pod becomes one batch: devices of plugins and, where
// this node allocates them, claims.
#include <memory>
#include <utility>

#include "common/status.h"
#include "pods/device_admission.h"

namespace devmgr::pods {
namespace {

constexpr char kClaimsDiffer[] = "devmgr/claims-differ";

}  // namespace

absl::Status ClaimsDiffer() {
  absl::Status status =
      AbortedError("the claims that the pod can have are not as they were");
  status.SetPayload(kClaimsDiffer, absl::Cord());
  return status;
}

bool IsClaimsDiffer(const absl::Status& status) {
  return status.GetPayload(kClaimsDiffer).has_value();
}

bool DeviceAdmission::ProposeClaims(const Shared& operation) {
  DeviceRequest& request = operation->request;
  if (request.claims == nullptr) return true;
  const ClaimsBeside& claims = *request.claims;
  operation->proposal = claims.from.Propose(claims.pod, claims.judge);
  if (!operation->proposal.has_value()) {
    Finish(operation, ClaimsDiffer());
    return false;
  }
  request.objects = operation->proposal->objects;
  if (IsAligning()) {
    request.object = std::make_shared<const Pod>(operation->proposal->pod);
  }
  return true;
}

void DeviceAdmission::CommitClaims(
    const Shared& operation, const LocalClaims::Rest& rest,
    std::function<void(const absl::Status&)> next) {
  LocalClaims& claims = operation->request.claims->from;
  const LocalClaims::Proposal proposal =
      *std::exchange(operation->proposal, std::nullopt);
  claims.Commit(proposal, rest,
                [this, operation, next = std::move(next)](
                    const absl::Status& status, bool stale) {
                  if (stale) {
                    parts_.devices.Settle(operation->request.pod.uid);
                    return Finish(operation, ClaimsDiffer());
                  }
                  // The pod has them from here on.
                  if (status.ok()) operation->request.claims = nullptr;
                  next(status);
                });
}

void DeviceAdmission::ReserveNothing(const Shared& operation) {
  Forget(operation->request.pod.uid);
  if (!operation->proposal.has_value()) return Finish(operation, Verdict{});
  CommitClaims(operation, nullptr,
               [this, operation](const absl::Status& status) {
                 if (!status.ok()) return Finish(operation, status);
                 Finish(operation, Verdict{});
               });
}

void DeviceAdmission::Reserve(const Shared& operation) {
  ++operation->plans;
  // Who plans next must not choose the same.
  parts_.devices.Intend(operation->request.pod, operation->plan);
  const auto reserve = [pod = operation->request.pod, plan = operation->plan,
                        now = parts_.now_ms(), sharing = parts_.sharing,
                        hardware = parts_.devices.HardwareOf(operation->plan)](
                           const state::State& state) {
    return claim::ReserveDevices(state, pod, now, plan, sharing, hardware);
  };
  const auto reserved = [this, operation](const absl::Status& status) {
    OnReserved(operation, status);
  };
  if (operation->proposal.has_value()) {
    return CommitClaims(operation, reserve, reserved);
  }
  parts_.ledger.Submit(reserve, parts_.executor, reserved);
}

void DeviceAdmission::OnReserved(const Shared& operation,
                                 const absl::Status& status) {
  parts_.devices.Settle(operation->request.pod.uid);
  if (status.ok() && operation->askers.empty()) {
    Free(operation, "cancelled", nullptr);
  } else if (status.ok()) {
    CatchUp(operation, &DeviceAdmission::Allocate);
  } else if (absl::IsAborted(status) && !operation->askers.empty()) {
    PlanAgain(operation, status);
  } else {
    Finish(operation, status);
  }
}

}  // namespace devmgr::pods
