// SPDX-License-Identifier: Apache-2.0
#include "source/wanted_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "support/as_nobody.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"
#include "support/wanted_text.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ObjectName kP{"default", "p"};
const ObjectName kQ{"default", "q"};

class WantedPodsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    others_->Publish({});
    Open();
  }

  void Open(const std::string& node = "") {
    auto pods = WantedPods::Open(directory_, node, others_.get());
    ASSERT_THAT(pods, IsOk());
    pods_ = *std::move(pods);
  }

  absl::StatusOr<WantedPod> Want(const std::string& text) {
    return pods_->Want(text, [this](const WantedPod& pod) {
      recorded_.push_back("+" + pod.uid.value);
      return record_status_;
    });
  }
  absl::StatusOr<WantedPod> Unwant(const std::string& uid) {
    return pods_->Unwant({uid}, [this](const WantedPod& pod) {
      recorded_.push_back("-" + pod.uid.value);
      return record_status_;
    });
  }

  void ExpectRefused(const std::string& text, StatusCode code,
                     const std::string& why) {
    const auto wanted = Want(text);
    EXPECT_EQ(wanted.status().code(), code) << wanted.status();
    EXPECT_THAT(MessageOf(wanted.status()), HasSubstr(why));
    EXPECT_THAT(recorded_, IsEmpty());
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  void WriteRaw(const std::string& file, const std::string& text) {
    fs::create_directories(directory_);
    std::ofstream(directory_ / file) << text;
  }

  const TempFolder folder_;
  const fs::path directory_ = folder_.path() / "wanted";
  std::unique_ptr<MemoryObjectSource> others_ = MemoryObjectSource::Create();
  std::unique_ptr<WantedPods> pods_;
  std::vector<std::string> recorded_;
  absl::Status record_status_;
};

TEST_F(WantedPodsTest, IsCompleteAndMakesNothingWhileNothingIsWanted) {
  EXPECT_TRUE(pods_->Snapshot()->complete);
  EXPECT_THAT(pods_->Snapshot()->pods, IsEmpty());
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(WantedPodsTest, HasAPodAndItsClaimsOverARestart) {
  const auto wanted =
      Want(WantedClaim("c1", "u-p") + WantedPodText("p", "u-p", "c1"));
  ASSERT_THAT(wanted, IsOk());
  EXPECT_EQ(wanted->uid.value, "u-p");
  EXPECT_EQ(wanted->name, kP);
  EXPECT_FALSE(wanted->was_wanted);
  EXPECT_TRUE(wanted->changed);
  EXPECT_THAT(Names(), ElementsAre("u-p.yaml"));
  struct stat info {};
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  for (int i = 0; i < 2; ++i) {
    const auto snapshot = pods_->Snapshot();
    EXPECT_TRUE(snapshot->complete);
    ASSERT_THAT(snapshot->pods, SizeIs(1));
    EXPECT_EQ(snapshot->pods.at(kP)->metadata.uid, "u-p");
    EXPECT_THAT(snapshot->claims, SizeIs(1));
    EXPECT_THAT(snapshot->vouched_pods, ElementsAre(kP));
    EXPECT_THAT(snapshot->gone_pods, IsEmpty());
    Open();
  }
}

TEST_F(WantedPodsTest, TakesJson) {
  EXPECT_THAT(Want(R"({"apiVersion": "v1", "kind": "Pod", "metadata":
      {"name": "p", "uid": "u-p"}, "spec": {"containers": [{"name": "c"}]}})"),
              IsOk());
}

TEST_F(WantedPodsTest, TheSameTextAgainChangesNothing) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  const auto before = pods_->Snapshot();
  const auto again = Want(WantedPodText("p", "u-p"));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->was_wanted);
  EXPECT_FALSE(again->changed);
  EXPECT_EQ(pods_->Snapshot(), before);
  EXPECT_THAT(recorded_, ElementsAre("+u-p", "+u-p"));
}

TEST_F(WantedPodsTest, AnotherTextForAUidCounts) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  const auto again =
      Want(WantedClaim("c1", "u-p") + WantedPodText("p", "u-p", "c1"));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->was_wanted);
  EXPECT_TRUE(again->changed);
  EXPECT_THAT(pods_->Snapshot()->claims, SizeIs(1));
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  EXPECT_THAT(pods_->Snapshot()->claims, IsEmpty());
}

