// SPDX-License-Identifier: Apache-2.0
#include "claim/backing.h"

#include <algorithm>
#include <memory>

#include "claim/claim_fixture.h"
#include "claim/device_booking.h"
#include "claim/resource_names.h"

namespace devmgr::claim {
namespace {

using state::Backing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Candidates kNobody{};
constexpr Candidates kPluginOnly{.plugin = true};
constexpr Candidates kPluginAndClass{.plugin = true, .device_class = true};
constexpr Candidates kAwaited{.plugin_awaited = true, .device_class = true};
constexpr Candidates kClassOnly{.device_class = true};

class BackingTest : public ClaimTest {
 protected:
  /// Who serves the name once this was decided; empty: nobody has yet.
  std::string After(const Candidates& candidates,
                    Sharing sharing = Sharing::kOneOwner) {
    ledger_.Take(DecideBacking(state(), kGpu, candidates, sharing, 7));
    const auto* record = state().FindResource(kGpu);
    return record != nullptr ? std::string(state::BackingName(record->backing))
                             : "";
  }

  absl::Status Reserve(const Pod& pod, Sharing sharing = Sharing::kOneOwner) {
    device::Reservation planned;
    planned.pod = IdentityOf(pod).uid;
    planned.container = "main";
    planned.resource = kGpu;
    planned.devices = {{"0", {}}};
    const auto decision =
        ReserveDevices(state(), IdentityOf(pod), 1'000, {planned}, sharing);
    if (decision.ok()) ledger_.Take(*decision);
    return decision.status();
  }

  /// A pod whose GPU comes through its special claim `E`.
  Pod Mapped() {
    objects_ = SnapshotOf({ClaimForP("E")});
    return PodBuilder().Container("main").Requests(kGpu).SpecialClaim("E").Maps(
        "main", kGpu, "r");
  }
};

TEST_F(BackingTest, ThePluginThatComesFirstServesTheName) {
  EXPECT_EQ(After(kNobody), "");
  // A class is there on all nodes; it is its pods that make it the owner here.
  EXPECT_EQ(After(kClassOnly), "");
  EXPECT_EQ(After(kPluginAndClass), "DevicePlugin");
  EXPECT_EQ(state().FindResource(kGpu)->since_ms, 7);
  EXPECT_THAT(
      DecideBacking(state(), kGpu, kPluginOnly, Sharing::kOneOwner, 8).changes,
      IsEmpty());
}

// AL-080: a plugin that restarts keeps its name, and so do its devices.
TEST_F(BackingTest, AClassTakesOverWhenNoPluginIsAwaitedAndNobodyHolds) {
  ASSERT_EQ(After(kPluginAndClass), "DevicePlugin");
  const Pod pod = PodBuilder("Q").Container("main");
  ASSERT_THAT(Reserve(pod), IsOk());
  EXPECT_EQ(After(kAwaited), "DevicePlugin");
  EXPECT_EQ(After(kClassOnly), "DevicePlugin");
  ledger_.Take(FreeReserved(state(), IdentityOf(pod).uid, ""));
  EXPECT_EQ(After(kAwaited), "DevicePlugin");
  EXPECT_EQ(After(kNobody), "DevicePlugin");
  EXPECT_EQ(After(kClassOnly), "DeviceClass");
}

// AL-080, the kubelet's way.
TEST_F(BackingTest, AsItComesNobodyIsWaitedFor) {
  ASSERT_EQ(After(kPluginAndClass, Sharing::kAsItComes), "DevicePlugin");
  const Pod pod = PodBuilder("Q").Container("main");
  ASSERT_THAT(Reserve(pod), IsOk());
  EXPECT_EQ(After(kAwaited, Sharing::kAsItComes), "DeviceClass");
  EXPECT_EQ(After(kPluginAndClass, Sharing::kAsItComes), "DevicePlugin");
}

TEST_F(BackingTest, PodsWithClaimsMakeTheClassTheOwnerUntilTheyAreGone) {
  const Pod pod = Mapped();
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  EXPECT_EQ(state().FindResource(kGpu)->backing, Backing::kClass);
  EXPECT_THAT(state().ClassHoldersOf(kGpu, 9), ElementsAre(PodUid{"u-P"}));
  EXPECT_EQ(After(kPluginAndClass), "DeviceClass");
  AnswerAll();
  EXPECT_EQ(After(kPluginAndClass), "DeviceClass");
  // A claim that is being unprepared is held.
  ASSERT_TRUE(Release(pod));
  EXPECT_EQ(After(kPluginAndClass), "DeviceClass");
  AnswerAll();
  EXPECT_THAT(state().ClassHoldersOf(kGpu, 9), IsEmpty());
  EXPECT_EQ(After(kPluginAndClass), "DevicePlugin");
}

// Invariant 8: names come with pods, and must go with them.
TEST_F(BackingTest, ANameThatOnlyClaimsHadIsForgottenWithThem) {
  const Pod pod = Mapped();
  ASSERT_EQ(Prepare(pod).kind, Kind::kAdmit);
  AnswerAll();
  EXPECT_EQ(After(kNobody), "DeviceClass");
  ASSERT_TRUE(Release(pod));
  AnswerAll();
  EXPECT_EQ(After(kClassOnly), "DeviceClass");
  EXPECT_EQ(After(kNobody), "");
}

TEST_F(BackingTest, NobodyGetsAPluginsDeviceWhileAnotherHoldsAClaimForIt) {
  ASSERT_EQ(Prepare(Mapped()).kind, Kind::kAdmit);
  const Pod other = PodBuilder("Q").Container("main");
  EXPECT_THAT(Reserve(other),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("'u-P'")));
  EXPECT_THAT(Reserve(other, Sharing::kAsItComes), IsOk());
}

TEST_F(BackingTest, AMappedPodWaitsForThoseWhoHoldThePluginsDevices) {
  ASSERT_EQ(After(kPluginOnly), "DevicePlugin");
  ASSERT_THAT(Reserve(PodBuilder("Q").Container("main")), IsOk());
  const Pod pod = Mapped();
  const Verdict verdict = Prepare(pod);
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ResourceHeldByPlugin");
  EXPECT_THAT(verdict.message, HasSubstr("ns/Q"));
  EXPECT_THAT(verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kPod, "ns/Q"}));
  options_.sharing = Sharing::kAsItComes;
  EXPECT_EQ(Prepare(pod).kind, Kind::kAdmit);
  // It has what it has, whatever the rule is now.
  options_.sharing = Sharing::kOneOwner;
  EXPECT_EQ(Prepare(pod).kind, Kind::kAdmit);
}

