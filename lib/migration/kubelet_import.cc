// SPDX-License-Identifier: Apache-2.0
#include "migration/kubelet_import.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "api/names.h"
#include "api/quote.h"
#include "claim/container_answer.h"
#include "common/counted.h"
#include "common/status.h"
#include "device/id_order.h"
#include "migration/skipped_words.h"
#include "migration/utc_text.h"
#include "plugin/allocate_answer.h"
#include "plugin/container_response.h"

namespace devmgr::migration {
namespace {

using kubelet_checkpoint::DraClaim;
using kubelet_checkpoint::DraDevice;
using kubelet_checkpoint::DraDriverState;
using kubelet_checkpoint::kDeviceCheckpointName;
using kubelet_checkpoint::kDraStateName;
using kubelet_checkpoint::PodDevicesEntry;
using state::ClaimRecord;
using state::DeviceHold;
using state::DriverPhase;
using state::DriverRecord;
using state::PodPhase;
using state::PodRecord;
using state::State;

/// Of what was prepared in an earlier boot, whose ID the files do not say.
constexpr char kEarlierBoot[] = "earlier boot of the kubelet";

/// A UID that a record can have.
bool IsUid(const std::string& uid) {
  return !uid.empty() && api::CheckUid(uid).empty();
}

/// By ID, with the NUMA nodes under which the entry lists it; -1 is none.
std::map<DeviceId, std::set<std::int64_t>, device::IdOrder> DevicesOf(
    const PodDevicesEntry& entry) {
  std::map<DeviceId, std::set<std::int64_t>, device::IdOrder> devices;
  if (!entry.device_ids.has_value()) return devices;
  for (const auto& [node, ids] : *entry.device_ids) {
    if (!ids.has_value()) continue;
    for (const DeviceId& id : *ids) {
      auto& nodes = devices[id];
      if (node >= 0) nodes.insert(node);
    }
  }
  return devices;
}

class Importer {
 public:
  Importer(const State& state, const ImportTerms& terms)
      : state_(state), terms_(terms) {}

  void TakeDevices(const kubelet_checkpoint::DeviceCheckpoint& checkpoint) {
    const std::vector<PodDevicesEntry> none;
    const auto& entries = checkpoint.entries ? *checkpoint.entries : none;
    for (std::size_t i : CountingEntries(entries)) TakeEntry(entries[i], i);
    if (!checkpoint.registered.has_value()) return;
    for (const auto& [resource, ids] : *checkpoint.registered) {
      if (!resource.empty()) resources_.insert(resource);
    }
  }

  void TakeClaims(const kubelet_checkpoint::DraCheckpoint& checkpoint) {
    const std::vector<DraClaim> none;
    const auto& claims = checkpoint.claims ? *checkpoint.claims : none;
    // The kubelet keeps claims by their names.
    std::map<ObjectName, std::size_t> last;
    for (std::size_t i = 0; i < claims.size(); ++i) last[claims[i].name] = i;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (last.at(claims[i].name) == i) {
        TakeClaim(claims[i], i);
      } else {
        Lose(kDraStateName, i,
             "a later entry is of the same claim {}, and counts",
             api::Quoted(claims[i].name.ToString()));
      }
    }
  }

  absl::StatusOr<ImportPlan> Finish() && {
    ImportPlan plan;
    plan.losses = std::move(losses_);
    plan.pods = pods_.size();
    plan.claims = claims_.size();
    auto& changes = plan.decision.changes;
    for (auto& [uid, claim] : claims_) {
      plan.decision.claims.push_back(claim->name);
      changes.push_back(state::PutClaim{claim});
    }
    for (auto& [uid, pod] : pods_) {
      DEVMGR_RETURN_IF_ERROR(Settle(*pod));
      for (const DeviceHold& hold : pod->holds) {
        plan.devices += hold.devices.size();
      }
      plan.decision.pods.push_back(pod->name);
      changes.push_back(state::PutPod{std::move(pod)});
    }
    for (const ResourceName& name : resources_) {
      auto record = std::make_shared<state::ResourceRecord>();
      record->name = name;
      record->backing = state::Backing::kPlugin;
      record->since_ms = terms_.now_ms;
      changes.push_back(state::PutResource{std::move(record)});
    }
    auto mark = std::make_shared<state::SourceRecord>();
    mark->name = std::string(kImportedSource);
    mark->since_ms = terms_.now_ms;
    changes.push_back(state::PutSource{std::move(mark)});
    plan.decision.kind = state::DecisionKind::kImported;
    plan.decision.message = fmt::format(
        "{} with {} and {} came from the kubelet's checkpoint files in {}; {} "
        "left out",
        Counted(plan.pods, "pod"), Counted(plan.devices, "device"),
        Counted(plan.claims, "claim"), api::Quoted(terms_.from),
        Counted(plan.losses.size(), "thing"));
    return plan;
  }