TEST_F(WantedPodsTest, AnUnwantedPodIsGoneUntilItIsForgotten) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  const auto unwanted = Unwant("u-p");
  ASSERT_THAT(unwanted, IsOk());
  EXPECT_TRUE(unwanted->was_wanted);
  EXPECT_EQ(unwanted->name, kP);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(pods_->Snapshot()->pods, IsEmpty());
    EXPECT_THAT(pods_->Snapshot()->gone_pods, ElementsAre(PodUid{"u-p"}));
    EXPECT_TRUE(pods_->Snapshot()->complete);
    Open();
  }
  pods_->Forget({"u-p"});
  EXPECT_THAT(pods_->Snapshot()->gone_pods, IsEmpty());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(WantedPodsTest, ToUnwantTwiceOrAnUnknownPodIsFineAndSaid) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-p"), IsOk());
  const auto again = Unwant("u-p");
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->was_wanted);
  EXPECT_EQ(again->name, kP);
  const auto unknown = Unwant("u-x");
  ASSERT_THAT(unknown, IsOk());
  EXPECT_FALSE(unknown->was_wanted);
  EXPECT_THAT(recorded_, ElementsAre("+u-p", "-u-p", "-u-p", "-u-x"));
  EXPECT_EQ(Unwant("../x").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Unwant("").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(WantedPodsTest, EveryUidHasAFileOfItsOwn) {
  const std::vector<std::string> uids = {"a", "a.gone", "a.yaml", "A:b_c-d",
                                         ".x.tmp"};
  for (std::size_t i = 0; i < uids.size(); ++i) {
    const std::string name = "p" + std::to_string(i);
    ASSERT_THAT(Want(WantedPodText(name, "\"" + uids[i] + "\"")), IsOk());
  }
  ASSERT_THAT(Unwant("a.yaml"), IsOk());
  Open();
  EXPECT_THAT(pods_->Snapshot()->problems, IsEmpty());
  EXPECT_THAT(pods_->Snapshot()->pods, SizeIs(uids.size() - 1));
  EXPECT_THAT(pods_->Snapshot()->gone_pods, ElementsAre(PodUid{"a.yaml"}));
}

TEST_F(WantedPodsTest, APodThatIsWantedAgainIsNotGone) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-p"), IsOk());
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  EXPECT_THAT(pods_->Snapshot()->gone_pods, IsEmpty());
  EXPECT_THAT(Names(), ElementsAre("u-p.yaml"));
  // A crash came between the two changes of the directory.
  WriteRaw("u-p.gone", "");
  Open();
  EXPECT_THAT(pods_->Snapshot()->gone_pods, IsEmpty());
  EXPECT_THAT(pods_->Snapshot()->pods, SizeIs(1));
}

TEST_F(WantedPodsTest, NothingIsWrittenThatCannotBeRecorded) {
  record_status_ = UnavailableError("the ledger is full");
  EXPECT_EQ(Want(WantedPodText("p", "u-p")).status(), record_status_);
  EXPECT_THAT(pods_->Snapshot()->pods, IsEmpty());
  EXPECT_FALSE(fs::exists(directory_));
  record_status_ = absl::OkStatus();
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  record_status_ = UnavailableError("the ledger is full");
  EXPECT_EQ(Unwant("u-p").status(), record_status_);
  EXPECT_THAT(pods_->Snapshot()->pods, SizeIs(1));
}

TEST_F(WantedPodsTest, SaysWhatIsWrongWithATextAndWhere) {
  const auto invalid = StatusCode::kInvalidArgument;
  ExpectRefused(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\n"
      "spec:\n  containers: 7\n",
      invalid, "manifest:5: spec.containers");
  ExpectRefused("apiVersion: v1\nkind: Pod\n  metadata: {", invalid,
                "manifest:3");
  ExpectRefused(WantedPodText("P_", "u-p"), invalid, "metadata.name");
  ExpectRefused(WantedPodText("p", "\"\""), invalid,
                "metadata.uid: is required");
  ExpectRefused(WantedPodText("p", "../../x"), invalid,
                "manifest:3: metadata.uid: '../../x' is not a usable UID");
  ExpectRefused("", invalid, "manifest: has no pod");
  ExpectRefused(WantedPodText("p", "u-p") +
                    "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
                    "metadata: {name: c, uid: u-c}\nspec: {devices: {requests: "
                    "[{name: r, exactly: {deviceClassName: c, selectors: "
                    "[{cel: {expression: device.x}}]}}]}}\n",
                invalid, "line 1, column 7 of the expression");
  ExpectRefused(WantedClaim("c1", "u-p"), invalid, "manifest: has no pod");
  ExpectRefused(WantedPodText("p", "u-p") + "---\n" + WantedPodText("q", "u-q"),
                invalid,
                "manifest:7: metadata.name: pod 'default/q' is a second one, "
                "after 'default/p'");
  ExpectRefused(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
      "metadata: {name: c}\nspec: {}\n",
      invalid, "a DeviceClass does not come with a pod");
}

