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
