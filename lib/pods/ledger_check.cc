// SPDX-License-Identifier: Apache-2.0
#include "pods/ledger_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "cdistore/spec_directory.h"
#include "common/run_on.h"
#include "common/status.h"
#include "fsck/fsck.h"

namespace devmgr::pods {
namespace {

/// What the plugins say of the devices that the ledger holds.
std::map<std::string, fsck::PluginView> PluginsOf(
    const device::InventoryMap& inventories, const state::State& state) {
  std::map<std::string, fsck::PluginView> plugins;
  for (const auto& [resource, inventory] : inventories) {
    if (inventory.primary().has_value()) plugins[resource];
  }
  for (const auto& [resource, id, pod] : state.device_holders) {
    const auto plugin = plugins.find(resource);
    if (plugin == plugins.end()) continue;
    const auto* known = inventories.find(resource)->second.Find(id);
    if (known == nullptr || !known->listed) continue;
    plugin->second[id] = known->device.health;
  }
  return plugins;
}

/// A part at a time: all of the history takes many times what is learned.
absl::StatusOr<fsck::PastDevices> ReadPast(ledger::Ledger& ledger) {
  constexpr std::size_t kAtOnce = 500;
  fsck::PastDevices past;
  for (std::uint64_t after = 0;;) {
    DEVMGR_ASSIGN_OR_RETURN(const std::vector<state::Batch> part,
                            ledger.History(after, kAtOnce));
    if (part.empty()) return past;
    for (const state::Batch& batch : part) past.Learn(batch);
    after = part.back().seq;
  }
}

}  // namespace

std::vector<fsck::Overlap> LedgerCheck::OverlapsNow() const {
  struct Offer {
    std::string owner;
    bool part = false;
    std::string text;
  };
  std::map<device::PhysicalIdentity, std::vector<Offer>> offers;
  const auto add = [&](const device::Hardware& hardware, const Offer& offer) {
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      offers[identity].push_back(offer);
    }
  };
  parts_.hardware.Follow(parts_.objects.Current()->resource_slices);
  parts_.hardware.VisitDevices([&](const state::DeviceKey& key,
                                   const device::Hardware& hardware) {
    const auto& [driver, pool, device] = key;
    add(hardware,
        {driver, hardware.part, fmt::format("{}/{}/{}", driver, pool, device)});
  });
  for (const auto& [name, hardware] : parts_.devices.hardware()) {
    add(hardware, {name.first.value, hardware.part,
                   fmt::format("{}/{}", name.first, name.second)});
  }
  std::vector<fsck::Overlap> overlaps;
  for (const auto& [identity, all] : offers) {
    fsck::Overlap overlap{device::IdentityText(identity), {}};
    for (const Offer& one : all) {
      const bool clashes =
          std::any_of(all.begin(), all.end(), [&](const Offer& other) {
            return one.owner != other.owner && !(one.part && other.part);
          });
      if (clashes) overlap.devices.insert(one.text);
    }
    if (!overlap.devices.empty()) overlaps.push_back(std::move(overlap));
  }
  return overlaps;
}

fsck::RunningView LedgerCheck::WhatRuns() const {
  fsck::RunningView view;
  view.overlaps = OverlapsNow();
  for (const auto& plugin : parts_.drivers.Plugins()) {
    if (parts_.drivers.IsRegistered(plugin->name)) {
      view.registered.insert(plugin->name);
    }
  }
  for (const auto& [uid, claim] : parts_.state.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      if (parts_.drivers.IsRegistered(driver)) view.registered.insert(driver);
      const std::string error = parts_.lifecycle.LastError(uid, driver);
      if (error.empty() || parts_.lifecycle.IsAsking(uid)) continue;
      view.refusals[{uid, driver}] = error;
    }
  }
  for (const auto& [uid, claim] : parts_.state.claims) {
    const bool missed = std::any_of(
        claim->drivers.begin(), claim->drivers.end(), [](const auto& entry) {
          return entry.second.spec_recovery != state::SpecRecovery::kNone;
        });
    if (missed) view.idle_pods[uid] = parts_.use.IdleWith(*claim).pods;
  }
  view.plugins = PluginsOf(parts_.devices.inventories(), parts_.state);
  const auto objects = parts_.objects.Current();
  if (!objects->complete) return view;
  std::set<PodUid>& pods = view.source_pods.emplace();
  for (const auto& [name, pod] : objects->pods) {
    pods.insert(PodUid{pod->metadata.uid});
  }
  for (const auto& [name, malformed] : objects->malformed_pods) {
    pods.insert(PodUid{malformed->pod.metadata.uid});
  }
  return view;
}

