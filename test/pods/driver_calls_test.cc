// SPDX-License-Identifier: Apache-2.0
//
// Calls to drivers, on a clock that the test moves.
#include "pods/driver_calls.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "claim/prepare_intent.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "manager/driver_names.h"
#include "support/status_matchers.h"

namespace devmgr::pods {
namespace {

using dra::ClaimReference;
using state::DriverPhase;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A call that was made and is answered when the test says so.
struct MadeCall {
  bool prepare = true;
  std::vector<ClaimReference> claims;
  /// Answers this claim: prepared, unprepared, or the error.
  std::function<void(const ClaimUid&, const absl::Status&)> answer;

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ClaimReference& claim : claims) names.push_back(claim.name.name);
    return names;
  }
  void AnswerAll(const absl::Status& status = absl::OkStatus()) const {
    for (const ClaimReference& claim : claims) answer(claim.uid, status);
  }
};

/// Hands each call to `on_call`.
class HandMadeDrivers final : public dra::Drivers {
 public:
  bool IsRegistered(const std::string&) const override { return true; }
  bool IsConnected(const std::string&) const override { return true; }
  void Prepare(const std::string&, std::vector<ClaimReference> claims,
               std::function<void(dra::PrepareAnswer)> done) override {
    on_call({true, std::move(claims),
             [done](const ClaimUid& uid, const absl::Status& status) {
               if (!status.ok()) return done({{uid, status}});
               done({{uid, std::vector<state::PreparedDevice>{
                               {{}, "pool", uid.value, {}, ""}}}});
             }});
  }
  void Unprepare(const std::string&, std::vector<ClaimReference> claims,
                 std::function<void(dra::UnprepareAnswer)> done) override {
    on_call({false, std::move(claims),
             [done](const ClaimUid& uid, const absl::Status& status) {
               done({{uid, status}});
             }});
  }
  std::vector<std::shared_ptr<const PluginInfo>> Plugins() const override {
    return {};
  }

  std::function<void(MadeCall)> on_call;
};

