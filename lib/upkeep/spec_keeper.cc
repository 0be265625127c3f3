// SPDX-License-Identifier: Apache-2.0
#include "upkeep/spec_keeper.h"

#include <algorithm>

#include "claim/spec_recovery.h"
#include "common/status.h"

namespace devmgr::upkeep {
namespace {

using fsck::Finding;
using state::ClaimRecord;
using state::SpecRecovery;

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

bool WasMissed(const state::DriverRecord& part) {
  return part.spec_recovery != SpecRecovery::kNone;
}

/// Repairs for one container that is to start, and how they end.
struct Repairs {
  std::size_t left = 1;
  absl::Status failure;
  std::string missing;
  SpecKeeper::Done done;

  void Miss(const Finding& finding) {
    missing += (missing.empty() ? "" : "; ") + finding.shown.message;
  }
  void EndOne(const absl::Status& status) {
    failure.Update(status);
    if (--left > 0) return;
    if (failure.ok() && !missing.empty()) {
      failure = UnavailableError("{}; being prepared again", missing);
    }
    done(failure);
  }
};

}  // namespace

SpecKeeper::SpecKeeper(Parts parts)
    : parts_(std::move(parts)),
      directories_(parts_.executor, parts_.events, parts_.directories) {}

void SpecKeeper::Stop() { directories_.Stop(); }

SpecKeeper::Claims SpecKeeper::ClaimsOf(const state::PodRecord& pod,
                                        const ContainerName& container) const {
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

bool SpecKeeper::IsBeingRenewed(const Claims& claims) const {
  return std::any_of(claims.begin(), claims.end(), [this](const auto& claim) {
    return renewing_.contains(claim->uid);
  });
}

void SpecKeeper::BeforeStart(const state::PodRecord& pod,
                             const ContainerName& container, Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  Claims claims = ClaimsOf(pod, container);
  std::set<ClaimUid> uids;
  for (const auto& claim : claims) uids.insert(claim->uid);
  auto let_through = [this, claims, uids, pod = pod.uid,
                      done = std::move(done)](const absl::Status& status) {
    if (status.ok() && IsBeingRenewed(claims)) {
      return done(
          UnavailableError("drivers are about to unprepare claims of the "
                           "container, and to prepare them again, since their "
                           "CDI specs were missing"));
    }
    if (status.ok()) parts_.use.OnLetThrough(pod, uids);
    done(status);
  };
  if (!directories_.any() || claims.empty()) {
    return let_through(absl::OkStatus());
  }
  Look(claims, [this, claims, let_through](const Seen& seen) {
    OnLooked(claims, seen, let_through);
  });
}

void SpecKeeper::Look(Claims claims, std::function<void(const Seen&)> done) {
  directories_.Read([this, claims = std::move(claims),
                     done = std::move(done)](const CdiRegistry& specs) {
    Seen seen;
    seen.is_complete = specs.unread().empty();
    for (const auto& claim : claims) {
      auto missing = fsck::FindMissingSpecs(*claim, parts_.boot_id, specs);
      if (!missing.empty()) seen.missing[claim->uid] = std::move(missing);
    }
    parts_.executor.Post([done, seen] { done(seen); });
  });
}

Finding SpecKeeper::FindingOf(const ClaimRecord& claim,
                              const std::string& driver,
                              const std::set<std::string>& ids) const {
  return fsck::MissingSpecOf(parts_.state, claim, driver, ids,
                             parts_.use.IdleWith(claim), directories_.names());
}

std::map<SpecKeeper::Key, Finding> SpecKeeper::FindingsOf(
    const Claims& claims, const Seen& seen) const {
  std::map<Key, Finding> findings;
  for (const auto& claim : claims) {
    const auto missing = seen.missing.find(claim->uid);
    if (missing == seen.missing.end()) continue;
    for (const auto& [driver, ids] : missing->second) {
      findings[{claim->uid, driver}] = FindingOf(*claim, driver, ids);
    }
  }
  return findings;
}

void SpecKeeper::OnLooked(const Claims& claims, const Seen& seen,
                          const Done& done) {
  Claims now;
  for (const auto& claim : claims) {
    const auto found = parts_.state.claims.find(claim->uid);
    if (found != parts_.state.claims.end()) now.push_back(found->second);
  }
  if (seen.missing.empty()) {
    if (!seen.is_complete) return done(absl::OkStatus());
    return OnFound(now, done);
  }
  const auto findings = FindingsOf(claims, seen);
  if (now == claims) return MendAll(findings, done);
  // Drivers were asked, or answered, while we looked.
  if (std::all_of(now.begin(), now.end(), IsPrepared)) {
    return Look(now, [this, now, done](const Seen& again) {
      OnLooked(now, again, done);
    });
  }
  done(UnavailableError("{}; being prepared again",
                        findings.begin()->second.shown.message));
}

void SpecKeeper::MendAll(const std::map<Key, Finding>& findings, Done done) {
  const auto repairs = std::make_shared<Repairs>();
  repairs->done = std::move(done);
  for (const auto& [key, finding] : findings) {
    if (std::holds_alternative<std::monostate>(finding.repair)) {
      TellInVain(finding, key);
      continue;
    }
    repairs->Miss(finding);
    if (!under_way_.insert(key).second) continue;
    ++repairs->left;
    Repair(finding, key,
           [repairs](const absl::Status& status) { repairs->EndOne(status); });
  }
  repairs->EndOne(absl::OkStatus());
}

void SpecKeeper::Repair(const Finding& finding, const Key& key,
                        const std::function<void(const absl::Status&)>& done) {
  const bool renews = std::holds_alternative<fsck::Renew>(finding.repair);
  if (renews) renewing_.insert(key.first);
  parts_.ledger.Submit(
      [finding](const state::State& state) {
        return fsck::DecideRepair(finding, state, "before a container starts");
      },
      parts_.executor,
      [this, key, renews, done](const absl::Status& status) {
        under_way_.erase(key);
        if (renews) EndRenewal(key.first);
        // It is being prepared again for another pod: see how that ends.
        done(absl::IsFailedPrecondition(status) ? absl::OkStatus() : status);
      });
}

/// A start goes on once that is recorded, so that specs which vanish after it
/// count as missing anew. Should the write fail, the next look does it again.
void SpecKeeper::OnFound(const Claims& claims, const Done& done) {
  std::vector<ClaimUid> missed;
  for (const auto& claim : claims) {
    Forget(claim->uid);
    if (std::any_of(
            claim->drivers.begin(), claim->drivers.end(),
            [](const auto& entry) { return WasMissed(entry.second); })) {
      missed.push_back(claim->uid);
    }
  }
  if (missed.empty()) return done(absl::OkStatus());
  parts_.ledger.Submit(
      [missed](const state::State& state) {
        return claim::RecordSpecsFound(state, missed);
      },
      parts_.executor, [done](const absl::Status&) { done(absl::OkStatus()); });
}

/// The runtime has the last word: it may look elsewhere.
void SpecKeeper::TellInVain(const Finding& finding, const Key& key) {
  const ClaimRecord* claim = parts_.state.FindClaim(key.first);
  if (claim == nullptr || !told_.insert(key).second) return;
  parts_.events.Add(true, "MissingCdiSpec", "ResourceClaim", claim->name,
                    finding.shown.message + "; " + finding.shown.hint);
}

void SpecKeeper::LookAtAnswer(const std::string& driver,
                              const PreparedClaims& prepared,
                              std::function<void(const Answer&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  Claims answered;
  for (const auto& [uid, devices] : prepared) {
    const ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr || !claim->drivers.contains(driver)) continue;
    const state::DriverRecord& part = claim->drivers.at(driver);
    if (part.void_cdi_device_ids.empty() && !WasMissed(part)) continue;
    // As it would be recorded, and nothing of others.
    auto as_prepared = std::make_shared<ClaimRecord>(*claim);
    as_prepared->drivers = {{driver, part}};
    state::DriverRecord& record = as_prepared->drivers.at(driver);
    record.phase = state::DriverPhase::kPrepared;
    record.devices = devices;
    record.boot_id = parts_.boot_id;
    answered.push_back(std::move(as_prepared));
  }
  if (!directories_.any() || answered.empty()) return done({});
  Look(answered,
       [this, driver, answered, done = std::move(done)](const Seen& seen) {
         OnAnswerLooked(driver, answered, seen, done);
       });
}

void SpecKeeper::OnAnswerLooked(
    const std::string& driver, const Claims& answered, const Seen& seen,
    const std::function<void(const Answer&)>& done) {
  Answer answer;
  for (const auto& then : answered) {
    const ClaimUid& uid = then->uid;
    const auto missing = seen.missing.find(uid);
    if (missing == seen.missing.end()) {
      if (seen.is_complete) answer.look.found.insert(uid);
      continue;
    }
    const ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr || !claim->drivers.contains(driver) ||
        claim->drivers.at(driver).phase != state::DriverPhase::kPreparing) {
      continue;  // given up meanwhile
    }
    answer.look.missing.insert(uid);
    const Finding finding =
        FindingOf(*claim, driver, missing->second.at(driver));
    if (const auto* renew = std::get_if<fsck::Renew>(&finding.repair)) {
      answer.renewals[uid] = {
          renew->idle, "after its driver has prepared it: " +
                           finding.shown.message + "; " + finding.shown.repair};
    } else {
      TellInVain(finding, {uid, driver});
    }
  }
  done(answer);
}

claim::KnownIdle SpecKeeper::BeginRenewal(const ClaimUid& uid) {
  DEVMGR_ASSERT_ON(parts_.executor);
  renewing_.insert(uid);
  const ClaimRecord* claim = parts_.state.FindClaim(uid);
  if (claim == nullptr) return {parts_.boot_id, {}};
  return parts_.use.IdleWith(*claim);
}

void SpecKeeper::EndRenewal(const ClaimUid& claim) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto found = renewing_.find(claim);
  if (found != renewing_.end()) renewing_.erase(found);
}

absl::Status SpecKeeper::Awaited(const state::PodRecord& pod) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const ClaimUid& uid : pod.claims) {
    const ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase != state::DriverPhase::kPreparing) continue;
      if (!WasMissed(part)) continue;
      return UnavailableError(
          "the CDI specs of claim '{}' are missing, and driver '{}' is asked "
          "to {} again",
          claim->name.ToString(), driver,
          part.spec_recovery == SpecRecovery::kUnprepareFirst
              ? "unprepare it, and to prepare it"
              : "prepare it");
    }
  }
  return absl::OkStatus();
}

void SpecKeeper::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.claims) {
    if (now == nullptr) Forget(before->uid);
  }
}

void SpecKeeper::Forget(const ClaimUid& claim) {
  const auto first = told_.lower_bound({claim, ""});
  auto last = first;
  while (last != told_.end() && last->first == claim) ++last;
  told_.erase(first, last);
}

}  // namespace devmgr::upkeep
