// SPDX-License-Identifier: Apache-2.0
#include "pods/container_start.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "admission/kept_alignment.h"
#include "claim/device_booking.h"
#include "claim/init_devices.h"
#include "claim/replace_devices.h"
#include "common/status.h"
#include "control/exchange_devices.h"

namespace devmgr::pods {
namespace {

using state::DeviceHold;
using state::PodRecord;

absl::StatusOr<const PodRecord*> FindReady(const state::State& state,
                                           const std::string& boot_id,
                                           const PodUid& uid,
                                           const ContainerName& container) {
  const PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr) {
    return NotFoundError("pod with UID '{}' is not known", uid.value);
  }
  if (state::IsEvicting(*pod)) {
    return FailedPreconditionError("pod '{}' has to leave its devices: {}",
                                   pod->name.ToString(),
                                   pod->eviction->message);
  }
  if (pod->phase != state::PodPhase::kReady) {
    return FailedPreconditionError("pod '{}' is {}, not Ready",
                                   pod->name.ToString(),
                                   state::PodPhaseName(pod->phase));
  }
  if (pod->boot_id != boot_id) {
    return FailedPreconditionError(
        "pod '{}' was prepared in another boot, and not yet again",
        pod->name.ToString());
  }
  const bool known =
      std::any_of(pod->needs.begin(), pod->needs.end(),
                  [&](const auto& need) { return need.name == container; });
  if (known) return pod;
  return NotFoundError("pod '{}' has no container '{}'", pod->name.ToString(),
                       container);
}

bool IsCommitted(const DeviceHold& hold) {
  return hold.phase == device::ReservationPhase::kCommitted;
}

/// It has given devices back and has no others yet; they may be under way.
bool LacksDevices(const PodRecord& pod, const ContainerName& container) {
  return std::any_of(pod.holds.begin(), pod.holds.end(),
                     [&](const DeviceHold& hold) {
                       return hold.container == container && !IsCommitted(hold);
                     });
}

/// What the container lacks, among what the others of the pod have.
std::vector<device::DeviceNeed> NeedsFor(PodRecord pod,
                                         const ContainerName& container) {
  std::erase_if(pod.holds, [&](const DeviceHold& hold) {
    return hold.container != container && !IsCommitted(hold);
  });
  return claim::NeedsOfHolds(pod);
}

}  // namespace

void ContainerStarts::BeforeStart(OperationId id, const PodUid& uid,
                                  const ContainerName& container, Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (parts_.state.FindPod(uid) != nullptr) parts_.use.OnAsked(uid);
  const auto pod = FindReady(parts_.state, parts_.boot_id, uid, container);
  if (stopped_) return done(CancelledError("the manager stops"));
  if (!pod.ok()) return done(WhyNotReady(uid, pod.status()));
  const absl::Status healthy = parts_.health.CheckStart(**pod, container);
  if (!healthy.ok()) return done(healthy);
  const std::set<ResourceName> faulty =
      parts_.health.ToReplace(**pod, container);
  const absl::Status others = CheckOthers(**pod, container, faulty);
  if (!others.ok()) return done(others);
  pending_[id] = std::move(done);
  if (ExchangeClaims(id, **pod, container)) return;
  if (faulty.empty()) return LookAtSpecs(id, **pod, container);
  GiveBackFaulty(id, uid, container, faulty);
}

bool ContainerStarts::ExchangeClaims(OperationId id, const PodRecord& pod,
                                     const ContainerName& container) {
  std::set<ClaimUid> claims = parts_.health.ClaimsToReplace(pod, container);
  std::erase_if(claims, [&](const ClaimUid& claim) {
    return !control::MayExchange(parts_.state, pod, container, claim);
  });
  LocalClaims* const local = parts_.claims ? parts_.claims() : nullptr;
  if (claims.empty() || local == nullptr) return false;
  local->Exchange(
      pod, container, claims,
      [this, id, name = pod.name, container](const absl::Status& status) {
        // Who starts containers tries again.
        End(id, status.ok() ? UnavailableError(
                                  "container '{}' of pod '{}' gets other "
                                  "devices, since its own do not work: their "
                                  "drivers are asked to prepare them",
                                  container, name.ToString())
                            : status);
      });
  return true;
}

absl::Status ContainerStarts::CheckOthers(
    const PodRecord& pod, const ContainerName& container,
    const std::set<ResourceName>& resources) const {
  for (const DeviceHold& hold : pod.holds) {
    if (hold.container != container || !resources.contains(hold.resource) ||
        !claim::HoldsAlone(pod, hold)) {
      continue;
    }
    std::int64_t working = parts_.devices.FreeCount(hold.resource);
    const auto* alignment = pod.alignment.get();
    if (const auto nodes = admission::RequiredNodes(alignment, container)) {
      working = admission::FreeDevicesOn(parts_.devices.Devices(),
                                         hold.resource, *nodes);
    }
    const auto inventory = parts_.devices.inventories().find(hold.resource);
    for (const device::HeldDevice& device : hold.devices) {
      if (inventory == parts_.devices.inventories().end()) break;
      const device::InventoryDevice* known = inventory->second.Find(device.id);
      if (known != nullptr && known->Usable()) ++working;
    }
    if (working >= static_cast<std::int64_t>(hold.devices.size())) continue;
    return UnavailableError(
        "a device of {} that container '{}' of pod '{}' holds does not work, "
        "and there is no other one for it now{}",
        hold.resource, container, pod.name.ToString(),
        admission::RequiredNodesText(alignment, container));
  }
  return absl::OkStatus();
}

