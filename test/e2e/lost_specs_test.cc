// SPDX-License-Identifier: Apache-2.0
//
// A manager with a real driver whose spec files are deleted: a reboot of the
// directory in memory without a reboot of the node.
#include <devmgr/actuator.h>
#include <devmgr/cdi_cache.h>
#include <devmgr/device_manager.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
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
    driver_ = node_.StartDriver();
    ASSERT_NE(driver_, nullptr);
    node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                              PodManifest("p", "u-p", "c1"));
    source_ = WatchManifests(node_.root() / "manifests");
    DeviceManagerOptions options;
    options.state_dir = node_.root() / "state";
    options.plugin_registry_dir = node_.root() / "plugins_registry";
    options.cdi_spec_dirs = {node_.root() / "cdi"};
    Host host;
    host.objects = source_.get();
    auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
    manager_->AddObserver(&listener_);
    actuator_ = Actuator::Start(*manager_);
    ASSERT_TRUE(WaitUntilReady());
  }
  void TearDown() override {
    actuator_.reset();
    if (manager_ != nullptr) manager_->RemoveObserver(&listener_);
    manager_.reset();
  }

  bool WaitUntilReady() {
    return listener_.WaitUntil([this] {
      const auto pod = manager_->PodInfoOf(kPod);
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
  std::unique_ptr<Actuator> actuator_;
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

}  // namespace
}  // namespace devmgr
