// SPDX-License-Identifier: Apache-2.0
#include "claim/prepare_intent.h"
#include "fsck/fsck_fixture.h"

namespace devmgr::fsck {
namespace {

using state::DriverPhase;
using state::PodPhase;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTpu[] = "example.com/tpu";

/// The pod holds the TPUs 2 and 10 too, as one CDI device, and the plugin is
/// there.
class DeviceFsckTest : public FsckTest {
 protected:
  DeviceFsckTest() {
    state::PodRecord pod = Pod();
    state::DeviceHold hold;
    hold.container = "c";
    hold.resource = kTpu;
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{"2", {}}, {"10", {}}};
    hold.edits.cdi_devices = {"example.com/tpu=pair"};
    pod.holds = {hold};
    PutReady(pod);
    AddSpec("/cdi/tpu.json", kTpu, {"pair"});
    running_.plugins[kTpu] = {{"2", device::Health::kHealthy},
                              {"10", device::Health::kHealthy}};
  }

  /// With the answer that follows from what it holds.
  void PutReady(state::PodRecord pod) {
    pod.answer = *claim::AnswerFor(
        pod, [this](const ClaimUid& uid) { return state_.FindClaim(uid); });
    Put(pod);
  }
  void PutPhase(PodPhase phase) {
    state::PodRecord pod = Pod();
    pod.phase = phase;
    pod.answer = nullptr;
    Put(pod);
  }
};

TEST_F(DeviceFsckTest, FindsNothingOnAHealthyNode) {
  EXPECT_THAT(Run(), IsEmpty());
  EXPECT_THAT(RunChecks({state_, kBoot, Past(), nullptr, nullptr}), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsAnAnswerThatIsNotThatOfThePlugins) {
  state::PodRecord pod = Pod();
  pod.holds[0].edits.env = {{"TPUS", "2,10"}};
  Put(pod);
  EXPECT_EQ(Only("answer").shown.object, "pod/default/p");
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsHeldDevicesThatAreNotListedAnyMore) {
  running_.plugins[kTpu].clear();
  const Finding finding = Only("unlisted-device");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message,
              HasSubstr("2 devices of 'example.com/tpu' that its plugin does "
                        "not list any more: '2', '10'"));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
}

TEST_F(DeviceFsckTest, FindsPodsThatRunOnUnhealthyDevices) {
  running_.plugins[kTpu]["10"] = device::Health::kUnhealthy;
  const Finding finding = Only("unhealthy-device");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message, HasSubstr("calls unhealthy: '10'"));
}

TEST_F(DeviceFsckTest, FindsHardwareThatTwoPodsHold) {
  state::PodRecord pod = Pod();
  pod.holds[0].hardware.Add(device::PciIdentity("3b:00.0"));
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
  state::ForeignHolderRecord holder;
  holder.id.value = "0123456789abcdef";
  holder.cdi_devices = {"vendor.com/card=0"};
  holder.hardware.Add(device::PciIdentity("0000:3B:00.0"));
  state_.Put(std::make_shared<const state::ForeignHolderRecord>(holder));
  const Finding finding = Only("shared-hardware");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message,
              AllOf(HasSubstr("PCI address 0000:3b:00.0 by example.com/tpu"),
                    HasSubstr("foreign container 0123456789abc")));
}

TEST_F(DeviceFsckTest, FindsHardwareWithTwoNamesBeforeAPodAsks) {
  running_.overlaps = {
      {"UUID 1", {"d.example.com/pool/gpu-0", "example.com/tpu/2"}}};
  const Finding finding = Only("shared-hardware");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "hardware/UUID 1");
  EXPECT_THAT(finding.shown.message,
              HasSubstr("is offered as d.example.com/pool/gpu-0, "
                        "example.com/tpu/2"));
}

TEST_F(DeviceFsckTest, FindsPluginsThatAreAway) {
  running_.plugins.clear();
  const Finding finding = Only("absent-plugin");
  EXPECT_FALSE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "resource/example.com/tpu");
  EXPECT_THAT(finding.shown.message, HasSubstr("'default/p'"));
}

TEST_F(DeviceFsckTest, NobodyIsMissedWhoHoldsNothing) {
  auto resource = std::make_shared<state::ResourceRecord>();
  resource->name = "example.com/other";
  state_.Put(resource);
  EXPECT_THAT(Run(), IsEmpty());
}

// They are free in a moment, and no plugin is needed for that.
TEST_F(DeviceFsckTest, WhatAPodGivesUpIsNotLookedAt) {
  state::ClaimRecord claim = Held();
  claim.drivers[kDriver].phase = DriverPhase::kUnpreparing;
  Put(claim);
  PutPhase(PodPhase::kReleasing);
  running_.plugins.clear();
  specs_.files.pop_back();
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, WhatIsOnlyReservedIsNotLookedAt) {
  state::PodRecord pod = Pod();
  pod.claims.clear();
  pod.holds[0].phase = device::ReservationPhase::kReserved;
  pod.holds[0].edits = {};
  Put(pod);
  PutPhase(PodPhase::kAllocating);
  state_.Erase(ClaimUid{kHeld});
  specs_.files.erase(specs_.files.begin());
  running_.plugins.clear();
  EXPECT_THAT(Run(), IsEmpty());
  // Of another pod than one that is being allocated for it is our bug.
  PutPhase(PodPhase::kAdmitted);
  EXPECT_THAT(Only("invariant").shown.message,
              HasSubstr("for which its plugin has not answered"));
}

TEST_F(DeviceFsckTest, FindsAMissingSpecOfAPluginsAnswer) {
  specs_.files.pop_back();
  const Finding finding = Only("missing-spec");
  EXPECT_TRUE(finding.shown.error);
  EXPECT_EQ(finding.shown.object, "pod/default/p");
  EXPECT_THAT(finding.shown.message, HasSubstr("example.com/tpu=pair"));
  EXPECT_EQ(finding.shown.repair, "");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(finding.repair));
  EXPECT_THAT(finding.shown.hint, HasSubstr("restart"));
}

TEST_F(DeviceFsckTest, MissesNoSpecOfAnAnswerOfAnotherBoot) {
  specs_.files.clear();
  PutAllIntoAnotherBoot();
  EXPECT_THAT(Run(), IsEmpty());
}

// A driver and a plugin of one vendor may share kinds, and specs.
TEST_F(DeviceFsckTest, TheSpecOfADeviceInUseIsNoOrphan) {
  AddSpec("/cdi/x.json", kKind, {std::string(kStranger) + "-gpu-0"});
  AddSpec("/cdi/y.json", kKind, {std::string(kReleased) + "-gpu-0"});
  EXPECT_THAT(Run(), SizeIs(2));
  state::PodRecord pod = Pod();
  pod.holds[0].edits.cdi_devices = {
      kKind + ("=" + std::string(kStranger)) + "-gpu-0",
      kKind + ("=" + std::string(kReleased)) + "-gpu-0"};
  PutReady(pod);
  EXPECT_THAT(Run(), IsEmpty());
}

TEST_F(DeviceFsckTest, FindsPodsThatTheSourceLostWhileTheyAreAllocatedFor) {
  state::PodRecord pod = Pod();
  pod.uid = {"late"};
  pod.name = {"default", "late"};
  pod.phase = PodPhase::kAllocating;
  pod.answer = nullptr;
  pod.claims.clear();
  pod.holds[0].phase = device::ReservationPhase::kReserved;
  pod.holds[0].devices = {{"3", {}}};
  Put(pod);
  EXPECT_EQ(Only("gone-pod").shown.object, "pod/default/late");
}

}  // namespace
}  // namespace devmgr::fsck
