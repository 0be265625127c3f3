// SPDX-License-Identifier: Apache-2.0
#include "source/manifest_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace devmgr::source {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

template <typename T>
T Named(std::string ns, std::string name) {
  T object;
  object.metadata.ns = std::move(ns);
  object.metadata.name = std::move(name);
  return object;
}

Pod MakePod(std::string name, int priority = 0) {
  Pod pod = Named<Pod>("default", std::move(name));
  pod.spec.priority = priority;
  return pod;
}

MalformedPod MakeMalformed(std::string name, int line) {
  return {MakePod(std::move(name)), {"a.yaml", line, "spec", "two of them"}};
}

std::shared_ptr<const ManifestContent> Content(
    std::vector<Object> objects, std::vector<MalformedPod> malformed = {}) {
  DecodedManifest manifest;
  int line = 0;
  for (Object& object : objects) {
    manifest.objects.push_back({std::move(object), line += 10});
  }
  manifest.malformed_pods = std::move(malformed);
  return MakeContent(std::move(manifest));
}

std::vector<std::string> Texts(const ObjectSnapshot& snapshot) {
  std::vector<std::string> texts;
  for (const ManifestProblem& problem : snapshot.problems) {
    std::string text = problem.file;
    if (problem.line > 0) text += ":" + std::to_string(problem.line);
    texts.push_back(text + ": " + problem.message);
  }
  return texts;
}

class ManifestSetTest : public testing::Test {
 protected:
  const Pod& PodOf(const ObjectSnapshot& snapshot, const std::string& name) {
    return *snapshot.pods.at({"default", name});
  }

  ManifestSet set_{"/m"};
};

TEST_F(ManifestSetTest, KnowsNothingBeforeTheFirstListing) {
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(Texts(snapshot), ElementsAre("/m: not read yet"));
}

TEST_F(ManifestSetTest, QuotasAreObjectsLikeOthers) {
  ResourceQuota quota;
  quota.metadata.ns = "default";
  quota.metadata.name = "gpu";
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({quota}));
  set_.Accept("b.yaml", Content({quota}));
  ObjectSnapshot snapshot = set_.Build();
  EXPECT_EQ(snapshot.quotas.count({"default", "gpu"}), 1U);
  EXPECT_THAT(Texts(snapshot),
              ElementsAre("/m/b.yaml:10: ResourceQuota 'default/gpu' is in "
                          "'/m/a.yaml' (line 10) already; only the first by "
                          "file name counts"));
  set_.SetListed({});
  ObjectSnapshot without = set_.Build();
  EXPECT_FALSE(SameSnapshot(snapshot, without));
  ShareWith(snapshot, &without);
  EXPECT_TRUE(without.quotas.empty());
}

TEST_F(ManifestSetTest, AnEmptyDirectoryIsComplete) {
  set_.SetListed({});
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.problems, IsEmpty());
}

TEST_F(ManifestSetTest, SortsObjectsByKind) {
  set_.SetListed({"a.yaml"});
  set_.Accept(
      "a.yaml",
      Content({MakePod("x"), Named<ResourceClaim>("default", "x"),
               Named<ResourceClaimTemplate>("default", "x"),
               Named<DeviceClass>("", "x"), Named<ResourceSlice>("", "x"),
               Named<Node>("", "x"), Named<DeviceTaintRule>("", "x"),
               Named<ResourceClass>("", "x"),
               Named<ResourceClassParameters>("default", "x"),
               Named<ResourceClaimParameters>("default", "x")},
              {MakeMalformed("y", 99)}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.problems, IsEmpty());
  EXPECT_EQ(snapshot.pods.count({"default", "x"}), 1u);
  EXPECT_EQ(snapshot.claims.count({"default", "x"}), 1u);
  EXPECT_EQ(snapshot.claim_templates.count({"default", "x"}), 1u);
  EXPECT_EQ(snapshot.device_classes.count({"", "x"}), 1u);
  EXPECT_EQ(snapshot.resource_slices.count({"", "x"}), 1u);
  EXPECT_EQ(snapshot.nodes.count({"", "x"}), 1u);
  EXPECT_EQ(snapshot.device_taint_rules.count({"", "x"}), 1u);
  EXPECT_EQ(snapshot.resource_classes.count({"", "x"}), 1u);
  EXPECT_EQ(snapshot.resource_class_parameters.count({"default", "x"}), 1u);
  EXPECT_EQ(snapshot.resource_claim_parameters.count({"default", "x"}), 1u);
  EXPECT_EQ(snapshot.malformed_pods.count({"default", "y"}), 1u);
}

TEST_F(ManifestSetTest, FirstFileByNameCountsAndTheOtherIsReported) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("b.yaml", Content({MakePod("x", 2), MakePod("z")}));
  set_.Accept("a.yaml", Content({MakePod("w"), MakePod("x", 1)}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.pods, SizeIs(3));
  EXPECT_EQ(PodOf(snapshot, "x").spec.priority, 1);
  EXPECT_THAT(Texts(snapshot),
              ElementsAre("/m/b.yaml:10: Pod 'default/x' is in '/m/a.yaml' "
                          "(line 20) already; only the first by file name "
                          "counts"));
}

TEST_F(ManifestSetTest, SecondFileCountsOnceTheFirstIsGone) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x", 1)}));
  set_.Accept("b.yaml", Content({MakePod("x", 2)}));
  set_.SetListed({"b.yaml"});
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_EQ(PodOf(snapshot, "x").spec.priority, 2);
  EXPECT_THAT(snapshot.problems, IsEmpty());
}

