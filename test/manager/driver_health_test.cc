// SPDX-License-Identifier: Apache-2.0
//
// The health of devices from a driver's socket to the status of a pod.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using testing::FakeDraDriver;
using testing::FakeDraDriverOptions;
using testing::ScenarioStep;

class DriverHealthTest : public ::testing::Test, public DeviceManagerObserver {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ / "manifests");
    std::ofstream(root_ / "manifests" / "all.yaml")
        << ClaimYaml("c", "u-c", {kDriver}, {"u-p"}) +
               PodYaml("p", "u-p", {"c"});
  }
  void TearDown() override { manager_.reset(); }
  void OnPod(const PodInfo&, bool) override { changed_.Put(0); }
  void OnResourceHealth(const std::vector<PodUid>&) override {
    changed_.Put(0);
  }
  void OnEvent(const EventInfo&) override { changed_.Put(0); }

  FakeDraDriverOptions Options(const std::string& health) const {
    FakeDraDriverOptions options;
    options.name = kDriver;
    options.root = root_;
    options.health = health;
    return options;
  }

  void StartDriver(const FakeDraDriverOptions& options) {
    auto started = FakeDraDriver::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    driver_ = *std::move(started);
  }

  void StartManager() {
    source_ = WatchManifests(root_ / "manifests");
    DeviceManagerOptions options;
    options.ledger.in_memory = true;
    options.plugin_registry_dir = root_ / "plugins_registry";
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = source_.get();
    host.observers = {this};
    auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
  }

  /// `health: message` of the one device of the pod.
  std::string Shown() {
    const auto pod = manager_->View()->PodInfoOf(PodUid{"u-p"});
    if (!pod.ok() || pod->allocated_resources.empty()) return "";
    const ResourceHealth& device =
        pod->allocated_resources[0].resources.at(0).resources.at(0);
    return std::string(device.health.name()) + ": " + device.message;
  }
  bool WaitUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  ::testing::AssertionResult WaitForShown(const std::string& text) {
    if (WaitUntil([&] { return Shown() == text; })) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "shown is " << Shown();
  }
  bool WaitForEvent(const std::string& reason) {
    return WaitUntil([&] {
      for (const EventInfo& event : manager_->Events(0)) {
        if (event.reason == reason) return true;
      }
      return false;
    });
  }

  const TempFolder folder_;
  const std::filesystem::path root_ = folder_.path();
  Mailbox<int> changed_;
  std::unique_ptr<FakeDraDriver> driver_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<DeviceManager> manager_;
};

TEST_F(DriverHealthTest, ReachesThePodInBothVersions) {  // DRA-142
  for (const char* version : {"v1", "v1alpha1"}) {
    StartDriver(Options(version));
    if (manager_ == nullptr) StartManager();
    ASSERT_TRUE(WaitForShown("Healthy: ")) << version;
    driver_->SetHealth("pool-1", "dev-1", "Unhealthy", "too hot");
    ASSERT_TRUE(WaitForShown("Unhealthy: too hot")) << version;
    driver_->SetHealth("pool-1", "dev-1", "Healthy", "");
    ASSERT_TRUE(WaitForShown("Healthy: ")) << version;
    EXPECT_EQ(driver_->open_health_streams(), 1u);
    driver_.reset();
    ASSERT_TRUE(WaitForShown("Unknown: ")) << version;
  }
}

TEST_F(DriverHealthTest, IsUnknownWhileTheDriverIsAway) {  // DRA-173
  StartDriver(Options("v1"));
  StartManager();
  ASSERT_TRUE(WaitForShown("Healthy: "));
  driver_.reset();
  ASSERT_TRUE(WaitForShown("Unknown: "));
  StartDriver(Options("v1"));
  ASSERT_TRUE(WaitForShown("Healthy: "));
}

TEST_F(DriverHealthTest, AStreamThatEndsIsOpenedAgain) {  // DRA-148, DRA-149
  StartDriver(Options("v1"));
  StartManager();
  for (const absl::Status& status :
       {absl::OkStatus(), InternalError("no more")}) {
    ASSERT_TRUE(WaitForShown("Healthy: "));
    driver_->DropHealthStreams(status);
    ASSERT_TRUE(WaitForShown("Unknown: "));
  }
  ASSERT_TRUE(WaitForShown("Healthy: "));
}

TEST_F(DriverHealthTest, ADriverThatPromisesTooMuchIsAskedOnce) {  // DRA-159
  FakeDraDriverOptions options = Options("");
  options.supported_versions = {"v1.DRAPlugin", "v1.DRAResourceHealth"};
  StartDriver(options);
  StartManager();
  EXPECT_TRUE(WaitForEvent("DriverHealthLost"));
  EXPECT_TRUE(WaitForShown("Unknown: "));
}

TEST_F(DriverHealthTest, AStepOfAScenarioSetsIt) {
  FakeDraDriverOptions options = Options("v1");
  ScenarioStep step;
  step.action = ScenarioStep::Action::kSetHealth;
  step.method = "prepare";
  step.device = "pool-1/dev-1";
  step.message = "Unhealthy: as the scenario says";
  options.scenario = {step};
  StartDriver(options);
  StartManager();
  EXPECT_TRUE(WaitForShown("Unhealthy: as the scenario says"));
}

}  // namespace
}  // namespace devmgr
