// SPDX-License-Identifier: Apache-2.0
//
// How decisions come back to their callers, and what a batch changed.
#include "ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "common/status.h"
#include "ledger/changes.h"
#include "state/record_builders.h"
#include "support/status_matchers.h"

namespace devmgr::ledger {
namespace {

using state::MakePod;
using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

state::Decision PutPod(const state::PodRecord& pod) {
  state::Decision decision;
  decision.changes.push_back(
      state::PutPod{std::make_shared<const state::PodRecord>(pod)});
  return decision;
}

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    auto executor = std::make_unique<ManualExecutor>();
    ledger_loop_ = executor.get();
    ledger_ = std::make_unique<Ledger>(
        checkpoint::NewInMemoryStore(), &state_, [] { return 1'000; },
        [this](const state::Batch& batch) { published_.push_back(batch.seq); },
        std::move(executor));
  }

  state::State state_;
  std::vector<std::uint64_t> published_;
  std::vector<std::string> heard_;
  ManualExecutor loop_;
  ManualExecutor* ledger_loop_ = nullptr;
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(LedgerTest, AResultComesBackOnTheCallersExecutorOnceItIsPublished) {
  using Named = Ledger::Decided<std::string>;
  ledger_->Submit<std::string>(
      [](const state::State&) -> absl::StatusOr<Named> {
        return Named{PutPod(MakePod(state::kPodA, "a", PodPhase::kWaiting)),
                     "a"};
      },
      loop_,
      [this](const absl::StatusOr<std::string>& name) {
        ASSERT_THAT(name.status(), IsOk());
        heard_.push_back(*name);
      });
  ledger_loop_->RunPending();
  EXPECT_THAT(published_, ElementsAre(1));
  EXPECT_THAT(heard_, IsEmpty());
  loop_.RunPending();
  EXPECT_THAT(heard_, ElementsAre("a"));
}

TEST_F(LedgerTest, ARefusalComesBackInsteadOfTheResult) {
  using Named = Ledger::Decided<std::string>;
  ledger_->Submit<std::string>(
      [](const state::State&) -> absl::StatusOr<Named> {
        return NotFoundError("pod 'b' is not known");
      },
      loop_,
      [this](const absl::StatusOr<std::string>& name) {
        EXPECT_THAT(name.status(), StatusIs(absl::StatusCode::kNotFound,
                                            HasSubstr("pod 'b'")));
        heard_.push_back("refused");
      });
  ledger_loop_->RunPending();
  loop_.RunPending();
  EXPECT_THAT(heard_, ElementsAre("refused"));
  EXPECT_THAT(published_, IsEmpty());
}

TEST_F(LedgerTest, WhatIsSubmittedToAClosedLedgerIsCancelled) {
  ledger_->Stop();
  ledger_->Submit(
      [](const state::State&) -> absl::StatusOr<state::Decision> {
        return PutPod(MakePod(state::kPodA, "a", PodPhase::kWaiting));
      },
      loop_,
      [this](const absl::Status& status) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
        heard_.push_back("cancelled");
      });
  loop_.RunPending();
  EXPECT_THAT(heard_, ElementsAre("cancelled"));
}

/// A store whose objects fail when they are told to.
class StoreWithObjects final : public checkpoint::LedgerStore {
 public:
  absl::StatusOr<state::State> Load() override { return state_; }
  absl::Status Append(std::span<const state::Batch> batches) override {
    for (const state::Batch& batch : batches) {
      EXPECT_THAT(state::Apply(state_, batch), IsOk());
    }
    return absl::OkStatus();
  }
  absl::StatusOr<state::State> Reopen() override {
    ++reopened;
    if (broken) return UnavailableError("the disk is full");
    objects_failed = false;
    return state_;
  }
  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t,
                                                    std::size_t) override {
    return std::vector<state::Batch>();
  }
  void OpenObjects(
      std::function<void(const absl::Status&)> on_failed) override {
    failed_ = std::move(on_failed);
  }
  bool ObjectsFailed() const override { return objects_failed; }
  void CloseObjects() override { failed_ = nullptr; }

  void FailObjects() {
    objects_failed = true;
    failed_(UnavailableError("no space left"));
  }
  bool objects_open() const { return failed_ != nullptr; }

  bool broken = false;
  bool objects_failed = false;
  int reopened = 0;

 private:
  state::State state_;
  std::function<void(const absl::Status&)> failed_;
};

