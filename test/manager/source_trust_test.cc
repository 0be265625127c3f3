// SPDX-License-Identifier: Apache-2.0
//
// Nothing is released for a wrong reason: what becomes of pods whose manifests
// cannot be seen, from the directory on disk to the driver.
#include <gmock/gmock.h>

#include <algorithm>

#include "manager/manifest_node.h"
#include "support/read_all.h"
#include "support/test_mount.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

class SourceTrustTest : public ManifestNodeTest {
 protected:
  void SetUp() override {
    ManifestNodeTest::SetUp();
    for (const char* pod : {"a", "b", "c", "d"}) WritePod(pod);
    Start();
    for (const char* pod : {"a", "b", "c", "d"}) {
      ASSERT_TRUE(BecomesReady(pod));
    }
    ASSERT_TRUE(
        WaitUntil([this] { return !source_->Snapshot()->marker.empty(); }));
  }
  void TearDown() override { Stop(); }

  void Start() {
    source_ = WatchManifests(manifests_);
    StartManager(*source_);
  }
  void Stop() {
    manager_.reset();
    source_.reset();
  }

  bool HasEvent(const std::string& reason) const {
    const auto events = manager_->Events(0);
    return std::any_of(events.begin(), events.end(),
                       [&](const EventInfo& e) { return e.reason == reason; });
  }
  std::size_t Unprepares() const {
    const auto calls = driver_->Calls();
    return static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [](const auto& call) {
          return call.method.find("Unprepare") != std::string::npos;
        }));
  }

  /// All pods are as they were, and it is said why nothing is released.
  void ExpectInDoubt() {
    ASSERT_TRUE(WaitUntil([this] {
      return HasEvent("SourceInDoubt") &&
             !manager_->View()->Node().source_complete;
    }));
    EXPECT_THAT(manager_->View()->Node().source_problems,
                Contains(HasSubstr("lacks 4 of the 4 pods")));
    for (const char* pod : {"a", "b", "c", "d"}) {
      EXPECT_TRUE(IsReady(pod)) << pod;
    }
    EXPECT_EQ(Unprepares(), 0u);
  }
  void ExpectBelievedAgain() {
    EXPECT_TRUE(
        WaitUntil([this] { return manager_->View()->Node().source_complete; }));
    for (const char* pod : {"a", "b", "c", "d"}) {
      EXPECT_TRUE(IsReady(pod)) << pod;
    }
    EXPECT_EQ(Unprepares(), 0u);
  }

  const fs::path away_ = root_ / "away";
  std::unique_ptr<ObjectSource> source_;
};

// As devmgrd finds it that was started before the mount, and made the
// directory itself.
TEST_F(SourceTrustTest, ALateMountReleasesNothing) {
  Stop();
  fs::rename(manifests_, away_);
  fs::create_directory(manifests_);
  Start();
  ExpectInDoubt();
  fs::remove_all(manifests_);
  fs::rename(away_, manifests_);
  ExpectBelievedAgain();
  EXPECT_TRUE(HasEvent("SourceBelieved"));
}

TEST_F(SourceTrustTest, ManifestsRemovedWhileWeWereDownAreGoneByTheMarker) {
  Stop();
  for (const char* pod : {"a", "b", "c", "d"}) {
    fs::remove(manifests_ / (std::string(pod) + ".yaml"));
  }
  Start();
  for (const char* pod : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(IsReleased(pod)) << pod;
  }
  EXPECT_FALSE(HasEvent("SourceInDoubt"));
}

TEST_F(SourceTrustTest, FewManifestsMissingAfterARestartAreGone) {
  Stop();
  fs::remove(manifests_ / ".devmgr-source");
  fs::remove(manifests_ / "d.yaml");
  Start();
  EXPECT_TRUE(IsReleased("d"));
  EXPECT_TRUE(IsReady("a"));
}

