// SPDX-License-Identifier: Apache-2.0
#include "view/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using device::ContainerKind;
using device::ReservationPhase;
using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodResourcesTest : public MomentTest {
 protected:
  using Edit = std::function<void(Pod&)>;

  /// The source has it, with a container `main`, or as `edit` makes it.
  void AddObject(const std::string& name, const Edit& edit = {}) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = "default";
    pod->metadata.name = name;
    pod->metadata.uid = Uid(name).value;
    pod->status.phase = "Running";
    pod->spec.containers.emplace_back().name = "main";
    if (edit) edit(*pod);
    objects_.pods.insert_or_assign(pod->metadata.FullName(), pod);
    moment_.objects = std::make_shared<const ObjectSnapshot>(objects_);
  }
  void AddContainer(std::vector<Container>* to, const std::string& name,
                    const std::string& restart_policy = "") {
    Container& container = to->emplace_back();
    container.name = name;
    container.restart_policy = restart_policy;
  }
  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  /// The ledger has it, Ready, with these holds.
  void AddRecord(const std::string& name,
                 std::vector<state::DeviceHold> holds = {}) {
    auto pod = MakePod(name, PodPhase::kReady);
    pod->holds = std::move(holds);
    Put(pod);
  }
  void AddRecordIn(const std::string& name, PodPhase phase) {
    Put(MakePod(name, phase));
  }
  static state::DeviceHold Hold(const std::string& container,
                                std::vector<device::HeldDevice> devices,
                                ContainerKind kind = ContainerKind::kApp) {
    state::DeviceHold hold;
    hold.container = container;
    hold.kind = kind;
    hold.resource = "example.com/gpu";
    hold.phase = ReservationPhase::kCommitted;
    hold.devices = std::move(devices);
    return hold;
  }
  /// What a container of a pod wants of `claim`.
  static state::ContainerNeed Need(const std::string& container,
                                   const std::string& claim,
                                   const std::string& request = "") {
    return {container, false, {{ClaimUid{"uid-" + claim}, request, {}, "pc"}}};
  }
  /// Prepared by kDriver, with these devices.
  void AddClaim(const std::string& name, const std::string& pod,
                std::vector<state::PreparedDevice> devices) {
    auto claim = MakeClaim(name, Uid(pod));
    claim->drivers[kDriver].phase = state::DriverPhase::kPrepared;
    claim->drivers[kDriver].devices = std::move(devices);
    moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  }

  std::shared_ptr<const PodResourcesList> List() const {
    return PodResourcesOf(moment_, nullptr);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto list = List();
    for (const auto& pod : list->pods) names.push_back(pod->name.name);
    return names;
  }
  /// The one that there is.
  PodResources Only() const {
    const auto list = List();
    EXPECT_THAT(list->pods, SizeIs(1));
    return list->pods.size() == 1 ? *list->pods[0] : PodResources();
  }
  static std::vector<std::string> ContainersOf(const PodResources& pod) {
    std::vector<std::string> names;
    for (const ContainerResources& container : pod.containers) {
      names.push_back(container.name.value +
                      (container.sidecar ? " (sidecar)" : ""));
    }
    return names;
  }

  ObjectSnapshot objects_;
};

// BO-115
TEST_F(PodResourcesTest, WithoutPodsTheListIsEmpty) {
  EXPECT_THAT(List()->pods, IsEmpty());
  moment_.objects = nullptr;
  EXPECT_THAT(List()->pods, IsEmpty());
}

// BO-116
TEST_F(PodResourcesTest, APodWithoutDevicesIsListedWithItsContainers) {
  AddObject("p");
  AddRecord("p");
  AddObject("not-asked-for");
  ASSERT_THAT(Names(), ElementsAre("not-asked-for", "p"));
  const auto list = List();
  for (const auto& pod : list->pods) {
    EXPECT_THAT(ContainersOf(*pod), ElementsAre("main"));
    EXPECT_EQ(pod->uid, Uid(pod->name.name));
    EXPECT_THAT(pod->containers[0].devices, IsEmpty());
    EXPECT_THAT(pod->containers[0].claims, IsEmpty());
    EXPECT_EQ(pod->missing_claims, 0U);
  }
}

