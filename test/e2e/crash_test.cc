// SPDX-License-Identifier: Apache-2.0
//
// devmgrd is killed at random moments, most of them while drivers prepare and
// unprepare and a device plugin allocates, some of them between an answer of
// these and its record. Whatever was answered before must hold afterwards.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "checkpoint/ledger_store.h"
#include "e2e/daemon.h"
#include "support/mailbox.h"
#include "support/random_lives.h"

namespace devmgr {
namespace {

using testing::FakeDraDriver;
using testing::FakeDraDriverOptions;
using testing::ScenarioStep;

int Kills() {
  const char* scale = std::getenv("DEVMGR_TEST_SCALE");
  const double factor = scale != nullptr ? std::atof(scale) : 1.0;
  return std::max(10, static_cast<int>(200 * factor));
}

/// What its containers get of drivers and plugins.
std::vector<std::string> IdsOf(const PodDevices& devices) {
  std::vector<std::string> ids;
  for (const ContainerDevices& container : devices.containers) {
    for (const CdiDevice& device : container.cdi_devices) {
      ids.push_back(device.name);
    }
    for (const NamedValue& variable : container.env) {
      ids.push_back(variable.name + "=" + variable.value);
    }
  }
  return ids;
}

int MillisecondsSince(std::chrono::steady_clock::time_point begin) {
  const auto took = std::chrono::steady_clock::now() - begin;
  return static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
}

class CrashTest : public ::testing::Test {
 protected:
  static constexpr int kPods = 6;

  struct PodOnDisk {
    bool present = false;
    int incarnation = 0;
  };

  static std::string NameOf(int pod) { return "p" + std::to_string(pod); }
  static std::string FileOf(int pod) { return NameOf(pod) + ".yaml"; }

  /// Two pods share a claim; claims of the others are their own.
  void Toggle(int pod) {
    PodOnDisk& on_disk = pods_[pod];
    on_disk.present = !on_disk.present;
    if (!on_disk.present) {
      node_.Remove(FileOf(pod));
      return;
    }
    ++on_disk.incarnation;
    const std::string uid =
        NameOf(pod) + "-" + std::to_string(on_disk.incarnation);
    uids_[pod] = uid;
    std::string text;
    std::string claim = "shared";
    if (pod >= 2) {
      claim = "c" + std::to_string(pod);
      text = ClaimManifest(claim, claim + "-uid-" + uid, {"gpu-1", "gpu-2"},
                           {uid});
    }
    // Three want two of four devices each.
    const int tpus = pod >= 3 ? 2 : 0;
    node_.Write(FileOf(pod), text + PodManifest(NameOf(pod), uid, claim, tpus));
    WriteShared();
  }

  void WriteShared() {
    std::vector<std::string> uids;
    for (const int pod : {0, 1}) {
      if (!uids_[pod].empty()) uids.push_back(uids_[pod]);
    }
    node_.Write("shared.yaml",
                ClaimManifest("shared", "shared-uid", {"gpu-0"}, uids));
  }

  /// Asks about all pods until devmgrd is gone; keeps the last answers.
  void Listen(Inspector& inspector) {
    for (;;) {
      for (int pod = 0; pod < kPods; ++pod) {
        const auto info = inspector.FindPod({"default", NameOf(pod)});
        if (absl::IsNotFound(info.status())) {
          answers_[pod].reset();
          continue;
        }
        if (!info.ok()) return;
        const auto devices = inspector.Resolve({"default", NameOf(pod)});
        if (absl::IsNotFound(devices.status())) {
          answers_[pod].reset();
          continue;
        }
        if (devices.ok()) {
          answers_[pod] = std::pair(devices->uid, IdsOf(*devices));
        } else if (absl::IsFailedPrecondition(devices.status())) {
          answers_[pod].reset();  // not ready: nothing was promised
        } else {
          return;
        }
      }
    }
  }

  /// Nothing that was answered is missing, nothing is half.
  void CheckReopened() {
    const auto contents = checkpoint::ReadStoppedStore(node_.root() / "state");
    ASSERT_TRUE(contents.ok()) << contents.status();
    for (const std::string& violation :
         state::CheckInvariants(contents->state)) {
      ADD_FAILURE() << violation;
    }
    for (int pod = 0; pod < kPods; ++pod) {
      if (!answers_[pod].has_value()) continue;
      const auto& [uid, ids] = *answers_[pod];
      // A pod whose manifest went, or was replaced, may have been released.
      if (!pods_[pod].present || uids_[pod] != uid.value) continue;
      const state::PodRecord* record = contents->state.FindPod(uid);
      ASSERT_NE(record, nullptr) << uid.value;
      ASSERT_EQ(record->phase, state::PodPhase::kReady) << uid.value;
      EXPECT_EQ(IdsOf(*record->answer), ids);
      ++compared_;
      if (!record->holds.empty()) ++with_plugins_;
    }
  }