TEST_F(SourceTrustTest, AnOperatorMaySayThatTheyAreGone) {
  EXPECT_EQ(manager_->maintenance().ConfirmSource("drained").code(),
            absl::StatusCode::kFailedPrecondition);
  Stop();
  fs::rename(manifests_, away_);
  fs::create_directory(manifests_);
  Start();
  ExpectInDoubt();
  EXPECT_EQ(manager_->maintenance().ConfirmSource("").code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(manager_->maintenance().ConfirmSource("drained").ok());
  for (const char* pod : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(IsReleased(pod)) << pod;
  }
  EXPECT_TRUE(
      WaitUntil([this] { return manager_->View()->Node().source_complete; }));
  const auto history = manager_->maintenance().History(0, 1000);
  ASSERT_TRUE(history.ok());
  EXPECT_THAT(*history, Contains(::testing::Field(
                            &DecisionInfo::message,
                            HasSubstr("complete without 4 pods: drained"))));
}

TEST_F(SourceTrustTest, TheLastManifestOfAWatchedDirectoryIsGone) {
  for (const char* pod : {"a", "b", "c", "d"}) {
    fs::remove(manifests_ / (std::string(pod) + ".yaml"));
  }
  for (const char* pod : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(IsReleased(pod)) << pod;
  }
  EXPECT_FALSE(HasEvent("SourceInDoubt"));
}

TEST_F(SourceTrustTest, ADirectoryInThePlaceOfAnotherReleasesNothing) {
  fs::create_directory(root_ / "empty");
  fs::rename(manifests_, away_);
  fs::rename(root_ / "empty", manifests_);
  ExpectInDoubt();
  fs::remove_all(manifests_);
  fs::rename(away_, manifests_);
  ExpectBelievedAgain();
}

// One that was in doubt is not believed because others have come to it.
TEST_F(SourceTrustTest, NewManifestsDoNotEndTheDoubt) {
  fs::create_directory(root_ / "empty");
  fs::rename(manifests_, away_);
  fs::rename(root_ / "empty", manifests_);
  ExpectInDoubt();
  for (const char* pod : {"e", "f", "g", "h", "i"}) {
    WritePod(pod);
    ASSERT_TRUE(BecomesReady(pod));
  }
  EXPECT_FALSE(manager_->View()->Node().source_complete);
  EXPECT_TRUE(IsReady("a"));
}

TEST_F(SourceTrustTest, AnotherMountOverTheDirectoryReleasesNothing) {
  TestMount mount(manifests_, "64k");
  if (!mount.mounted()) GTEST_SKIP() << "nothing can be mounted here";
  ExpectInDoubt();
  mount.Unmount();
  ExpectBelievedAgain();
}

// --- A directory that cannot be written ------------------------------------

/// The manifests lie on a file system of their own, without a marker.
class UnwritableSourceTest : public SourceTrustTest {
 protected:
  void SetUp() override {
    SourceTrustTest::SetUp();
    if (HasFatalFailure()) return;
    Stop();
    fs::rename(manifests_, away_);
    fs::remove(away_ / ".devmgr-source");
    fs::create_directory(manifests_);
    mount_ = std::make_unique<TestMount>(manifests_, "32k");
    if (!mount_->mounted()) GTEST_SKIP() << "nothing can be mounted here";
    fs::copy(away_, manifests_);
  }
  void TearDown() override {
    SourceTrustTest::TearDown();
    mount_.reset();
  }

  /// The pods are believed and as they were; what cannot be done is said in the
  /// status, and once as an event.
  void ExpectUnmarked(const std::string& why) {
    ASSERT_TRUE(WaitUntil([&] {
      const auto problems = manager_->View()->Node().source_problems;
      return std::any_of(
          problems.begin(), problems.end(), [&](const std::string& problem) {
            return problem.find("its marker") != std::string::npos &&
                   problem.find(why) != std::string::npos;
          });
    })) << ::testing::PrintToString(manager_->View()->Node().source_problems);
    EXPECT_TRUE(manager_->View()->Node().source_complete);
    ExpectAllAsTheyWere();
    ASSERT_TRUE(WaitUntil([&] { return HasEvent("ManifestProblem"); }));
    EXPECT_FALSE(HasEvent("SourceInDoubt"));
  }
  void ExpectAllAsTheyWere() {
    for (const char* pod : {"a", "b", "c", "d"}) {
      EXPECT_TRUE(BecomesReady(pod)) << pod;
    }
    EXPECT_EQ(Unprepares(), 0u);
  }
  /// A pod more is seen and served; it is no news that nothing can be written.
  void ExpectToldOnce() {
    int told = 0;
    for (const EventInfo& event : manager_->Events(0)) {
      if (event.reason == "ManifestProblem") told += event.count;
    }
    EXPECT_EQ(told, 1);
  }

  std::unique_ptr<TestMount> mount_;
};

TEST_F(UnwritableSourceTest, AReadOnlyDirectoryIsBelievedOverRestarts) {
  ASSERT_TRUE(mount_->MakeReadOnly());
  for (int i = 0; i < 2; ++i) {
    Start();
    ExpectUnmarked("Read-only file system");
    ExpectToldOnce();
    Stop();
  }
}

// There is no proof then, so nothing is released; what comes back is the same.
TEST_F(UnwritableSourceTest, AReadOnlyDirectoryThatComesLateReleasesNothing) {
  ASSERT_TRUE(mount_->MakeReadOnly());
  Start();
  ExpectUnmarked("Read-only file system");
  Stop();
  mount_->Unmount();
  Start();
  ExpectInDoubt();
  fs::remove(manifests_);
  fs::rename(away_, manifests_);
  ExpectBelievedAgain();
}

TEST_F(UnwritableSourceTest, AReadOnlyDirectoryMayLoseAPodWhileItIsWatched) {
  ASSERT_TRUE(mount_->MakeReadOnly());
  Start();
  ExpectUnmarked("Read-only file system");
  ASSERT_TRUE(mount_->MakeWritable());
  fs::remove(manifests_ / "d.yaml");
  EXPECT_TRUE(IsReleased("d"));
  // Now it can be marked, and is.
  EXPECT_TRUE(
      WaitUntil([this] { return !source_->Snapshot()->marker.empty(); }));
  EXPECT_TRUE(WaitUntil(
      [this] { return manager_->View()->Node().source_problems.empty(); }));
}

TEST_F(UnwritableSourceTest, AFullDirectoryLosesNothingOverRestarts) {
  mount_->Fill("filler");
  for (int i = 0; i < 2; ++i) {
    Start();
    ExpectUnmarked("No space left on device");
    ExpectToldOnce();
    Stop();
  }
}

// As an editor or `cp` does it: the file is cut off, and then nothing fits.
TEST_F(UnwritableSourceTest, AManifestWrittenToAFullDirectoryKeepsItsPod) {
  mount_->Fill("filler");
  Start();
  ExpectUnmarked("No space left on device");
  const std::string text = ReadAll(away_ / "b.yaml");
  {
    std::ofstream file(manifests_ / "b.yaml");  // Frees a page.
    mount_->Fill("filler2");
    file << text;
    file.flush();
    EXPECT_FALSE(file.good());
  }
  ASSERT_TRUE(WaitUntil([this] {
    const auto problems = manager_->View()->Node().source_problems;
    return std::any_of(
        problems.begin(), problems.end(), [](const std::string& problem) {
          return problem.find("last good content is kept") != std::string::npos;
        });
  }));
  ExpectAllAsTheyWere();
  Stop();
  // What was good is forgotten; the ledger is not.
  Start();
  ASSERT_TRUE(WaitUntil([this] {
    return !manager_->View()->Node().source_problems.empty() &&
           !manager_->View()->Node().source_complete;
  }));
  ExpectAllAsTheyWere();
  fs::remove(manifests_ / "filler");
  std::ofstream(manifests_ / "b.yaml") << text;
  EXPECT_TRUE(WaitUntil([this] {
    return manager_->View()->Node().source_complete &&
           !source_->Snapshot()->marker.empty();
  }));
  ExpectAllAsTheyWere();
}

// What follows is a decision; a pod must not become Ready on what is lost.
TEST_F(SourceTrustTest, NoPodBecomesReadyWithoutItsStateDirectory) {
  fs::rename(root_ / "state", away_);
  WritePod("e");
  ASSERT_TRUE(WaitUntil(
      [this] { return !manager_->View()->Node().ledger_error.empty(); }));
  EXPECT_THAT(manager_->View()->Node().ledger_error,
              HasSubstr("removed or replaced"));
  EXPECT_FALSE(IsReady("e"));
  EXPECT_TRUE(IsReady("a"));
  fs::rename(away_, root_ / "state");
  EXPECT_TRUE(BecomesReady("e"));
}

TEST_F(SourceTrustTest, AStateDirectoryInThePlaceOfAnotherIsNotUsed) {
  fs::rename(root_ / "state", away_);
  fs::copy(away_, root_ / "state", fs::copy_options::recursive);
  WritePod("e");
  ASSERT_TRUE(WaitUntil(
      [this] { return !manager_->View()->Node().ledger_error.empty(); }));
  EXPECT_FALSE(IsReady("e"));
}

}  // namespace
}  // namespace devmgr