TEST_F(ManifestSetTest, SameNameInAnotherNamespaceOrKindIsAnotherObject) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}));
  set_.Accept("b.yaml", Content({Named<Pod>("other", "x"),
                                 Named<ResourceClaim>("default", "x")}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_THAT(snapshot.pods, SizeIs(2));
  EXPECT_THAT(snapshot.problems, IsEmpty());
}

TEST_F(ManifestSetTest, MalformedPodOccupiesItsName) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({}, {MakeMalformed("x", 4)}));
  set_.Accept("b.yaml", Content({MakePod("x")}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(snapshot.pods, IsEmpty());
  EXPECT_THAT(snapshot.malformed_pods, SizeIs(1));
  EXPECT_THAT(Texts(snapshot),
              ElementsAre(HasSubstr("'default/x' is in '/m/a.yaml' (line 4)")));
}

TEST_F(ManifestSetTest, MalformedPodYieldsToAnEarlierPodOfItsFile) {
  set_.SetListed({"a.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}, {MakeMalformed("x", 14)}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_THAT(snapshot.pods, SizeIs(1));
  EXPECT_THAT(snapshot.malformed_pods, IsEmpty());
  EXPECT_THAT(snapshot.problems, SizeIs(1));
}

TEST_F(ManifestSetTest, BadFileWithoutContentMakesTheSnapshotIncomplete) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}));
  set_.Reject("b.yaml", "broken");
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(snapshot.pods, SizeIs(1));
  EXPECT_THAT(Texts(snapshot), ElementsAre("/m/b.yaml: broken"));
}

TEST_F(ManifestSetTest, BadFileKeepsItsLastGoodContent) {
  set_.SetListed({"a.yaml"});
  const auto content = Content({MakePod("x")});
  set_.Accept("a.yaml", content);
  const ObjectSnapshot before = set_.Build();
  set_.Reject("a.yaml", {{"/m/a.yaml", 7, "spec.priority", "not a number"}});
  const ObjectSnapshot after = set_.Build();
  EXPECT_TRUE(after.complete);
  EXPECT_EQ(after.pods, before.pods);
  EXPECT_THAT(
      Texts(after),
      ElementsAre("/m/a.yaml:7: not a number; last good content is kept"));
  EXPECT_EQ(after.problems[0].field, "spec.priority");
  EXPECT_FALSE(SameSnapshot(before, after));

  set_.Accept("a.yaml", content);
  EXPECT_TRUE(SameSnapshot(before, set_.Build()));
}

TEST_F(ManifestSetTest, FileThatWasNotLookedAtMakesTheSnapshotIncomplete) {
  set_.SetListed({"a.yaml"});
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(Texts(snapshot), ElementsAre("/m/a.yaml: not read yet"));
}

TEST_F(ManifestSetTest, DeletedFileServesOnWhileTheSnapshotIsIncomplete) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}));
  set_.Reject("b.yaml", "broken");
  set_.SetListed({"b.yaml"});
  const ObjectSnapshot kept = set_.Build();
  EXPECT_FALSE(kept.complete);
  EXPECT_THAT(kept.pods, SizeIs(1));
  EXPECT_THAT(Texts(kept),
              ElementsAre("/m/b.yaml: broken",
                          "/m/a.yaml: not in the directory any more; last "
                          "good content is kept"));

  set_.Accept("b.yaml", Content({}));
  const ObjectSnapshot gone = set_.Build();
  EXPECT_TRUE(gone.complete);
  EXPECT_THAT(gone.pods, IsEmpty());
  EXPECT_THAT(gone.problems, IsEmpty());

  // And it does not come back with the next trouble.
  set_.SetUnlisted("broken");
  EXPECT_THAT(set_.Build().pods, IsEmpty());
}

TEST_F(ManifestSetTest, WhatMovedToAnotherFileWinsOverTheDeletedOne) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x", 1)}));
  set_.Reject("b.yaml", "broken");
  set_.SetListed({"b.yaml", "c.yaml"});
  set_.Accept("c.yaml", Content({MakePod("x", 2)}));
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_EQ(PodOf(snapshot, "x").spec.priority, 2);
  EXPECT_THAT(Texts(snapshot), ElementsAre("/m/b.yaml: broken"));
}

