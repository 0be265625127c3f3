// SPDX-License-Identifier: Apache-2.0
//
// What a shim did and saw reaches the manager, in its own process or another.
#include <devmgr/inspection.h>
#include <devmgr/runtime_report.h>

#include <set>
#include <vector>

#include "common/unique_fd.h"
#include "rpc/unix_socket.h"
#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Mode { kManager, kDaemon };

class ShimReportTest : public ShimTest,
                       public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    if (GetParam() == Mode::kManager) return;
    StartDaemon();
    options_.manager = nullptr;
    options_.devmgrd = Path("devmgr.sock");
  }
  void TearDown() override {
    ShimTest::TearDown();
    daemon_.reset();
  }

  void StartDaemon() {
    auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
    ASSERT_THAT(server, IsOk());
    daemon_ = *std::move(server);
  }

  std::vector<RuntimeReport> Reports() {
    std::vector<RuntimeReport> reports;
    manager_.Set(
        [&](FakeDeviceManager::World& world) { reports = world.reports; });
    return reports;
  }
  /// The first event of that reason that was reported; waits for it.
  EventInfo Reported(const std::string& reason) {
    EventInfo found;
    EXPECT_TRUE(Eventually([&] {
      for (const RuntimeReport& report : Reports()) {
        for (const EventInfo& event : report.events) {
          if (event.reason != reason) continue;
          found = event;
          return true;
        }
      }
      return false;
    })) << reason;
    return found;
  }
  bool EventuallyCounts(const std::function<bool(const RuntimeCounters&)>& as) {
    return Eventually([&] {
      const auto reports = Reports();
      return !reports.empty() && as(reports.back().counters);
    });
  }

  std::unique_ptr<InspectionServer> daemon_;
};

TEST_P(ShimReportTest, TellsEventsAndCounters) {
  WriteSpec(R"({"hooks": [{"hookName": "createContainer", "path": "/bin/ctk",
                "args": ["ctk", "hook", "update-ldcache"]}]})");
  ContainerDevices devices;
  devices.cdi_devices = {{"v.com/c=1", {}}};
  devices.env = {{"K", "plugin", "r"}};
  Give(devices);
  options_.fallback.hooks = CriPolicy::kWarn;
  Start("1.6.33");
  Created(ForContainer());
  const EventInfo event = Reported("DeviceEdit");
  EXPECT_TRUE(event.warning);
  EXPECT_EQ(event.object_kind, "Pod");
  EXPECT_EQ(event.object.ToString(), "ns/p");
  EXPECT_THAT(event.message, AllOf(HasSubstr("'c'"), HasSubstr("'/bin/ctk'"),
                                   HasSubstr("'hook' 'update-ldcache'")));
  EXPECT_TRUE(EventuallyCounts([](const RuntimeCounters& counters) {
    return counters.injected == 1 && counters.containers == 1 &&
           counters.calls == 1;
  }));
  const RuntimeReport report = Reports().back();
  EXPECT_EQ(report.runtime, "containerd 1.6.33");
  EXPECT_EQ(report.listen, Path().string());
  EXPECT_EQ(report.endpoint, Path("runtime.sock").string());
  EXPECT_FALSE(report.over);
  EXPECT_EQ(shim_->Info().events.at("DeviceEdit"), 1U);
}

TEST_P(ShimReportTest, WarnsOfAContainerThatItsPodDoesNotHave) {
  Give(OneOfEach());
  Start();
  EXPECT_THAT(NamesOf(Created(ForContainer("debugger"))), IsEmpty());
  const EventInfo event = Reported("ContainerNotInPod");
  EXPECT_TRUE(event.warning);
  EXPECT_THAT(event.message,
              AllOf(HasSubstr("'debugger'"), HasSubstr("without devices"),
                    HasSubstr("'ns/p'"), HasSubstr("'c', 'none'")));
  Created(ForContainer("none"));
  EXPECT_EQ(shim_->Info().events.at("ContainerNotInPod"), 1U);
}