class DriverCallsTest : public testing::Test {
 protected:
  DriverCallsTest() {
    drivers_.on_call = [this](MadeCall call) {
      made_.push_back(std::move(call));
    };
    auto ledger_executor = std::make_unique<ManualExecutor>();
    ledger_loop_ = ledger_executor.get();
    ledger_ = std::make_unique<ledger::Ledger>(
        checkpoint::NewInMemoryStore(), &state_, [] { return 1'000; },
        [this](const state::Batch& batch) {
          loop_.Post([this, batch] { Apply(batch); });
        },
        std::move(ledger_executor));
    calls_ = std::make_unique<DriverCalls>(
        DriverCalls::Parts{drivers_,
                           *ledger_,
                           state_,
                           "boot-1",
                           {},
                           [] { return 1'000; },
                           loop_,
                           [this](const std::set<ClaimUid>& claims) {
                             settled_.insert(claims.begin(), claims.end());
                           }});
  }

  /// As the manager does.
  void Apply(const state::Batch& batch) {
    EXPECT_THAT(state::Apply(state_, batch), IsOk());
    if (batch.decision.kind != state::DecisionKind::kForgiven) return;
    for (const state::Change& change : batch.decision.changes) {
      if (const auto* gone = std::get_if<state::EraseClaim>(&change)) {
        calls_->Forget(gone->uid);
      }
    }
  }

  static ClaimUid Uid(int i) { return {fmt::format("u-{:04}", i)}; }
  static PodUid PodOf(int i) { return {fmt::format("p-{:04}", i)}; }

  /// Until nobody has anything to do at this moment.
  void Run() {
    while (loop_.RunPending() + ledger_loop_->RunPending() > 0) {
    }
  }
  void Decide(ledger::Ledger::Decide decide) {
    ledger_->Submit(std::move(decide), [](const absl::Status& status) {
      EXPECT_THAT(status, IsOk());
    });
    Run();
  }
  /// Pod `i` takes claim `i`.
  void Book(int i) {
    Decide([i](const state::State& state) -> absl::StatusOr<state::Decision> {
      claim::PodPlan plan;
      plan.claims = {{Uid(i), {"ns", fmt::format("c{}", i)}, {kDriver}}};
      plan.needs = {{"c", false, {{Uid(i), "", ""}}}};
      auto booked =
          claim::BookPod(state, {PodOf(i), {"ns", fmt::format("p{}", i)}},
                         1'000, &plan, "boot-1");
      EXPECT_THAT(booked, IsOk());
      EXPECT_EQ(booked->verdict.kind, Verdict::Kind::kAdmit);
      return std::move(booked->decision);
    });
  }
  void Release(int i) {
    Decide([i](const state::State& state) -> absl::StatusOr<state::Decision> {
      return claim::BeginRelease(state, PodOf(i));
    });
  }
  void Forget(int i) {
    Decide([i](const state::State& state) {
      return claim::ForgetPod(state, PodOf(i));
    });
  }
  void Drive(int i) {
    calls_->Drive({Uid(i)});
    Run();
  }
  bool IsPrepared(int i) const {
    const state::ClaimRecord* claim = state_.FindClaim(Uid(i));
    return claim != nullptr &&
           claim->drivers.at(kDriver).phase == DriverPhase::kPrepared;
  }
  bool Knows(int i) const { return state_.FindClaim(Uid(i)) != nullptr; }

  ManualExecutor loop_;
  ManualExecutor* ledger_loop_ = nullptr;
  HandMadeDrivers drivers_;
  std::deque<MadeCall> made_;
  state::State state_;
  std::set<ClaimUid> settled_;
  std::unique_ptr<ledger::Ledger> ledger_;
  std::unique_ptr<DriverCalls> calls_;
};

TEST_F(DriverCallsTest, CallsUnderWayAndDueAreKnown) {
  constexpr int kCalls = static_cast<int>(CallQueue::kCallsAtOnce);
  for (int i = 0; i <= kCalls; ++i) {
    Book(i);
    Drive(i);
  }
  const auto& unanswered = calls_->known().unanswered;
  std::set<std::uint64_t> calls;
  for (const auto& [asked, call] : unanswered) {
    if (call.since_ms.has_value()) calls.insert(call.call);
  }
  EXPECT_THAT(calls, SizeIs(kCalls));
  EXPECT_THAT(unanswered, SizeIs(kCalls + 1));
  const view::ClaimAtDriver asked(Uid(0), kDriver);
  EXPECT_TRUE(unanswered.at(asked).prepare);
  EXPECT_EQ(unanswered.at(asked).since_ms, 1'000);
  const view::ClaimAtDriver due(Uid(kCalls), kDriver);
  EXPECT_FALSE(unanswered.at(due).since_ms.has_value());
  while (!made_.empty()) {
    made_.front().AnswerAll();
    made_.pop_front();
    Run();
  }
  EXPECT_THAT(calls_->known().unanswered, IsEmpty());
}

TEST_F(DriverCallsTest, ADriverThatComesDuringARefusalIsAskedAgainAtOnce) {
  Book(0);
  Drive(0);
  made_[0].AnswerAll();
  Run();
  Release(0);
  Drive(0);
  ASSERT_THAT(made_, SizeIs(2));
  made_[1].AnswerAll(UnavailableError("it is not there"));
  calls_->DriveAnew(kDriver, {Uid(0)});  // The refusal is being recorded.
  EXPECT_THAT(made_, SizeIs(2));
  Run();
  ASSERT_THAT(made_, SizeIs(3));
  // Once only: nobody has come since.
  made_[2].AnswerAll(UnavailableError("it is not well"));
  Run();
  EXPECT_THAT(made_, SizeIs(3));
  Drive(0);
  ASSERT_THAT(made_, SizeIs(4));
  calls_->DriveAnew(kDriver, {Uid(0)});
  made_[3].AnswerAll();  // It had come before it answered.
  Run();
  EXPECT_THAT(made_, SizeIs(4));
  EXPECT_FALSE(Knows(0));
}

TEST_F(DriverCallsTest, EachAnswerIsRecordedThoughOthersOfItsCallAreLate) {
  for (int i = 0; i < 3; ++i) Book(i);
  calls_->Drive({Uid(0), Uid(1), Uid(2)});
  ASSERT_THAT(made_, SizeIs(1));
  made_[0].answer(Uid(1), absl::OkStatus());
  Run();
  EXPECT_FALSE(IsPrepared(0));
  EXPECT_TRUE(IsPrepared(1));
  EXPECT_THAT(settled_, ElementsAre(Uid(1)));
  EXPECT_FALSE(calls_->IsUnderWay(Uid(1)));
  EXPECT_TRUE(calls_->IsUnderWay(Uid(0)));
  made_[0].answer(Uid(0), UnavailableError("boom"));
  Run();
  EXPECT_THAT(calls_->Errors({Uid(0)}), SizeIs(1));
  EXPECT_TRUE(calls_->IsUnderWay(Uid(2)));
  made_[0].answer(Uid(2), absl::OkStatus());
  Run();
  EXPECT_TRUE(IsPrepared(2));
  // The same of what is taken back.
  for (int i = 1; i < 3; ++i) Release(i);
  calls_->Drive({Uid(1), Uid(2)});
  ASSERT_THAT(made_, SizeIs(2));
  made_[1].answer(Uid(2), absl::OkStatus());
  Run();
  EXPECT_TRUE(Knows(1));
  EXPECT_FALSE(Knows(2));
}

TEST_F(DriverCallsTest, AnAnswerThatComesTwiceCountsOnce) {
  for (int i = 0; i < 2; ++i) Book(i);
  calls_->Drive({Uid(0), Uid(1)});
  made_[0].answer(Uid(0), absl::OkStatus());
  made_[0].answer(Uid(0), UnavailableError("no"));
  Run();
  EXPECT_TRUE(IsPrepared(0));
  EXPECT_TRUE(calls_->IsUnderWay(Uid(1)));
  made_[0].AnswerAll();
  made_[0].AnswerAll(UnavailableError("no"));
  Run();
  EXPECT_TRUE(IsPrepared(1));
  EXPECT_THAT(calls_->Errors({Uid(0), Uid(1)}), IsEmpty());
}

TEST_F(DriverCallsTest, ManyPodsShareCalls) {
  for (int i = 0; i < 300; ++i) {
    Book(i);
    Drive(i);
  }
  ASSERT_THAT(made_, SizeIs(4));
  for (std::size_t i = 0; i < made_.size(); ++i) {
    made_[i].AnswerAll();
    Run();
  }
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(IsPrepared(i)) << i;
  EXPECT_THAT(made_, SizeIs(4 + 3));
  // And so on the way back.
  made_.clear();
  for (int i = 0; i < 300; ++i) {
    Release(i);
    Drive(i);
  }
  for (std::size_t i = 0; i < made_.size(); ++i) {
    made_[i].AnswerAll();
    Run();
  }
  EXPECT_TRUE(state_.claims.empty());
  EXPECT_THAT(made_, SizeIs(4 + 3));
}

// A driver that does one thing at a time: 10 ms a call and 1 ms a claim.
TEST_F(DriverCallsTest, AThousandClaimsTakeLittleMoreThanTheirDriverNeeds) {
  constexpr int kClaims = 1'000;
  std::chrono::steady_clock::time_point free{};
  drivers_.on_call = [&](const MadeCall& call) {
    free = std::max(free, loop_.Now()) + milliseconds(10) +
           call.claims.size() * milliseconds(1);
    loop_.PostAfter(
        std::chrono::duration_cast<milliseconds>(free - loop_.Now()),
        [call] { call.AnswerAll(); });
  };
  for (int i = 0; i < kClaims; ++i) Book(i);
  const auto began = loop_.Now();
  for (int i = 0; i < kClaims; ++i) calls_->Drive({Uid(i)});
  while (loop_.timers() > 0) {
    loop_.Advance(milliseconds(1));
    Run();
  }
  const auto took = loop_.Now() - began;
  // Its own: ten calls of a hundred each.
  const auto least = milliseconds(10 * 10 + kClaims);
  EXPECT_LE(took, least * 12 / 10);
  for (int i = 0; i < kClaims; ++i) ASSERT_TRUE(IsPrepared(i)) << i;
}

TEST_F(DriverCallsTest, AHungClaimHoldsUpOthersOnceAtMost) {
  for (int i = 0; i < 5; ++i) Book(i);
  // It hangs for 0, and 1 and 2 were in the same call.
  calls_->Drive({Uid(0), Uid(1), Uid(2)});
  // Others have calls of their own meanwhile.
  Drive(3);
  ASSERT_THAT(made_, SizeIs(2));
  made_[1].AnswerAll();
  Run();
  EXPECT_TRUE(IsPrepared(3));
  made_[0].AnswerAll(absl::DeadlineExceededError("too slow"));
  Run();
  made_.clear();
  calls_->Drive({Uid(0), Uid(1), Uid(2), Uid(4)});
  ASSERT_THAT(made_, SizeIs(4));
  for (const MadeCall& call : made_) {
    ASSERT_THAT(call.claims, SizeIs(1));
    if (call.claims[0].uid != Uid(0)) call.AnswerAll();
  }
  Run();
  for (const int i : {1, 2, 4}) EXPECT_TRUE(IsPrepared(i)) << i;
  EXPECT_FALSE(IsPrepared(0));
}

// Such a driver was taken for one that hangs, and was asked for each claim by
// itself from then on.
TEST_F(DriverCallsTest, ADriverThatGivesUpByItselfHoldsUpNobody) {
  for (int i = 0; i < 3; ++i) Book(i);
  const std::vector<ClaimUid> claims = {Uid(0), Uid(1), Uid(2)};
  for (const absl::Status& own :
       {absl::DeadlineExceededError("the firmware is slow"),
        absl::UnavailableError("loading"),
        absl::ResourceExhaustedError("no more than one at a time"),
        absl::AbortedError("interrupted")}) {
    made_.clear();
    calls_->Drive(claims);
    ASSERT_THAT(made_, SizeIs(1)) << own;
    EXPECT_THAT(made_[0].claims, SizeIs(3));
    made_[0].AnswerAll(FromPeer(own));
    Run();
    const auto errors = calls_->Errors(claims);
    ASSERT_THAT(errors, SizeIs(3));
    EXPECT_FALSE(IsFromPeer(errors[0].status));
    EXPECT_EQ(errors[0].status.message(), own.message());
    // What it would mean if it were our word is not passed on.
    EXPECT_FALSE(absl::IsDeadlineExceeded(errors[0].status));
    EXPECT_FALSE(absl::IsAborted(errors[0].status));
    EXPECT_FALSE(errors[0].is_of_ledger);
  }
}

TEST_F(DriverCallsTest, AClaimThatIsGivenUpBeforeItsTurnIsUnprepared) {
  for (int i = 0; i < 5; ++i) {
    Book(i);
    Drive(i);
  }
  ASSERT_THAT(made_, SizeIs(4)) << "the fifth waits";
  Release(4);
  Drive(4);
  made_[0].AnswerAll();
  Run();
  ASSERT_THAT(made_, SizeIs(5));
  EXPECT_FALSE(made_[4].prepare);
  EXPECT_THAT(made_[4].Names(), ElementsAre("c4"));
}

TEST_F(DriverCallsTest, AClaimThatIsGivenUpDuringItsCallIsUnpreparedAfterIt) {
  Book(0);
  Drive(0);
  Release(0);
  Drive(0);
  ASSERT_THAT(made_, SizeIs(1));
  made_[0].AnswerAll();
  Run();
  ASSERT_THAT(made_, SizeIs(2));
  EXPECT_FALSE(made_[1].prepare);
  made_[1].AnswerAll();
  Run();
  EXPECT_FALSE(Knows(0));
}

// Released by an operator's word while the driver is at it: what it says is
// about the past. The next pod has the claim prepared as soon as the driver
// has done with that, and not before: it could undo it.
TEST_F(DriverCallsTest, AClaimThatComesAgainIsPreparedOnceItsOldCallHasEnded) {
  for (const bool unprepare_hangs : {true, false}) {
    for (const bool fails : {true, false}) {
      Book(0);
      Drive(0);
      if (unprepare_hangs) {
        made_.back().AnswerAll();
        Run();
      }
      Release(0);
      Drive(0);
      const MadeCall past = made_.back();
      ASSERT_EQ(past.prepare, !unprepare_hangs);
      Decide([](const state::State& state) {
        return claim::ForceRelease(state, {"ns", "c0"}, "the card was pulled");
      });
      Forget(0);
      ASSERT_FALSE(Knows(0));

      made_.clear();
      Book(0);
      Drive(0);
      EXPECT_THAT(made_, IsEmpty());
      past.AnswerAll(fails ? UnavailableError("no") : absl::OkStatus());
      Run();
      ASSERT_THAT(made_, SizeIs(1));
      EXPECT_TRUE(made_[0].prepare);
      EXPECT_FALSE(IsPrepared(0));
      EXPECT_THAT(calls_->Errors({Uid(0)}), IsEmpty());
      made_[0].AnswerAll();
      Run();
      EXPECT_TRUE(IsPrepared(0));
      Release(0);
      Drive(0);
      ASSERT_THAT(made_, SizeIs(2));
      made_[1].AnswerAll();
      Run();
      ASSERT_FALSE(Knows(0));
      Forget(0);
    }
  }
}

// The same when the answer is being written while the claim is released.
TEST_F(DriverCallsTest, AnAnswerOnItsWayToTheDiskIsForgottenToo) {
  Book(0);
  Drive(0);
  Release(0);
  Drive(0);
  made_[0].AnswerAll();
  while (loop_.RunPending() > 0) {
  }
  ledger_->Submit(
      [](const state::State& state) {
        return claim::ForceRelease(state, {"ns", "c0"}, "reason");
      },
      [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  Run();
  EXPECT_FALSE(Knows(0));
  EXPECT_FALSE(calls_->IsUnderWay(Uid(0)));
  Forget(0);
  made_.clear();
  Book(0);
  Drive(0);
  ASSERT_THAT(made_, SizeIs(1));
  made_[0].AnswerAll();
  Run();
  EXPECT_TRUE(IsPrepared(0));
}

TEST_F(DriverCallsTest, AClaimThatIsForgottenBeforeItsTurnIsNotAskedFor) {
  for (int i = 0; i < 5; ++i) {
    Book(i);
    Drive(i);
  }
  Release(4);
  Decide([](const state::State& state) {
    return claim::ForceRelease(state, {"ns", "c4"}, "reason");
  });
  EXPECT_FALSE(calls_->IsUnderWay(Uid(4)));
  made_[0].AnswerAll();
  Run();
  EXPECT_THAT(made_, SizeIs(4));
}

TEST_F(DriverCallsTest, NothingBeginsOnceItIsStopped) {
  for (int i = 0; i < 6; ++i) {
    Book(i);
    Drive(i);
  }
  calls_->Stop();
  for (std::size_t i = 0; i < 4; ++i) {
    made_[i].AnswerAll(CancelledError("stop"));
  }
  Run();
  EXPECT_THAT(made_, SizeIs(4));
}

}  // namespace
}  // namespace devmgr::pods
