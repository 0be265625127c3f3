// SPDX-License-Identifier: Apache-2.0
#include "manager/spec_keeper.h"

#include <algorithm>

#include "common/status.h"

namespace devmgr::manager {
namespace {

using fsck::Finding;
using state::ClaimRecord;

CdiCacheOptions ScanOf(const std::vector<std::filesystem::path>& directories) {
  CdiCacheOptions options;
  options.directories = directories;
  return options;
}

bool HasDevices(const ClaimRecord& claim) {
  return std::any_of(
      claim.drivers.begin(), claim.drivers.end(), [](const auto& entry) {
        return std::any_of(
            entry.second.devices.begin(), entry.second.devices.end(),
            [](const auto& device) { return !device.cdi_device_ids.empty(); });
      });
}

bool IsPrepared(const std::shared_ptr<const ClaimRecord>& claim) {
  return std::all_of(
      claim->drivers.begin(), claim->drivers.end(), [](const auto& entry) {
        return entry.second.phase == state::DriverPhase::kPrepared;
      });
}

}  // namespace

SpecKeeper::SpecKeeper(Parts parts)
    : parts_(std::move(parts)), scanner_(ScanOf(parts_.directories)) {
  if (!parts_.directories.empty()) {
    disk_ = ThreadExecutor::Start("devmgr-specs");
  }
}

void SpecKeeper::Stop() {
  if (disk_ != nullptr) disk_->Stop();
}

SpecKeeper::Claims SpecKeeper::ClaimsOf(const state::PodRecord& pod,
                                        const std::string& container) const {
  std::set<ClaimUid> uids;
  for (const state::ContainerNeed& need : pod.needs) {
    if (need.name != container) continue;
    for (const state::Want& want : need.wants) uids.insert(want.claim);
  }
  Claims claims;
  for (const ClaimUid& uid : uids) {
    const auto claim = parts_.state.claims.find(uid);
    if (claim == parts_.state.claims.end()) continue;
    if (HasDevices(*claim->second)) claims.push_back(claim->second);
  }
  return claims;
}

void SpecKeeper::BeforeStart(const state::PodRecord& pod,
                             const std::string& container, Done done) {
  Claims claims = ClaimsOf(pod, container);
  if (disk_ == nullptr || claims.empty()) return done(absl::OkStatus());
  Look(std::move(claims), std::move(done));
}

void SpecKeeper::Look(Claims claims, Done done) {
  disk_->Post([this, claims = std::move(claims), done = std::move(done)] {
    cdistore::Scan scan = scanner_.Look();
    const CdiRegistry specs(std::move(scan.files), std::move(scan.unread));
    std::vector<Finding> missing;
    for (const auto& claim : claims) {
      for (Finding& finding :
           fsck::FindMissingSpecs(*claim, parts_.boot_id, specs)) {
        missing.push_back(std::move(finding));
      }
    }
    parts_.executor.Post(
        [this, claims, missing, done] { OnLooked(claims, missing, done); });
  });
}

void SpecKeeper::OnLooked(const Claims& claims, std::vector<Finding> missing,
                          Done done) {
  Claims now;
  for (const auto& claim : claims) {
    const auto found = parts_.state.claims.find(claim->uid);
    if (found != parts_.state.claims.end()) now.push_back(found->second);
  }
  if (now != claims && !missing.empty()) {
    // Drivers were asked, or answered, while we looked.
    if (std::all_of(now.begin(), now.end(), IsPrepared)) {
      return Look(std::move(now), std::move(done));
    }
    return done(UnavailableError("{}; being prepared again",
                                 missing.front().shown.message));
  }
  if (missing.empty()) {
    for (const auto& claim : claims) Forget(claim->uid);
    return done(absl::OkStatus());
  }
  struct Repairs {
    std::size_t left = 1;
    absl::Status failure;
    std::string missing;
    Done done;
    void EndOne(const absl::Status& status) {
      failure.Update(status);
      if (--left > 0) return;
      if (failure.ok() && !missing.empty()) {
        failure = UnavailableError("{}; being prepared again", missing);
      }
      done(failure);
    }
  };
  const auto repairs = std::make_shared<Repairs>();
  repairs->done = std::move(done);
  for (const Finding& finding : missing) {
    const auto* again = std::get_if<fsck::PrepareAgain>(&finding.repair);
    if (again == nullptr) continue;
    const Key key{again->claim, again->driver};
    const auto [asked, is_new] = asked_.try_emplace(key);
    if (!is_new && asked->second.is_recorded) {
      TellInVain(finding, &asked->second);
      continue;
    }
    repairs->missing +=
        (repairs->missing.empty() ? "" : "; ") + finding.shown.message;
    if (!is_new) continue;  // on its way to the ledger
    ++repairs->left;
    Repair(finding, key,
           [repairs](const absl::Status& status) { repairs->EndOne(status); });
  }
  repairs->EndOne(absl::OkStatus());
}

void SpecKeeper::Repair(const Finding& finding, const Key& key,
                        const std::function<void(const absl::Status&)>& done) {
  parts_.ledger.Submit(
      [finding](const state::State& state) {
        return fsck::DecideRepair(finding, state, "before a container starts");
      },
      [this, key, done](const absl::Status& status) {
        parts_.executor.Post([this, key, done, status] {
          // Somebody else has had it prepared again: see how that ends.
          const bool is_over = absl::IsFailedPrecondition(status);
          const auto asked = asked_.find(key);
          if (asked != asked_.end()) {
            asked->second.is_recorded = status.ok();
            if (!status.ok()) asked_.erase(asked);
          }
          done(is_over ? absl::OkStatus() : status);
        });
      });
}

/// The runtime has the last word: it may look elsewhere.
void SpecKeeper::TellInVain(const Finding& finding, Asked* asked) {
  if (std::exchange(asked->is_told, true)) return;
  const auto& repair = std::get<fsck::PrepareAgain>(finding.repair);
  const ClaimRecord* claim = parts_.state.FindClaim(repair.claim);
  if (claim == nullptr) return;
  parts_.events.Add(true, "MissingCdiSpec", "ResourceClaim", claim->name,
                    finding.shown.message +
                        ", although the driver has prepared it again; the "
                        "runtime is left to find it");
}

absl::Status SpecKeeper::Awaited(const state::PodRecord& pod) const {
  for (const ClaimUid& uid : pod.claims) {
    const ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase != state::DriverPhase::kPreparing) continue;
      if (!asked_.contains({uid, driver})) continue;
      return UnavailableError(
          "the CDI specs of claim '{}' are missing, and driver '{}' is asked "
          "to prepare it again",
          claim->name.ToString(), driver);
    }
  }
  return absl::OkStatus();
}

void SpecKeeper::Forget(const ClaimUid& claim) {
  const auto first = asked_.lower_bound({claim, ""});
  auto last = first;
  while (last != asked_.end() && last->first.first == claim) ++last;
  asked_.erase(first, last);
}

}  // namespace devmgr::manager