TEST_F(WantedPodsTest, ATextHasALimit) {
  const std::string text =
      WantedPodText("p", "u-p") + "#" +
      std::string(WantedPods::kMaxBytes - WantedPodText("p", "u-p").size(),
                  'x');
  ExpectRefused(text, StatusCode::kResourceExhausted,
                "has 4194305 bytes, at most 4194304 are taken");
  EXPECT_THAT(Want(text.substr(0, WantedPods::kMaxBytes)), IsOk());
}

TEST_F(WantedPodsTest, AllTogetherHaveLimits) {
  source::WantedOptions options;
  options.directory = directory_;
  options.max_pods = 2;
  options.max_total_bytes = 1'000;
  auto pods = source::OpenWanted(options);
  ASSERT_THAT(pods, IsOk());
  pods_ = *std::move(pods);
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Want(WantedPodText("q", "u-q")), IsOk());
  recorded_.clear();
  ExpectRefused(WantedPodText("r", "u-r"), StatusCode::kResourceExhausted,
                "2 pods are wanted already, which is the limit");
  const std::string large =
      WantedPodText("q", "u-q") + "#" + std::string(900, 'x');
  ExpectRefused(large, StatusCode::kResourceExhausted,
                "the manifests of all wanted pods would have");
  // What it was before does not count.
  ASSERT_THAT(Unwant("u-p"), IsOk());
  ASSERT_THAT(Want(large), IsOk());
  ASSERT_THAT(Want(WantedPodText("q", "u-q")), IsOk());
  EXPECT_THAT(Want(WantedPodText("r", "u-r")), IsOk());
}

TEST_F(WantedPodsTest, PodsOfOtherNodesAreRefused) {
  Open("node-a");
  ExpectRefused(WantedPodText("p", "u-p") + "  nodeName: node-b\n",
                StatusCode::kInvalidArgument,
                "spec.nodeName: pod 'default/p' is for node 'node-b', and this "
                "is node 'node-a'");
  EXPECT_THAT(Want(WantedPodText("p", "u-p") + "  nodeName: node-a\n"), IsOk());
  // One that names none is this node's.
  EXPECT_THAT(Want(WantedPodText("q", "u-q")), IsOk());
  EXPECT_EQ(pods_->Snapshot()->pods.at({"default", "q"})->spec.node_name,
            "node-a");
}

TEST_F(WantedPodsTest, AUidAndANameBelongToOneWantedPod) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  recorded_.clear();
  ExpectRefused(WantedPodText("p", "u-2"), StatusCode::kAlreadyExists,
                "pod 'default/p' with UID 'u-p' is wanted already, and pod "
                "'default/p' with UID 'u-2' has the same name");
  ExpectRefused(WantedPodText("q", "u-p"), StatusCode::kAlreadyExists,
                "has the same UID");
  ASSERT_THAT(Unwant("u-p"), IsOk());
  EXPECT_THAT(Want(WantedPodText("p", "u-2")), IsOk());
}

TEST_F(WantedPodsTest, PodsMayBringOneClaimAlike) {
  ASSERT_THAT(Want(WantedClaim("c1", "u-p") + WantedPodText("p", "u-p", "c1")),
              IsOk());
  const auto alone = pods_->Snapshot()->claims.at({"default", "c1"});
  ASSERT_THAT(Want(WantedClaim("c1", "u-q") + WantedPodText("q", "u-q", "c1")),
              IsOk());
  const auto shared = pods_->Snapshot()->claims.at({"default", "c1"});
  EXPECT_THAT(shared->status.reserved_for, SizeIs(2));
  recorded_.clear();
  ExpectRefused(
      WantedClaim("c1", "u-r", "gpu-1") + WantedPodText("r", "u-r", "c1"),
      StatusCode::kAlreadyExists,
      "ResourceClaim 'default/c1' has come with pod 'default/p' already");
  ASSERT_THAT(Unwant("u-q"), IsOk());
  EXPECT_EQ(pods_->Snapshot()->claims.at({"default", "c1"}), alone);
  ASSERT_THAT(Unwant("u-p"), IsOk());
  EXPECT_THAT(pods_->Snapshot()->claims, IsEmpty());
}

