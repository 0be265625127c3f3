// SPDX-License-Identifier: Apache-2.0
#include "resources/foreign_book.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "claim/foreign_holders.h"

namespace devmgr::resources {
namespace {

constexpr std::size_t kMaxWhy = 1024;
/// That are remembered.
constexpr std::size_t kMostEndpoints = 64;
constexpr std::size_t kMostConflicts = 10'000;  // Of one of these.

/// `container 'main' (0123456789abc)`.
std::string ContainerText(const state::ForeignHolderRecord& holder) {
  constexpr std::size_t kShown = 13;
  const std::string id =
      api::Readable(holder.id.value.substr(0, kShown), kShown);
  return holder.container.empty()
             ? "container " + id
             : fmt::format("container {} ({})", api::Quoted(holder.container),
                           id);
}

}  // namespace

ForeignBook::ForeignBook(Parts parts) : parts_(std::move(parts)) {
  if (parts_.state.foreign_holders.empty()) return;
  parts_.ledger.Submit([boot_id = parts_.boot_id](const state::State& state)
                           -> absl::StatusOr<state::Decision> {
    return claim::EndEarlierBoots(state, boot_id);
  });
}

/// Where a device plugin names a device as CDI does, the CDI device is its. As
/// long as the plugin has not reported its devices, it may be.
state::ForeignHolderRecord ForeignBook::RecordOf(
    const ForeignHolder& holder) const {
  state::ForeignHolderRecord record;
  record.id.value = holder.container_id;
  record.pod_uid = holder.pod_uid;
  record.pod = holder.pod;
  record.container = holder.container;
  record.why = holder.why;
  record.boot_id = parts_.boot_id;
  for (const HeldResource& resource : holder.resources) {
    for (const std::string& device : resource.devices) {
      record.devices.emplace(resource.name, device);
    }
  }
  record.cdi_devices = {holder.cdi_devices.begin(), holder.cdi_devices.end()};
  for (const std::string& name : holder.cdi_devices) {
    const std::size_t equals = name.find('=');
    if (equals == std::string::npos) continue;
    const std::string kind = name.substr(0, equals);
    const std::string device = name.substr(equals + 1);
    const auto inventory = parts_.inventories.find(kind);
    if (inventory == parts_.inventories.end()) continue;
    const bool is_listed = inventory->second.Find(device) != nullptr;
    const device::EndpointState state = inventory->second.state();
    const bool is_awaited = state == device::EndpointState::kRestored ||
                            state == device::EndpointState::kConnected;
    if (is_listed || is_awaited) record.devices.emplace(kind, device);
  }
  if (!parts_.hardware_of) return record;
  for (const auto& [resource, device] : record.devices) {
    const device::Hardware hardware = parts_.hardware_of(resource, device);
    if (hardware.empty()) continue;
    // Of several devices one that is held whole counts for all.
    record.hardware.part =
        hardware.part && (record.hardware.empty() || record.hardware.part);
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      record.hardware.Add(identity);
    }
  }
  return record;
}

void ForeignBook::Take(const RuntimeReport& report) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (report.holders.empty() && !report.all_holders) return;
  claim::ReportedHolders reported{report.endpoint, {}, report.all_holders};
  for (const ForeignHolder& holder : report.holders) {
    reported.holders.push_back(RecordOf(holder));
  }
  TellOfConflicts(reported);
  if (IsOldNews(reported)) return;
  parts_.ledger.Submit(
      [reported = std::move(reported), now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::JudgeHolders(state, reported, now);
      });
}

/// What was reported before may not be on disk yet, so that only this is known
/// to change nothing: no holders, where there were none the last time.
bool ForeignBook::IsOldNews(const claim::ReportedHolders& reported) {
  const bool is_empty = reported.all && reported.holders.empty();
  if (!is_empty) {
    empty_.erase(reported.endpoint);
    return false;
  }
  if (empty_.size() >= kMostEndpoints) empty_.clear();
  if (empty_.insert(reported.endpoint).second) return false;
  const auto& holders = parts_.state.foreign_holders;
  return std::none_of(holders.begin(), holders.end(), [&](const auto& entry) {
    return entry.second->endpoint == reported.endpoint;
  });
}

