// SPDX-License-Identifier: Apache-2.0
#include "migration/kubelet_export.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/counted.h"
#include "migration/skipped_words.h"
#include "plugin/container_response.h"

namespace devmgr::migration {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DeviceIdList;
using kubelet_checkpoint::DraClaim;
using kubelet_checkpoint::DraDevice;
using kubelet_checkpoint::DraDriverState;
using kubelet_checkpoint::PodDevicesEntry;
using kubelet_checkpoint::TextList;
using state::ClaimRecord;
using state::DeviceHold;
using state::DriverPhase;
using state::PodPhase;
using state::PodRecord;
using state::State;

bool IsAnswered(const DeviceHold& hold) {
  return hold.phase == device::ReservationPhase::kCommitted;
}

/// -1 has the devices without a topology.
std::map<std::int64_t, DeviceIdList> ByNode(const DeviceHold& hold) {
  std::map<std::int64_t, DeviceIdList> nodes;
  const auto add = [&](std::int64_t node, const DeviceId& id) {
    DeviceIdList& list = nodes[node];
    if (!list.has_value()) list.emplace();
    list->push_back(id);
  };
  for (const device::HeldDevice& device : hold.devices) {
    for (const std::int64_t node : device.numa_nodes) add(node, device.id);
    if (device.numa_nodes.empty()) add(-1, device.id);
  }
  return nodes;
}

/// Go's nil for none, as from a driver's answer.
TextList ListOf(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  return texts;
}

DraDriverState DriverOf(const state::DriverRecord& driver) {
  DraDriverState out;
  out.skip_node_operations = WordsOf(driver.skipped);
  // While it is being prepared anew nothing of it counts.
  if (driver.phase == DriverPhase::kPreparing) return out;
  for (const state::PreparedDevice& device : driver.devices) {
    DraDevice written;
    written.pool = device.pool;
    written.device = device.device;
    if (!device.share_id.empty()) written.share_id = device.share_id;
    written.request_names = ListOf(device.request_names);
    written.cdi_device_ids = ListOf(device.cdi_device_ids);
    if (!out.devices.has_value()) out.devices.emplace();
    out.devices->push_back(std::move(written));
  }
  return out;
}

DraClaim ClaimOf(const ClaimRecord& claim) {
  DraClaim out;
  out.uid = claim.uid;
  out.name = claim.name;
  out.pods = claim.pods;
  out.drivers.emplace();
  for (const auto& [name, driver] : claim.drivers) {
    out.drivers->emplace(name, DriverOf(driver));
  }
  return out;
}

class Losses {
 public:
  explicit Losses(std::vector<std::string>* list) : list_(list) {}

  void OfPod(const PodRecord& pod) {
    const bool asked =
        std::any_of(pod.holds.begin(), pod.holds.end(), [](const auto& hold) {
          return hold.phase == device::ReservationPhase::kReserved;
        });
    if (asked) {
      Add("pod '{}' ({}): devices for which its plugin has not answered; the "
          "kubelet chooses others",
          pod.name.ToString(), pod.uid.value);
    }
    if (state::IsEvicting(pod)) {
      Add("pod '{}' ({}) has to leave its devices: {}; the kubelet lets it "
          "run",
          pod.name.ToString(), pod.uid.value, pod.eviction->reason);
    }
  }

  void OfClaim(const ClaimRecord& claim) {
    if (!claim.pods.empty()) return;
    Add("claim '{}' ({}) is to be unprepared by {}: the kubelet unprepares "
        "only what a pod has left, and this one has none",
        claim.name.ToString(), claim.uid.value,
        Counted(claim.drivers.size(), "driver"));
  }

  void OfName(const DraClaim& claim, const DraClaim& other) {
    Add("claim '{}' ({}): the kubelet knows one claim by this name, and takes "
        "the one with UID {}",
        claim.name.ToString(), claim.uid.value, other.uid.value);
  }

  void OfLocalClaim(const state::LocalClaimRecord& claim) {
    if (!claim.object->status.allocation.has_value()) return;
    Add("claim '{}' ({}) was allocated by this node: the kubelet finds it "
        "only in an API server",
        claim.object->metadata.FullName().ToString(), claim.uid.value);
  }

  void OfHolder(const state::ForeignHolderRecord& holder) {
    if (!holder.Holds() || holder.devices.empty()) return;
    Add("{} holds {}, which the kubelet gives to other pods",
        state::HolderText(holder), Counted(holder.devices.size(), "device"));
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    list_->push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  std::vector<std::string>* const list_;
};

/// By name; of two with one name the one that pods use is the last, which a
/// kubelet takes.
void SortClaims(const State& state, std::vector<DraClaim>* claims,
                Losses& losses) {
  const auto key = [&](const DraClaim& claim) {
    const bool held = !state::IsUnpreparing(*state.FindClaim(claim.uid));
    return std::make_tuple(claim.name, held, claim.uid);
  };
  std::sort(claims->begin(), claims->end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < claims->size(); ++i) {
    const DraClaim& before = (*claims)[i - 1];
    const DraClaim& claim = (*claims)[i];
    if (before.name == claim.name) losses.OfName(before, claim);
  }
}

}  // namespace

DeviceCheckpoint HeldDevices(const State& state) {
  DeviceCheckpoint checkpoint;
  checkpoint.registered.emplace();
  auto& names = *checkpoint.registered;
  for (const auto& [name, resource] : state.resources) {
    if (resource->backing == state::Backing::kPlugin) names[name].emplace();
  }
  std::vector<PodDevicesEntry> entries;
  std::map<ResourceName, std::set<DeviceId>> held;
  for (const auto& [uid, pod] : state.pods) {
    for (const DeviceHold& hold : pod->holds) {
      if (!IsAnswered(hold)) continue;
      entries.push_back({uid, hold.container, hold.resource, ByNode(hold),
                         plugin::EncodeContainerResponse(hold.edits)});
      for (const auto& device : hold.devices) {
        held[hold.resource].insert(device.id);
      }
    }
  }
  for (const auto& [name, ids] : held) {
    names[name].emplace(ids.begin(), ids.end());
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.pod, a.container, a.resource) <
           std::tie(b.pod, b.container, b.resource);
  });
  // The kubelet writes null for none.
  if (!entries.empty()) checkpoint.entries = std::move(entries);
  return checkpoint;
}

ExportPlan PlanExport(const State& state) {
  ExportPlan plan;
  plan.devices = HeldDevices(state);
  Losses losses(&plan.losses);
  for (const auto& [uid, pod] : state.pods) {
    const bool holds =
        std::any_of(pod->holds.begin(), pod->holds.end(), IsAnswered);
    if (holds || !pod->claims.empty()) ++plan.pods;
    for (const DeviceHold& hold : pod->holds) {
      if (IsAnswered(hold)) plan.held += hold.devices.size();
    }
    losses.OfPod(*pod);
  }
  plan.claims.claims.emplace();
  for (const auto& [uid, claim] : state.claims) {
    plan.claims.claims->push_back(ClaimOf(*claim));
    losses.OfClaim(*claim);
  }
  plan.entries = plan.claims.claims->size();
  SortClaims(state, &*plan.claims.claims, losses);
  for (const auto& [uid, claim] : state.local_claims) {
    losses.OfLocalClaim(*claim);
  }
  for (const auto& [id, holder] : state.foreign_holders) {
    losses.OfHolder(*holder);
  }
  return plan;
}

}  // namespace devmgr::migration