/// Reads the disk on the calling thread; nothing stands still meanwhile.
absl::StatusOr<std::vector<fsck::Finding>> LedgerCheck::CheckNow() const {
  const auto look = [this] {
    return RunOn(parts_.executor,
                 [&] { return std::pair(parts_.state, WhatRuns()); });
  };
  const auto before = look();
  std::shared_ptr<const CdiRegistry> specs;
  if (!parts_.cdi_spec_dirs.empty()) {
    specs = cdistore::ReadSpecFiles(parts_.cdi_spec_dirs);
  }
  DEVMGR_ASSIGN_OR_RETURN(const fsck::PastDevices past,
                          ReadPast(parts_.ledger));
  const auto after = look();
  const auto check = [&](const std::pair<state::State, fsck::RunningView>& at) {
    return fsck::RunChecks({at.first, parts_.boot_id, past, specs.get(),
                            &at.second,
                            cdistore::NamesOf(parts_.cdi_spec_dirs)});
  };
  return fsck::Common(check(after), check(before));
}

/// Waits for the ledger. A file is set aside on the ledger's thread, after the
/// decision is on disk and before the next one is: nobody can begin to prepare
/// its claim in between. No container is let through while it is decided that
/// its claim is unprepared.
absl::Status LedgerCheck::Repair(fsck::Finding finding) {
  auto* renew = std::get_if<fsck::Renew>(&finding.repair);
  if (renew != nullptr) {
    renew->idle = RunOn(parts_.executor, [&] {
      return parts_.specs.BeginRenewal(renew->claim);
    });
  }
  std::promise<absl::Status> done;
  parts_.ledger.Submit(
      [&](const state::State& state) {
        return fsck::DecideRepair(finding, state);
      },
      [&](absl::Status status) {
        const auto* file = std::get_if<fsck::SetAside>(&finding.repair);
        if (status.ok() && file != nullptr) {
          status = cdistore::SetAside(file->file);
        }
        done.set_value(std::move(status));
      });
  absl::Status status = done.get_future().get();
  if (renew != nullptr) {
    RunOn(parts_.executor, [&] { parts_.specs.EndRenewal(renew->claim); });
  }
  return status;
}

absl::StatusOr<FsckReport> LedgerCheck::Run(FsckMode mode) {
  if (mode == FsckMode::kRepair && parts_.executor.IsCurrent()) {
    return FailedPreconditionError(
        "a repair waits for the ledger: it cannot be called from a completion "
        "or an observer");
  }
  DEVMGR_ASSIGN_OR_RETURN(std::vector<fsck::Finding> findings, CheckNow());
  std::vector<FsckRepair> repairs;
  if (mode == FsckMode::kRepair) {
    for (const fsck::Finding& finding : findings) {
      if (std::holds_alternative<std::monostate>(finding.repair)) continue;
      repairs.push_back({finding.shown.object, finding.shown.repair,
                         MessageOf(Repair(finding))});
    }
    DEVMGR_ASSIGN_OR_RETURN(findings, CheckNow());
  }
  FsckReport report = fsck::ReportOf(
      findings, RunOn(parts_.executor, [&] { return parts_.state.seq; }));
  report.repairs = std::move(repairs);
  return report;
}

}  // namespace devmgr::pods
