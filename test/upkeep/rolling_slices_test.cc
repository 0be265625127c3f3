// SPDX-License-Identifier: Apache-2.0
//
// Slices while a driver is updated: with the real table of its instances.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "dra/driver_registry.h"
#include "manager/driver_names.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"
#include "upkeep/slice_keeper.h"

namespace devmgr::upkeep {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CountingSink : public ObjectSink {
 public:
  void DeleteResourceSlices(const std::string& driver,
                            std::function<void(absl::Status)> done) override {
    asked.push_back(driver);
    done(absl::OkStatus());
  }
  std::vector<std::string> asked;
};

class RollingSlicesTest : public ::testing::Test {
 protected:
  dra::DriverRegistryOptions Options() {
    dra::DriverRegistryOptions options;
    options.now = [] { return WallTime(); };
    options.on_change = [this](const std::string& driver) {
      keeper_.OnDriver(driver);
    };
    return options;
  }
  static registration::Plugin Instance(const std::string& name) {
    registration::Plugin plugin;
    plugin.type = dra::DriverRegistry::kPluginType;
    plugin.name = kDriver;
    plugin.endpoint = "/" + name;
    plugin.supported_versions = {"v1.DRAPlugin"};
    return plugin;
  }
  void Come(const std::string& name) {
    EXPECT_THAT(registry_.Register(Instance(name)), IsOk());
    executor_.RunPending();
  }
  void Leave(const std::string& name) {
    registry_.Deregister(Instance(name));
    executor_.RunPending();
  }

  ManualExecutor executor_;
  events::EventLog events_{executor_, 100, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  CountingSink sink_;
  std::map<std::string, FakePeer> peers_;
  SliceKeeper keeper_{SliceKeeper::Parts{executor_, events_, &sink_,
                                         seconds(30),
                                         [this](const std::string& driver) {
                                           return registry_.IsConnected(driver);
                                         }}};
  dra::DriverRegistry registry_{executor_,
                                [this](const auto& socket, auto on_hang_up) {
                                  return peers_[socket.string()].Dial(
                                      socket, std::move(on_hang_up));
                                },
                                Options()};
};

// DRA-033, DRA-172
TEST_F(RollingSlicesTest, AnUpdateWithOverlapKeepsThem) {
  Come("a");
  for (const auto& [older, newer] :
       std::vector<std::pair<std::string, std::string>>{{"a", "b"},
                                                        {"b", "c"}}) {
    Come(newer);
    executor_.Advance(seconds(60));
    // The older one closes its socket before it takes back its registration.
    peers_["/" + older].set_dial_status(UnavailableError("nobody listens"));
    peers_["/" + older].HangUp(0);
    executor_.Advance(seconds(60));
    Leave(older);
    executor_.Advance(seconds(60));
  }
  EXPECT_THAT(sink_.asked, IsEmpty());
  Leave("c");
  executor_.Advance(seconds(30));
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver));
}

// A newer instance that never listens does not make up for the older one.
TEST_F(RollingSlicesTest, AnUpdateThatFailsTakesThemBack) {
  Come("a");
  peers_["/b"].set_dial_status(UnavailableError("nobody listens"));
  Come("b");
  executor_.Advance(seconds(60));
  EXPECT_THAT(sink_.asked, IsEmpty());
  Leave("a");
  executor_.Advance(seconds(30));
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver));
}

}  // namespace
}  // namespace devmgr::upkeep