TEST_F(WantedPodsTest, WhatTheOtherSourceHasCannotBeWanted) {
  auto pod = std::make_shared<Pod>();
  pod->metadata.ns = "default";
  pod->metadata.name = "q";
  pod->metadata.uid = "u-q";
  auto claim = std::make_shared<ResourceClaim>();
  claim->metadata.ns = "default";
  claim->metadata.name = "c1";
  ObjectSnapshot objects;
  objects.pods.insert_or_assign(kQ, pod);
  objects.claims.insert_or_assign({"default", "c1"}, claim);
  others_->Publish(objects);
  ExpectRefused(WantedPodText("q", "u-2"), StatusCode::kAlreadyExists,
                "memory has pod 'default/q', which has the name of pod "
                "'default/q' with UID 'u-2'");
  ExpectRefused(WantedPodText("p", "u-q"), StatusCode::kAlreadyExists,
                "has the UID of pod");
  ExpectRefused(WantedClaim("c1", "u-p") + WantedPodText("p", "u-p", "c1"),
                StatusCode::kAlreadyExists,
                "memory has ResourceClaim 'default/c1'");
  const auto unwanted = Unwant("u-q");
  EXPECT_EQ(unwanted.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(unwanted.status()),
              HasSubstr("pod 'default/q' with UID 'u-q' is not wanted by a "
                        "client: it is of memory"));
  EXPECT_THAT(Want(WantedPodText("p", "u-p", "c1")), IsOk());
}

TEST_F(WantedPodsTest, AFileThatCannotBeUsedReleasesNothing) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  WriteRaw("u-q.yaml", "kind: Pod\napiVersion: v1\nmetadata: {");
  WriteRaw("u-r.yaml", WantedPodText("r", "u-other"));
  fs::create_directory(directory_ / "u-s.yaml");
  Open();
  const auto snapshot = pods_->Snapshot();
  EXPECT_FALSE(snapshot->complete);
  EXPECT_THAT(snapshot->pods, SizeIs(1));
  ASSERT_THAT(snapshot->problems, SizeIs(3));
  EXPECT_THAT(snapshot->problems[0].ToString(), HasSubstr("wanted/u-q.yaml:"));
  EXPECT_THAT(snapshot->problems[1].ToString(),
              HasSubstr("wanted/u-r.yaml: metadata.uid: is 'u-other', but the "
                        "file is named after 'u-r'"));
  EXPECT_THAT(snapshot->problems[2].ToString(),
              HasSubstr("wanted/u-s.yaml: cannot be read"));
  // The client says it anew, or that it is not wanted any more.
  const auto again = Want(WantedPodText("q", "u-q"));
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->was_wanted);
  EXPECT_TRUE(again->changed);
  const auto unwanted = Unwant("u-r");
  ASSERT_THAT(unwanted, IsOk());
  EXPECT_TRUE(unwanted->was_wanted);
  ASSERT_THAT(Unwant("u-s"), IsOk());
  EXPECT_TRUE(pods_->Snapshot()->complete);
  EXPECT_THAT(pods_->Snapshot()->gone_pods, SizeIs(2));
}

TEST_F(WantedPodsTest, WhatAWriterLeftThatWasKilledIsNoPod) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  WriteRaw("u-q.yaml.Ab12Cd.tmp", "kind: Pod");
  Open();
  EXPECT_TRUE(pods_->Snapshot()->complete);
  EXPECT_THAT(pods_->Snapshot()->problems, IsEmpty());
}

TEST_F(WantedPodsTest, ADirectoryThatIsNotOursIsSaid) {
  EXPECT_TRUE(AsNobody([this] {
    const auto wanted = Want(WantedPodText("p", "u-p"));
    return absl::IsPermissionDenied(wanted.status()) &&
           pods_->Snapshot()->pods.empty();
  }));
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  EXPECT_TRUE(AsNobody([this] {
    const auto opened = WantedPods::Open(directory_, "", nullptr);
    return absl::IsPermissionDenied(opened.status());
  }));
}

TEST_F(WantedPodsTest, TellsItsSubscriber) {
  int calls = 0;
  pods_->Subscribe([&] { ++calls; });
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  EXPECT_EQ(calls, 1);
  ASSERT_THAT(Unwant("u-p"), IsOk());
  EXPECT_EQ(calls, 2);
  pods_->Unsubscribe();
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  EXPECT_EQ(calls, 2);
}

