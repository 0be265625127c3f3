// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's checkpoint file of devices, as a node keeps it up to date.
#include <devmgr/kubelet_mirror.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "common/unique_fd.h"
#include "manager/device_fixture.h"
#include "migration/kubelet_folder.h"
#include "support/mailbox.h"
#include "support/read_all.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DecodeDeviceCheckpoint;
using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::EncodeDeviceCheckpoint;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Files that appear in a directory.
class Appearances {
 public:
  explicit Appearances(const std::filesystem::path& directory)
      : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), directory.c_str(), IN_MOVED_TO),
              0);
  }
  /// Looks again after each of them.
  ::testing::AssertionResult WaitUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      const auto left = std::chrono::duration_cast<milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd event{fd_.get(), POLLIN, 0};
      if (left.count() <= 0 ||
          ::poll(&event, 1, static_cast<int>(left.count())) <= 0) {
        return ::testing::AssertionFailure() << "nothing appears";
      }
      std::array<char, 4096> events;
      while (::read(fd_.get(), events.data(), events.size()) > 0) continue;
    }
    return ::testing::AssertionSuccess();
  }

 private:
  const UniqueFd fd_;
};

class KubeletMirrorTest : public DeviceNodeTest {
 protected:
  KubeletMirrorTest() {
    std::filesystem::create_directory(Dir());
    options_.file = Dir() / "kubelet_internal_checkpoint";
    options_.pause = milliseconds(1);
    options_.log = [this](LogLevel, std::string_view text) {
      log_.Put(std::string(text));
    };
  }
  ~KubeletMirrorTest() override { mirror_.reset(); }

  std::filesystem::path Dir() const {
    return folder_.path() / "device-plugins";
  }
  void Mirror() {
    auto mirror = KubeletMirror::Start(node_.manager(), options_);
    ASSERT_THAT(mirror.status(), IsOk());
    mirror_ = *std::move(mirror);
  }
  /// What the file holds; nothing as long as there is none. Its checksum is
  /// right, and it is as the kubelet writes it.
  DeviceCheckpoint File() const {
    const std::string bytes = ReadAll(options_.file);
    if (bytes.empty()) return {};
    const auto checkpoint = DecodeDeviceCheckpoint(bytes);
    EXPECT_THAT(checkpoint.status(), IsOk());
    if (!checkpoint.ok()) return {};
    EXPECT_EQ(*EncodeDeviceCheckpoint(*checkpoint), bytes);
    return *checkpoint;
  }
  std::vector<DeviceId> Registered() const {
    const DeviceCheckpoint file = File();
    if (!file.registered.has_value() || !file.registered->contains(kGpu)) {
      return {};
    }
    return file.registered->at(kGpu).value_or(std::vector<DeviceId>());
  }
  /// By UID and container.
  std::set<std::string> Holders() const {
    std::set<std::string> holders;
    const DeviceCheckpoint file = File();
    if (!file.entries.has_value()) return holders;
    for (const auto& entry : *file.entries) {
      holders.insert(entry.pod.value + "/" + entry.container.value);
    }
    return holders;
  }
  void HavePod(const std::string& name, int gpus) {
    node_.Publish(DevicePod(name, {{kGpu, gpus}}));
    ASSERT_TRUE(node_.WaitFor(name, PodState::kReady));
  }

  const TempFolder folder_;
  KubeletMirrorOptions options_;
  Mailbox<std::string> log_;
  std::unique_ptr<KubeletMirror> mirror_;
};

// DP-111, as far as there is such a file: where it is mirrored.
TEST_F(KubeletMirrorTest, AListIsInTheFileWithItsHealthyDevices) {
  Appearances appearances(Dir());
  node_.Start();
  Mirror();
  ASSERT_TRUE(
      appearances.WaitUntil([&] { return File().registered.has_value(); }));
  EXPECT_THAT(Holders(), IsEmpty());
  node_.plugins.Serve(kGpu, 2);
  ASSERT_TRUE(appearances.WaitUntil([&] { return Registered().size() == 2; }));
  EXPECT_THAT(Registered(), ElementsAre("0", "1"));
  node_.plugins.Report(kGpu, {{"0", device::Health::kUnhealthy, {}},
                              {"1", device::Health::kHealthy, {}},
                              {"2", device::Health::kHealthy, {}}});
  ASSERT_TRUE(appearances.WaitUntil([&] {
    return Registered() == std::vector<DeviceId>{"1", "2"};
  }));
}

// DP-112: with what the plugin answered.
TEST_F(KubeletMirrorTest, WhatPodsGetAndGiveBackIsInTheFile) {
  Appearances appearances(Dir());
  node_.Start();
  Mirror();
  node_.plugins.Serve(kGpu, 2);
  ASSERT_NO_FATAL_FAILURE(HavePod("p", 2));
  ASSERT_TRUE(appearances.WaitUntil([&] { return !Holders().empty(); }));
  const DeviceCheckpoint file = File();
  ASSERT_THAT(*file.entries, SizeIs(1));
  const auto& entry = file.entries->front();
  EXPECT_EQ(entry.pod, PodUid{"u-p"});
  EXPECT_EQ(entry.resource, kGpu);
  EXPECT_THAT(*entry.device_ids->at(-1), ElementsAre("0", "1"));
  EXPECT_THAT(entry.alloc_resp.value_or(""), HasSubstr("example.com/gpu=0"));
  const auto mode = std::filesystem::status(options_.file).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read |
                      std::filesystem::perms::owner_write);
  node_.Publish("");
  ASSERT_TRUE(appearances.WaitUntil([&] { return Holders().empty(); }));
  EXPECT_EQ(log_.size(), 0u);
}

