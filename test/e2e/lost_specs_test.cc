// SPDX-License-Identifier: Apache-2.0
//
// A manager with a real driver whose spec files are deleted: a reboot of the
// directory in memory without a reboot of the node.
#include <devmgr/cdi_cache.h>
#include <devmgr/device_manager.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>

#include "e2e/daemon.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kWaitLimit{30};

/// Hears of pods and events.
class Listener : public DeviceManagerObserver {
 public:
  void OnPod(const PodInfo&, bool) override { Changed(); }
  void OnEvent(const EventInfo&) override { Changed(); }

  bool WaitUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kWaitLimit;
    for (;;) {
      const int seen = Changes();
      if (condition()) return true;
      std::unique_lock<std::mutex> lock(mutex_);
      if (!changed_.wait_until(lock, deadline,
                               [&] { return changes_ != seen; })) {
        return false;
      }
    }
  }

 private:
  void Changed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++changes_;
    changed_.notify_all();
  }
  int Changes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return changes_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
};

class LostSpecsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                              PodManifest("p", "u-p", "c1"));
    StartDriver("");
    Open("boot-1");
    ASSERT_TRUE(WaitUntilReady());
  }
  void TearDown() override { Close(); }

  /// With a scenario; empty: none.
  void StartDriver(const std::string& scenario) {
    testing::FakeDraDriverOptions options;
    if (!scenario.empty()) {
      const fs::path file = node_.root() / "scenario.yaml";
      std::ofstream(file) << scenario;
      const auto steps = testing::ReadScenario(file);
      ASSERT_TRUE(steps.ok()) << steps.status();
      options.scenario = *steps;
    }
    driver_.reset();
    driver_ = node_.StartDriver(std::move(options));
    ASSERT_NE(driver_, nullptr);
  }

  void Open(const std::string& boot_id) {
    source_ = WatchManifests(node_.root() / "manifests");
    DeviceManagerOptions options;
    options.state_dir = node_.root() / "state";
    options.plugin_registry_dir = node_.root() / "plugins_registry";
    options.cdi_spec_dirs = {node_.root() / "cdi"};
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = source_.get();
    host.observers = {&listener_};
    host.boot_id = [boot_id] { return boot_id; };
    auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
  }
  void Close() { manager_.reset(); }

  bool WaitUntilReady() {
    return listener_.WaitUntil([this] {
      const auto pod = manager_->View()->PodInfoOf(kPod);
      return pod.ok() && pod->state == PodState::kReady;
    });
  }
  absl::Status BeforeStart() {
    return manager_->BeforeContainerStart(kPod, "c");
  }
  /// What the runtime would find of what the container is to get.
  bool IsDefined() {
    const auto devices = manager_->ContainerDevicesOf(kPod, "c");
    if (!devices.ok()) return false;
    CdiCacheOptions options;
    options.directories = {node_.root() / "cdi"};
    options.watch = false;
    const auto cache = CdiCache::Open(options);
    if (!cache.ok()) return false;
    for (const CdiDevice& device : (*devices)->cdi_devices) {
      if ((*cache)->Registry()->Find(device.name) == nullptr) return false;
    }
    return !(*devices)->cdi_devices.empty();
  }

  const PodUid kPod{"u-p"};
  NodeFolder node_;
  Listener listener_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<DeviceManager> manager_;
};

TEST_F(LostSpecsTest, TheDriverWritesThemAgainBeforeTheContainerStarts) {
  EXPECT_TRUE(BeforeStart().ok());
  EXPECT_TRUE(IsDefined());
  // As when the directory in memory is made anew.
  fs::remove_all(node_.root() / "cdi");
  const absl::Status lost = BeforeStart();
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("'default/c1'"));
  ASSERT_TRUE(driver_->WaitForCalls(2, kWaitLimit));
  ASSERT_TRUE(WaitUntilReady());
  EXPECT_TRUE(IsDefined());
  EXPECT_TRUE(BeforeStart().ok());
  EXPECT_EQ(driver_->Calls().size(), 2u);
  bool is_told = false;
  for (const EventInfo& event : manager_->Events(0)) {
    is_told = is_told || event.reason == "Repaired";
  }
  EXPECT_TRUE(is_told);
}

/// As stock drivers, which answer a claim of their checkpoint from it.
constexpr char kRemembers[] =
    "steps:\n- {action: remember, method: prepare, times: 0}\n";

class RememberingDriverTest : public LostSpecsTest {
 protected:
  void SetUp() override {
    LostSpecsTest::SetUp();
    // It has the claim on disk by now.
    StartDriver(kRemembers);
    ASSERT_TRUE(driver_->WaitForRegistrations(1, kWaitLimit));
  }
  std::vector<bool> Prepares() const {
    std::vector<bool> prepares;
    for (const auto& call : driver_->Calls()) {
      prepares.push_back(call.method == "prepare");
    }
    return prepares;
  }
  const std::vector<bool> kRenewal = {true, false, true};
};

TEST_F(RememberingDriverTest, UnpreparesAndPreparesWhatNoContainerRunsWith) {
  fs::remove_all(node_.root() / "cdi");
  EXPECT_EQ(BeforeStart().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(driver_->WaitForCalls(3, kWaitLimit));
  ASSERT_TRUE(WaitUntilReady());
  EXPECT_TRUE(IsDefined());
  EXPECT_TRUE(BeforeStart().ok());
  EXPECT_EQ(Prepares(), kRenewal);
}

// The specs were in memory, the driver's checkpoint on disk. The container ran
// before, and no other has started yet.
TEST_F(RememberingDriverTest, UnpreparesAndPreparesAfterAReboot) {
  EXPECT_TRUE(BeforeStart().ok());
  Close();
  fs::remove_all(node_.root() / "cdi");
  Open("boot-2");
  ASSERT_TRUE(WaitUntilReady());
  EXPECT_TRUE(IsDefined());
  EXPECT_TRUE(BeforeStart().ok());
  EXPECT_EQ(Prepares(), kRenewal);
}

TEST_F(RememberingDriverTest, SaysWhatHelpsWhereAContainerMayRun) {
  EXPECT_TRUE(BeforeStart().ok());
  fs::remove_all(node_.root() / "cdi");
  EXPECT_EQ(BeforeStart().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(driver_->WaitForCalls(1, kWaitLimit));
  ASSERT_TRUE(WaitUntilReady());
  for (int i = 0; i < 2; ++i) {
    const auto report = manager_->maintenance().Fsck(FsckMode::kRepair);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->repairs.empty());
    ASSERT_EQ(report->findings.size(), 1u);
    EXPECT_THAT(report->findings[0].hint, HasSubstr("delete these pods"));
  }
  EXPECT_EQ(Prepares(), std::vector<bool>{true});
}

}  // namespace
}  // namespace devmgr
