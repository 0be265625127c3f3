// SPDX-License-Identifier: Apache-2.0
#include "claim/foreign_holders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::ContainerId;
using state::Decision;
using state::DecisionKind;
using state::ForeignHolderRecord;
using state::State;

/// Of devices, in a text.
constexpr std::size_t kMostHeldNames = 8;

/// The pod has it for good; what is only reserved may be given back.
bool IsGivenTo(const state::PodRecord& pod, const ResourceName& resource,
               const std::string& device) {
  return std::any_of(
      pod.holds.begin(), pod.holds.end(), [&](const state::DeviceHold& hold) {
        return hold.resource == resource &&
               hold.phase == device::ReservationPhase::kCommitted &&
               std::any_of(hold.devices.begin(), hold.devices.end(),
                           [&](const auto& held) { return held.id == device; });
      });
}

/// Names of CDI devices in the pod's answer.
std::set<std::string> CdiNamesOf(const state::PodRecord& pod) {
  std::set<std::string> names;
  if (pod.answer == nullptr) return names;
  for (const ContainerDevices& container : pod.answer->containers) {
    for (const CdiDevice& device : container.cdi_devices) {
      names.insert(device.name);
    }
  }
  return names;
}

std::string Few(std::vector<std::string> texts) {
  const std::size_t count = texts.size();
  texts.resize(std::min(count, kMostHeldNames));
  std::string text = fmt::format("{}", fmt::join(texts, ", "));
  if (count > kMostHeldNames) {
    text += fmt::format(", and {} more", count - kMostHeldNames);
  }
  return text;
}

bool HoldsNothing(const ForeignHolderRecord& holder) {
  return holder.devices.empty() && holder.cdi_devices.empty();
}

/// Collects the changes of one decision.
class HolderDraft {
 public:
  void Put(ForeignHolderRecord holder) {
    found_.push_back(state::HolderText(holder));
    AddPod(holder);
    decision_.changes.push_back(state::PutHolder{
        std::make_shared<const ForeignHolderRecord>(std::move(holder))});
  }
  void Erase(const ForeignHolderRecord& holder) {
    gone_.push_back(state::HolderText(holder));
    AddPod(holder);
    decision_.changes.push_back(state::EraseHolder{holder.id});
  }

  Decision Finish() && {
    decision_.kind =
        found_.empty() ? DecisionKind::kHolderGone : DecisionKind::kHolderFound;
    if (!found_.empty()) {
      decision_.message = "devices that no pod was given: " + Few(found_);
    }
    if (!gone_.empty()) {
      decision_.message += decision_.message.empty() ? "" : "; ";
      decision_.message += "none any more: " + Few(gone_);
    }
    return std::move(decision_);
  }

 private:
  void AddPod(const ForeignHolderRecord& holder) {
    auto& pods = decision_.pods;
    if (holder.pod.name.empty() ||
        std::find(pods.begin(), pods.end(), holder.pod) != pods.end()) {
      return;
    }
    pods.push_back(holder.pod);
  }

  Decision decision_;
  std::vector<std::string> found_;
  std::vector<std::string> gone_;
};

}  // namespace

ForeignHolderRecord HeldBeyondPods(const State& state,
                                   ForeignHolderRecord holder) {
  const state::PodRecord* own = state.FindPod(holder.pod_uid);
  std::erase_if(holder.devices, [&](const auto& held) {
    const auto& [resource, device] = held;
    const PodUid* pod = state.HolderOf(resource, device);
    if (pod == nullptr) return false;
    return *pod != holder.pod_uid || IsGivenTo(*own, resource, device);
  });
  if (own != nullptr && !holder.cdi_devices.empty()) {
    const std::set<std::string> names = CdiNamesOf(*own);
    std::erase_if(holder.cdi_devices,
                  [&](const auto& name) { return names.contains(name); });
  }
  return holder;
}

