// SPDX-License-Identifier: Apache-2.0
#include "pods/driver_calls.h"

#include <iterator>

#include "claim/call_need.h"
#include "claim/prepare_intent.h"
#include "claim/spec_recovery.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "view/pod_views.h"

namespace devmgr::pods {

using claim::CallEvent;
using claim::CallNeed;
using claim::CallStage;
using dra::ClaimReference;
using state::DriverPhase;

namespace {

/// All that any API of the driver needs, from the ledger alone.
ClaimReference ReferenceTo(const state::ClaimRecord& claim,
                           const state::DriverRecord& part) {
  return {claim.uid, claim.name, part.handle, part.LastCdiDeviceIds()};
}

/// For those outside, to whom these codes say more than that it may work later:
/// DeadlineExceeded that the driver was silent, Aborted that its pod was given
/// up. Said by the driver itself they mean neither.
absl::Status ForOthers(const absl::Status& status) {
  if (IsFromPeer(status) &&
      (absl::IsDeadlineExceeded(status) || absl::IsAborted(status))) {
    return UnavailableError("{}", MessageOf(status));
  }
  return Unmarked(status);
}

/// What is known of the claim at any driver.
template <typename Known>
void EraseAll(PersistentMap<view::ClaimAtDriver, Known>* all,
              const ClaimUid& claim) {
  for (auto found = all->lower_bound({claim, ""});
       found != all->end() && found->first.first == claim;
       found = all->lower_bound({claim, ""})) {
    all->erase(view::ClaimAtDriver(found->first));
  }
}

void DropShareIds(std::vector<state::PreparedDevice>* devices) {
  for (state::PreparedDevice& device : *devices) device.share_id.clear();
}

}  // namespace

void DriverCalls::Drive(const std::vector<ClaimUid>& claims) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return;
  std::set<std::string> drivers;
  for (const ClaimUid& uid : claims) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase == DriverPhase::kPrepared) continue;
      if (!under_way_.emplace(ClaimAtDriver(uid, driver), CallStage::kDue)
               .second) {
        continue;
      }
      known_.unanswered.insert_or_assign({uid, driver}, {});
      queue_.Add(driver, uid);
      drivers.insert(driver);
    }
  }
  for (const std::string& driver : drivers) Dispatch(driver);
}

void DriverCalls::DriveAnew(const std::string& driver,
                            const std::vector<ClaimUid>& claims) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const ClaimUid& uid : claims) {
    const auto asked = under_way_.find({uid, driver});
    if (asked == under_way_.end()) continue;
    asked->second = claim::Next(asked->second, CallEvent::kDriverCame);
  }
  Drive(claims);
}

bool DriverCalls::IsForgotten(const std::string& driver,
                              const ClaimUid& claim) const {
  return under_way_.at({claim, driver}) == CallStage::kForgotten;
}

void DriverCalls::Dispatch(const std::string& driver) {
  if (stopped_) return;
  std::map<ClaimUid, absl::Status> idle;
  const auto need = [&](const ClaimUid& claim) {
    return claim::NeedOf(parts_.state, claim, driver);
  };
  while (const auto due = queue_.Next(driver, need)) {
    if (due->need != CallNeed::kNothing) {
      Begin(driver, *due);
      continue;
    }
    for (const ClaimUid& claim : due->claims) idle[claim] = absl::OkStatus();
  }
  if (!idle.empty()) Settle({driver, true, false, {}}, idle);
}

void DriverCalls::Begin(const std::string& driver, const CallQueue::Call& due) {
  const CallId id = ++last_call_;
  std::vector<ClaimReference> references;
  for (const ClaimUid& uid : due.claims) {
    CallStage& stage = under_way_.at({uid, driver});
    stage = claim::Next(stage, CallEvent::kBegun);
    const state::ClaimRecord& claim = *parts_.state.FindClaim(uid);
    references.push_back(ReferenceTo(claim, claim.drivers.at(driver)));
  }
  const bool prepare = due.need == CallNeed::kPrepare;
  const std::int64_t now_ms = parts_.now_ms();
  for (const ClaimUid& uid : due.claims) {
    known_.unanswered.insert_or_assign({uid, driver}, {prepare, now_ms, id});
  }
  calls_[id] = {driver,
                prepare,
                due.claims.size() > 1,
                {due.claims.begin(), due.claims.end()}};
  if (prepare) {
    parts_.drivers.Prepare(driver, std::move(references),
                           [this, id](dra::PrepareAnswer answer) {
                             OnPrepared(id, std::move(answer));
                           });
  } else {
    parts_.drivers.Unprepare(driver, std::move(references),
                             [this, id](dra::UnprepareAnswer answer) {
                               OnUnprepared(id, std::move(answer));
                             });
  }
}