TEST_P(ShimReportTest, ListsContainersOfUnknownPods) {
  ListItems();
  Start();
  const EventInfo event = Reported("UnknownContainers");
  EXPECT_TRUE(event.warning);
  EXPECT_THAT(event.message,
              AllOf(HasSubstr("container-9"), HasSubstr("'ns/p'")));
  EXPECT_THAT(
      shim_->Info().unknown_containers,
      ElementsAre(UnknownContainer{"container-9", "c", {"ns", "p"}, {kUid}}));
  EXPECT_TRUE(EventuallyCounts([](const RuntimeCounters& counters) {
    return counters.unknown_containers == 1;
  }));
  // By then it is known.
  Give(OneOfEach());
  EXPECT_TRUE(
      Eventually([&] { return shim_->Info().unknown_containers.empty(); }));
  EXPECT_TRUE(EventuallyCounts([](const RuntimeCounters& counters) {
    return counters.unknown_containers == 0;
  }));
}

TEST_P(ShimReportTest, TellsOfCallersThatAreTurnedAway) {
  options_.proxy.max_connections = 2;
  Start();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 50; ++i) {
    auto fd = rpc::ConnectUnix(Path());
    ASSERT_THAT(fd, IsOk());
    silent.push_back(*std::move(fd));
  }
  const EventInfo event = Reported("CallersTurnedAway");
  EXPECT_TRUE(event.warning);
  EXPECT_EQ(event.object_kind, "Runtime");
  EXPECT_EQ(event.message,
            "'" + Path().string() +
                "': 2 callers are connected, which is the limit; one was hung "
                "up on");
  EXPECT_TRUE(EventuallyCounts([](const RuntimeCounters& counters) {
    return counters.turned_away >= 48;
  }));
  EXPECT_LE(shim_->Info().events.at("CallersTurnedAway"), 6U);
  EXPECT_GE(shim_->Stats().turned_away, 48U);
}

TEST_P(ShimReportTest, RepeatsAReportUntilItIsTaken) {
  const auto set_status = [&](const absl::Status& status) {
    manager_.Set(
        [&](FakeDeviceManager::World& world) { world.report_status = status; });
  };
  set_status(absl::ResourceExhaustedError("too many"));
  Give(OneOfEach());
  Start();
  Created(ForContainer("debugger"));
  EXPECT_EQ(NextWarning(), "ContainerNotInPod");
  EXPECT_THAT(Reports(), IsEmpty());
  set_status(absl::OkStatus());
  Reported("ContainerNotInPod");
  std::set<std::uint64_t> numbers;
  for (const RuntimeReport& report : Reports()) {
    for (const EventInfo& event : report.events) {
      EXPECT_TRUE(numbers.insert(event.sequence).second) << event.reason;
    }
  }
}

TEST_P(ShimReportTest, SaysThatItEnds) {
  Start();
  Reported("RuntimeCdi");
  const std::string session = Reports().front().session;
  client_.reset();
  shim_.reset();
  ASSERT_TRUE(Eventually([&] { return Reports().back().over; }));
  EXPECT_EQ(Reports().back().session, session);
}

INSTANTIATE_TEST_SUITE_P(Modes, ShimReportTest,
                         ::testing::Values(Mode::kManager, Mode::kDaemon),
                         [](const auto& mode) {
                           return mode.param == Mode::kManager ? "Manager"
                                                               : "Daemon";
                         });

class ShimDaemonReportTest : public ShimReportTest {};

TEST_P(ShimDaemonReportTest, TellsADaemonThatIsNewWhatItHasCounted) {
  Give(OneOfEach());
  Start();
  Created(ForContainer());
  ASSERT_TRUE(EventuallyCounts(
      [](const RuntimeCounters& counters) { return counters.injected == 1; }));
  daemon_.reset();
  manager_.Set([](FakeDeviceManager::World& world) { world.reports.clear(); });
  StartDaemon();
  EXPECT_TRUE(EventuallyCounts(
      [](const RuntimeCounters& counters) { return counters.injected == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Modes, ShimDaemonReportTest,
                         ::testing::Values(Mode::kDaemon),
                         [](const auto&) { return "Daemon"; });

}  // namespace
}  // namespace devmgr
