// SPDX-License-Identifier: Apache-2.0
#include "claim/pre_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

#include "state/record_builders.h"
#include "support/status_matchers.h"

namespace devmgr::claim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PreStartTest : public ::testing::Test {
 protected:
  /// A pod whose one container holds a device of the resource.
  void Hold(const std::string& name, const std::string& device,
            device::ReservationPhase phase) {
    state::PodRecord pod = state::MakePod(PodUid{name}, name,
                                          phase == Phase::kCommitted
                                              ? state::PodPhase::kReady
                                              : state::PodPhase::kAllocating);
    pod.claims.clear();
    pod.holds = {state::MakeHold({device}, phase)};
    resource_ = pod.holds[0].resource;
    state_.Put(std::make_shared<const state::PodRecord>(std::move(pod)));
  }
  void Commit(const state::Decision& decision) {
    state::Batch batch;
    batch.seq = state_.seq + 1;
    batch.decision = decision;
    ASSERT_THAT(state::Apply(state_, batch), IsOk());
  }
  bool IsAsked(const std::string& name) {
    return state_.FindPod(PodUid{name})->holds[0].pre_start;
  }

  using Phase = device::ReservationPhase;
  state::State state_;
  ResourceName resource_;
};

TEST_F(PreStartTest, AllThatIsHeldOfTheResourceKeepsIt) {
  Hold("a", "0", Phase::kCommitted);
  Hold("b", "1", Phase::kCommitted);
  const state::Decision decision = RecordPreStart(state_, resource_, true);
  EXPECT_THAT(decision.pods, ElementsAre(ObjectName{"default", "a"},
                                         ObjectName{"default", "b"}));
  Commit(decision);
  EXPECT_TRUE(IsAsked("a"));
  EXPECT_TRUE(IsAsked("b"));
  EXPECT_THAT(RecordPreStart(state_, resource_, true).changes, IsEmpty());
  Commit(RecordPreStart(state_, resource_, false));
  EXPECT_FALSE(IsAsked("a"));
}

TEST_F(PreStartTest, OtherResourcesAndOpenAnswersStay) {
  Hold("asked", "0", Phase::kReserved);
  EXPECT_THAT(RecordPreStart(state_, resource_, true).changes, IsEmpty());
  Hold("a", "1", Phase::kCommitted);
  EXPECT_THAT(
      RecordPreStart(state_, ResourceName("example.com/other"), true).changes,
      IsEmpty());
  EXPECT_EQ(RecordPreStart(state_, resource_, true).changes.size(), 1u);
}

}  // namespace
}  // namespace devmgr::claim