TEST_F(BackingTest, AContainerWithoutPodHoldsThePluginsDevicesToo) {
  ASSERT_EQ(After(kPluginOnly), "DevicePlugin");
  state::ForeignHolderRecord holder;
  holder.id.value = "c1";
  holder.pod_uid.value = "u-stray";
  holder.devices = {{kGpu, "0"}};
  const auto put = [&](const PodUid& pod) {
    holder.pod_uid = pod;
    state::Decision decision;
    decision.kind = state::DecisionKind::kHolderFound;
    decision.changes = {state::PutHolder{
        std::make_shared<const state::ForeignHolderRecord>(holder)}};
    ledger_.Take(decision);
  };
  put({"u-stray"});
  EXPECT_EQ(After(kClassOnly), "DevicePlugin");
  const Verdict verdict = Prepare(Mapped());
  EXPECT_EQ(verdict.reason, "ResourceHeldByPlugin");
  EXPECT_THAT(verdict.message, HasSubstr("foreign container c1"));
  EXPECT_THAT(verdict.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  // It does not keep its own pod from it.
  put({"u-P"});
  EXPECT_EQ(Prepare(Mapped()).kind, Kind::kAdmit);
}

// AL-080: or by an operator's word.
TEST_F(BackingTest, AnOperatorGivesTheNameAwayAndItStaysThere) {
  ASSERT_EQ(After(kPluginOnly), "DevicePlugin");
  ASSERT_THAT(Reserve(PodBuilder("Q").Container("main")), IsOk());
  const auto decision =
      HandOverByOperator(state(), kGpu, Backing::kClass, "moving to DRA", 9);
  ASSERT_THAT(decision, IsOk());
  EXPECT_THAT(decision->message, HasSubstr("moving to DRA"));
  ledger_.Take(*decision);
  // The plugin is there, and has holders: it stays with the class.
  EXPECT_EQ(After(kPluginAndClass), "DeviceClass");
  EXPECT_EQ(After(kNobody), "DeviceClass");
  EXPECT_EQ(state().FindResource(kGpu)->since_ms, 9);
  // What is held one way is not given the other way.
  EXPECT_EQ(Prepare(Mapped()).reason, "ResourceHeldByPlugin");
  ledger_.Take(FreeReserved(state(), PodUid{"u-Q"}, ""));
  EXPECT_THAT(Reserve(PodBuilder("R").Container("main")),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("moving to DRA")));
  EXPECT_EQ(Prepare(Mapped()).kind, Kind::kAdmit);
}

