// SPDX-License-Identifier: Apache-2.0
//
// A driver is updated while pods come and go: two processes of it at a time,
// which share what is prepared.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/daemon.h"
#include "support/mailbox.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

class RollingUpdateTest : public ::testing::Test {
 protected:
  void StartDaemon() {
    daemon_ = std::make_unique<Daemon>(node_.root());
    inspector_ = daemon_->Inspect();
    ASSERT_NE(inspector_, nullptr) << daemon_->log();
  }
  void KillDaemon() {
    inspector_.reset();
    daemon_->Kill();
  }

  /// Waits until so many instances of the driver are connected.
  ::testing::AssertionResult WaitForInstances(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::string seen;
    while (std::chrono::steady_clock::now() < deadline) {
      seen = node_.Ctl({"get", "plugins", "-o", "json"}).out;
      const auto list = nlohmann::json::parse(seen, nullptr, false);
      std::size_t connected = 0;
      if (list.is_object()) {
        for (const auto& item : list["items"]) {
          connected += item["status"]["state"] == "Connected" ? 1 : 0;
        }
      }
      if (connected == count) return ::testing::AssertionSuccess();
      ::poll(nullptr, 0, 10);  // Another process: nothing to wait on.
    }
    return ::testing::AssertionFailure() << seen << daemon_->log();
  }

  std::unique_ptr<DriverInstance> StartInstance(const std::string& instance,
                                                std::size_t others) {
    auto driver = std::make_unique<DriverInstance>(node_.root(), instance);
    EXPECT_TRUE(WaitForInstances(others + 1)) << driver->log();
    return driver;
  }

  static std::string Name(const char* kind, int number) {
    return kind + std::to_string(number);
  }
  void Add(int number) {
    const std::string uid = Name("u-p", number);
    node_.Write(Name("p", number) + ".yaml",
                ClaimManifest(Name("c", number), Name("u-c", number),
                              {Name("gpu-", number)}, {uid}) +
                    PodManifest(Name("p", number), uid, Name("c", number)));
  }
  void Remove(int number) { node_.Remove(Name("p", number) + ".yaml"); }

  ::testing::AssertionResult Wait(int number, const std::string& state) {
    const Exit exit = node_.Ctl({"wait", "pod", Name("p", number),
                                 "--for=" + state, "--timeout", "60s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << exit.err << node_.Ctl({"describe", "pod", Name("p", number)}).out
           << daemon_->log();
  }

  /// What a pod's container gets.
  std::string Resolve(int number) {
    return node_.Ctl({"resolve", Name("p", number), "-o", "name"}).out;
  }
  static std::string Expected(int number) {
    return "gpu.example.com/claim=" + Name("u-c", number) + "-" +
           Name("gpu-", number) + "-0\n";
  }

  NodeFolder node_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Inspector> inspector_;
};

// DRA-009, DRA-172. Of the two the newer one has the name that is found first,
// and used to lose its place to the older one when devmgrd restarted.
TEST_F(RollingUpdateTest, TheNewerInstanceServesWhoeverRestarts) {
  StartDaemon();
  const auto older = StartInstance("z", 0);
  Add(0);
  ASSERT_TRUE(Wait(0, "ready"));
  const auto newer = StartInstance("a", 1);
  Add(1);
  ASSERT_TRUE(Wait(1, "ready"));
  for (int i = 2; i < 5; ++i) {
    KillDaemon();
    StartDaemon();
    ASSERT_TRUE(WaitForInstances(2));
    Add(i);
    ASSERT_TRUE(Wait(i, "ready"));
  }
  EXPECT_EQ(older->CallsFor("prepare", "c0"), 1);
  for (int i = 1; i < 5; ++i) {
    EXPECT_EQ(newer->CallsFor("prepare", Name("c", i)), 1) << newer->log();
    EXPECT_EQ(older->CallsFor("prepare", Name("c", i)), 0) << older->log();
  }

  EXPECT_EQ(older->Terminate(), 0);
  ASSERT_TRUE(WaitForInstances(1));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Resolve(i), Expected(i));
  for (int i = 0; i < 5; ++i) {
    Remove(i);
    ASSERT_TRUE(Wait(i, "released"));
    EXPECT_EQ(newer->CallsFor("unprepare", Name("c", i)), 1) << newer->log();
  }
  EXPECT_EQ(node_.cdi_files(), 0u);
}

TEST_F(RollingUpdateTest, TheOlderInstanceServesWhenTheNewerDies) {
  StartDaemon();
  const auto older = StartInstance("old", 0);
  const auto newer = StartInstance("new", 1);
  Add(0);
  ASSERT_TRUE(Wait(0, "ready"));
  newer->Kill();
  ASSERT_TRUE(WaitForInstances(1));
  Add(1);
  ASSERT_TRUE(Wait(1, "ready"));
  Remove(0);
  ASSERT_TRUE(Wait(0, "released"));
  EXPECT_EQ(newer->CallsFor("prepare", "c0"), 1);
  EXPECT_EQ(older->CallsFor("prepare", "c1"), 1);
  EXPECT_EQ(older->CallsFor("unprepare", "c0"), 1);
  EXPECT_EQ(node_.cdi_files(), 1u);
}

// Pods come and go without a pause, and so do instances; devmgrd is killed in
// the middle of an update.
TEST_F(RollingUpdateTest, NobodyWaitsForAnUpdate) {
  const int pods = 24 * TestScale();
  StartDaemon();
  auto driver = StartInstance("0", 0);
  for (int i = 0; i < pods; ++i) {
    Add(i);
    if (i % 6 != 5) continue;
    auto next = StartInstance(std::to_string(i), 1);
    if (i % 12 == 11) {
      KillDaemon();
      StartDaemon();
      ASSERT_TRUE(WaitForInstances(2));
    }
    EXPECT_EQ(driver->Terminate(), 0);
    driver = std::move(next);
    Remove(i - 5);
  }
  for (int i = 0; i < pods; ++i) {
    if (i % 6 == 0) {
      ASSERT_TRUE(Wait(i, "released"));
      continue;
    }
    ASSERT_TRUE(Wait(i, "ready"));
    EXPECT_EQ(Resolve(i), Expected(i));
  }
  for (int i = 0; i < pods; ++i) {
    if (i % 6 != 0) Remove(i);
  }
  for (int i = 0; i < pods; ++i) ASSERT_TRUE(Wait(i, "released"));
  EXPECT_EQ(node_.cdi_files(), 0u);
  EXPECT_EQ(nlohmann::json::parse(node_.Ctl({"get", "debts", "-o", "json"}).out)
                .at("items")
                .size(),
            0u);
}

}  // namespace
}  // namespace devmgr
