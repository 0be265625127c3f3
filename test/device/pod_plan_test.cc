// SPDX-License-Identifier: Apache-2.0
#include "device/pod_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "support/status_matchers.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Ids = std::vector<DeviceId>;

class DevicePlanTest : public testing::Test {
 protected:
  void Offer(const std::string& resource, std::vector<Device> list) {
    inventories_.insert_or_assign(resource, Live(std::move(list)));
  }
  void Hold(const Reservation& reservation) {
    EXPECT_THAT(reservations_.Add(reservation), IsOk());
  }
  void Want(const std::string& container, ContainerKind kind,
            const std::string& resource, std::int64_t count) {
    input_.needs.push_back({container, kind, resource, count});
  }
  void Want(const std::string& container, const std::string& resource,
            std::int64_t count) {
    Want(container, ContainerKind::kApp, resource, count);
  }
  PodPlan Plan() const { return PlanPod(input_); }

  /// A complete plan, by container and resource.
  std::map<NeedKey, Ids> Planned() const {
    const PodPlan plan = Plan();
    EXPECT_TRUE(plan.Complete());
    std::map<NeedKey, Ids> ids;
    for (const Reservation& one : plan.reservations) {
      ids[{one.container, one.resource}] = IdsOf(one.devices);
    }
    return ids;
  }
  Shortage OnlyShortage() const {
    const PodPlan plan = Plan();
    EXPECT_THAT(plan.shortages, SizeIs(1));
    EXPECT_THAT(plan.reservations, IsEmpty());
    EXPECT_THAT(plan.questions, IsEmpty());
    return plan.shortages.empty() ? Shortage{} : plan.shortages[0];
  }

  InventoryMap inventories_;
  ReservationTable reservations_;
  PlanInput input_{.pod = {"P"},
                   .needs = {},
                   .inventories = inventories_,
                   .reservations = reservations_};
};

/// `d1` to `d<n>` without nodes.
std::vector<Device> DevicesFromOne(int n) {
  std::vector<Device> list;
  for (int i = 1; i <= n; ++i) {
    list.push_back(Healthy("d" + std::to_string(i)));
  }
  return list;
}

TEST_F(DevicePlanTest, PlansAllResourcesOfAPod) {  // DP-059 to DP-061
  Offer("r1", DevicesFromOne(2));
  Offer("r2", DevicesFromOne(2));
  Want("app", "r1", 2);
  Want("app", "r2", 1);
  EXPECT_EQ(Planned()[NeedKey("app", "r1")], Ids({"d1", "d2"}));
  EXPECT_EQ(Planned()[NeedKey("app", "r2")], Ids({"d1"}));
  for (const Reservation& one : Plan().reservations) Hold(one);

  input_.pod = {"Q"};
  input_.needs.clear();
  Want("app", "r1", 1);
  const Shortage shortage = OnlyShortage();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kTooFewFree);
  EXPECT_THAT(shortage.holders, ElementsAre(PodUid{"P"}));
  EXPECT_THAT(KubeletShortageText(shortage),
              HasSubstr("Requested: 1, Available: 0"));

  input_.needs.clear();
  Want("app", "r2", 1);
  EXPECT_EQ(Planned()[NeedKey("app", "r2")], Ids({"d2"}));
}

TEST_F(DevicePlanTest, ReservationsAreInOrderOfTheNeeds) {
  Offer("r1", DevicesFromOne(3));
  Offer("r2", DevicesFromOne(3));
  Want("init", ContainerKind::kInit, "r2", 1);
  Want("app", "r1", 1);
  Want("app", "r2", 1);
  const std::vector<Reservation> plan = Plan().reservations;
  ASSERT_THAT(plan, SizeIs(3));
  EXPECT_EQ(plan[0].container, "init");
  EXPECT_EQ(plan[0].kind, ContainerKind::kInit);
  EXPECT_EQ(plan[1].resource, "r1");
  EXPECT_EQ(plan[2].resource, "r2");
  EXPECT_EQ(plan[2].pod, PodUid{"P"});
  EXPECT_EQ(plan[2].phase, ReservationPhase::kReserved);
}