// BO-117
TEST_F(PodResourcesTest, OnlyActivePodsAreListed) {
  const auto with = [&](const std::string& name, const std::string& phase,
                        bool is_deleted) {
    AddObject(name, [&](Pod& pod) {
      pod.status.phase = phase;
      if (is_deleted) pod.metadata.deletion_timestamp = "2026-11-27T10:00:00Z";
    });
    AddRecord(name, {Hold("main", {{"0", {}}})});
  };
  with("running", "Running", false);
  with("succeeded", "Succeeded", false);
  with("failed", "Failed", false);
  with("terminating", "Running", true);
  EXPECT_THAT(Names(), ElementsAre("running", "terminating"));
  // Its containers have stopped.
  AddRecordIn("terminating", PodPhase::kReleasing);
  AddRecordIn("running", PodPhase::kRejected);
  EXPECT_THAT(Names(), IsEmpty());
  moment_.state.Erase(Uid("terminating"));
  EXPECT_THAT(Names(), IsEmpty());
}

// The kubelet lists a pod that has ended while it still terminates it.
TEST_F(PodResourcesTest, APodThatFailedIsListedWhileAContainerOfItRuns) {
  AddObject("p", [](Pod& pod) { pod.status.phase = "Failed"; });
  AddRecord("p", {Hold("main", {{"0", {}}})});
  EXPECT_THAT(Names(), IsEmpty());
  moment_.pods.notes.insert_or_assign(Uid("p"),
                                      {Verdict::Kind::kWait,
                                       "ContainerRunning",
                                       "",
                                       {{WaitingFor::Kind::kRuntime, ""}}});
  EXPECT_THAT(Names(), ElementsAre("p"));
}

// BO-118
TEST_F(PodResourcesTest, SidecarsComeFirstAndOtherInitContainersAreMissing) {
  AddObject("p", [&](Pod& pod) {
    AddContainer(&pod.spec.init_containers, "warm");
    AddContainer(&pod.spec.init_containers, "proxy", "Always");
  });
  AddRecord("p", {Hold("warm", {{"0", {}}}, ContainerKind::kInit),
                  Hold("proxy", {{"1", {}}}, ContainerKind::kSidecar),
                  Hold("main", {{"0", {}}})});
  const PodResources pod = Only();
  ASSERT_THAT(ContainersOf(pod), ElementsAre("proxy (sidecar)", "main"));
  EXPECT_THAT(pod.containers[0].devices,
              ElementsAre(ResourceDevices{"example.com/gpu", {{"1", {}}}}));
  EXPECT_THAT(pod.containers[1].devices,
              ElementsAre(ResourceDevices{"example.com/gpu", {{"0", {}}}}));
}

// BO-119, BO-120, DP-123: nodes as they were when the device was chosen.
TEST_F(PodResourcesTest, DevicesHaveTheirNodes) {
  AddObject("p");
  AddRecord("p", {Hold("main", {{"both", {0, 1}}, {"none", {}}})});
  EXPECT_THAT(Only().containers[0].devices,
              ElementsAre(ResourceDevices{"example.com/gpu",
                                          {{"both", {0, 1}}, {"none", {}}}}));
}

TEST_F(PodResourcesTest, DevicesThatAreOnlyReservedAreNotListed) {
  AddObject("p");
  auto pod = MakePod("p", PodPhase::kAllocating);
  pod->holds = {Hold("main", {{"0", {}}})};
  pod->holds[0].phase = ReservationPhase::kReserved;
  Put(pod);
  EXPECT_THAT(Only().containers[0].devices, IsEmpty());
}