void ContainerStarts::GiveBackFaulty(OperationId id, const PodUid& uid,
                                     const ContainerName& container,
                                     const std::set<ResourceName>& resources) {
  parts_.ledger.Submit(
      [uid, container, resources,
       boot_id = parts_.boot_id](const state::State& state) {
        return claim::GiveBackFaulty(state, uid, container, resources, boot_id);
      },
      parts_.executor,
      [this, id, uid, container](const absl::Status& status) {
        if (!pending_.contains(id)) return;  // cancelled
        if (!status.ok()) return End(id, status);
        const auto pod =
            FindReady(parts_.state, parts_.boot_id, uid, container);
        if (!pod.ok()) return End(id, WhyNotReady(uid, pod.status()));
        LookAtSpecs(id, **pod, container);
      });
}

void ContainerStarts::LookAtSpecs(OperationId id, const PodRecord& pod,
                                  const ContainerName& container) {
  parts_.specs.BeforeStart(
      pod, container,
      [this, id, uid = pod.uid, container](const absl::Status& status) {
        OnSpecs(id, uid, container, status);
      });
}

absl::Status ContainerStarts::WhyNotReady(const PodUid& uid,
                                          const absl::Status& found) const {
  const PodRecord* pod = parts_.state.FindPod(uid);
  if (pod == nullptr) return found;
  const absl::Status awaited = parts_.specs.Awaited(*pod);
  return awaited.ok() ? found : awaited;
}

void ContainerStarts::OnSpecs(OperationId id, const PodUid& uid,
                              const ContainerName& container,
                              const absl::Status& status) {
  if (!pending_.contains(id)) return;  // cancelled
  if (!status.ok()) return End(id, status);
  const auto pod = FindReady(parts_.state, parts_.boot_id, uid, container);
  if (!pod.ok()) return End(id, WhyNotReady(uid, pod.status()));
  if (LacksDevices(**pod, container)) {
    GetDevicesAnew(id, **pod, container);
  } else {
    AskPlugins(id, **pod, container);
  }
}

void ContainerStarts::GetDevicesAnew(OperationId id, const PodRecord& pod,
                                     const ContainerName& container) {
  DeviceRequest request{{pod.uid, pod.name, pod.local}};
  request.needs = NeedsFor(pod, container);
  request.judge_held = false;
  request.aligned_to = pod.alignment;
  const auto chosen = [this, id, uid = pod.uid, container](
                          const absl::StatusOr<Verdict>& verdict,
                          const std::vector<WaitingFor>&) {
    if (!verdict.ok() || verdict->kind != Verdict::Kind::kAdmit) {
      // It is its runtime that tries again, not we.
      parts_.admission.Forget(uid);
      return End(id, verdict.ok() ? UnavailableError("{}", verdict->message)
                                  : verdict.status());
    }
    const auto now = FindReady(parts_.state, parts_.boot_id, uid, container);
    if (!now.ok()) return End(id, now.status());
    AskPlugins(id, **now, container);
  };
  parts_.admission.Start(id, std::move(request), chosen);
}

bool ContainerStarts::WantsPreStart(const DeviceHold& hold) const {
  return parts_.devices.PrimaryOf(hold.resource).has_value()
             ? parts_.devices.OptionsOf(hold.resource).pre_start_required
             : hold.pre_start;
}

void ContainerStarts::AskPlugins(OperationId id, const PodRecord& pod,
                                 const ContainerName& container) {
  std::vector<const DeviceHold*> asked;
  for (const DeviceHold& hold : pod.holds) {
    if (hold.container == container && WantsPreStart(hold)) {
      asked.push_back(&hold);
    }
  }
  if (asked.empty()) return End(id, absl::OkStatus());
  struct Answers {
    std::size_t missing;
    absl::Status failure;
  };
  auto answers = std::make_shared<Answers>(Answers{asked.size(), {}});
  for (const DeviceHold* hold : asked) {
    std::vector<DeviceId> ids;
    for (const auto& device : hold->devices) ids.push_back(device.id);
    parts_.plugins.PreStartContainer(
        hold->resource, parts_.devices.PrimaryOf(hold->resource).value_or(0),
        ids,
        // One that is known by its UID alone has no name yet.
        {pod.uid.value, pod.name.ns,
         pod.imported ? std::string() : pod.name.name, container},
        [this, id, answers](absl::Status status) {
          answers->failure.Update(std::move(status));
          if (--answers->missing == 0) End(id, answers->failure);
        });
  }
}

void ContainerStarts::ReleaseInit(OperationId id, const PodUid& pod,
                                  Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(CancelledError("the manager stops"));
  // The kubelet keeps them as long as the pod lives.
  if (parts_.profile == Profile::kStrictKubelet) return done(absl::OkStatus());
  pending_[id] = std::move(done);
  parts_.ledger.Submit(
      [pod, boot_id = parts_.boot_id](const state::State& state) {
        return claim::ReleaseInitDevices(state, pod, boot_id);
      },
      parts_.executor,
      [this, id](const absl::Status& status) { End(id, status); });
}

void ContainerStarts::Cancel(OperationId id) {
  DEVMGR_ASSERT_ON(parts_.executor);
  End(id, CancelledError("cancelled"));
}

void ContainerStarts::Stop() {
  DEVMGR_ASSERT_ON(parts_.executor);
  stopped_ = true;
  while (!pending_.empty()) {
    End(pending_.begin()->first, CancelledError("the manager stops"));
  }
}

void ContainerStarts::End(OperationId id, const absl::Status& status) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // cancelled
  const Done done = std::move(found->second);
  pending_.erase(found);
  done(status);
}

}  // namespace devmgr::pods