 private:
  template <typename... Args>
  void Lose(std::string_view file, std::size_t entry,
            fmt::format_string<Args...> format, Args&&... args) {
    losses_.push_back(
        fmt::format("{}: entry {}: {}", file, entry,
                    fmt::format(format, std::forward<Args>(args)...)));
  }

  /// Of the entries for one container and resource, the last one of each.
  std::vector<std::size_t> CountingEntries(
      const std::vector<PodDevicesEntry>& entries) {
    using Key =
        std::tuple<std::string_view, std::string_view, std::string_view>;
    const auto key = [&](std::size_t i) {
      return Key(entries[i].pod.value, entries[i].container.value,
                 entries[i].resource.value);
    };
    std::map<Key, std::size_t> last;
    for (std::size_t i = 0; i < entries.size(); ++i) last[key(i)] = i;
    std::vector<std::size_t> counting;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (last.at(key(i)) == i) {
        counting.push_back(i);
      } else {
        Lose(kDeviceCheckpointName, i,
             "a later entry is of the same container and resource, and counts");
      }
    }
    return counting;
  }

  void TakeEntry(const PodDevicesEntry& entry, std::size_t index) {
    const auto lose = [&](const std::string& why) {
      Lose(kDeviceCheckpointName, index,
           "{} (pod {}, container {}, resource {}); its devices are free", why,
           api::Quoted(entry.pod.value), api::Quoted(entry.container.value),
           api::Quoted(entry.resource.value));
    };
    if (!IsUid(entry.pod.value)) return lose("the UID of its pod is none");
    if (entry.container.empty() || entry.resource.empty()) {
      return lose("it names no container or no resource");
    }
    const auto devices = DevicesOf(entry);
    if (devices.empty()) return lose("it has no devices");
    DeviceHold hold;
    hold.container = entry.container;
    hold.resource = entry.resource;
    hold.phase = device::ReservationPhase::kCommitted;
    for (const auto& [id, nodes] : devices) {
      if (id.empty()) return lose("the ID of a device is empty");
      const auto holder = holders_.find({entry.resource, id});
      if (holder != holders_.end() && holder->second != entry.pod) {
        return lose(fmt::format("pod {} holds its device {}, too",
                                api::Quoted(holder->second.value),
                                api::Quoted(id.value)));
      }
      hold.devices.push_back({id, {nodes.begin(), nodes.end()}});
    }
    auto edits = plugin::DecodeContainerResponse(entry.alloc_resp.value_or(""));
    absl::Status status = edits.status();
    if (status.ok()) status = plugin::CheckEdits(*edits);
    if (!status.ok()) return lose("AllocResp: " + MessageOf(status));
    hold.edits = *std::move(edits);
    // The files do not say it. Until its plugin does, none starts unasked.
    hold.pre_start = true;
    for (const device::HeldDevice& device : hold.devices) {
      holders_.try_emplace({entry.resource, device.id}, entry.pod);
    }
    resources_.insert(entry.resource);
    PodOf(entry.pod).holds.push_back(std::move(hold));
  }

  void TakeClaim(const DraClaim& claim, std::size_t index) {
    const auto lose = [&](std::string_view why) {
      Lose(kDraStateName, index, "{} (claim {}, UID {}); it is left out", why,
           api::Quoted(claim.name.ToString()), api::Quoted(claim.uid.value));
    };
    if (!IsUid(claim.uid.value)) return lose("its UID is none");
    if (claim.name.ns.empty() || claim.name.name.empty()) {
      return lose("its claim has no name or no namespace");
    }
    if (claims_.contains(claim.uid)) {
      return lose("another entry has the same UID");
    }
    auto record = std::make_shared<ClaimRecord>();
    record->uid = claim.uid;
    record->name = claim.name;
    if (claim.pods.has_value()) {
      for (const PodUid& pod : *claim.pods) {
        if (!IsUid(pod.value)) return lose("the UID of a pod is none");
      }
      record->pods = *claim.pods;
    }
    if (claim.drivers.has_value()) {
      for (const auto& [name, driver] : *claim.drivers) {
        if (name.empty()) return lose("the name of a driver is empty");
        record->drivers.emplace(name, Driver(driver));
      }
    }
    if (record->pods.empty()) Owe(*record);
    if (record->pods.empty() && record->drivers.empty()) return;
    for (const PodUid& pod : record->pods) {
      PodOf(pod).claims.push_back(claim.uid);
    }
    claims_.emplace(claim.uid, std::move(record));
  }

