// SPDX-License-Identifier: Apache-2.0
//
// Health streams of drivers, through the registry that opens them.
#include "dra/health_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "devmgr/wire/dra/health/v1/health.pb.h"
#include "dra/driver_registry.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

namespace health_v1 = wire::dra::health::v1;
using registration::Plugin;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kSocketA[] = "/a.sock";
constexpr char kSocketB[] = "/b.sock";
constexpr char kV1[] = "/v1.DRAResourceHealth/NodeWatchResources";
constexpr char kV1Alpha1[] = "/v1alpha1.DRAResourceHealth/NodeWatchResources";

const std::vector<std::string> kBoth = {
    "v1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"};

std::string ReportOf(const std::string& device) {
  health_v1::NodeWatchResourcesResponse report;
  health_v1::DeviceHealth* item = report.add_devices();
  item->mutable_device()->set_pool_name("pool");
  item->mutable_device()->set_device_name(device);
  item->set_health(health_v1::HEALTHY);
  return report.SerializeAsString();
}

class HealthWatchTest : public ::testing::Test, public HealthListener {
 protected:
  HealthWatchTest()
      : registry_(
            executor_,
            [this](const auto& socket, auto on_hang_up) {
              return peer_.Dial(socket, std::move(on_hang_up));
            },
            Options()) {
    registry_.WatchHealth(*this);
    peer_.AnswerProbes("");
  }

  static DriverRegistryOptions Options() {
    DriverRegistryOptions options;
    options.now = [] { return WallTime(); };
    options.on_change = [](const std::string&) {};
    return options;
  }

  void OnHealthReport(
      const std::string& driver,
      const std::vector<device::DeviceReport>& report) override {
    EXPECT_EQ(driver, kDriver);
    for (const auto& one : report) heard_.push_back(one.device.second);
  }
  void OnHealthLost(const std::string& driver,
                    const std::string& why) override {
    EXPECT_EQ(driver, kDriver);
    heard_.push_back("lost: " + why);
  }

  static Plugin PluginAt(const std::string& endpoint,
                         std::vector<std::string> versions = kBoth) {
    Plugin plugin = {DriverRegistry::kPluginType, kDriver, endpoint,
                     std::move(versions), "/reg.sock"};
    plugin.registration = std::hash<std::string>()(endpoint);
    return plugin;
  }
  void Register(const std::string& endpoint,
                std::vector<std::string> versions = kBoth) {
    EXPECT_THAT(registry_.Register(PluginAt(endpoint, std::move(versions))),
                IsOk());
    executor_.RunPending();
  }

  /// Health streams opened so far, as endpoint and method.
  std::vector<std::string> Opened() const {
    std::vector<std::string> opened;
    for (const auto& call : peer_.calls()) {
      EXPECT_EQ(call.timeout, milliseconds(0));
      opened.push_back(peer_.dialed().at(call.connection) + call.method);
    }
    return opened;
  }
  std::size_t Last() const { return peer_.calls().size() - 1; }
  void Send(const std::string& device) {
    peer_.SendMessage(Last(), ReportOf(device));
    executor_.RunPending();
  }
  /// The last stream ends.
  void End(const absl::Status& status) {
    peer_.EndStream(Last(), status);
    executor_.RunPending();
  }
  std::vector<std::string> Heard() { return std::exchange(heard_, {}); }

  ManualExecutor executor_;
  FakePeer peer_;
  std::vector<std::string> heard_;
  DriverRegistry registry_;
};

TEST_F(HealthWatchTest, WhatADriverReportsIsHeard) {
  Register(kSocketA);
  EXPECT_THAT(Opened(), ElementsAre(std::string(kSocketA) + kV1));
  Send("gpu-0");
  EXPECT_THAT(Heard(), ElementsAre("gpu-0"));
  Send("gpu-1");
  EXPECT_THAT(Heard(), ElementsAre("gpu-1"));
}

TEST_F(HealthWatchTest, ABurstOfReportsIsReadWithoutAPause) {
  Register(kSocketA);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(peer_.calls()[0].reading) << i;
    Send("gpu-0");
  }
}