Decision JudgeHolders(const State& state, const ReportedHolders& reported,
                      std::int64_t now_ms) {
  HolderDraft draft;
  std::set<ContainerId> listed;
  for (const ForeignHolderRecord& holder : reported.holders) {
    if (!listed.insert(holder.id).second) continue;
    const ForeignHolderRecord* known = state.FindHolder(holder.id);
    if (known != nullptr &&
        (known->endpoint != reported.endpoint || !known->Holds())) {
      continue;
    }
    ForeignHolderRecord record = HeldBeyondPods(state, holder);
    record.endpoint = reported.endpoint;
    record.since_ms = known != nullptr ? known->since_ms : now_ms;
    if (HoldsNothing(record)) {
      if (known != nullptr) draft.Erase(*known);
    } else if (known == nullptr || *known != record) {
      draft.Put(std::move(record));
    }
  }
  if (!reported.all) return std::move(draft).Finish();
  for (const auto& [id, holder] : state.foreign_holders) {
    if (holder->endpoint == reported.endpoint && !listed.contains(id)) {
      draft.Erase(*holder);
    }
  }
  return std::move(draft).Finish();
}

Decision EndEarlierBoots(const State& state, const std::string& boot_id) {
  HolderDraft draft;
  for (const auto& [id, holder] : state.foreign_holders) {
    if (holder->boot_id != boot_id) draft.Erase(*holder);
  }
  return std::move(draft).Finish();
}

Decision SettleHolders(const State& state, const PodUid& pod) {
  HolderDraft draft;
  for (const auto& [id, holder] : state.foreign_holders) {
    if (holder->pod_uid != pod || !holder->Holds()) continue;
    ForeignHolderRecord record = HeldBeyondPods(state, *holder);
    if (HoldsNothing(record)) {
      draft.Erase(*holder);
    } else if (record != *holder) {
      draft.Put(std::move(record));
    }
  }
  return std::move(draft).Finish();
}

absl::StatusOr<const ForeignHolderRecord*> FindHolder(const State& state,
                                                      const std::string& id) {
  if (id.empty()) return InvalidArgumentError("the ID of a container is empty");
  if (const ForeignHolderRecord* holder = state.FindHolder({id})) return holder;
  auto found = state.foreign_holders.lower_bound({id});
  if (found == state.foreign_holders.end() ||
      !found->first.value.starts_with(id)) {
    return NotFoundError("the ledger has no foreign container {}",
                         api::Quoted(id));
  }
  const ForeignHolderRecord* holder = found->second.get();
  if (++found != state.foreign_holders.end() &&
      found->first.value.starts_with(id)) {
    return InvalidArgumentError(
        "the IDs of several foreign containers begin with {}: {}, {}",
        api::Quoted(id), holder->id.value, found->first.value);
  }
  return holder;
}

absl::StatusOr<Decision> FreeHolder(const State& state, const std::string& id,
                                    const std::string& reason) {
  if (reason.empty()) return InvalidArgumentError("a reason is required");
  DEVMGR_ASSIGN_OR_RETURN(const ForeignHolderRecord* const holder,
                          FindHolder(state, id));
  if (!holder->Holds()) {
    return FailedPreconditionError("the devices of {} are free already: {}",
                                   state::HolderText(*holder), holder->freed);
  }
  auto record = std::make_shared<ForeignHolderRecord>(*holder);
  record->freed = reason;
  Decision decision;
  decision.kind = DecisionKind::kHolderFreed;
  if (!holder->pod.name.empty()) decision.pods = {holder->pod};
  decision.message =
      fmt::format("by an operator, {} gives up {}: {}",
                  state::HolderText(*holder), HeldText(*holder), reason);
  decision.changes.push_back(state::PutHolder{std::move(record)});
  return decision;
}

std::string HeldText(const ForeignHolderRecord& holder) {
  std::vector<std::string> texts;
  for (const auto& [resource, device] : holder.devices) {
    texts.push_back(fmt::format("device {} of {}", api::Quoted(device),
                                api::Quoted(resource)));
  }
  for (const std::string& name : holder.cdi_devices) {
    texts.push_back("CDI device " + api::Quoted(name));
  }
  return Few(std::move(texts));
}

}  // namespace devmgr::claim