TEST_F(BackingTest, AnOperatorTakesHisWordBack) {
  ASSERT_EQ(After(kPluginOnly), "DevicePlugin");
  ledger_.Take(
      *HandOverByOperator(state(), kGpu, Backing::kClass, "moving", 9));
  ASSERT_EQ(After(kPluginAndClass), "DeviceClass");
  ledger_.Take(*HandOverByOperator(state(), kGpu, std::nullopt, "done", 10));
  EXPECT_EQ(state().FindResource(kGpu)->backing, Backing::kClass);
  EXPECT_EQ(state().FindResource(kGpu)->by_operator, "");
  EXPECT_EQ(After(kPluginAndClass), "DevicePlugin");
}

TEST_F(BackingTest, AnOperatorGivesANameToThePluginAheadOfTime) {
  ledger_.Take(
      *HandOverByOperator(state(), kGpu, Backing::kPlugin, "it comes", 9));
  EXPECT_EQ(After(kClassOnly), "DevicePlugin");
  // The same again changes nothing.
  EXPECT_THAT(
      HandOverByOperator(state(), kGpu, Backing::kPlugin, "it comes", 10)
          ->changes,
      IsEmpty());
}

TEST_F(BackingTest, AnOperatorGivesAReasonAndAName) {
  EXPECT_THAT(
      HandOverByOperator(state(), kGpu, Backing::kClass, "", 9),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("reason")));
  EXPECT_THAT(HandOverByOperator(state(), "cpu", Backing::kClass, "r", 9),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'cpu'")));
  EXPECT_THAT(HandOverByOperator(state(), kGpu, std::nullopt, "r", 9),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(kGpu)));
}

TEST_F(BackingTest, WhyNoPluginServesANameIsSaid) {
  EXPECT_EQ(WhyNotServed(nullptr, true), "");
  EXPECT_EQ(WhyNotServed(nullptr, false), "no device plugin serves it");
  state::ResourceRecord record;
  record.backing = Backing::kPlugin;
  EXPECT_EQ(WhyNotServed(&record, false), "") << "it may come back";
  record.backing = Backing::kClass;
  EXPECT_EQ(WhyNotServed(&record, false), "a device class serves it");
  EXPECT_THAT(WhyNotServed(&record, true), HasSubstr("until they have ended"));
  record.by_operator = "moving to DRA";
  for (const bool has_plugin : {false, true}) {
    EXPECT_THAT(WhyNotServed(&record, has_plugin), HasSubstr("moving to DRA"));
  }
}

}  // namespace
}  // namespace devmgr::claim