void DriverCalls::Forget(const ClaimUid& claim) {
  DEVMGR_ASSERT_ON(parts_.executor);
  queue_.Drop(claim);
  for (auto it = under_way_.lower_bound({claim, ""});
       it != under_way_.end() && it->first.first == claim;) {
    it->second = claim::Next(it->second, CallEvent::kClaimGone);
    if (it->second == CallStage::kOver) {
      known_.unanswered.erase(it->first);
      it = under_way_.erase(it);
    } else {
      ++it;
    }
  }
  EraseAll(&known_.errors, claim);
  EraseAll(&known_.attempts, claim);
}

bool DriverCalls::IsUnderWay(const ClaimUid& claim) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto first = under_way_.lower_bound({claim, ""});
  return first != under_way_.end() && first->first.first == claim;
}

std::vector<DriverCalls::Error> DriverCalls::Errors(
    const std::vector<ClaimUid>& claims) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<Error> errors;
  for (const ClaimUid& claim : claims) {
    for (auto it = known_.errors.lower_bound({claim, ""});
         it != known_.errors.end() && it->first.first == claim; ++it) {
      errors.push_back(it->second);
    }
  }
  return errors;
}

template <typename Answer>
std::optional<DriverCalls::Call> DriverCalls::Take(CallId id, Answer* answer) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return std::nullopt;
  Call call = found->second;
  std::map<ClaimUid, absl::Status> forgotten;
  std::erase_if(*answer, [&](const auto& word) {
    if (found->second.waiting.erase(word.first) == 0) return true;
    known_.unanswered.erase(ClaimAtDriver(word.first, call.driver));
    if (!IsForgotten(call.driver, word.first)) return false;
    forgotten[word.first] = absl::OkStatus();
    return true;
  });
  if (found->second.waiting.empty()) {
    calls_.erase(found);
    queue_.End(call.driver);
  }
  if (!forgotten.empty()) Settle(call, forgotten);
  return call;
}

void DriverCalls::JudgeTimeout(const Call& call, const ClaimUid& claim,
                               const absl::Status& status) {
  // One that gives up by itself holds up nobody: it has answered.
  const bool silent = absl::IsDeadlineExceeded(status) && !IsFromPeer(status);
  if (call.shared && silent) {
    queue_.Suspect(call.driver, claim);
  } else if (!silent) {
    queue_.Clear(call.driver, claim);
  }
}

void DriverCalls::OnPrepared(CallId id, dra::PrepareAnswer answer) {
  const auto call = Take(id, &answer);
  if (!call.has_value()) return;
  std::map<ClaimUid, absl::Status> failed;
  PreparedClaims prepared;
  for (auto& [uid, devices] : answer) {
    JudgeTimeout(*call, uid, devices.status());
    if (devices.ok()) {
      if (!parts_.keep_share_ids) DropShareIds(&*devices);
      prepared.emplace(uid, *std::move(devices));
    } else {
      failed.emplace(uid, ForOthers(devices.status()));
    }
  }
  if (!prepared.empty()) {
    if (parts_.on_prepared) parts_.on_prepared(call->driver, prepared);
    if (parts_.look_at_hardware) {
      parts_.look_at_hardware(call->driver, std::move(prepared),
                              [this, call = *call](PreparedClaims identified) {
                                OnIdentified(call, identified);
                              });
    } else {
      OnIdentified(*call, prepared);
    }
  }
  if (!failed.empty()) Settle(*call, failed);
  Dispatch(call->driver);
}

void DriverCalls::OnIdentified(const Call& call,
                               const PreparedClaims& prepared) {
  const auto record = [this, call,
                       prepared](const upkeep::SpecKeeper::Answer& look) {
    RecordAnswer(call, prepared, look);
  };
  if (parts_.look_at_answer) {
    parts_.look_at_answer(call.driver, prepared, record);
  } else {
    record({});
  }
}

void DriverCalls::RecordAnswer(const Call& call, PreparedClaims prepared,
                               const upkeep::SpecKeeper::Answer& look) {
  std::map<ClaimUid, absl::Status> forgotten;
  std::erase_if(prepared, [&](const auto& entry) {
    if (!IsForgotten(call.driver, entry.first)) return false;
    forgotten[entry.first] = absl::OkStatus();
    return true;
  });
  for (const auto& [uid, renewal] : look.renewals) {
    const auto answer = prepared.extract(uid);
    if (answer.empty()) continue;
    Record(call, {uid}, {},
           [driver = call.driver, uid = answer.key(), devices = answer.mapped(),
            boot_id = parts_.boot_id,
            renewal = renewal](const state::State& state) {
             state::Decision renew =
                 claim::Renew(state, uid, driver, renewal.idle, devices);
             renew.message = renewal.message;
             if (state::IsWorthWriting(renew)) return renew;
             return claim::RecordPrepared(state, driver, {{uid, devices}},
                                          boot_id);
           });
  }
  std::set<ClaimUid> succeeded;
  for (const auto& [uid, devices] : prepared) succeeded.insert(uid);
  if (!prepared.empty()) {
    Record(call, std::move(succeeded), {},
           [driver = call.driver, prepared = std::move(prepared),
            boot_id = parts_.boot_id,
            look = look.look](const state::State& state) {
             return claim::RecordPrepared(state, driver, prepared, boot_id,
                                          look);
           });
  }
  if (!forgotten.empty()) Settle(call, forgotten);
}