  NodeFolder node_;
  int compared_ = 0;      ///< Answers that had to hold, and did.
  int with_plugins_ = 0;  ///< Of these, with devices of a plugin.
  std::map<int, PodOnDisk> pods_;
  std::map<int, std::string> uids_;
  /// What devmgrd answered last; empty: nothing that binds it.
  std::map<int, std::optional<std::pair<PodUid, std::vector<std::string>>>>
      answers_;
};

TEST_F(CrashTest, WhatWasAnsweredHoldsAfterKill) {
  const std::uint32_t seed = TestReplay().value_or(TestSeed(20'261'121));
  Luck luck(seed);
  RecordProperty("seed", static_cast<int>(seed));
  std::printf("seed %u, %d kills\n", seed, Kills());
  std::atomic<pid_t> victim{0};
  std::atomic<int> answers_until_kill{0};
  FakeDraDriverOptions options;
  options.on_event = [&](std::string_view event) {
    if (event.find("\"answer\"") == event.npos) return;
    if (answers_until_kill > 0 && --answers_until_kill == 0) {
      ::kill(victim, SIGKILL);
    }
  };
  const auto driver = node_.StartDriver(options);
  ASSERT_NE(driver, nullptr);
  testing::FakeDevicePluginOptions plugin_options;
  plugin_options.resource = "example.com/tpu";
  plugin_options.devices = 4;
  plugin_options.on_event = options.on_event;
  const auto plugin = node_.StartPlugin(plugin_options);
  ASSERT_NE(plugin, nullptr);
  const auto kill = [&] {
    const auto begin = std::chrono::steady_clock::now();
    Daemon daemon(node_.root());
    victim = daemon.pid();
    // One in three dies with a driver's answer in its hands.
    answers_until_kill = luck.Below(3) == 0 ? 1 + luck.Below(3) : 0;
    const auto inspector = daemon.Inspect();
    const int start_ms = MillisecondsSince(begin);
    answers_.clear();
    std::thread listener([&] {
      if (inspector != nullptr) Listen(*inspector);
    });
    for (int n = luck.Below(4); n > 0; --n) Toggle(luck.Below(kPods));
    // When it dies; a machine on which it starts slowly works slowly, too.
    ::poll(nullptr, 0, luck.Below(std::max(60, start_ms)));
    daemon.Kill();
    listener.join();
    answers_until_kill = 0;
  };
  TakeSteps(Kills(), luck, {{"kill", 1, kill}}, [this] { CheckReopened(); });
  std::printf("%d answers compared, %d with devices of a plugin\n", compared_,
              with_plugins_);
  EXPECT_GT(compared_, Kills() / 2);
  const auto calls = plugin->Calls();
  EXPECT_GT(
      std::count_if(calls.begin(), calls.end(),
                    [](const auto& call) { return call.method == "allocate"; }),
      Kills() / 20);
  // After all that everything can still be let go.
  for (auto& [pod, on_disk] : pods_) {
    if (on_disk.present) Toggle(pod);
  }
  Daemon daemon(node_.root());
  const auto inspector = daemon.Inspect();
  ASSERT_NE(inspector, nullptr);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::uint64_t version = 0;
  for (;;) {
    const auto pods = inspector->Pods();
    ASSERT_TRUE(pods.ok()) << pods.status();
    if (pods->empty()) break;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << daemon.log();
    const auto next =
        inspector->WaitForChange(version, std::chrono::milliseconds(1'000));
    if (next.ok()) version = *next;
  }
  EXPECT_EQ(inspector->Claims()->size(), 0u);
  EXPECT_TRUE(driver->PreparedClaims().empty());
  EXPECT_EQ(node_.cdi_files(), 0u);
  const Exit fsck = node_.Ctl({"fsck"});
  EXPECT_EQ(fsck.code, 0) << fsck.out << fsck.err;
}

}  // namespace
}  // namespace devmgr