TEST_F(DevicePlanTest, InitContainersHandOn) {  // DP-062
  Offer("r1", DevicesFromOne(2));
  Want("init1", ContainerKind::kInit, "r1", 1);
  Want("init2", ContainerKind::kInit, "r1", 2);
  Want("app1", "r1", 1);
  Want("app2", "r1", 1);
  auto planned = Planned();
  EXPECT_EQ(planned[NeedKey("init1", "r1")], Ids({"d1"}));
  EXPECT_EQ(planned[NeedKey("init2", "r1")], Ids({"d1", "d2"}));
  EXPECT_EQ(planned[NeedKey("app1", "r1")], Ids({"d1"}));
  EXPECT_EQ(planned[NeedKey("app2", "r1")], Ids({"d2"}));
}

TEST_F(DevicePlanTest, SidecarsAndAppContainersDoNotShare) {  // DP-063
  Offer("r1", DevicesFromOne(6));
  Want("init", ContainerKind::kInit, "r1", 3);
  Want("sidecar1", ContainerKind::kSidecar, "r1", 1);
  Want("sidecar2", ContainerKind::kSidecar, "r1", 2);
  Want("app1", "r1", 1);
  Want("app2", "r1", 2);
  auto planned = Planned();
  EXPECT_EQ(planned[NeedKey("init", "r1")], Ids({"d1", "d2", "d3"}));
  EXPECT_EQ(planned[NeedKey("sidecar1", "r1")], Ids({"d1"}));
  EXPECT_EQ(planned[NeedKey("sidecar2", "r1")], Ids({"d2", "d3"}));
  EXPECT_EQ(planned[NeedKey("app1", "r1")], Ids({"d4"}));
  EXPECT_EQ(planned[NeedKey("app2", "r1")], Ids({"d5", "d6"}));
}

TEST_F(DevicePlanTest, AnInitContainerAfterASidecarCannotHaveItsDevices) {
  Offer("r1", DevicesFromOne(2));
  Want("init1", ContainerKind::kInit, "r1", 1);
  Want("sidecar", ContainerKind::kSidecar, "r1", 1);
  Want("init2", ContainerKind::kInit, "r1", 1);
  EXPECT_EQ(Planned()[NeedKey("init2", "r1")], Ids({"d2"}));
}

TEST_F(DevicePlanTest, APodGetsAllOrNothing) {  // W-11
  Offer("r1", DevicesFromOne(2));
  Offer("r2", DevicesFromOne(1));
  Offer("r3", DevicesFromOne(1));
  input_.asking = {"r1"};
  Want("app1", "r1", 1);
  Want("app1", "r2", 1);
  Want("app2", "r2", 1);
  Want("app2", "r3", 2);
  const PodPlan plan = Plan();
  EXPECT_THAT(plan.reservations, IsEmpty());
  EXPECT_THAT(plan.questions, IsEmpty()) << "no plugin is asked in vain";
  ASSERT_THAT(plan.shortages, SizeIs(2));
  EXPECT_EQ(plan.shortages[0].resource, "r2");
  EXPECT_EQ(plan.shortages[0].container, "app2");
  EXPECT_EQ(plan.shortages[1].resource, "r3");
}

TEST_F(DevicePlanTest, ContainersAddUpToMoreThanExist) {
  Offer("r1", DevicesFromOne(3));
  Hold(Held("Q", "app", {"d1"}, "r1"));
  Want("app1", "r1", 2);
  Want("app2", "r1", 2);
  EXPECT_EQ(OnlyShortage().kind, Shortage::Kind::kTooFewExist);
}

