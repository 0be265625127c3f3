// SPDX-License-Identifier: Apache-2.0
#include "view/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "state/views.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeViewTest : public MomentTest {
 protected:
  std::shared_ptr<const NodeView> View() const {
    return NodeViewOf(moment_, around_);
  }
  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  void Serve(const std::string& resource, const device::Inventory& inventory) {
    moment_.resources.insert_or_assign(
        resource, {inventory.state(), inventory.state_since_ms(),
                   inventory.figures(), inventory.devices()});
  }
  /// As a plugin lists it.
  void Serve(std::vector<device::Device> list) {
    Serve("example.com/gpu", device::Live(std::move(list)));
  }
  static state::DeviceHold Hold(const std::string& device) {
    state::DeviceHold hold;
    hold.container = "main";
    hold.resource = "example.com/gpu";
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{device, {}}};
    return hold;
  }

  Surroundings around_;
};

TEST_F(NodeViewTest, StaysWhatItIsWhateverChanges) {
  Put(MakePod("a", PodPhase::kReady));
  Serve({device::Healthy("d0")});
  const auto before = View();
  Put(MakePod("b", PodPhase::kReady));
  moment_.state.Erase(Uid("a"));
  Serve({device::Unhealthy("d0"), device::Healthy("d1")});
  const auto after = View();
  ASSERT_THAT(before->Pods(), SizeIs(1));
  EXPECT_EQ(before->Pods()[0].name.name, "a");
  EXPECT_THAT(before->AllocatableDevices(), SizeIs(1));
  EXPECT_EQ(before->AllocatableDevices()[0].devices[0].id, "d0");
  EXPECT_EQ(after->Pods()[0].name.name, "b");
  EXPECT_EQ(after->AllocatableDevices()[0].devices[0].id, "d1");
  EXPECT_TRUE(before->PodInfoOf(Uid("a")).ok());
  EXPECT_EQ(after->PodInfoOf(Uid("a")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NodeViewTest, ADriverThatIsCalledIsShownWithItsLoad) {
  const auto instance = [&](const char* name, bool serves) {
    PluginInfo info;
    info.name = name;
    info.serves = serves;
    info.calls = 1;  // as its lane knows: with probes
    around_.plugins.push_back(std::make_shared<const PluginInfo>(info));
  };
  instance("d", true);
  instance("d", false);
  instance("e", true);
  const auto ask = [&](const char* claim, Calls::Unanswered unanswered) {
    moment_.calls.unanswered.insert_or_assign({ClaimUid{claim}, "d"},
                                              unanswered);
  };
  ask("u-1", {true, 3'000, 7});
  ask("u-2", {true, 3'000, 7});
  ask("u-3", {false, 2'000, 6});
  ask("u-4", {});
  const auto plugins = View()->Plugins();
  ASSERT_THAT(plugins, SizeIs(3));
  EXPECT_EQ(plugins[0].calls, 2);
  EXPECT_EQ(plugins[0].queued, 1);
  EXPECT_EQ(plugins[0].calling_since, state::WallTimeOf(2'000));
  EXPECT_EQ(plugins[1].calls, 1);
  EXPECT_EQ(plugins[1].calling_since, std::nullopt);
  EXPECT_EQ(plugins[2].calls, 0);
  EXPECT_EQ(plugins[2].calling_since, std::nullopt);
}

TEST_F(NodeViewTest, CountsPodsByTheStatesThatTheyAreShownWith) {
  Put(MakePod("a", PodPhase::kReady));
  Put(MakePod("b", PodPhase::kWaiting));
  Put(MakePod("c", PodPhase::kRejected));
  Put(MakePod("d", PodPhase::kPreparing));
  moment_.pods.notes.insert_or_assign(
      Uid("d"), {Verdict::Kind::kWait, "FailedPrepare", "", {}});
  const NodeInfo node = View()->Node();
  EXPECT_EQ(node.pods, 4);
  EXPECT_EQ(node.pods_ready, 1);
  EXPECT_EQ(node.pods_waiting, 2);
  EXPECT_EQ(node.pods_rejected, 1);
}

TEST_F(NodeViewTest, DevicesOfPluginsAreShownWithHoldersAndHealth) {
  auto pod = MakePod("a", PodPhase::kReady);
  pod->holds = {Hold("d1")};
  Put(pod);
  Serve({device::Healthy("d0"), device::Unhealthy("d1")});
  const auto view = View();
  const std::vector<DeviceInfo> devices = view->Devices();
  ASSERT_THAT(devices, SizeIs(2));
  for (const DeviceInfo& device : devices) {
    EXPECT_EQ(device.used_by.empty(), device.device == "d0") << device.device;
  }
  const std::vector<ResourceInfo> resources = view->Resources();
  ASSERT_THAT(resources, SizeIs(1));
  EXPECT_EQ(resources[0].capacity, 2);
  EXPECT_EQ(resources[0].allocatable, 1);
  EXPECT_EQ(resources[0].held, 1);
  const PodInfo info = *view->PodInfoOf(Uid("a"));
  ASSERT_THAT(info.allocated_resources, SizeIs(1));
  const ResourceStatus& status = info.allocated_resources[0].resources.at(0);
  EXPECT_EQ(status.name, "example.com/gpu");
  ASSERT_THAT(status.resources, SizeIs(1));
  EXPECT_EQ(status.resources[0].resource_id, "d1");
  EXPECT_EQ(status.resources[0].message, "reported by the plugin");
  EXPECT_THAT(*view->HeldDevices(Uid("a"), "main"), SizeIs(1));
  EXPECT_THAT(*view->HeldDevices(Uid("a"), "other"), IsEmpty());
}

TEST_F(NodeViewTest, AllocatableDevicesAreTheHealthyOnes) {
  // DP-055, DP-120, DP-121
  using device::Healthy;
  using device::Unhealthy;
  device::Inventory foo =
      device::Live({Healthy("1"), Healthy("2"), Unhealthy("3")});
  device::Inventory bar = device::Live({Healthy("1", {1}), Unhealthy("2")});
  Serve("foo", foo);
  Serve("bar", bar);
  Serve("qux", device::Live({Unhealthy("1")}));
  EXPECT_THAT(View()->AllocatableDevices(),
              ElementsAre(ResourceDevices{"bar", {{"1", {1}}}},
                          ResourceDevices{"foo", {{"1", {}}, {"2", {}}}}));
  foo.Report(1, {Healthy("1"), Healthy("2"), Healthy("3")}, device::NobodyHolds,
             1);
  Serve("foo", foo);
  EXPECT_THAT(View()->AllocatableDevices().at(1).devices, SizeIs(3));
  foo.Disconnect(1, device::NobodyHolds, 2);
  bar.Disconnect(1, device::NobodyHolds, 2);
  Serve("foo", foo);
  Serve("bar", bar);
  EXPECT_THAT(View()->AllocatableDevices(), IsEmpty());
}

TEST_F(NodeViewTest, OfAStoppedLedgerItShowsWhatTheLedgerHas) {
  auto pod = MakePod("a", PodPhase::kReady);
  pod->holds = {Hold("d1")};
  Put(pod);
  moment_.state.seq = 7;
  moment_.terms = nullptr;
  moment_.objects = nullptr;
  const auto view = View();
  EXPECT_EQ(view->Node().pods_ready, 1);
  EXPECT_EQ(view->Node().ledger_sequence, 7U);
  EXPECT_FALSE(view->Node().authority.has_value());
  EXPECT_THAT(view->Devices(), SizeIs(1));
  EXPECT_THAT(view->DeviceClasses(), IsEmpty());
  EXPECT_THAT(view->HeldClaims(Uid("a"), "main")->claims, IsEmpty());
  EXPECT_EQ(view->HeldClaims(Uid("x"), "main").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NodeViewTest, IsReadOnOtherThreadsWhileTheNextOnesAreMade) {
  for (int i = 0; i < 50; ++i) {
    Put(MakePod("p" + std::to_string(i), PodPhase::kReady));
  }
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([view = View()] {
      for (int round = 0; round < 10; ++round) {
        EXPECT_THAT(view->Pods(), SizeIs(50));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    Put(MakePod("p" + std::to_string(i), PodPhase::kReleasing));
    if (i % 2 == 0) moment_.state.Erase(Uid("p" + std::to_string(i)));
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(View()->Pods(), SizeIs(25));
}

TEST_F(NodeViewTest, TheNodeIsShownWithWhatItsSourceAndItsLedgerSay) {
  NodeInfo fixed;
  fixed.version = "1.2.3";
  around_.node = std::make_shared<const NodeInfo>(fixed);
  around_.sequence = 5;
  around_.last_event = 9;
  around_.ledger = absl::UnavailableError("the disk is full");
  around_.runtime.emplace().source = "CRI";
  around_.plugins = {std::make_shared<const PluginInfo>()};
  ObjectSnapshot objects;
  objects.complete = true;
  ManifestProblem& problem = objects.problems.emplace_back();
  problem.file = "a.yaml";
  problem.line = 3;
  problem.message = "bad";
  objects.object_problems.emplace_back();
  moment_.objects = std::make_shared<const ObjectSnapshot>(objects);
  Put(MakePod("a", PodPhase::kPreparing));
  moment_.state.Put(
      std::shared_ptr<const state::ClaimRecord>(MakeClaim("c", Uid("a"))));
  const auto view = View();
  EXPECT_EQ(view->Sequence(), 5U);
  EXPECT_EQ(view->LastEvent(), 9U);
  const NodeInfo node = view->Node();
  EXPECT_EQ(node.version, "1.2.3");
  EXPECT_EQ(node.ledger_error, "the disk is full");
  EXPECT_TRUE(node.source_complete);
  EXPECT_THAT(node.source_problems, ElementsAre("a.yaml:3: bad"));
  EXPECT_THAT(node.object_problems, SizeIs(1));
  EXPECT_EQ(node.runtime->source, "CRI");
  EXPECT_EQ(node.claims, 1);
  EXPECT_EQ(node.plugins, 1);
}

TEST_F(NodeViewTest, ClaimsAreShownWithHowTheirDriversFailedLast) {
  Put(MakePod("a", PodPhase::kPreparing));
  moment_.state.Put(
      std::shared_ptr<const state::ClaimRecord>(MakeClaim("c", Uid("a"))));
  ASSERT_THAT(View()->Claims(), SizeIs(1));
  EXPECT_EQ(View()->Claims()[0].drivers.at(0).last_error, "");
  moment_.calls.errors.insert_or_assign(
      {ClaimUid{"uid-c"}, kDriver},
      {kDriver, absl::InternalError("no luck"), false});
  EXPECT_THAT(View()->Claims()[0].drivers.at(0).last_error,
              ::testing::HasSubstr("no luck"));
}

TEST_F(NodeViewTest, DebtsAreShownWithTheirPolicy) {
  auto claim = MakeClaim("c", {});
  claim->pods.clear();
  claim->drivers[kDriver].phase = state::DriverPhase::kUnpreparing;
  claim->drivers[kDriver].debt = state::Debt{1'000, 3, "busy", {"default/a"}};
  moment_.state.Put(std::shared_ptr<const state::ClaimRecord>(claim));
  auto terms = std::make_shared<Terms>(*moment_.terms);
  terms->debt_rules.by_driver[kDriver] = {DebtPolicy::Kind::kDefer};
  moment_.terms = terms;
  ASSERT_THAT(View()->Debts(), SizeIs(1));
  EXPECT_EQ(View()->Debts()[0].policy, "defer");
  EXPECT_EQ(View()->Debts()[0].attempts, 3U);
  // More have failed since the ledger was written.
  moment_.calls.attempts.insert_or_assign({claim->uid, kDriver}, 5);
  EXPECT_EQ(View()->Debts()[0].attempts, 5U);
  moment_.terms = nullptr;
  EXPECT_EQ(View()->Debts()[0].policy, "") << "of a stopped manager";
}

TEST_F(NodeViewTest, WhatSurroundsItIsShownAsItWas) {
  auto socket = std::make_shared<RegistrationSocketInfo>();
  socket->path = "/run/a.sock";
  around_.sockets = {socket};
  auto runtime = std::make_shared<RuntimeInfo>();
  runtime->endpoint = "/run/r.sock";
  around_.runtimes = {runtime};
  auto holder = std::make_shared<state::ForeignHolderRecord>();
  holder->id.value = "f";
  holder->devices = {{"example.com/gpu", "d0"}};
  moment_.state.Put(std::shared_ptr<const state::ForeignHolderRecord>(holder));
  const auto view = View();
  ASSERT_THAT(view->RegistrationSockets(), SizeIs(1));
  EXPECT_EQ(view->RegistrationSockets()[0].path, "/run/a.sock");
  ASSERT_THAT(view->Runtimes(), SizeIs(1));
  EXPECT_EQ(view->Runtimes()[0].endpoint, "/run/r.sock");
  ASSERT_THAT(view->ForeignHolders(), SizeIs(1));
  EXPECT_EQ(view->ForeignHolders()[0].holder.container_id, "f");
}

// Where a scheduler allocates, what is published counts whoever is registered.
TEST_F(NodeViewTest, SlicesOfDriversThatAreNotRegisteredAreHidden) {
  ObjectSnapshot objects;
  for (const char* driver : {"a.example.com", "b.example.com"}) {
    auto slice = std::make_shared<ResourceSlice>();
    slice->driver = driver;
    slice->pool = "pool";
    slice->node_name = "n1";
    objects.resource_slices.insert_or_assign({"", driver}, slice);
  }
  moment_.objects = std::make_shared<const ObjectSnapshot>(objects);
  auto registered = std::make_shared<PluginInfo>();
  registered->kind = PluginKind::kDra;
  registered->name = "a.example.com";
  auto plugin = std::make_shared<PluginInfo>();
  plugin->kind = PluginKind::kDevicePlugin;
  plugin->name = "b.example.com";
  around_.plugins = {registered, plugin};
  const auto hidden = [&](Authority authority) {
    NodeInfo node;
    node.authority = authority;
    around_.node = std::make_shared<const NodeInfo>(node);
    std::vector<bool> is_hidden;
    for (const SliceInfo& slice : View()->Slices()) {
      is_hidden.push_back(slice.hidden);
    }
    return is_hidden;
  };
  EXPECT_THAT(hidden(Authority::kNode), ElementsAre(false, true));
  EXPECT_THAT(hidden(Authority::kScheduler), ElementsAre(false, false));
  moment_.objects = nullptr;
  EXPECT_THAT(View()->Slices(), IsEmpty());
}

TEST_F(NodeViewTest, AlignmentIsShownOfPodsThatWereJudged) {
  auto alignment = std::make_shared<PodAlignmentInfo>();
  alignment->admitted = false;
  alignment->message = "no node has two";
  moment_.alignments.insert_or_assign(Uid("a"), alignment);
  ASSERT_TRUE(View()->AlignmentOf(Uid("a")).ok());
  EXPECT_EQ(View()->AlignmentOf(Uid("a"))->message, "no node has two");
  EXPECT_EQ(View()->AlignmentOf(Uid("b")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(View()->Numa().nodes, IsEmpty());
}

TEST_F(NodeViewTest, ResourcesOfAPodThatIsNotKnownAreNotFound) {
  const auto missing = View()->ResourcesOfPod({"default", "x"});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(), "pod x in namespace default not found");
  EXPECT_EQ(View()->HeldDevices(Uid("x"), "main").status().code(),
            absl::StatusCode::kNotFound);
}

/// A pod of the source that uses claim `made` in container `main`.
class HeldClaimsViewTest : public NodeViewTest {
 protected:
  static Pod UsingAClaim(const std::string& name) {
    Pod pod;
    pod.metadata.ns = "default";
    pod.metadata.name = name;
    pod.metadata.uid = Uid(name).value;
    pod.spec.resource_claims = {{"c", "made", std::nullopt}};
    Container& container = pod.spec.containers.emplace_back();
    container.name = "main";
    container.resources.claims = {{"c", ""}};
    return pod;
  }
  void Show(const ObjectSnapshot& objects) {
    moment_.objects = std::make_shared<const ObjectSnapshot>(objects);
  }
};

TEST_F(HeldClaimsViewTest, OfAPodThatHasToWaitItsClaimsAreMissing) {
  ObjectSnapshot objects;
  objects.pods.insert_or_assign({"default", "a"},
                                std::make_shared<Pod>(UsingAClaim("a")));
  Show(objects);
  for (const bool is_recorded : {false, true}) {
    if (is_recorded) Put(MakePod("a", PodPhase::kWaiting));
    const auto claims = View()->HeldClaims(Uid("a"), "main");
    ASSERT_TRUE(claims.ok());
    EXPECT_THAT(claims->claims, IsEmpty());
    EXPECT_THAT(claims->missing, SizeIs(1));
    EXPECT_THAT(View()->HeldClaims(Uid("a"), "other")->missing, IsEmpty());
  }
}

TEST_F(HeldClaimsViewTest, OfAPodThatBreaksARuleTheyAreMissingToo) {
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod = UsingAClaim("bad");
  ObjectSnapshot objects;
  objects.malformed_pods.insert_or_assign({"default", "bad"}, malformed);
  Show(objects);
  ASSERT_TRUE(View()->HeldClaims(Uid("bad"), "main").ok());
  EXPECT_THAT(View()->HeldClaims(Uid("bad"), "main")->missing, SizeIs(1));
}

// Its object is gone, and it holds none.
TEST_F(HeldClaimsViewTest, OfAPodThatTheSourceLacksNothingIsSaid) {
  Put(MakePod("a", PodPhase::kWaiting));
  const auto claims = View()->HeldClaims(Uid("a"), "main");
  ASSERT_TRUE(claims.ok());
  EXPECT_THAT(claims->claims, IsEmpty());
  EXPECT_THAT(claims->missing, IsEmpty());
}

TEST_F(HeldClaimsViewTest, TheClaimOfExtendedResourcesIsMissingByItsGate) {
  Pod pod = UsingAClaim("a");
  pod.spec.resource_claims.clear();
  Container& container = pod.spec.containers[0];
  container.resources.claims.clear();
  const Quantity one{1, 0, "1"};
  container.resources.limits["example.com/gpu"] = one;
  container.resources.requests["example.com/gpu"] = one;
  pod.status.extended_resource_claim_status.emplace().resource_claim_name =
      "special";
  pod.status.extended_resource_claim_status->request_mappings = {
      {"main", "example.com/gpu", "r"}};
  ObjectSnapshot objects;
  objects.pods.insert_or_assign({"default", "a"}, std::make_shared<Pod>(pod));
  Show(objects);
  EXPECT_THAT(View()->HeldClaims(Uid("a"), "main")->missing, SizeIs(1));
  auto terms = std::make_shared<Terms>(*moment_.terms);
  terms->plan_options.extended_resources = false;
  moment_.terms = terms;
  EXPECT_THAT(View()->HeldClaims(Uid("a"), "main")->missing, IsEmpty());
}

}  // namespace
}  // namespace devmgr::view
