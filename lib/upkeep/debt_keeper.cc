// SPDX-License-Identifier: Apache-2.0
#include "upkeep/debt_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "state/views.h"

namespace devmgr::upkeep {
namespace {

using std::chrono::milliseconds;

const state::Debt* DebtOf(const state::ClaimRecord* claim,
                          const std::string& driver) {
  if (claim == nullptr) return nullptr;
  const auto part = claim->drivers.find(driver);
  if (part == claim->drivers.end() || !part->second.debt) return nullptr;
  return &part->second.debt.value();
}

std::vector<std::string> DriversThatOwe(const state::ClaimRecord* claim) {
  std::vector<std::string> drivers;
  if (claim == nullptr) return drivers;
  for (const auto& [driver, part] : claim->drivers) {
    if (part.debt.has_value()) drivers.push_back(driver);
  }
  return drivers;
}

}  // namespace

void DebtKeeper::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  const std::int64_t now_ms = parts_.now_ms();
  for (const auto& debt : claim::ForgivableDebts(parts_.state, parts_.rules)) {
    const std::int64_t since_ms = std::max<std::int64_t>(debt.since_ms, 0);
    owed_since_[debt] =
        Now() - milliseconds(std::max<std::int64_t>(now_ms - since_ms, 0));
  }
  Forgive();
  // A driver that is not there, or fails, owes from now on what was to be
  // unprepared when the last process ended.
  parts_.executor.Post([this] { Sweep(); });
}

void DebtKeeper::OnDriver(const std::string& driver) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (claim::OwedClaims(parts_.state, driver).empty()) return;
  OnceKnown([this, driver] {
    parts_.drive_anew(driver, claim::OwedClaims(parts_.state, driver));
  });
}

void DebtKeeper::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.claims) {
    OnClaim(before.get(), now.get(), changes.decision.kind);
  }
}

void DebtKeeper::OnClaim(const state::ClaimRecord* before,
                         const state::ClaimRecord* now,
                         state::DecisionKind decision) {
  bool more = false;
  for (const std::string& driver : DriversThatOwe(now)) {
    if (DebtOf(before, driver) != nullptr) continue;
    more = true;
    parts_.events.Add(true, "DriverOwesUnprepare", "ResourceClaim", now->name,
                      fmt::format("driver {} has not unprepared it: {}", driver,
                                  DebtOf(now, driver)->last_error));
  }
  for (const std::string& driver : DriversThatOwe(before)) {
    if (DebtOf(now, driver) != nullptr ||
        decision == state::DecisionKind::kForgiven) {
      continue;
    }
    parts_.events.Add(
        false, "DebtSettled", "ResourceClaim", before->name,
        fmt::format("driver {} has nothing left to unprepare of it", driver));
  }
  if (!more) return;
  if (sweep_ == 0) ArmSweep(kSweep);
  Forgive();
}

void DebtKeeper::Sweep() {
  if (claim::OwedClaims(parts_.state, "").empty()) return;
  ArmSweep(kSweep);
  OnceKnown([this] { parts_.drive(claim::OwedClaims(parts_.state, "")); });
}

void DebtKeeper::ArmSweep(milliseconds delay) {
  if (sweep_ != 0) parts_.executor.Cancel(sweep_);
  sweep_ = parts_.executor.PostAfter(delay, [this] {
    sweep_ = 0;
    Sweep();
  });
}

void DebtKeeper::OnceKnown(std::function<void()> ask) {
  parts_.ledger.Submit(
      [](const state::State&) -> absl::StatusOr<state::Decision> {
        return state::Decision();
      },
      parts_.executor,
      [this, ask = std::move(ask)](const absl::Status& status) {
        status.ok() ? ask() : ArmSweep(ledger::kWriteRetry);
      });
}

void DebtKeeper::ArmForgive(milliseconds delay) {
  if (forgive_ != 0) parts_.executor.Cancel(forgive_);
  forgive_ = parts_.executor.PostAfter(delay, [this] {
    forgive_ = 0;
    Forgive();
  });
}

void DebtKeeper::Forgive() {
  if (!parts_.rules.Forgive()) return;
  const auto known = std::exchange(owed_since_, {});
  std::vector<claim::ForgivableDebt> due;
  std::optional<milliseconds> next;
  for (auto& debt : claim::ForgivableDebts(parts_.state, parts_.rules)) {
    const auto since = known.find(debt);
    const milliseconds owed_since =
        since != known.end() ? since->second : Now();
    owed_since_[debt] = owed_since;
    const milliseconds left = debt.forgive_after - (Now() - owed_since);
    if (left.count() > 0) {
      next = std::min(next.value_or(left), left);
    } else {
      due.push_back(std::move(debt));
    }
  }
  if (!due.empty()) {
    parts_.ledger.Submit(
        [rules = parts_.rules,
         due](const state::State& state) -> absl::StatusOr<state::Decision> {
          return claim::ForgiveDebts(state, rules, due);
        });
    // Whether that got to the disk or not, it looks again.
    next = std::min(next.value_or(ledger::kWriteRetry), ledger::kWriteRetry);
  }
  if (next.has_value()) ArmForgive(*next);
}

milliseconds DebtKeeper::Now() const {
  return std::chrono::duration_cast<milliseconds>(
      parts_.executor.Now().time_since_epoch());
}

std::vector<DebtInfo> DebtKeeper::Debts() const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<DebtInfo> debts = state::DebtsOf(parts_.state);
  for (DebtInfo& debt : debts) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(debt.uid);
    debt.attempts = parts_.attempts(debt.uid, debt.driver);
    debt.policy = claim::DebtPolicyText(parts_.rules.For(*claim, debt.driver));
  }
  return debts;
}

}  // namespace devmgr::upkeep