TEST_F(ManifestSetTest, ForgetsDeletedFilesBeyondTheLimit) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < ManifestSet::kMaxDeleted + 5; ++i) {
    names.insert(std::to_string(i) + ".yaml");
  }
  set_.SetListed(names);
  for (const std::string& name : names) {
    set_.Accept(name, Content({MakePod("pod" + name)}));
  }
  set_.SetListed({});
  set_.SetDisturbance("unclear");
  EXPECT_THAT(set_.Build().pods, SizeIs(ManifestSet::kMaxDeleted));
}

TEST_F(ManifestSetTest, UnlistedDirectoryKeepsEverything) {
  set_.SetListed({"a.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}));
  set_.SetUnlisted("cannot be opened");
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_FALSE(snapshot.complete);
  EXPECT_THAT(snapshot.pods, SizeIs(1));
  EXPECT_THAT(Texts(snapshot), ElementsAre("/m: cannot be opened"));
}

TEST_F(ManifestSetTest, DisturbanceMakesTheSnapshotIncomplete) {
  set_.SetListed({});
  set_.SetDisturbance("keeps changing");
  EXPECT_FALSE(set_.Build().complete);
  EXPECT_THAT(Texts(set_.Build()), ElementsAre("/m: keeps changing"));
  set_.SetDisturbance("");
  EXPECT_TRUE(set_.Build().complete);
}

TEST_F(ManifestSetTest, WarningsAndRemarksAreReportedAndHarmless) {
  DecodedManifest manifest;
  manifest.warnings.push_back({"/m/a.yaml", 3, "spec.pool", "none; assumed"});
  set_.SetListed({"a.yaml"});
  set_.Accept("a.yaml", MakeContent(std::move(manifest)));
  set_.SetRemark("a.yaml", "far away");
  const ObjectSnapshot snapshot = set_.Build();
  EXPECT_TRUE(snapshot.complete);
  EXPECT_THAT(Texts(snapshot),
              ElementsAre("/m/a.yaml: far away", "/m/a.yaml:3: none; assumed"));
}

TEST_F(ManifestSetTest, CountsProblemsBeyondTheLimits) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < ManifestSet::kMaxProblems; ++i) {
    names.insert(std::to_string(1000 + i) + ".yaml");
  }
  set_.SetListed(names);
  for (const std::string& name : names) {
    set_.Reject(name, std::vector<ManifestProblem>(
                          ManifestSet::kMaxProblemsPerFile + 3));
  }
  const ObjectSnapshot snapshot = set_.Build();
  ASSERT_THAT(snapshot.problems, SizeIs(ManifestSet::kMaxProblems + 1));
  EXPECT_EQ(snapshot.problems[ManifestSet::kMaxProblemsPerFile].message,
            "3 more problems are not listed");
  EXPECT_EQ(snapshot.problems.back().file, "/m");
  EXPECT_EQ(snapshot.problems.back().message,
            "2000 more problems are not listed");
}

TEST_F(ManifestSetTest, WhatBlocksIsListedBeforeWhatDoesNot) {
  set_.SetListed({"a.yaml", "b.yaml", "c.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x"), MakePod("x")}));
  set_.Accept("b.yaml", Content({}));
  set_.Reject("b.yaml", "stale");
  set_.Reject("c.yaml", "broken");
  EXPECT_THAT(Texts(set_.Build()),
              ElementsAre(HasSubstr("broken"), HasSubstr("stale"),
                          HasSubstr("only the first")));
}

TEST_F(ManifestSetTest, ObjectsOfUnchangedFilesStayTheSame) {
  set_.SetListed({"a.yaml", "b.yaml"});
  set_.Accept("a.yaml", Content({MakePod("x")}));
  set_.Accept("b.yaml", Content({MakePod("y")}));
  const ObjectSnapshot before = set_.Build();
  set_.Accept("b.yaml", Content({MakePod("y")}));
  const ObjectSnapshot after = set_.Build();
  EXPECT_EQ(before.pods.at({"default", "x"}), after.pods.at({"default", "x"}));
  EXPECT_NE(before.pods.at({"default", "y"}), after.pods.at({"default", "y"}));
}

TEST(PrintableTest, EscapesWhatCannotBeShown) {
  EXPECT_EQ(Printable("a b.yaml"), "a b.yaml");
  EXPECT_EQ(Printable("gr\xc3\xbc\xc3\x9f.yaml"), "gr\xc3\xbc\xc3\x9f.yaml");
  EXPECT_EQ(Printable("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("a\nb"), "a\\nb");
  for (const char* broken :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
        "\xe0\x80\x80", "\xf0\x80\x80\x80", "a\x80"}) {
    EXPECT_THAT(Printable(broken), HasSubstr("\\x")) << Printable(broken);
  }
}

}  // namespace
}  // namespace devmgr::source