void ForeignBook::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.pods) {
    if (now != nullptr) OnPod(now->uid);
  }
  for (const auto& [before, now] : changes.holders) {
    OnRecorded(before.get(), now.get());
  }
}

void ForeignBook::OnPod(const PodUid& pod) {
  if (parts_.state.foreign_holders.empty()) return;
  if (claim::SettleHolders(parts_.state, pod).changes.empty()) return;
  parts_.ledger.Submit(
      [pod](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::SettleHolders(state, pod);
      });
}

void ForeignBook::Free(const std::string& id, const std::string& reason,
                       std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  parts_.ledger.Submit(
      [id, reason](const state::State& state) {
        return claim::FreeHolder(state, id, reason);
      },
      parts_.executor, std::move(done));
}

void ForeignBook::TellOfConflicts(const claim::ReportedHolders& reported) {
  Conflicts now;
  Conflicts& told = conflicts_[reported.endpoint];
  for (const state::ForeignHolderRecord& holder : reported.holders) {
    for (const auto& [resource, device] : holder.devices) {
      const PodUid* uid = parts_.state.HolderOf(resource, device);
      if (uid == nullptr || *uid == holder.pod_uid) continue;
      if (!now.emplace(holder.id, resource, device).second) continue;
      if (told.contains({holder.id, resource, device})) continue;
      const std::string pod = parts_.state.FindPod(*uid)->name.ToString();
      Tell(true, "ForeignHolderConflict", holder,
           fmt::format("{} uses device {} of {}, which the ledger assigned to "
                       "pod {}: the pod keeps it, and both may use it until "
                       "the container is stopped",
                       ContainerText(holder), api::Quoted(device),
                       api::Quoted(resource), api::Quoted(pod)));
    }
  }
  if (!reported.all) now.merge(told);
  told = std::move(now);
  if (told.empty() || told.size() > kMostConflicts) {
    conflicts_.erase(reported.endpoint);
  }
  if (conflicts_.size() > kMostEndpoints) conflicts_.clear();
}

void ForeignBook::OnRecorded(const state::ForeignHolderRecord* before,
                             const state::ForeignHolderRecord* now) {
  if (now == nullptr) {
    if (before == nullptr) return;
    const state::PodRecord* own = parts_.state.FindPod(before->pod_uid);
    const bool is_adopted = own != nullptr && !own->holds.empty();
    Tell(false, "ForeignHolderGone", *before,
         fmt::format(
             "{} holds no devices beyond what pods were given any more{}",
             ContainerText(*before),
             is_adopted ? ": its pod was given them" : ": it is gone"));
    return;
  }
  if (!now->Holds()) {
    Tell(true, "ForeignHolderFreed", *now,
         fmt::format("an operator freed {}, which {} may still use: {}",
                     claim::HeldText(*now), ContainerText(*now),
                     api::Readable(now->freed, kMaxWhy)));
    return;
  }
  const bool has_more =
      before == nullptr || !before->Holds() ||
      !std::includes(before->devices.begin(), before->devices.end(),
                     now->devices.begin(), now->devices.end()) ||
      !std::includes(before->cdi_devices.begin(), before->cdi_devices.end(),
                     now->cdi_devices.begin(), now->cdi_devices.end());
  if (!has_more) return;
  std::string message =
      fmt::format("{} holds {}: {}", ContainerText(*now), claim::HeldText(*now),
                  api::Readable(now->why, kMaxWhy));
  if (!now->devices.empty()) {
    message +=
        "; no other pod gets devices of device plugins among these until it "
        "is gone or an operator frees them";
  }
  if (!now->cdi_devices.empty()) {
    message += "; CDI devices of claims may still be allocated to others";
  }
  Tell(true, "ForeignHolder", *now, message);
}

void ForeignBook::Tell(bool warning, const char* reason,
                       const state::ForeignHolderRecord& holder,
                       const std::string& message) {
  const bool has_pod = !holder.pod.name.empty();
  parts_.events.Add(warning, reason, has_pod ? "Pod" : "Container",
                    has_pod ? holder.pod : ObjectName{"", holder.id.value},
                    message);
}

}  // namespace devmgr::resources