// What a kubelet would find is what a restarted mirror finds.
TEST_F(KubeletMirrorTest, TheLastStateIsWrittenWhenItEnds) {
  options_.pause = std::chrono::hours(1);
  node_.Start();
  Mirror();
  node_.plugins.Serve(kGpu, 2);
  ASSERT_NO_FATAL_FAILURE(HavePod("p", 1));
  ASSERT_NO_FATAL_FAILURE(HavePod("q", 2));
  mirror_.reset();
  EXPECT_THAT(Holders(), ElementsAre("u-q/c"));
  const std::string before = ReadAll(options_.file);
  node_.Restart();
  node_.plugins.Serve(kGpu, 2);
  node_.Sync();
  Mirror();
  mirror_.reset();
  EXPECT_EQ(ReadAll(options_.file), before);
  EXPECT_EQ(log_.size(), 0u);
}

// It takes long, and then it is written once.
TEST_F(KubeletMirrorTest, OfChangesAtOneTimeTheLastCounts) {
  options_.pause = std::chrono::hours(1);
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  Mirror();
  for (int i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(HavePod("p" + std::to_string(i), 1));
  }
  EXPECT_LE(mirror_->Counters().writes, 1u);
  mirror_.reset();
  EXPECT_THAT(Holders(), ElementsAre("u-p9/c"));
}

TEST_F(KubeletMirrorTest, AFileThatCannotBeWrittenIsReportedOnceAndDoesNoHarm) {
  // A file where its directory is to be.
  options_.file = folder_.path() / "blocked" / "kubelet_internal_checkpoint";
  const std::filesystem::path parent = options_.file.parent_path();
  std::ofstream(parent) << "no directory";
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  Mirror();
  const auto first = log_.Take();
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(*first, AllOf(HasSubstr("is not up to date"),
                            HasSubstr(options_.file.string())));
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(HavePod("p" + std::to_string(i), 1));
  }
  EXPECT_EQ(log_.size(), 0u);
  std::filesystem::remove(parent);
  std::filesystem::create_directory(parent);
  Appearances appearances(parent);
  ASSERT_NO_FATAL_FAILURE(HavePod("q", 2));
  ASSERT_TRUE(appearances.WaitUntil(
      [&] { return Holders() == std::set<std::string>{"u-q/c"}; }));
  const auto second = log_.Take();
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(*second, HasSubstr("is written again"));
  EXPECT_GT(mirror_->Counters().failures, 0u);
}

// A disk that was full: there need not be a change for another try.
TEST_F(KubeletMirrorTest, AWriteThatFailedIsTriedAgain) {
  options_.file = folder_.path() / "blocked" / "kubelet_internal_checkpoint";
  options_.retry = milliseconds(5);
  const std::filesystem::path parent = options_.file.parent_path();
  std::ofstream(parent) << "no directory";
  node_.Start();
  Mirror();
  ASSERT_TRUE(log_.Take().has_value());
  std::filesystem::remove(parent);
  const auto again = log_.Take();
  ASSERT_TRUE(again.has_value());
  EXPECT_THAT(*again, HasSubstr("is written again"));
  EXPECT_TRUE(File().registered.has_value());
}

// It may be all that is known of the pods of a kubelet.
TEST_F(KubeletMirrorTest, AFileOfOtherPodsIsKept) {
  DeviceCheckpoint others;
  others.registered.emplace();
  others.entries = {{HeldEntry("u-other", "c", kGpu, {"7"})}};
  const std::string bytes = *EncodeDeviceCheckpoint(others);
  std::ofstream(options_.file) << bytes;
  node_.Start();
  Mirror();
  mirror_.reset();
  EXPECT_THAT(Holders(), IsEmpty());
  const auto told = log_.Take();
  ASSERT_TRUE(told.has_value());
  const std::size_t begin = told->find(options_.file.string() + ".kept-");
  ASSERT_NE(begin, std::string::npos) << *told;
  const std::string kept = told->substr(begin, told->find('\'', begin) - begin);
  EXPECT_EQ(ReadAll(kept), bytes);
  // Its own is no other's, whatever it names.
  node_.plugins.Serve(kGpu, 1);
  ASSERT_NO_FATAL_FAILURE(HavePod("p", 1));
  Mirror();
  mirror_.reset();
  Mirror();
  mirror_.reset();
  EXPECT_EQ(log_.size(), 0u);
  // A damaged one is kept, too.
  std::ofstream(options_.file) << "{";
  Mirror();
  mirror_.reset();
  EXPECT_THAT(Holders(), ElementsAre("u-p/c"));
  EXPECT_EQ(log_.size(), 1u);
}

// DRA-137, of our file: a directory or no name is an error.
TEST_F(KubeletMirrorTest, ItNeedsTheNameOfAFile) {
  node_.Start();
  for (const std::filesystem::path& file :
       {std::filesystem::path(), std::filesystem::path("relative"),
        folder_.path(), folder_.path() / "x" / ""}) {
    options_.file = file;
    EXPECT_THAT(KubeletMirror::Start(node_.manager(), options_).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << file;
  }
}

}  // namespace
}  // namespace devmgr