class LedgerWithObjectsTest : public testing::Test {
 protected:
  LedgerWithObjectsTest() {
    auto store = std::make_unique<StoreWithObjects>();
    store_ = store.get();
    auto executor = std::make_unique<ManualExecutor>();
    loop_ = executor.get();
    ledger_ = std::make_unique<Ledger>(
        std::move(store), &state_, [] { return 1'000; },
        [](const state::Batch&) {}, std::move(executor),
        [this](const absl::Status& health) {
          health_.push_back(MessageOf(health));
        });
    ledger_->OpenObjects();
  }
  absl::Status Decide(const PodUid& uid) {
    absl::Status result = UnavailableError("not decided");
    ledger_->Submit(
        [&](const state::State&) -> absl::StatusOr<state::Decision> {
          return PutPod(MakePod(uid, uid.value, PodPhase::kWaiting));
        },
        [&](const absl::Status& status) { result = status; });
    loop_->RunPending();
    return result;
  }

  state::State state_;
  std::vector<std::string> health_;
  StoreWithObjects* store_ = nullptr;
  ManualExecutor* loop_ = nullptr;
  std::unique_ptr<Ledger> ledger_;
};

TEST_F(LedgerWithObjectsTest, AFailedWriteOfObjectsHasTheStoreOpenedAgain) {
  store_->FailObjects();
  EXPECT_EQ(store_->reopened, 0);
  loop_->RunPending();
  EXPECT_EQ(store_->reopened, 1);
  EXPECT_THAT(health_, ElementsAre("no space left", ""));
  EXPECT_THAT(ledger_->health(), IsOk());
  EXPECT_THAT(Decide(state::kPodA), IsOk());
}

TEST_F(LedgerWithObjectsTest, TriesAgainWithEachCallAndEachDecision) {
  store_->broken = true;
  store_->FailObjects();
  loop_->RunPending();
  EXPECT_FALSE(ledger_->health().ok());
  store_->FailObjects();
  loop_->RunPending();
  EXPECT_EQ(store_->reopened, 2);
  EXPECT_EQ(Decide(state::kPodA).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->reopened, 3);
  store_->broken = false;
  // What a call asks for comes after the decision that has done it.
  ledger_->Submit([](const state::State&) -> absl::StatusOr<state::Decision> {
    return PutPod(MakePod(state::kPodA, "a", PodPhase::kWaiting));
  });
  store_->FailObjects();
  loop_->RunPending();
  EXPECT_EQ(store_->reopened, 4);
  EXPECT_THAT(ledger_->health(), IsOk());
  EXPECT_THAT(Decide(state::kPodB), IsOk());
}

TEST_F(LedgerWithObjectsTest, ClosesObjectsWhenItStops) {
  EXPECT_TRUE(store_->objects_open());
  ledger_->Stop();
  EXPECT_FALSE(store_->objects_open());
}

TEST(ChangesTest, HasEachRecordAsItWasAndAsItIs) {
  state::State before;
  before.Put(std::make_shared<const state::PodRecord>(
      MakePod(state::kPodA, "a", PodPhase::kReady)));
  state::Batch batch{1, 1'000, {}, {}};
  batch.decision.changes = {
      state::PutPod{std::make_shared<const state::PodRecord>(
          MakePod(state::kPodA, "a", PodPhase::kReleasing))},
      state::PutClaim{std::make_shared<const state::ClaimRecord>(
          state::MakeClaim(state::DriverPhase::kPrepared, {state::kPodA}))},
      state::ErasePod{state::kPodB}};
  const Changes changes = ChangesOf(before, batch);
  ASSERT_EQ(changes.pods.size(), 2u);
  EXPECT_EQ(changes.pods[0].before->phase, PodPhase::kReady);
  EXPECT_EQ(changes.pods[0].now->phase, PodPhase::kReleasing);
  EXPECT_TRUE(BeginsRelease(changes.pods[0]));
  EXPECT_EQ(changes.pods[1].before, nullptr);
  EXPECT_EQ(changes.pods[1].now, nullptr);
  EXPECT_FALSE(BeginsRelease(changes.pods[1]));
  ASSERT_EQ(changes.claims.size(), 1u);
  EXPECT_EQ(changes.claims[0].before, nullptr);
  EXPECT_EQ(changes.claims[0].now->uid, state::kGpu);
  // The pod that is Ready has a claim for a resource, and gives it up.
  ASSERT_EQ(changes.claimed.size(), 1u);
  EXPECT_THAT(changes.claimed[0].taken, IsEmpty());
  EXPECT_THAT(changes.claimed[0].given_up, ElementsAre("example.com/gpu"));
  EXPECT_THAT(changes.resources, IsEmpty());
  EXPECT_THAT(changes.holders, IsEmpty());
}

}  // namespace
}  // namespace devmgr::ledger
