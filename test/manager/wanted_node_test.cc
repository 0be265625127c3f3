// SPDX-License-Identifier: Apache-2.0
//
// Pods that clients want, from the file on disk to the driver, beside those of
// a directory.
#include <devmgr/control.h>
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using testing::FakeDraDriver;
using testing::FakeDraDriverOptions;
using ::testing::Field;
using ::testing::HasSubstr;

class WantedNodeTest : public ::testing::Test, public DeviceManagerObserver {
 protected:
  void SetUp() override {
    fs::create_directories(manifests_);
    FakeDraDriverOptions driver;
    driver.name = kDriver;
    driver.root = root_;
    auto started = FakeDraDriver::Start(driver);
    ASSERT_THAT(started, IsOk());
    driver_ = *std::move(started);
    Start();
  }
  void TearDown() override { Stop(); }

  void OnPod(const PodInfo&, bool) override { changed_.Put(0); }
  void OnObjects() override { changed_.Put(0); }

  void Start() {
    directory_ = WatchManifests(manifests_);
    auto wanted =
        WantedPods::Open(root_ / "state/wanted", "", directory_.get());
    ASSERT_THAT(wanted, IsOk());
    wanted_ = *std::move(wanted);
    source_ = CombineSources(*directory_, *wanted_);
    DeviceManagerOptions options;
    options.state_dir = root_ / "state";
    options.plugin_registry_dir = root_ / "plugins_registry";
    options.actuate = Actuate::kSource;
    Host host;
    host.objects = source_.get();
    host.boot_id = [] { return "boot"; };
    auto manager = DeviceManager::Open(options, host);
    ASSERT_THAT(manager, IsOk());
    manager_ = *std::move(manager);
    observation_ = manager_->Observe(*this);
  }
  void Stop() {
    observation_.reset();
    manager_.reset();
    source_.reset();
    wanted_.reset();
    directory_.reset();
  }

  static std::string TextOf(const std::string& name) {
    return ClaimYaml("c" + name, "u-c" + name, {kDriver}, {"u-" + name}) +
           PodYaml(name, "u-" + name, {"c" + name});
  }
  void WritePod(const std::string& name) {
    std::ofstream(manifests_ / (name + ".new")) << TextOf(name);
    fs::rename(manifests_ / (name + ".new"), manifests_ / (name + ".yaml"));
  }
  void Want(const std::string& text) {
    ASSERT_THAT(
        wanted_->Want(text, [](const auto&) { return absl::OkStatus(); }),
        IsOk());
  }
  void Unwant(const std::string& name) {
    ASSERT_THAT(wanted_->Unwant({"u-" + name},
                                [](const auto&) { return absl::OkStatus(); }),
                IsOk());
  }

  bool WaitUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  bool IsReady(const std::string& pod) const {
    const auto info = manager_->View()->PodInfoOf(PodUid{"u-" + pod});
    return info.ok() && info->state == PodState::kReady;
  }
  bool BecomesReady(const std::string& pod) {
    return WaitUntil([&] { return IsReady(pod); });
  }
  bool IsReleased(const std::string& pod) {
    return WaitUntil([&] {
      return absl::IsNotFound(manager_->View()->PodInfoOf({"u-" + pod}).status());
    });
  }

  const TempFolder folder_;
  const fs::path root_ = folder_.path();
  const fs::path manifests_ = root_ / "manifests";
  Mailbox<int> changed_;
  std::unique_ptr<FakeDraDriver> driver_;
  std::unique_ptr<ObjectSource> directory_;
  std::unique_ptr<WantedPods> wanted_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<Observation> observation_;
};

TEST_F(WantedNodeTest, AWantedPodBecomesReadyAndStaysOverARestart) {
  Want(TextOf("p"));
  ASSERT_TRUE(BecomesReady("p"));
  Stop();
  Start();
  EXPECT_TRUE(IsReady("p"));
  EXPECT_THAT(manager_->ContainerDevicesOf({"u-p"}, "c"), IsOk());
  Unwant("p");
  EXPECT_TRUE(IsReleased("p"));
  EXPECT_TRUE(
      absl::IsNotFound(manager_->ContainerDevicesOf({"u-p"}, "c").status()));
  EXPECT_TRUE(absl::IsNotFound(manager_->BeforeContainerStart({"u-p"}, "c")));
}

// As a manifest that is changed: what the pod was given stays its own.
TEST_F(WantedNodeTest, AnotherTextGivesAReadyPodNoOtherDevices) {
  Want(TextOf("p"));
  ASSERT_TRUE(BecomesReady("p"));
  const auto before = manager_->PodDevicesOf({"u-p"});
  ASSERT_THAT(before, IsOk());
  Want(ClaimYaml("c2", "u-c2", {kDriver}, {"u-p"}) +
       PodYaml("p", "u-p", {"c2"}));
  ASSERT_TRUE(WaitUntil([this] {
    return manager_->Objects()->claims.contains({"default", "c2"});
  }));
  const auto pod = manager_->Objects()->pods.at({"default", "p"});
  const auto verdict = manager_->AdmitPod(*pod);
  ASSERT_THAT(verdict, IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kReject);
  EXPECT_TRUE(IsReady("p"));
  EXPECT_EQ(*manager_->PodDevicesOf({"u-p"}), *before);
}