  DriverRecord Driver(const DraDriverState& from) const {
    DriverRecord driver;
    driver.skipped = SkippedOf(from.skip_node_operations);
    const std::vector<DraDevice> none;
    for (const DraDevice& device : from.devices ? *from.devices : none) {
      state::PreparedDevice prepared;
      prepared.pool = device.pool;
      prepared.device = device.device;
      prepared.share_id = device.share_id.value_or("");
      if (device.request_names) prepared.request_names = *device.request_names;
      if (device.cdi_device_ids) {
        prepared.cdi_device_ids = *device.cdi_device_ids;
      }
      driver.devices.push_back(std::move(prepared));
    }
    if (driver.devices.empty() && !driver.skipped.prepare) return driver;
    driver.phase = DriverPhase::kPrepared;
    driver.boot_id = terms_.claims_of_this_boot || driver.devices.empty()
                         ? terms_.boot_id
                         : kEarlierBoot;
    return driver;
  }

  /// A kubelet that could not unprepare it keeps it so.
  void Owe(ClaimRecord& claim) const {
    std::erase_if(claim.drivers, [](const auto& driver) {
      return driver.second.skipped.unprepare;
    });
    for (auto& [name, driver] : claim.drivers) {
      driver.phase = DriverPhase::kUnpreparing;
      driver.debt = state::Debt{
          terms_.now_ms, 0, "the kubelet kept the claim without a pod", {}};
    }
  }

  PodRecord& PodOf(const PodUid& uid) {
    auto& pod = pods_[uid];
    if (pod == nullptr) {
      pod = std::make_shared<PodRecord>();
      pod->uid = uid;
      pod->name = state::ImportedName(uid);
      pod->imported = true;
      pod->first_seen_ms = terms_.now_ms;
      pod->first_seen_seq = state_.seq + 1;
    }
    return *pod;
  }

  /// It is Ready if nothing but its devices is known of it.
  absl::Status Settle(PodRecord& pod) const {
    if (!pod.claims.empty()) {
      pod.phase = PodPhase::kPreparing;
      return absl::OkStatus();
    }
    for (const DeviceHold& hold : pod.holds) {
      const bool listed = std::any_of(
          pod.needs.begin(), pod.needs.end(),
          [&](const auto& need) { return need.name == hold.container; });
      if (!listed) pod.needs.push_back({hold.container, false, {}});
    }
    DEVMGR_ASSIGN_OR_RETURN(
        pod.answer,
        claim::AnswerFor(pod, [](const ClaimUid&) { return nullptr; }));
    pod.phase = PodPhase::kReady;
    pod.boot_id = terms_.devices_of_this_boot ? terms_.boot_id : kEarlierBoot;
    return absl::OkStatus();
  }

  const State& state_;
  const ImportTerms& terms_;
  std::map<PodUid, std::shared_ptr<PodRecord>> pods_;
  std::map<ClaimUid, std::shared_ptr<ClaimRecord>> claims_;
  std::set<ResourceName> resources_;
  std::map<std::pair<ResourceName, DeviceId>, PodUid> holders_;
  std::vector<std::string> losses_;
};

/// Whatever the files hold, what is written fits together.
absl::Status CheckPlan(const State& state, const ImportPlan& plan,
                       const ImportTerms& terms) {
  State after = state;
  state::Batch batch{state.seq + 1, terms.now_ms, plan.decision, {}};
  DEVMGR_RETURN_IF_ERROR(state::ApplyNew(after, batch));
  const auto violations = state::CheckInvariants(after, terms.boot_id);
  if (violations.empty()) return absl::OkStatus();
  return InternalError("internal error: what would be imported breaks {}: {}",
                       Counted(violations.size(), "invariant"),
                       violations.front());
}

}  // namespace

const state::SourceRecord* FindImport(const State& state) {
  return state.FindSource({std::string(kImportedSource)});
}

absl::Status CheckMayImport(const State& state) {
  if (const state::SourceRecord* done = FindImport(state)) {
    return AlreadyExistsError(
        "the {} were imported into this ledger at {}, and only once",
        kImportedSource, UtcText(done->since_ms));
  }
  const std::size_t held = state.pods.size() + state.claims.size() +
                           state.local_claims.size() +
                           state.foreign_holders.size();
  if (held == 0) return absl::OkStatus();
  return FailedPreconditionError(
      "the ledger holds {}, {} and {}: files of the kubelet are imported only "
      "into a ledger that holds nothing",
      Counted(state.pods.size(), "pod"),
      Counted(state.claims.size() + state.local_claims.size(), "claim"),
      Counted(state.foreign_holders.size(), "foreign container"));
}

absl::StatusOr<ImportPlan> PlanImport(const State& state,
                                      const KubeletState& kubelet,
                                      const ImportTerms& terms) {
  DEVMGR_RETURN_IF_ERROR(CheckMayImport(state));
  Importer importer(state, terms);
  if (kubelet.devices.has_value()) importer.TakeDevices(*kubelet.devices);
  if (kubelet.claims.has_value()) importer.TakeClaims(*kubelet.claims);
  DEVMGR_ASSIGN_OR_RETURN(ImportPlan plan, std::move(importer).Finish());
  DEVMGR_RETURN_IF_ERROR(CheckPlan(state, plan, terms));
  return plan;
}

}  // namespace devmgr::migration
