// SPDX-License-Identifier: Apache-2.0
#include "source/file_source.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "source/file_source_fixture.h"

namespace devmgr::source {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FileSourceTest, PublicFactoryServesADirectory) {
  folder_.Put("a.yaml", PodText("a"));
  source_ = WatchManifests(folder_.path() / "");
  listener_ = std::make_unique<SourceListener>(*source_);
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
  EXPECT_EQ(source_->Describe(), "directory " + folder_.path().string());
}

TEST_F(FileSourceTest, IsIncompleteBeforeTheFirstScan) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  std::shared_ptr<const ObjectSnapshot> snapshot = source_->Snapshot();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_EQ(snapshot->complete, !snapshot->pods.empty());
  if (!snapshot->complete) {
    EXPECT_THAT(Problems(snapshot), HasSubstr("not read yet"));
  }
}

TEST_F(FileSourceTest, ServesWhatIsThereAtStart) {
  folder_.Put("a.yaml", Documents({PodText("a"), ClassText("gpu")}));
  folder_.Put("b.yml", PodText("b"));
  folder_.Put("c.json",
              R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},)"
              R"("spec":{"containers":[{"name":"main"}]}})");
  Start();
  const SnapshotPtr snapshot = AwaitPods({"a", "b", "c"});
  EXPECT_THAT(snapshot->problems, IsEmpty());
  EXPECT_EQ(snapshot->device_classes.count({"", "gpu"}), 1u);
}

TEST_F(FileSourceTest, EmptyDirectoryIsComplete) {
  Start();
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, LeavesOtherFilesAlone) {
  folder_.Put("notes.txt", kBroken);
  folder_.Put(".hidden.yaml", kBroken);
  folder_.Put("a.yaml~", kBroken);
  fs::create_directory(folder_ / "folder.yaml");
  fs::create_directory(folder_ / "sub");
  folder_.Write("sub/b.yaml", PodText("b"));
  folder_.Put("a.yaml", PodText("a"));
  Start();
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, FollowsFilesThatComeChangeAndGo) {
  Start();
  AwaitPods({});
  folder_.Write("a.yaml", PodText("a"));
  AwaitPods({"a"});
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"a", "b"});
  folder_.Write("a.yaml", PodText("a", 1));
  AwaitPriority("a", 1);
  folder_.Put("a.yaml", PodText("a", 2));
  AwaitPriority("a", 2);
  folder_.Remove("a.yaml");
  AwaitPods({"b"});
  fs::rename(folder_ / "b.yaml", folder_ / "c.yaml");
  fs::rename(folder_ / "c.yaml", folder_ / "c.disabled");
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, RemovedDocumentIsGone) {
  folder_.Put("a.yaml", Documents({PodText("a"), PodText("b")}));
  Start();
  AwaitPods({"a", "b"});
  folder_.Put("a.yaml", PodText("b"));
  AwaitPods({"b"});
}

TEST_F(FileSourceTest, PassesTheNodeNameToPodsWithoutNodeAndSlicesWithoutPool) {
  folder_.Put("p.yaml", PodText("a"));
  folder_.Put("q.yaml", PodText("b") + "  nodeName: node-8\n");
  folder_.Put("s.yaml",
              "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
              "metadata:\n  name: s\nspec:\n  driver: gpu.example.com\n"
              "  allNodes: true\n"
              "  devices:\n  - name: gpu-0\n");
  FileSourceOptions options;
  options.directory = folder_.path();
  options.node_name = "node-7";
  Start(std::move(options));
  const SnapshotPtr snapshot = listener_->Await([](const ObjectSnapshot& s) {
    return s.resource_slices.count({"", "s"}) > 0 && s.pods.size() == 2;
  });
  EXPECT_EQ(snapshot->pods.at(InDefault("a"))->spec.node_name, "node-7");
  EXPECT_EQ(snapshot->pods.at(InDefault("b"))->spec.node_name, "node-8");
  EXPECT_EQ(snapshot->resource_slices.at({"", "s"})->pool, "node-7");
  // Accepted with a warning.
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Problems(snapshot), HasSubstr("s.yaml"));
}

TEST_F(FileSourceTest, MalformedPodIsKeptApart) {
  folder_.Put("a.yaml", Documents({MalformedPodText("a"), PodText("b")}));
  folder_.Put("c.yaml", PodText("a"));
  Start();
  const SnapshotPtr snapshot = AwaitPods({"b"});
  ASSERT_EQ(snapshot->malformed_pods.count(InDefault("a")), 1u);
  EXPECT_EQ(snapshot->malformed_pods.at(InDefault("a"))->problem.file,
            (folder_ / "a.yaml").string());
  EXPECT_THAT(Problems(snapshot), HasSubstr("only the first by file name"));
}

TEST_F(FileSourceTest, SameObjectInTwoFilesCountsOnce) {
  folder_.Put("b.yaml", PodText("x", 2));
  Start();
  AwaitPriority("x", 2);
  folder_.Put("a.yaml", PodText("x", 1));
  const SnapshotPtr snapshot = AwaitPriority("x", 1);
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Problems(snapshot),
              AllOf(HasSubstr((folder_ / "b.yaml").string()),
                    HasSubstr((folder_ / "a.yaml").string())));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPriority("x", 2)->problems, IsEmpty());
}

TEST_F(FileSourceTest, ObjectsOfUnchangedFilesStayTheSame) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b"));
  Start();
  const SnapshotPtr before = AwaitPods({"a", "b"});
  folder_.Put("b.yaml", PodText("b", 2));
  const SnapshotPtr after = AwaitPriority("b", 2);
  EXPECT_EQ(before->pods.at(InDefault("a")), after->pods.at(InDefault("a")));
}

TEST_F(FileSourceTest, SaysNothingWhenNothingDiffers) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  const SnapshotPtr before = Sync();
  const int changes = listener_->changes();
  folder_.Put("a.yaml", PodText("a"));  // the same text
  folder_.Put("notes.txt", "x");
  const SnapshotPtr after = Sync();
  EXPECT_EQ(listener_->changes(), changes + 1);
  EXPECT_EQ(before->pods, after->pods);
}

TEST_F(FileSourceTest, UnsubscribedListenerHearsNothing) {
  Start();
  AwaitPods({});
  listener_.reset();
  int calls = 0;
  source_->Subscribe([&calls] { ++calls; });
  source_->Unsubscribe();
  listener_ = std::make_unique<SourceListener>(*source_);
  folder_.Put("a.yaml", PodText("a"));
  AwaitPods({"a"});
  EXPECT_EQ(calls, 0);
}

TEST_F(FileSourceTest, StopsAmidABurst) {
  for (int i = 0; i < 20; ++i) {
    Start();
    for (int j = 0; j < 20; ++j) {
      folder_.Put(fmt::format("{}.yaml", j), PodText(fmt::format("p{}", j)));
    }
    Stop();
  }
}

TEST_F(FileSourceTest, ConvergesAfterABurstOfChanges) {
  Start();
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("{}.yaml", i % 7);
    switch (i % 3) {
      case 0:
        folder_.Put(name, PodText("p", i));
        break;
      case 1:
        folder_.Write(name, PodText(fmt::format("q{}", i)));
        break;
      default:
        fs::remove(folder_ / name);
    }
  }
  for (int i = 0; i < 7; ++i) fs::remove(folder_ / fmt::format("{}.yaml", i));
  folder_.Put("end.yaml", PodText("end"));
  EXPECT_THAT(AwaitPods({"end"})->problems, IsEmpty());
}

}  // namespace
}  // namespace devmgr::source
