// SPDX-License-Identifier: Apache-2.0
//
// Other devices for claims whose own do not work, before a container starts.
#include <cstdint>
#include <utility>

#include "admission/claim_steering.h"
#include "admission/kept_alignment.h"
#include "claim/held_hardware.h"
#include "common/status.h"
#include "control/authority.h"
#include "control/exchange_devices.h"
#include "control/local_objects.h"
#include "control/outlook.h"
#include "pods/local_claims.h"

namespace devmgr::pods {

absl::StatusOr<control::Provision> LocalClaims::AlongRecord(
    const state::PodRecord& record, const Pod& pod,
    const control::ProvideInput& input) {
  const admission::ContainerMasks masks =
      admission::MasksOf(record.alignment.get());
  if (masks.empty()) return provider_.Provide(pod, input);
  // The policy may have been another one then.
  const NumaMask machine = parts_.numa_nodes.empty()
                               ? NumaMask(~std::uint64_t{0})
                               : parts_.numa_nodes;
  auto along =
      admission::ClaimSteering(provider_, machine).ProvideOn(masks, pod, input);
  const bool is_found =
      along.ok() && along->verdict.kind == Verdict::Kind::kAdmit;
  if (!is_found &&
      record.alignment->options.policy == TopologyPolicy::kBestEffort) {
    return provider_.Provide(pod, input);
  }
  return along;
}

void LocalClaims::Exchange(const state::PodRecord& record,
                           const ContainerName& container,
                           const std::set<ClaimUid>& claims,
                           std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto objects = Objects();
  const auto* pod = objects->pods.Find(record.name);
  if (!parts_.authority.Allocates() || pod == nullptr ||
      (*pod)->metadata.uid != record.uid.value) {
    return done(UnavailableError(
        "devices of pod '{}' do not work, and this node allocates no others "
        "for it now",
        record.name.ToString()));
  }
  // As if the pod had none of it; what does not work is not offered.
  control::Outlook without = control::OutlookWith(
      control::Deallocated(parts_.state, claims), parts_.state, *objects);
  without.state.Erase(record.uid);
  for (const ClaimUid& claim : claims) without.state.Erase(claim);
  const auto provision =
      AlongRecord(record, control::WithLocalStatus(**pod, without.state),
                  Input(without.state, without.objects));
  if (!provision.ok()) return done(provision.status());
  if (provision->verdict.kind != Verdict::Kind::kAdmit) {
    return done(UnavailableError(
        "devices of pod '{}' do not work, and there are no others for it{}: {}",
        record.name.ToString(),
        admission::RequiredNodesText(record.alignment.get(), container),
        provision->verdict.message));
  }
  parts_.ledger.Submit(
      [uid = record.uid, container, claims, changes = provision->changes,
       seen = parts_.state.local_claims,
       configured = parts_.authority.configured(), boot_id = parts_.boot_id](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        DEVMGR_RETURN_IF_ERROR(control::CheckAllocates(state, configured));
        // The choice was made for what is held then.
        if (!(state.local_claims == seen)) {
          return AbortedError("other claims were allocated meanwhile");
        }
        DEVMGR_RETURN_IF_ERROR(claim::CheckHardwareFree(state, changes));
        return control::ExchangeDevices(state, uid, container, claims, changes,
                                        boot_id);
      },
      parts_.executor,
      [done = std::move(done)](const absl::Status& status) {
        if (absl::IsAborted(status)) {
          return done(UnavailableError("{}", MessageOf(status)));
        }
        done(status);
      });
}

}  // namespace devmgr::pods
