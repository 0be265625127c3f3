// SPDX-License-Identifier: Apache-2.0
#include "manager/driver_calls.h"

#include "claim/booking.h"
#include "common/status.h"

namespace devmgr::manager {

using dra::ClaimReference;
using state::DriverPhase;

namespace {

/// All that any API of the driver needs, from the ledger alone.
ClaimReference ReferenceTo(const state::ClaimRecord& claim,
                           const state::DriverRecord& part) {
  ClaimReference reference{claim.uid, claim.name, part.handle, {}};
  for (const state::PreparedDevice& device : part.devices) {
    reference.cdi_device_ids.insert(reference.cdi_device_ids.end(),
                                    device.cdi_device_ids.begin(),
                                    device.cdi_device_ids.end());
  }
  return reference;
}

}  // namespace

void DriverCalls::Drive(const std::vector<ClaimUid>& claims) {
  if (stopped_) return;
  std::map<std::string, std::vector<ClaimReference>> prepare;
  std::map<std::string, std::vector<ClaimReference>> unprepare;
  for (const ClaimUid& uid : claims) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase == DriverPhase::kPrepared) continue;
      const bool is_prepare = part.phase == DriverPhase::kPreparing;
      if (!under_way_.emplace(ClaimAtDriver(uid, driver), is_prepare).second) {
        continue;
      }
      auto& due = is_prepare ? prepare : unprepare;
      due[driver].push_back(ReferenceTo(*claim, part));
    }
  }
  for (const auto& [driver, due] : prepare) Prepare(driver, due);
  for (const auto& [driver, due] : unprepare) Unprepare(driver, due);
}

void DriverCalls::Forget(const ClaimUid& claim) {
  const auto is_its = [&](const auto& entry) {
    return entry.first.first == claim;
  };
  std::erase_if(errors_, is_its);
  std::erase_if(attempts_, is_its);
}

bool DriverCalls::IsUnderWay(const ClaimUid& claim) const {
  const auto first = under_way_.lower_bound({claim, ""});
  return first != under_way_.end() && first->first.first == claim;
}

std::vector<std::pair<std::string, absl::Status>> DriverCalls::Errors(
    const std::vector<ClaimUid>& claims) const {
  std::vector<std::pair<std::string, absl::Status>> errors;
  for (const ClaimUid& claim : claims) {
    for (auto it = errors_.lower_bound({claim, ""});
         it != errors_.end() && it->first.first == claim; ++it) {
      errors.emplace_back(it->first.second, it->second);
    }
  }
  return errors;
}

void DriverCalls::Prepare(const std::string& driver,
                          const std::vector<ClaimReference>& claims) {
  parts_.drivers.Prepare(driver, claims,
                         [this, driver](dra::PrepareAnswer answer) {
                           OnPrepared(driver, std::move(answer));
                         });
}

void DriverCalls::Unprepare(const std::string& driver,
                            const std::vector<ClaimReference>& claims) {
  parts_.drivers.Unprepare(driver, claims,
                           [this, driver](dra::UnprepareAnswer answer) {
                             OnUnprepared(driver, std::move(answer));
                           });
}

void DriverCalls::OnPrepared(const std::string& driver,
                             dra::PrepareAnswer answer) {
  std::set<ClaimUid> failed;
  std::set<ClaimUid> succeeded;
  std::map<ClaimUid, std::vector<state::PreparedDevice>> prepared;
  for (auto& [uid, devices] : answer) {
    if (devices.ok()) {
      succeeded.insert(uid);
      prepared.emplace(uid, *std::move(devices));
    } else {
      failed.insert(uid);
      errors_[{uid, driver}] = devices.status();
    }
  }
  if (!failed.empty()) Settle(driver, failed);
  if (prepared.empty()) return;
  Record(driver, std::move(succeeded), {},
         [driver, prepared = std::move(prepared),
          boot_id = parts_.boot_id](const state::State& state) {
           return claim::RecordPrepared(state, driver, prepared, boot_id);
         });
}