TEST_F(DevicePlanTest, NothingIsWantedOfNobody) {  // DP-076
  Want("app", "example.com/none", 0);
  EXPECT_TRUE(Plan().Complete());
  EXPECT_THAT(Plan().reservations, IsEmpty());
}

// The states of a resource.

TEST_F(DevicePlanTest, TellsWhereTheResourceStands) {
  const auto text = [&] { return ShortageText(OnlyShortage()); };
  const auto kubelet = [&] { return KubeletShortageText(OnlyShortage()); };
  const std::string wants =
      "resource 'r': container 'app' requests 1 device, and ";
  const std::string unregistered = "cannot allocate unregistered device r";
  const std::string none =
      "no healthy devices present; cannot allocate unhealthy devices r";
  Want("app", "r", 1);
  EXPECT_EQ(OnlyShortage().kind, Shortage::Kind::kNotServed);
  EXPECT_EQ(text(), wants + "no plugin has registered it");
  EXPECT_EQ(kubelet(), unregistered);

  Inventory& inventory = inventories_["r"];
  inventory.Restore(0, 0);
  EXPECT_EQ(text(), wants + "its plugin is not back yet");
  EXPECT_EQ(kubelet(), none);
  inventory.Connect(1, 0);
  EXPECT_EQ(
      text(),
      wants + "its plugin is connected and has not listed its devices yet");
  EXPECT_EQ(kubelet(), none);
  inventory.Report(1, DevicesFromOne(1), NobodyHolds, 0);
  EXPECT_EQ(Planned().size(), 1u);
  inventory.Disconnect(1, NobodyHolds, 0);
  EXPECT_EQ(text(), wants + "its plugin has gone");
  EXPECT_EQ(kubelet(), none);
  inventory.EndGrace(inventory.stops(), NobodyHolds, 0);
  EXPECT_EQ(text(), wants + "its plugin has gone for good");
  EXPECT_EQ(kubelet(), unregistered);
}

// A pod that holds devices already.

TEST_F(DevicePlanTest, KeepsWhatThePodHolds) {  // DP-064
  Offer("r1", DevicesFromOne(2));
  Hold(Held("P", "app", {"d1", "d2"}, "r1"));
  Want("app", "r1", 2);
  EXPECT_TRUE(Plan().Complete());
  EXPECT_THAT(Plan().reservations, IsEmpty());
}

TEST_F(DevicePlanTest, AChangedRequestIsTold) {  // DP-065
  Offer("r1", DevicesFromOne(3));
  Hold(Held("P", "app", {"d1", "d2"}, "r1"));
  Want("app", "r1", 3);
  const Shortage shortage = OnlyShortage();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kChangedRequest);
  EXPECT_EQ(KubeletShortageText(shortage),
            "pod \"P\" container \"app\" changed request for resource \"r1\" "
            "from 2 to 3");
  EXPECT_EQ(ShortageText(shortage),
            "resource 'r1': container 'app' holds 2 devices and now requests "
            "3");
}

TEST_F(DevicePlanTest, ARequestOfNoneIsAChangeToo) {
  Offer("r1", DevicesFromOne(3));
  Hold(Held("P", "app", {"d1"}, "r1"));
  Want("app", "r1", 0);
  EXPECT_EQ(OnlyShortage().kind, Shortage::Kind::kChangedRequest);
}

TEST_F(DevicePlanTest, HeldDevicesAreBelievedUntilThePluginIsBack) {
  // DP-066 and DP-067 improved, DP-124; W-02
  inventories_["r1"].Restore(0, 0);
  Hold(Held("P", "app", {"d1"}, "r1"));
  Hold(Held("P", "app", {"d1"}, "unknown"));
  Want("app", "r1", 1);
  Want("app", "unknown", 1);
  EXPECT_TRUE(Plan().Complete());
  input_.trust_held = false;
  const PodPlan plan = Plan();
  ASSERT_THAT(plan.shortages, SizeIs(2));
  EXPECT_EQ(plan.shortages[0].kind, Shortage::Kind::kNotServed);
  EXPECT_EQ(KubeletShortageText(plan.shortages[0]),
            "no healthy devices present; cannot allocate unhealthy devices r1");
  EXPECT_EQ(KubeletShortageText(plan.shortages[1]),
            "cannot allocate unregistered device unknown");
}