void DriverCalls::OnUnprepared(CallId id, dra::UnprepareAnswer answer) {
  const auto call = Take(id, &answer);
  if (!call.has_value()) return;
  std::map<ClaimUid, absl::Status> failed;
  std::set<ClaimUid> unprepared;
  for (auto& [uid, status] : answer) {
    JudgeTimeout(*call, uid, status);
    if (status.ok()) {
      unprepared.insert(uid);
    } else {
      failed.emplace(uid, ForOthers(status));
    }
  }
  if (!failed.empty()) RecordDebts(*call, failed);
  if (!unprepared.empty()) {
    const auto ending =
        parts_.ending ? parts_.ending(unprepared) : std::set<PodUid>();
    Record(*call, unprepared, {},
           [driver = call->driver, unprepared, rules = parts_.debt_rules,
            ending](const state::State& state) {
             return claim::RecordUnprepared(state, driver, unprepared, rules,
                                            ending);
           });
  }
  Dispatch(call->driver);
}

void DriverCalls::RecordDebts(const Call& call,
                              const std::map<ClaimUid, absl::Status>& failed) {
  // The call did not fail, we ended it.
  if (stopped_) return Settle(call, failed);
  // Where nobody is, nobody was asked.
  const std::uint32_t more = parts_.drivers.IsRegistered(call.driver) ? 1 : 0;
  std::map<ClaimUid, claim::FailedTries> tries;
  std::set<ClaimUid> claims;
  for (const auto& [uid, error] : failed) {
    const std::uint32_t attempts = Attempts(uid, call.driver) + more;
    known_.attempts.insert_or_assign({uid, call.driver}, attempts);
    tries[uid] = {attempts, MessageOf(error)};
    claims.insert(uid);
  }
  Record(call, std::move(claims), failed,
         [driver = call.driver, tries, rules = parts_.debt_rules,
          now = parts_.now_ms()](const state::State& state) {
           return claim::RecordDebts(state, driver, tries, rules, now);
         });
}

std::uint32_t DriverCalls::Attempts(const ClaimUid& claim,
                                    const std::string& driver) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return view::Attempts(known_, parts_.state, claim, driver);
}

void DriverCalls::Record(const Call& call, std::set<ClaimUid> claims,
                         std::map<ClaimUid, absl::Status> errors,
                         ledger::Ledger::Decide decide) {
  const auto settle = [this, call, claims = std::move(claims),
                       errors = std::move(errors)](const absl::Status& status) {
    std::map<ClaimUid, absl::Status> outcomes;
    for (const ClaimUid& claim : claims) {
      CallStage& stage = under_way_.at({claim, call.driver});
      if (!status.ok()) stage = claim::Next(stage, CallEvent::kWriteFailed);
      const auto error = errors.find(claim);
      outcomes[claim] =
          status.ok() && error != errors.end() ? error->second : status;
    }
    Settle(call, outcomes, /*is_of_ledger=*/!status.ok());
  };
  parts_.ledger.Submit(std::move(decide), parts_.executor, settle);
}

void DriverCalls::Settle(const Call& call,
                         const std::map<ClaimUid, absl::Status>& outcomes,
                         bool is_of_ledger) {
  const auto done = call.prepare ? CallNeed::kPrepare : CallNeed::kUnprepare;
  std::set<ClaimUid> settled;
  std::vector<ClaimUid> turned;
  for (const auto& [uid, status] : outcomes) {
    const ClaimAtDriver key(uid, call.driver);
    const CallStage stage = under_way_.extract(key).mapped();
    known_.unanswered.erase(key);
    settled.insert(uid);
    const CallNeed need = claim::NeedOf(parts_.state, uid, call.driver);
    const auto owed = need == CallNeed::kNothing ? claim::StillOwed::kNothing
                      : need == done             ? claim::StillOwed::kTheSame
                                     : claim::StillOwed::kTheOtherThing;
    const auto after = claim::WhenSettled(stage, owed, !status.ok());
    if (status.ok() || stage == CallStage::kForgotten ||
        after == claim::AfterCall::kDone) {
      known_.errors.erase(key);
    } else {
      known_.errors.insert_or_assign(key, {call.driver, status, is_of_ledger});
    }
    if (after == claim::AfterCall::kDone) {
      known_.attempts.erase(key);
      queue_.Clear(call.driver, uid);
    }
    if (after == claim::AfterCall::kAskNow) turned.push_back(uid);
  }
  // The last pod gave these up while the driver was still preparing them, or
  // they came again while it was still at what they were before, or the driver
  // itself did.
  Drive(turned);
  parts_.on_settled(settled);
}

}  // namespace devmgr::pods