void DriverCalls::OnUnprepared(const std::string& driver,
                               dra::UnprepareAnswer answer) {
  std::map<ClaimUid, absl::Status> failed;
  std::set<ClaimUid> unprepared;
  for (auto& [uid, status] : answer) {
    if (status.ok()) {
      unprepared.insert(uid);
    } else {
      failed.emplace(uid, std::move(status));
    }
  }
  if (!failed.empty()) RecordDebts(driver, failed);
  if (unprepared.empty()) return;
  Record(driver, unprepared, {},
         [driver, unprepared,
          rules = parts_.debt_rules](const state::State& state) {
           return claim::RecordUnprepared(state, driver, unprepared, rules);
         });
}

void DriverCalls::RecordDebts(const std::string& driver,
                              const std::map<ClaimUid, absl::Status>& failed) {
  if (stopped_) {  // The call did not fail, we ended it.
    std::set<ClaimUid> claims;
    for (const auto& [uid, error] : failed) claims.insert(uid);
    Settle(driver, claims);
    return;
  }
  // Where nobody is, nobody was asked.
  const std::uint32_t more = parts_.drivers.IsRegistered(driver) ? 1 : 0;
  std::map<ClaimUid, claim::FailedTries> tries;
  std::set<ClaimUid> claims;
  for (const auto& [uid, error] : failed) {
    const std::uint32_t attempts = Attempts(uid, driver) + more;
    attempts_[{uid, driver}] = attempts;
    tries[uid] = {attempts, MessageOf(error)};
    claims.insert(uid);
  }
  Record(driver, std::move(claims), failed,
         [driver, tries, rules = parts_.debt_rules,
          now = parts_.now_ms()](const state::State& state) {
           return claim::RecordDebts(state, driver, tries, rules, now);
         });
}

std::uint32_t DriverCalls::Attempts(const ClaimUid& claim,
                                    const std::string& driver) const {
  const auto counted = attempts_.find({claim, driver});
  if (counted != attempts_.end()) return counted->second;
  const state::ClaimRecord* record = parts_.state.FindClaim(claim);
  if (record == nullptr) return 0;
  const auto part = record->drivers.find(driver);
  if (part == record->drivers.end() || !part->second.debt.has_value()) return 0;
  return part->second.debt->attempts;
}

void DriverCalls::Record(const std::string& driver, std::set<ClaimUid> claims,
                         std::map<ClaimUid, absl::Status> errors,
                         Ledger::Decide decide) {
  const auto settle = [this, driver, claims = std::move(claims),
                       errors = std::move(errors)](const absl::Status& status) {
    for (const ClaimUid& claim : claims) {
      const auto error = errors.find(claim);
      if (!status.ok()) {
        errors_[{claim, driver}] = status;
      } else if (error != errors.end()) {
        errors_[{claim, driver}] = error->second;
      } else {
        errors_.erase({claim, driver});
      }
    }
    Settle(driver, claims);
  };
  parts_.ledger.Submit(std::move(decide), [post = parts_.post,
                                           settle](const absl::Status& status) {
    post([settle, status] { settle(status); });
  });
}

void DriverCalls::Settle(const std::string& driver,
                         const std::set<ClaimUid>& claims) {
  std::vector<ClaimUid> given_up;
  for (const ClaimUid& uid : claims) {
    const auto call = under_way_.find({uid, driver});
    const bool was_prepare = call != under_way_.end() && call->second;
    if (call != under_way_.end()) under_way_.erase(call);
    const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr || !claim->drivers.contains(driver)) {
      errors_.erase({uid, driver});
      attempts_.erase({uid, driver});
    } else if (was_prepare &&
               claim->drivers.at(driver).phase == DriverPhase::kUnpreparing) {
      given_up.push_back(uid);
    }
  }
  // The last pod gave these up while the driver was still preparing them.
  Drive(given_up);
  parts_.on_settled(claims);
}

}  // namespace devmgr::manager
