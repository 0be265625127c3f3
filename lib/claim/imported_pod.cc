// SPDX-License-Identifier: Apache-2.0
#include "claim/imported_pod.h"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <utility>

#include "claim/container_answer.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using device::ContainerKind;
using state::PodPhase;
using state::PodRecord;

std::map<ContainerName, ContainerKind> KindsOf(const Pod& pod) {
  std::map<ContainerName, ContainerKind> kinds;
  for (const Container& container : pod.spec.init_containers) {
    kinds[container.name] = container.restart_policy == "Always"
                                ? ContainerKind::kSidecar
                                : ContainerKind::kInit;
  }
  for (const Container& container : pod.spec.containers) {
    kinds[container.name] = ContainerKind::kApp;
  }
  return kinds;
}

/// Its object names claims, of which the files knew nothing.
bool NamesClaims(const Pod& pod) {
  return !pod.spec.resource_claims.empty() ||
         pod.status.extended_resource_claim_status.has_value();
}

/// All its containers, and those that only the files know.
std::vector<state::ContainerNeed> NeedsOf(const Pod& pod,
                                          const PodRecord& record) {
  std::vector<state::ContainerNeed> needs;
  for (const Container& container : pod.spec.init_containers) {
    needs.push_back({container.name, true, {}});
  }
  for (const Container& container : pod.spec.containers) {
    needs.push_back({container.name, false, {}});
  }
  const auto kinds = KindsOf(pod);
  for (const state::ContainerNeed& need : record.needs) {
    if (!kinds.contains(need.name)) needs.push_back(need);
  }
  return needs;
}

}  // namespace

bool IsImported(const state::State& state, const PodUid& pod) {
  const PodRecord* record = state.FindPod(pod);
  return record != nullptr && record->imported;
}

absl::StatusOr<state::Decision> RecordShown(const state::State& state,
                                            const Pod& pod) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kShown;
  const PodUid uid{pod.metadata.uid};
  if (!IsImported(state, uid)) return decision;
  auto record = std::make_shared<PodRecord>(*state.FindPod(uid));
  record->imported = false;
  record->name = pod.metadata.FullName();
  const auto kinds = KindsOf(pod);
  for (state::DeviceHold& hold : record->holds) {
    const auto kind = kinds.find(hold.container);
    if (kind != kinds.end()) hold.kind = kind->second;
  }
  if (state::IsLive(*record) && record->claims.empty()) {
    record->needs = NeedsOf(pod, *record);
    if (NamesClaims(pod)) {
      record->phase = PodPhase::kAdmitted;
      record->answer = nullptr;
    }
  }
  if (record->answer != nullptr) {
    DEVMGR_ASSIGN_OR_RETURN(record->answer,
                            AnswerFor(*record, [&](const ClaimUid& claim) {
                              return state.FindClaim(claim);
                            }));
  }
  decision.pods = {record->name};
  decision.message = fmt::format(
      "the source shows the pod with UID {} that was imported", uid.value);
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

Verdict WaitToBeShown(const PodRecord& pod) {
  return {Verdict::Kind::kWait,
          kPodNotShown,
          "imported from the checkpoint files of the kubelet, which do not say "
          "which container wants which claim; the source has not shown the pod "
          "yet",
          {{WaitingFor::Kind::kPod, pod.name.ToString()}}};
}

}  // namespace devmgr::claim
