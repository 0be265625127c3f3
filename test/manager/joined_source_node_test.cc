// SPDX-License-Identifier: Apache-2.0
//
// Pods of manifests beside those of a server: each of the two says by itself
// that a pod of its own is gone.
#include <gmock/gmock.h>

#include "manager/manifest_node.h"
#include "support/test_node.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

class JoinedSourceNodeTest : public ManifestNodeTest {
 protected:
  void SetUp() override {
    ManifestNodeTest::SetUp();
    WritePod("file");
    // The driver finds the claims there.
    std::ofstream claims(manifests_ / "claims.yaml");
    for (const std::string pod : {"a", "b", "c"}) {
      claims << ClaimYaml("c" + pod, "u-c" + pod, {kDriver}, {"u-" + pod});
    }
    claims.close();
    server_ = MemoryObjectSource::Create();
    PublishServer({"a", "b", "c"}, 1);
    directory_ = WatchManifests(manifests_);
    source_ = CombineSources(*server_, *directory_);
    StartManager(*source_);
    for (const char* pod : {"file", "a", "b", "c"}) {
      ASSERT_TRUE(BecomesReady(pod)) << pod;
    }
  }
  void TearDown() override {
    manager_.reset();
    source_.reset();
    directory_.reset();
    server_.reset();
  }

  void PublishServer(const std::vector<std::string>& pods, std::uint64_t list,
                     bool complete = true, bool vouched = true) {
    std::string text;
    for (const std::string& pod : pods) {
      text += PodYaml(pod, "u-" + pod, {"c" + pod});
    }
    ObjectSnapshot objects = SnapshotOf(text);
    objects.complete = complete;
    objects.vouched = vouched;
    objects.watch = list;
    server_->Publish(std::move(objects));
  }
  /// Everything that was published has been taken in.
  void ExpectKept(const std::vector<std::string>& pods) {
    WritePod("later");
    ASSERT_TRUE(BecomesReady("later"));
    for (const std::string& pod : pods) EXPECT_TRUE(IsReady(pod)) << pod;
  }

  std::unique_ptr<MemoryObjectSource> server_;
  std::unique_ptr<ObjectSource> directory_;
  std::unique_ptr<ObjectSource> source_;
};

TEST_F(JoinedSourceNodeTest, AFileThatGoesReleasesItsPodWithTheServerAway) {
  PublishServer({}, 0, /*complete=*/false);
  fs::remove(manifests_ / "file.yaml");
  ASSERT_TRUE(IsReleased("file"));
  ExpectKept({"a", "b", "c"});
}

TEST_F(JoinedSourceNodeTest, AServerReleasesItsPodsWithTheDirectoryAway) {
  fs::rename(manifests_, root_ / "away");
  PublishServer({"b"}, 1);
  ASSERT_TRUE(IsReleased("a"));
  ASSERT_TRUE(IsReleased("c"));
  fs::rename(root_ / "away", manifests_);
  ExpectKept({"b", "file"});
}

// Another list, that is not confirmed yet, after a break.
TEST_F(JoinedSourceNodeTest, AListThatIsNotConfirmedReleasesNothing) {
  PublishServer({}, 2, /*complete=*/true, /*vouched=*/false);
  ExpectKept({"a", "b", "c", "file"});
  PublishServer({}, 2);
  for (const char* pod : {"a", "b", "c"}) EXPECT_TRUE(IsReleased(pod)) << pod;
  EXPECT_TRUE(IsReady("file"));
}

}  // namespace
}  // namespace devmgr