class CombinedSourceTest : public WantedPodsTest {
 protected:
  static std::shared_ptr<const Pod> NamedPod(const std::string& name,
                                             const std::string& uid) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = "default";
    pod->metadata.name = name;
    pod->metadata.uid = uid;
    return pod;
  }
  void PublishOthers(std::vector<std::shared_ptr<const Pod>> pods) {
    ObjectSnapshot objects;
    objects.complete = true;
    objects.vouched = false;
    objects.watch = 7;
    objects.marker = "m";
    for (const auto& pod : pods)
      objects.pods.insert_or_assign(pod->metadata.FullName(), pod);
    others_->Publish(objects);
  }

  void SetUp() override {
    WantedPodsTest::SetUp();
    source_ = CombineSources(*others_, *pods_);
  }

  std::unique_ptr<ObjectSource> source_;
};

TEST_F(CombinedSourceTest, HasTheObjectsOfBothUnderTheNameOfTheFirst) {
  PublishOthers({NamedPod("q", "u-q")});
  ASSERT_THAT(Want(WantedClaim("c1", "u-p") + WantedPodText("p", "u-p", "c1")),
              IsOk());
  const auto all = source_->Snapshot();
  EXPECT_THAT(all->pods, SizeIs(2));
  EXPECT_THAT(all->claims, SizeIs(1));
  EXPECT_THAT(all->vouched_pods, ElementsAre(kP));
  EXPECT_TRUE(all->complete);
  EXPECT_FALSE(all->vouched);
  EXPECT_EQ(all->watch, 7u);
  EXPECT_EQ(all->marker, "m");
  EXPECT_EQ(source_->Describe(), "memory");
  EXPECT_EQ(source_->Snapshot(), all);
  ASSERT_THAT(Unwant("u-p"), IsOk());
  EXPECT_THAT(source_->Snapshot()->gone_pods, ElementsAre(PodUid{"u-p"}));
}

TEST_F(CombinedSourceTest, IsIncompleteWithEitherOfThem) {
  EXPECT_FALSE(source_->Snapshot()->complete);
  PublishOthers({});
  EXPECT_TRUE(source_->Snapshot()->complete);
  WriteRaw("u-q.yaml", "{");
  Open();
  source_ = CombineSources(*others_, *pods_);
  EXPECT_FALSE(source_->Snapshot()->complete);
  EXPECT_THAT(source_->Snapshot()->problems, SizeIs(1));
}

TEST_F(CombinedSourceTest, OneThatIsInBothIsAsWantedAndSaid) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  PublishOthers({NamedPod("p", "u-2"), NamedPod("q", "u-p")});
  const auto all = source_->Snapshot();
  ASSERT_THAT(all->pods, SizeIs(1));
  EXPECT_EQ(all->pods.at(kP)->metadata.uid, "u-p");
  ASSERT_THAT(all->problems, SizeIs(2));
  EXPECT_THAT(all->problems[0].message,
              HasSubstr("Pod 'default/p' of memory is left out"));
  EXPECT_THAT(all->problems[1].message,
              HasSubstr("Pod 'default/q' of memory is left out"));
}

TEST_F(CombinedSourceTest, WhatTheFirstSaysOfItsPodsCounts) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-p"), IsOk());
  ObjectSnapshot objects;
  objects.pods.insert_or_assign(ObjectName{"default", "q"},
                                NamedPod("q", "u-q"));
  objects.vouched_pods = {{"default", "q"}};
  objects.gone_pods = {PodUid{"u-r"}};
  others_->Publish(objects);
  const auto all = source_->Snapshot();
  EXPECT_THAT(all->vouched_pods, ElementsAre(ObjectName{"default", "q"}));
  EXPECT_THAT(all->gone_pods, ElementsAre(PodUid{"u-p"}, PodUid{"u-r"}));
}

TEST_F(CombinedSourceTest, AnUnwantedPodThatTheFirstHasIsNotGone) {
  ASSERT_THAT(Want(WantedPodText("p", "u-p")), IsOk());
  ASSERT_THAT(Unwant("u-p"), IsOk());
  PublishOthers({NamedPod("p", "u-p")});
  EXPECT_THAT(source_->Snapshot()->gone_pods, IsEmpty());
}

}  // namespace
}  // namespace devmgr