// BO-121, DRA-128
TEST_F(PodResourcesTest, EachDeviceOfAClaimHasItsOwnNames) {
  AddObject("p");
  auto pod = MakePod("p", PodPhase::kReady);
  pod->needs = {Need("main", "c")};
  Put(pod);
  AddClaim("c", "p",
           {{{"r"}, "pool", "d1", {"v.com/c=x"}, ""},
            {{"r"}, "pool", "d2", {"v.com/c=y"}, "share"}});
  const std::vector<HeldClaim> claims = Only().containers[0].claims;
  ASSERT_THAT(claims, SizeIs(1));
  EXPECT_EQ(claims[0].name, (ObjectName{"default", "c"}));
  EXPECT_THAT(
      claims[0].devices,
      ElementsAre(ClaimDevice{kDriver, "pool", "d1", "", {"v.com/c=x"}},
                  ClaimDevice{kDriver, "pool", "d2", "share", {"v.com/c=y"}}));
}

// BO-122, DRA-127
TEST_F(PodResourcesTest, OnlyDevicesOfRequestsThatTheContainerNames) {
  AddObject("p");
  auto pod = MakePod("p", PodPhase::kReady);
  pod->needs = {Need("main", "c", "r2")};
  Put(pod);
  AddClaim(
      "c", "p",
      {{{"r1"}, "pool", "d1", {}, ""}, {{"r2/small"}, "pool", "d2", {}, ""}});
  const std::vector<HeldClaim> claims = Only().containers[0].claims;
  ASSERT_THAT(claims, SizeIs(1));
  EXPECT_THAT(claims[0].devices,
              ElementsAre(ClaimDevice{kDriver, "pool", "d2", "", {}}));
}

TEST_F(PodResourcesTest, AClaimThatIsLostIsLeftOutAlone) {
  AddObject("p");
  auto pod = MakePod("p", PodPhase::kReady);
  pod->needs = {Need("main", "c")};
  pod->needs[0].wants.push_back({ClaimUid{"uid-lost"}, "", {}, "pc2"});
  Put(pod);
  AddClaim("c", "p", {{{"r"}, "pool", "d1", {}, ""}});
  EXPECT_THAT(Only().containers[0].claims, SizeIs(1));
  EXPECT_EQ(Only().missing_claims, 1U);
}

TEST_F(PodResourcesTest, ClaimsOfAPodThatHoldsNoneAreMissing) {
  AddObject("p", [&](Pod& pod) {
    for (const char* name : {"a", "b", "none"}) {
      pod.spec.resource_claims.push_back({name, name, {}});
      pod.spec.containers[0].resources.claims.push_back({name, ""});
    }
    pod.spec.containers[0].resources.claims.push_back({"a", "other"});
    pod.status.resource_claim_statuses = {{"none", std::nullopt}};
    pod.status.extended_resource_claim_status = {
        "special", {{"main", "example.com/gpu", "r"}, {"x", "y", "z"}}};
    AddContainer(&pod.spec.containers, "idle");
  });
  EXPECT_EQ(Only().missing_claims, 3U);
  EXPECT_THAT(Only().containers[0].claims, IsEmpty());
}

TEST_F(PodResourcesTest, OfAPodWithoutObjectTheLedgerKnowsTheContainers) {
  auto pod = MakePod("p", PodPhase::kReady);
  auto answer = std::make_shared<PodDevices>();
  for (const char* name : {"warm", "proxy", "main", "idle"}) {
    answer->containers.emplace_back().name = name;
  }
  answer->containers[0].init = true;
  answer->containers[1].init = true;
  pod->answer = answer;
  pod->holds = {Hold("warm", {{"0", {}}}, ContainerKind::kInit),
                Hold("proxy", {{"1", {}}}, ContainerKind::kSidecar),
                Hold("main", {{"0", {}}})};
  Put(pod);
  EXPECT_THAT(ContainersOf(Only()),
              ElementsAre("proxy (sidecar)", "main", "idle"));
  // Before there is an answer.
  pod = MakePod("p", PodPhase::kPreparing);
  pod->needs = {Need("one", "c"), Need("main", "c")};
  pod->needs[0].init = true;
  pod->holds = {Hold("main", {{"0", {}}}), Hold("two", {{"0", {}}})};
  Put(pod);
  EXPECT_THAT(ContainersOf(Only()), ElementsAre("main", "two"));
  AddRecordIn("p", PodPhase::kWaiting);
  EXPECT_THAT(List()->pods, IsEmpty()) << "it holds nothing";
}