TEST_F(DevicePlanTest, HeldDevicesMustBeAmongTheHealthy) {  // DP-068
  Offer("r1", {Healthy("d7"), Healthy("d8")});
  Hold(Held("P", "app", {"d5"}, "r1"));
  Want("app", "r1", 1);
  const Shortage shortage = OnlyShortage();
  EXPECT_EQ(shortage.kind, Shortage::Kind::kHeldUnhealthy);
  EXPECT_EQ(KubeletShortageText(shortage),
            "previously allocated devices are no longer healthy; cannot "
            "allocate unhealthy devices r1");
  EXPECT_EQ(ShortageText(shortage),
            "resource 'r1': container 'app' holds devices that are not "
            "healthy: 'd5'");
}

TEST_F(DevicePlanTest, WhatAnAppContainerHoldsIsNotHandedOnAgain) {
  Offer("r1", DevicesFromOne(2));
  Reservation init = Held("P", "init", {"d1"}, "r1");
  init.kind = ContainerKind::kInit;
  Hold(init);
  Hold(Held("P", "app2", {"d1"}, "r1"));
  Want("init", ContainerKind::kInit, "r1", 1);
  Want("app1", "r1", 1);
  Want("app2", "r1", 1);
  EXPECT_EQ(Planned()[NeedKey("app1", "r1")], Ids({"d2"}));
}

// Questions to plugins.

TEST_F(DevicePlanTest, AsksOneQuestionPerResourceAtATime) {
  Offer("r1", DevicesFromOne(4));
  Offer("r2", DevicesFromOne(4));
  Offer("r3", DevicesFromOne(4));
  input_.asking = {"r1", "r2"};
  Want("app1", "r1", 1);
  Want("app1", "r2", 1);
  Want("app1", "r3", 1);
  Want("app2", "r1", 1);
  PodPlan plan = Plan();
  ASSERT_THAT(plan.questions, SizeIs(2));
  EXPECT_FALSE(plan.Complete());
  EXPECT_EQ(plan.questions[0].resource, "r1");
  EXPECT_EQ(plan.questions[0].container, "app1");
  EXPECT_EQ(plan.questions[1].resource, "r2");

  input_.preferences[{"app1", "r1"}] = {"d3"};
  input_.preferences[{"app1", "r2"}] = {};
  plan = Plan();
  ASSERT_THAT(plan.questions, SizeIs(1));
  EXPECT_EQ(plan.questions[0].container, "app2");
  EXPECT_EQ(plan.questions[0].available, Ids({"d1", "d2", "d4"}));

  input_.preferences[{"app2", "r1"}] = {"d2"};
  auto planned = Planned();
  EXPECT_EQ(planned[NeedKey("app1", "r1")], Ids({"d3"}));
  EXPECT_EQ(planned[NeedKey("app2", "r1")], Ids({"d2"}));
  EXPECT_EQ(planned[NeedKey("app1", "r2")], Ids({"d1"}));
}

TEST_F(DevicePlanTest, AnAnswerMayBeTooLate) {
  Offer("r1", DevicesFromOne(3));
  input_.asking = {"r1"};
  Want("app", "r1", 1);
  input_.preferences[{"app", "r1"}] = {"d2"};
  Hold(Held("Q", "app", {"d2"}, "r1"));
  EXPECT_EQ(Planned()[NeedKey("app", "r1")], Ids({"d1"}));
}

