// SPDX-License-Identifier: Apache-2.0
#include <devmgr/status_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace devmgr {
namespace {

using ::testing::ElementsAre;

/// The words of all values, from 0.
template <typename Enum>
std::vector<std::string_view> Words(std::string_view (*name)(Enum)) {
  std::vector<std::string_view> words;
  for (int i = 0; !name(static_cast<Enum>(i)).empty(); ++i) {
    words.push_back(name(static_cast<Enum>(i)));
  }
  return words;
}

TEST(StatusNamesTest, AreTheWordsOfTheCommandLine) {
  EXPECT_EQ(PodStateName(PodState::kWaiting), "Waiting");
  EXPECT_EQ(PodStateName(PodState::kPreparing), "Preparing");
  EXPECT_EQ(PodStateName(PodState::kReady), "Ready");
  EXPECT_EQ(PodStateName(PodState::kRejected), "Rejected");
  EXPECT_EQ(PodStateName(PodState::kReleasing), "Releasing");
  EXPECT_EQ(PodStateName(PodState::kEvicting), "Evicting");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kClaim), "claim");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kDriver), "driver");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kPod), "pod");
  EXPECT_EQ(WaitingForKindName(WaitingFor::Kind::kResource), "resource");
}

// They are on the wire and in what the command line prints: never change one.
TEST(StatusNamesTest, OfClaimsAndDecisionsStay) {
  EXPECT_THAT(Words(ClaimStateName),
              ElementsAre("Preparing", "Prepared", "Unpreparing"));
  EXPECT_THAT(Words(DecisionKindName),
              ElementsAre("Identity", "Seen", "Reject", "PrepareIntent",
                          "PrepareResult", "UnprepareIntent", "UnprepareResult",
                          "Release", "Repair", "Recovered", "Reserve",
                          "Allocated", "Unreserve", "Backing", "InitEnded",
                          "Debt", "Forgiven", "Health", "Source", "HolderFound",
                          "HolderGone", "HolderFreed", "Wanted", "Unwanted",
                          "ClaimsAllocated", "ClaimsReleased", "SlicesDeleted",
                          "Evict", "Evicted", "Recheck", "Imported", "Shown",
                          "Authority", "Replaced", "Other"));
}

TEST(StatusNamesTest, OfDevicesAndResourcesStay) {
  EXPECT_THAT(Words(DeviceHealthName),
              ElementsAre("Healthy", "Unhealthy", "Unknown"));
  EXPECT_THAT(Words(ResourceOwnerName),
              ElementsAre("DevicePlugin", "DeviceClass", "Automatic"));
  EXPECT_THAT(Words(ResourceStateName),
              ElementsAre("Unknown", "Restored", "Connected", "Live", "Stopped",
                          "Forgotten"));
}

TEST(StatusNamesTest, OfPluginsStay) {
  EXPECT_THAT(Words(PluginKindName), ElementsAre("dra", "device-plugin"));
  EXPECT_THAT(Words(PluginStateName),
              ElementsAre("Connecting", "Asking", "Connected", "Live",
                          "Disconnected", "Closed"));
  EXPECT_THAT(Words(PluginViaName), ElementsAre("socket", "directory"));
  EXPECT_THAT(Words(PluginBreakerName),
              ElementsAre("Closed", "Open", "HalfOpen"));
}

}  // namespace
}  // namespace devmgr