TEST_F(PodResourcesTest, PodsComeByNamespaceNameAndUid) {
  for (const char* name : {"b", "a"}) {
    AddObject(name);
    AddObject(name, [](Pod& pod) {
      pod.metadata.ns = "a-team";
      pod.metadata.uid += "-of-a-team";
    });
  }
  // One that was made again under its name while the first one still runs.
  auto older = MakePod("a", PodPhase::kReady);
  older->uid = {"uid-0"};
  Put(older);
  std::vector<std::string> uids;
  const auto list = List();
  for (const auto& pod : list->pods) uids.push_back(pod->uid.value);
  EXPECT_THAT(uids, ElementsAre("uid-a-of-a-team", "uid-b-of-a-team", "uid-0",
                                "uid-a", "uid-b"));
}

// BO-124
TEST_F(PodResourcesTest, OnePodIsToldOfAsInTheList) {
  AddObject("p");
  AddRecord("p", {Hold("main", {{"0", {1}}})});
  const auto pod = PodResourcesOf(moment_, ObjectName{"default", "p"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->uid, Uid("p"));
  EXPECT_EQ(pod->containers, Only().containers);
  EXPECT_EQ(PodResourcesOf(moment_, ObjectName{"default", "q"}), nullptr);
  EXPECT_EQ(PodResourcesOf(moment_, ObjectName{"team", "p"}), nullptr);
  AddObject("p", [](Pod& ended) { ended.status.phase = "Succeeded"; });
  EXPECT_EQ(PodResourcesOf(moment_, ObjectName{"default", "p"}), nullptr);
}

TEST_F(PodResourcesTest, OfPodsWithOneNameTheNewestIsToldOf) {
  const ObjectName name{"default", "p"};
  for (const int seen : {1, 2}) {
    auto pod = MakePod("p", PodPhase::kReady);
    pod->uid = {seen == 1 ? "uid-z" : "uid-a"};
    pod->first_seen_seq = seen;
    Put(pod);
  }
  EXPECT_EQ(PodResourcesOf(moment_, name)->uid, PodUid{"uid-a"});
  AddObject("p");
  EXPECT_EQ(PodResourcesOf(moment_, name)->uid, Uid("p"));
}

TEST_F(PodResourcesTest, WhatHasNotChangedIsTheSame) {
  for (const char* name : {"a", "b", "c"}) {
    AddObject(name);
    auto pod = MakePod(name, PodPhase::kReady);
    pod->needs = {Need("main", name)};
    Put(pod);
    AddClaim(name, name, {});
  }
  const auto first = List();
  EXPECT_EQ(PodResourcesOf(moment_, first), first);
  // A claim is prepared, a pod goes, and one comes.
  AddClaim("b", "b", {{{"r"}, "pool", "d1", {}, ""}});
  moment_.state.Erase(Uid("a"));
  objects_.pods.erase(ObjectName{"default", "a"});
  AddObject("aa");
  const auto second = PodResourcesOf(moment_, first);
  ASSERT_THAT(second->pods, SizeIs(3));
  EXPECT_EQ(second->pods[0]->name.name, "aa");
  EXPECT_NE(second->pods[1], first->pods[1]);
  EXPECT_THAT(second->pods[1]->containers[0].claims[0].devices, SizeIs(1));
  EXPECT_EQ(second->pods[2], first->pods[2]);
  EXPECT_EQ(PodResourcesOf(moment_, second), second);
  moment_.objects = std::make_shared<const ObjectSnapshot>();
  moment_.state = {};
  EXPECT_THAT(PodResourcesOf(moment_, second)->pods, IsEmpty());
}

}  // namespace
}  // namespace devmgr::view