TEST_F(HealthWatchTest, ReportsWithoutEndGetTheirShareAndNoMore) {
  Register(kSocketA);
  int reports = 0;
  for (; peer_.calls()[0].reading; ++reports) {
    ASSERT_LT(reports, 100'000);
    Send("gpu-0");
  }
  EXPECT_GT(reports, 1'000);
  executor_.Advance(milliseconds(1));
  EXPECT_TRUE(peer_.calls()[0].reading);
  Send("gpu-0");
  EXPECT_FALSE(peer_.calls()[0].reading);
}

// Each that waited was taken in after the other.
TEST_F(HealthWatchTest, ReportsThatWaitAreTakenInAsOne) {
  Register(kSocketA);
  while (peer_.calls()[0].reading) Send("gpu-0");
  Heard();
  // Each is about another device, so none may be left out.
  Send("gpu-1");
  Send("gpu-2");
  Send("gpu-1");
  EXPECT_THAT(Heard(), IsEmpty());
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(Heard(), ElementsAre("gpu-1", "gpu-2", "gpu-1"));
  executor_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Heard(), IsEmpty());
}

TEST_F(HealthWatchTest, TheOldServiceIsSpokenToo) {
  Register(kSocketA, {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"});
  EXPECT_THAT(Opened(), ElementsAre(std::string(kSocketA) + kV1Alpha1));
}

TEST_F(HealthWatchTest, WhoDoesNotOfferItIsNotAsked) {  // DRA-159
  Register(kSocketA, {"v1.DRAPlugin"});
  executor_.Advance(std::chrono::hours(1));
  EXPECT_THAT(Opened(), IsEmpty());
}

TEST_F(HealthWatchTest, WhoDoesNotKnowTheCallIsAskedOnce) {  // DRA-159
  Register(kSocketA);
  End(UnimplementedError("unknown service"));
  EXPECT_THAT(Heard(), ElementsAre("lost: unknown service"));
  executor_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Opened().size(), 1u);
  // Nor over another connection, but another instance is.
  peer_.HangUp(0);
  executor_.Advance(milliseconds(50));
  EXPECT_EQ(peer_.dialed().size(), 2u);
  EXPECT_EQ(Opened().size(), 1u);
  Register(kSocketB);
  EXPECT_EQ(Opened().size(), 2u);
  EXPECT_THAT(Heard(), IsEmpty());
}

TEST_F(HealthWatchTest, TheEndOfAStreamIsTold) {  // DRA-148
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  End(absl::OkStatus());
  EXPECT_THAT(Heard(), ElementsAre("lost: the driver ended the stream"));
}

TEST_F(HealthWatchTest, AStreamThatFailsIsTold) {  // DRA-149
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  End(InternalError("boom"));
  EXPECT_THAT(Heard(), ElementsAre("lost: boom"));
}

// Once told with an empty text.
TEST_F(HealthWatchTest, AStreamThatEndsWithoutATextIsToldWithItsCode) {
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  End(InternalError(""));
  EXPECT_THAT(Heard(),
              ElementsAre("lost: the driver ended the stream with code 13"));
}

TEST_F(HealthWatchTest, AStreamThatEndsIsOpenedAgainWithABackOff) {
  Register(kSocketA);
  std::size_t opened = 1;
  for (const int delay : {1'000, 2'000, 4'000, 8'000, 16'000, 30'000, 30'000}) {
    End(UnavailableError("not now"));
    executor_.Advance(milliseconds(delay - 1));
    EXPECT_EQ(Opened().size(), opened) << delay;
    executor_.Advance(milliseconds(1));
    EXPECT_EQ(Opened().size(), ++opened) << delay;
  }
  EXPECT_THAT(Heard(), IsEmpty());  // There was nothing to lose.
  Send("gpu-0");
  End(UnavailableError("not now"));
  executor_.Advance(HealthWatch::kFirstRetry);
  EXPECT_EQ(Opened().size(), ++opened);
}

TEST_F(HealthWatchTest, GarbageEndsTheStream) {
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  peer_.SendMessage(Last(), "\xff\xff");
  executor_.RunPending();
  EXPECT_THAT(Heard(), ElementsAre("lost: 2 bytes are not a health report"));
  executor_.Advance(HealthWatch::kFirstRetry);
  EXPECT_EQ(Opened().size(), 2u);
}

TEST_F(HealthWatchTest, ADriverThatComesBackIsListenedToAtOnce) {  // DRA-173
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  peer_.HangUp(0);
  executor_.RunPending();
  EXPECT_EQ(Heard().size(), 1u);
  executor_.Advance(milliseconds(50));
  EXPECT_THAT(Opened(), ElementsAre(std::string(kSocketA) + kV1,
                                    std::string(kSocketA) + kV1));
  Send("gpu-0");
  EXPECT_THAT(Heard(), ElementsAre("gpu-0"));
  // The attempt that was due for the lost stream opens none.
  executor_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Opened().size(), 2u);
}

TEST_F(HealthWatchTest, TheLastInstanceEndsIt) {
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  registry_.Deregister(PluginAt(kSocketA));
  executor_.RunPending();
  EXPECT_THAT(Heard(), ElementsAre("lost: the driver is gone"));
  executor_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Opened().size(), 1u);
  EXPECT_EQ(executor_.timers(), 0u);
}

// The kubelet opens a stream for each; the end of one clears what the other
// told.
TEST_F(HealthWatchTest, TheNewestInstanceTakesOverWithoutAGap) {
  Register(kSocketA);
  Send("gpu-0");
  Register(kSocketB);
  EXPECT_THAT(Opened(), ElementsAre(std::string(kSocketA) + kV1,
                                    std::string(kSocketB) + kV1));
  EXPECT_FALSE(static_cast<bool>(peer_.calls()[0].stream.on_end));
  registry_.Deregister(PluginAt(kSocketA));
  executor_.RunPending();
  Send("gpu-1");
  EXPECT_THAT(Heard(), ElementsAre("gpu-0", "gpu-1"));
  EXPECT_EQ(Opened().size(), 2u);
}

TEST_F(HealthWatchTest, ThereIsNoWayBackToAnOlderInstanceThatOffersIt) {
  Register(kSocketA);
  Send("gpu-0");
  Heard();
  Register(kSocketB, {"v1.DRAPlugin"});
  EXPECT_EQ(Heard().size(), 1u);
  executor_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Opened().size(), 1u);
  // But there is when the newest has left.
  registry_.Deregister(PluginAt(kSocketB));
  executor_.RunPending();
  EXPECT_EQ(Opened().size(), 2u);
}

TEST_F(HealthWatchTest, WhatAnOlderStreamStillSaysDoesNotCount) {
  Register(kSocketA);
  const auto late = peer_.calls()[0].stream;
  Register(kSocketB);
  late.on_message(ReportOf("late"));
  late.on_end(InternalError("late"));
  executor_.RunPending();
  EXPECT_THAT(Heard(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::dra
