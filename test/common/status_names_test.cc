// SPDX-License-Identifier: Apache-2.0
#include <devmgr/status_types.h>
#include <gtest/gtest.h>

namespace devmgr {
namespace {

TEST(StatusNamesTest, AreTheWordsOfTheCommandLine) {
  EXPECT_EQ(PodStateName(PodState::kWaiting), "Waiting");
  EXPECT_EQ(PodStateName(PodState::kPreparing), "Preparing");
  EXPECT_EQ(PodStateName(PodState::kReady), "Ready");
  EXPECT_EQ(PodStateName(PodState::kRejected), "Rejected");
  EXPECT_EQ(PodStateName(PodState::kReleasing), "Releasing");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kClaim), "claim");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kDriver), "driver");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kPod), "pod");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kResource), "resource");
}

}  // namespace
}  // namespace devmgr