// The manifests of a directory cannot be used, and nothing of it may be
// released; but what a client has said is beyond doubt, over a crash as well.
TEST_F(WantedNodeTest, AnUnwantedPodIsReleasedThoughTheDirectoryIsIncomplete) {
  WritePod("a");
  Want(TextOf("p"));
  Want(TextOf("q"));
  ASSERT_TRUE(BecomesReady("a"));
  ASSERT_TRUE(BecomesReady("p"));
  ASSERT_TRUE(BecomesReady("q"));
  Stop();
  fs::remove(manifests_ / "a.yaml");
  std::ofstream(manifests_ / "bad.yaml") << "kind: [";
  {
    auto before = WantedPods::Open(root_ / "state/wanted", "", nullptr);
    ASSERT_THAT(before, IsOk());
    ASSERT_THAT((*before)->Unwant({"u-p"},
                                  [](const auto&) { return absl::OkStatus(); }),
                IsOk());
  }
  Start();
  EXPECT_TRUE(IsReleased("p"));
  EXPECT_FALSE(manager_->Objects()->complete);
  EXPECT_TRUE(IsReady("a"));
  EXPECT_TRUE(IsReady("q"));
  Unwant("q");
  EXPECT_TRUE(IsReleased("q"));
  EXPECT_TRUE(IsReady("a"));
}

// Wanted pods do not count among those of a directory: however many there are,
// it is not believed that has lost all of its own.
TEST_F(WantedNodeTest, WantedPodsDoNotHideThatTheDirectoryIsAnother) {
  WritePod("a");
  for (const char* pod : {"p", "q", "r"}) Want(TextOf(pod));
  for (const char* pod : {"a", "p", "q", "r"}) ASSERT_TRUE(BecomesReady(pod));
  ASSERT_TRUE(
      WaitUntil([this] { return !directory_->Snapshot()->marker.empty(); }));
  Stop();
  fs::remove_all(manifests_);
  fs::create_directory(manifests_);
  Start();
  ASSERT_TRUE(
      WaitUntil([this] { return !manager_->View()->Node().source_problems.empty(); }));
  EXPECT_THAT(manager_->View()->Node().source_problems,
              Contains(HasSubstr("lacks 1 of the 1 pod ")));
  EXPECT_TRUE(IsReady("a"));
  Unwant("p");
  EXPECT_TRUE(IsReleased("p"));
  EXPECT_TRUE(IsReady("a"));
}

// They are no reason to mark a directory that has never had pods.
TEST_F(WantedNodeTest, WantedPodsLeaveAnEmptyDirectoryUnmarked) {
  Want(TextOf("p"));
  ASSERT_TRUE(BecomesReady("p"));
  EXPECT_FALSE(fs::exists(manifests_ / ".devmgr-source"));
  const auto history = manager_->maintenance().History(0);
  ASSERT_THAT(history, IsOk());
  for (const DecisionInfo& decision : *history) {
    EXPECT_NE(decision.kind, "Source") << decision.message;
  }
}

TEST_F(WantedNodeTest, AFileThatCannotBeReadReleasesNothingAndIsNamed) {
  Want(TextOf("p"));
  ASSERT_TRUE(BecomesReady("p"));
  Stop();
  std::ofstream(root_ / "state/wanted/u-p.yaml") << "kind: [";
  Start();
  ASSERT_TRUE(
      WaitUntil([this] { return !manager_->View()->Node().source_problems.empty(); }));
  EXPECT_THAT(manager_->View()->Node().source_problems,
              Contains(HasSubstr("wanted/u-p.yaml:")));
  EXPECT_TRUE(IsReady("p"));
  Want(TextOf("p"));
  ASSERT_TRUE(WaitUntil([this] { return manager_->View()->Node().source_complete; }));
  EXPECT_TRUE(IsReady("p"));
}

TEST_F(WantedNodeTest, TheHistorySaysWhoWantsWhat) {
  ASSERT_THAT(manager_->maintenance().RecordWish(
                  {true, {"u-p"}, {"default", "p"}, "uid 0, pid 7"}),
              IsOk());
  ASSERT_THAT(
      manager_->maintenance().RecordWish({false, {"u-p"}, {}, "uid 1, pid 8"}),
      IsOk());
  EXPECT_EQ(manager_->maintenance().RecordWish({true, {}, {}, "uid 1"}).code(),
            absl::StatusCode::kInvalidArgument);
  for (int i = 0; i < 2; ++i) {
    const auto history = manager_->maintenance().History(0);
    ASSERT_THAT(history, IsOk());
    ASSERT_EQ(history->size(), 2u);
    EXPECT_EQ(history->at(0).kind, "Wanted");
    EXPECT_THAT(history->at(0).pods, Contains("default/p"));
    EXPECT_EQ(history->at(0).message,
              "the pod with UID 'u-p' is wanted by uid 0, pid 7");
    EXPECT_EQ(history->at(1).kind, "Unwanted");
    EXPECT_EQ(history->at(1).message,
              "the pod with UID 'u-p' is not wanted by uid 1, pid 8");
    Stop();
    Start();
  }
}

}  // namespace
}  // namespace devmgr
