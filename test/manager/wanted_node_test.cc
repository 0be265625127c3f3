// SPDX-License-Identifier: Apache-2.0
//
// Pods that clients want, from the file on disk to the driver, beside those of
// a directory.
#include <devmgr/control.h>
#include <gmock/gmock.h>

#include "manager/manifest_node.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

class WantedNodeTest : public ManifestNodeTest {
 protected:
  void SetUp() override {
    ManifestNodeTest::SetUp();
    Start();
  }
  void TearDown() override { Stop(); }

  void Start() {
    directory_ = WatchManifests(manifests_);
    auto wanted =
        WantedPods::Open(root_ / "state/wanted", "", directory_.get());
    ASSERT_THAT(wanted, IsOk());
    wanted_ = *std::move(wanted);
    source_ = CombineSources(*directory_, *wanted_);
    StartManager(*source_);
  }
  void Stop() {
    manager_.reset();
    source_.reset();
    wanted_.reset();
    directory_.reset();
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

  std::unique_ptr<ObjectSource> directory_;
  std::unique_ptr<WantedPods> wanted_;
  std::unique_ptr<ObjectSource> source_;
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
  ASSERT_TRUE(WaitUntil(
      [this] { return !manager_->View()->Node().source_problems.empty(); }));
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
    EXPECT_NE(decision.kind, DecisionKind::kSource) << decision.message;
  }
}

TEST_F(WantedNodeTest, AFileThatCannotBeReadReleasesNothingAndIsNamed) {
  Want(TextOf("p"));
  ASSERT_TRUE(BecomesReady("p"));
  Stop();
  std::ofstream(root_ / "state/wanted/u-p.yaml") << "kind: [";
  Start();
  ASSERT_TRUE(WaitUntil(
      [this] { return !manager_->View()->Node().source_problems.empty(); }));
  EXPECT_THAT(manager_->View()->Node().source_problems,
              Contains(HasSubstr("wanted/u-p.yaml:")));
  EXPECT_TRUE(IsReady("p"));
  Want(TextOf("p"));
  ASSERT_TRUE(
      WaitUntil([this] { return manager_->View()->Node().source_complete; }));
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
    EXPECT_EQ(history->at(0).kind, DecisionKind::kWanted);
    EXPECT_THAT(history->at(0).pods, Contains("default/p"));
    EXPECT_EQ(history->at(0).message,
              "the pod with UID 'u-p' is wanted by uid 0, pid 7");
    EXPECT_EQ(history->at(1).kind, DecisionKind::kUnwanted);
    EXPECT_EQ(history->at(1).message,
              "the pod with UID 'u-p' is not wanted by uid 1, pid 8");
    Stop();
    Start();
  }
}

}  // namespace
}  // namespace devmgr
