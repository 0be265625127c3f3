// SPDX-License-Identifier: Apache-2.0
//
// How long drivers have owed what they owe, on clocks that the test moves.
#include "upkeep/debt_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "manager/driver_names.h"
#include "support/status_matchers.h"
#include "support/test_node.h"

namespace devmgr::upkeep {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kFiftyYearsMs = 50 * 365 * 24 * kHourMs;

class DebtKeeperTest : public testing::Test {
 protected:
  DebtKeeperTest() { rules_.fallback = {DebtPolicy::Kind::kForgive, hours(1)}; }

  static std::shared_ptr<state::ClaimRecord> Claim(const std::string& name) {
    auto claim = std::make_shared<state::ClaimRecord>();
    claim->uid = ClaimUid{"u-" + name};
    claim->name = {"ns", name};
    claim->drivers[kDriver].phase = state::DriverPhase::kUnpreparing;
    return claim;
  }
  std::shared_ptr<state::ClaimRecord> OwedClaim(const std::string& name,
                                                std::int64_t since_ms) const {
    auto claim = Claim(name);
    claim->drivers[kDriver].debt = state::Debt{since_ms, 1, "busy", {}};
    return claim;
  }

  /// With what state_ holds.
  void Start() {
    auto ledger_executor = std::make_unique<ManualExecutor>();
    ledger_loop_ = ledger_executor.get();
    ledger_ = std::make_unique<ledger::Ledger>(
        store_.Open(), &state_, [this] { return wall_ms_; },
        [this](const state::Batch& batch) {
          loop_.Post([this, batch] { Apply(batch); });
        },
        std::move(ledger_executor));
    keeper_ = std::make_unique<DebtKeeper>(DebtKeeper::Parts{
        loop_, *ledger_, state_, events_, rules_, [this] { return wall_ms_; },
        [this](const std::vector<ClaimUid>& claims) {
          driven_.insert(driven_.end(), claims.begin(), claims.end());
        },
        [this](const std::string&, const std::vector<ClaimUid>& claims) {
          driven_anew_.insert(driven_anew_.end(), claims.begin(), claims.end());
        },
        [](const ClaimUid&, const std::string&) { return 1U; }});
    keeper_->Start();
    Run();
  }
  /// As the manager does.
  void Apply(const state::Batch& batch) {
    const ledger::Changes changes = ledger::ChangesOf(state_, batch);
    for (const state::Change& change : batch.decision.changes) {
      if (const auto* put = std::get_if<state::PutClaim>(&change)) {
        state_.Put(put->claim);
      } else {
        state_.Erase(std::get<state::EraseClaim>(change).uid);
      }
    }
    keeper_->OnCommitted(changes);
    state_.seq = batch.seq;
  }
  void Run() {
    while (loop_.RunPending() + ledger_loop_->RunPending() > 0) {
    }
  }
  absl::Status Record(state::DecisionKind kind, state::Change change) {
    state::Decision decision;
    decision.kind = kind;
    decision.changes = {std::move(change)};
    absl::Status result;
    ledger_->Submit([decision](const state::State&) { return decision; },
                    [&](const absl::Status& status) { result = status; });
    Run();
    return result;
  }
  void Owes(const std::string& name) {
    EXPECT_THAT(Record(state::DecisionKind::kDebt,
                       state::PutClaim{OwedClaim(name, wall_ms_)}),
                IsOk());
  }
  /// Its driver has unprepared `name`; that comes to `failure`, and the disk
  /// cannot be looked at.
  void IsUnpreparedInDoubt(const std::string& name,
                           SharedStore::Failure failure) {
    store_.FailNext(failure);
    store_.FailReopen(true);
    EXPECT_THAT(Record(state::DecisionKind::kUnprepareResult,
                       state::EraseClaim{ClaimUid{"u-" + name}}),
                StatusIs(absl::StatusCode::kUnavailable));
  }
  /// Both clocks go on, as they should.
  void Pass(milliseconds time) {
    wall_ms_ += time.count();
    loop_.Advance(time);
    Run();
  }
  std::vector<std::string> Owed() const {
    std::vector<std::string> names;
    for (const auto& [uid, claim] : state_.claims) {
      names.push_back(claim->name.name);
    }
    return names;
  }

  std::int64_t wall_ms_ = kHourMs;
  claim::DebtRules rules_;
  ManualExecutor loop_;
  ManualExecutor* ledger_loop_ = nullptr;
  state::State state_;
  SharedStore store_;
  events::EventLog events_{loop_, 100, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  std::vector<ClaimUid> driven_;
  std::vector<ClaimUid> driven_anew_;
  std::unique_ptr<ledger::Ledger> ledger_;
  std::unique_ptr<DebtKeeper> keeper_;
};

TEST_F(DebtKeeperTest, ForgivesAfterTheTime) {
  Start();
  Owes("a");
  Pass(minutes(30));
  Owes("b");
  Pass(minutes(30) - milliseconds(1));
  EXPECT_THAT(Owed(), ElementsAre("a", "b"));
  Pass(milliseconds(1));
  EXPECT_THAT(Owed(), ElementsAre("b"));
  Pass(minutes(30));
  EXPECT_THAT(Owed(), IsEmpty());
}

// A board without a battery for its clock, at its first synchronisation.
TEST_F(DebtKeeperTest, ACalendarThatJumpsForgivesNothing) {
  Start();
  Owes("a");
  Pass(minutes(1));
  wall_ms_ += kFiftyYearsMs;
  Owes("b");
  Pass(minutes(58));
  EXPECT_THAT(Owed(), ElementsAre("a", "b"));
  Pass(minutes(1));
  EXPECT_THAT(Owed(), ElementsAre("b"));
  Pass(minutes(1));
  EXPECT_THAT(Owed(), IsEmpty());
}

TEST_F(DebtKeeperTest, AsksAtTheStartForWhatWasToBeUnprepared) {
  state_.Put(Claim("a"));
  Start();
  EXPECT_THAT(driven_, ElementsAre(ClaimUid{"u-a"}));
  Pass(DebtKeeper::kSweep);
  EXPECT_THAT(driven_, ElementsAre(ClaimUid{"u-a"}, ClaimUid{"u-a"}));
}

TEST_F(DebtKeeperTest, AsksADriverThatIsBack) {
  Start();
  Owes("a");
  keeper_->OnDriver(kDriver);
  Run();
  EXPECT_THAT(driven_anew_, ElementsAre(ClaimUid{"u-a"}));
}

// What its driver has done may be on disk: it is not asked for that again.
TEST_F(DebtKeeperTest, AsksNobodyWhileTheDiskIsInDoubt) {
  Start();
  Owes("a");
  IsUnpreparedInDoubt("a", SharedStore::Failure::kWritten);
  keeper_->OnDriver(kDriver);
  Pass(DebtKeeper::kSweep);
  store_.FailReopen(false);
  Pass(DebtKeeper::kSweep);
  EXPECT_THAT(Owed(), IsEmpty());
  EXPECT_THAT(driven_, IsEmpty());
  EXPECT_THAT(driven_anew_, IsEmpty());
}

TEST_F(DebtKeeperTest, AsksSoonAfterTheDiskIsKnownAgain) {
  Start();
  Owes("a");
  IsUnpreparedInDoubt("a", SharedStore::Failure::kLost);
  keeper_->OnDriver(kDriver);
  Run();
  EXPECT_THAT(driven_anew_, IsEmpty());
  store_.FailReopen(false);
  Pass(seconds(1));
  EXPECT_THAT(driven_, ElementsAre(ClaimUid{"u-a"}));
}

}  // namespace
}  // namespace devmgr::upkeep