TEST_F(DevicePlanTest, UsesTheMaskOfTheContainer) {
  Offer("r1", {Healthy("d1", {0}), Healthy("d2", {1}), Healthy("d3", {1})});
  Want("app1", "r1", 1);
  Want("app2", "r1", 1);
  input_.masks[{"app1", "r1"}] = {1};
  auto planned = Planned();
  EXPECT_EQ(planned[NeedKey("app1", "r1")], Ids({"d2"}));
  EXPECT_EQ(planned[NeedKey("app2", "r1")], Ids({"d1"}));
}

// Between plan and reservation.

TEST_F(DevicePlanTest, APlanIsAbortedWhenADeviceWasTaken) {  // W-06
  Offer("r1", DevicesFromOne(2));
  Want("app", "r1", 1);
  const std::vector<Reservation> plan = Plan().reservations;
  const auto holder = [&](const ResourceName& resource, const DeviceId& id) {
    const auto* one = reservations_.HolderOf(resource, id);
    return one == nullptr ? nullptr : &one->pod;
  };
  EXPECT_THAT(CheckStillFree(plan, holder), IsOk());
  Hold(Held("Q", "app", {"d1"}, "r1"));
  EXPECT_THAT(CheckStillFree(plan, holder),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("device 'd1' of 'r1' was taken by pod 'Q'")));
  reservations_.ReleasePod({"Q"});
  Hold(Held("P", "init", {"d1"}, "r1"));
  EXPECT_THAT(CheckStillFree(plan, holder), IsOk()) << "its own";
}

TEST_F(DevicePlanTest, APlanIsAbortedWhenADeviceIsNotHealthyAnyMore) {
  Offer("r1", DevicesFromOne(2));  // W-10
  Want("app", "r1", 2);
  const std::vector<Reservation> plan = Plan().reservations;
  EXPECT_THAT(CheckStillUsable(plan, inventories_), IsOk());
  Offer("r1", {Healthy("d1"), Unhealthy("d2")});
  EXPECT_THAT(CheckStillUsable(plan, inventories_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("device 'd2'")));
  Offer("r1", DevicesFromOne(1));
  EXPECT_THAT(CheckStillUsable(plan, inventories_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("device 'd2'")));
  inventories_.clear();
  EXPECT_THAT(CheckStillUsable(plan, inventories_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("device 'd1'")));
}

// W-14: what it had was given back, and is the app's now.
TEST_F(DevicePlanTest, AnInitContainerThatRunsAgainUsesWhatComesAfterIt) {
  Offer("r", DevicesFromOne(3));
  Hold(Held("P", "app", {"d2"}, "r"));
  Hold(Held("Q", "app", {"d1"}, "r"));
  Reservation sidecar = Held("P", "early", {"d3"}, "r");
  sidecar.kind = ContainerKind::kSidecar;
  Hold(sidecar);
  Want("early", ContainerKind::kSidecar, "r", 1);
  Want("init", ContainerKind::kInit, "r", 1);
  Want("app", "r", 1);
  EXPECT_THAT(Planned(),
              ElementsAre(std::pair(NeedKey("init", "r"), Ids{"d2"})));
  // The sidecar runs by then; what it has is its own.
  input_.needs[1].count = 2;
  EXPECT_EQ(OnlyShortage().kind, Shortage::Kind::kTooFewFree);
}

TEST_F(DevicePlanTest, NothingIsChosenOfANameThatClaimsAreHeldFor) {
  Offer("r", DevicesFromOne(2));
  input_.claimed_by["r"] = {{"Q"}};
  Want("app", "r", 1);
  EXPECT_EQ(OnlyShortage().kind, Shortage::Kind::kHeldByClaims);
  EXPECT_THAT(ShortageText(OnlyShortage()), HasSubstr("'Q'"));
  // What the pod has stays its own.
  Hold(Held("P", "app", {"d1"}, "r"));
  EXPECT_TRUE(Plan().Complete());
}

}  // namespace
}  // namespace devmgr::device
