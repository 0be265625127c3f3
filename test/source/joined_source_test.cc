// SPDX-License-Identifier: Apache-2.0
//
// An API server and manifests as one source.
#include <devmgr/host.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Remembers what it was asked to carry.
class MarkedSource final : public MemoryObjectSource {
 public:
  explicit MarkedSource(std::string name) : name_(std::move(name)) {}

  void Publish(ObjectSnapshot snapshot) override {
    objects_->Publish(std::move(snapshot));
  }
  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return objects_->Snapshot();
  }
  void Subscribe(std::function<void()> changed) override {
    objects_->Subscribe(std::move(changed));
  }
  void Unsubscribe() override { objects_->Unsubscribe(); }
  std::string Describe() const override { return name_; }
  void Mark(const std::string& id, std::uint64_t watch) override {
    marks.emplace_back(id, watch);
  }

  std::vector<std::pair<std::string, std::uint64_t>> marks;

 private:
  const std::string name_;
  const std::unique_ptr<MemoryObjectSource> objects_ =
      MemoryObjectSource::Create();
};

class JoinedSourceTest : public ::testing::Test {
 protected:
  static void Add(const std::string& name, const std::string& uid,
                  ObjectSnapshot* objects, int priority = 0) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = "default";
    pod->metadata.name = name;
    pod->metadata.uid = uid;
    pod->spec.priority = priority;
    objects->pods.insert_or_assign(pod->metadata.FullName(), pod);
  }
  static ObjectSnapshot Complete(std::uint64_t watch, bool vouched = false) {
    ObjectSnapshot objects;
    objects.complete = true;
    objects.vouched = vouched;
    objects.watch = watch;
    return objects;
  }
  static std::vector<std::string> PodsOf(const ObjectSnapshot& objects) {
    std::vector<std::string> pods;
    for (const auto& [name, pod] : objects.pods) {
      pods.push_back(name.name + "/" + pod->metadata.uid);
    }
    return pods;
  }

  MarkedSource server_{"server"};
  MarkedSource files_{"directory /d"};
  std::unique_ptr<ObjectSource> source_ = CombineSources(server_, files_);
};

TEST_F(JoinedSourceTest, HasTheObjectsOfBoth) {
  ObjectSnapshot server = Complete(3, true);
  Add("p", "u-p", &server);
  server.partial_kinds = {ObjectKind::kResourceClaim};
  server_.Publish(server);
  EXPECT_FALSE(source_->Snapshot()->complete);
  ObjectSnapshot files = Complete(1);
  Add("q", "", &files);
  files.device_classes.insert_or_assign({"", "c"},
                                        std::make_shared<DeviceClass>());
  files.device_statuses.insert_or_assign({"default", "c"},
                                         std::make_shared<ClaimDeviceStatus>());
  files_.Publish(files);
  const auto all = source_->Snapshot();
  EXPECT_THAT(PodsOf(*all), ElementsAre("p/u-p", "q/"));
  EXPECT_THAT(all->device_statuses, SizeIs(1));
  EXPECT_THAT(all->device_classes, SizeIs(1));
  EXPECT_TRUE(all->complete);
  EXPECT_FALSE(all->IsComplete(ObjectKind::kResourceClaim));
  ASSERT_THAT(all->parts, SizeIs(2));
  EXPECT_TRUE(all->parts[0].vouched);
  EXPECT_FALSE(all->parts[1].vouched);
  EXPECT_EQ(source_->Describe(), "server and directory /d");
  EXPECT_EQ(source_->Snapshot(), all);
}

TEST_F(JoinedSourceTest, APodUnderOneUidIsOneAsTheServerHasIt) {
  ObjectSnapshot server = Complete(1);
  Add("p", "u-p", &server, 1);
  server_.Publish(server);
  ObjectSnapshot files = Complete(1);
  Add("p", "u-p", &files, 2);
  files_.Publish(files);
  const auto all = source_->Snapshot();
  EXPECT_THAT(PodsOf(*all), ElementsAre("p/u-p"));
  EXPECT_EQ(all->pods.begin()->second->spec.priority, 1);
  EXPECT_THAT(all->problems, IsEmpty());
}

// A pod that runs from a file does not lose its devices to one of its name.
TEST_F(JoinedSourceTest, APodOfTheServerDoesNotReplaceOneOfAFile) {
  ObjectSnapshot server = Complete(1);
  Add("p", "u-other", &server);
  server_.Publish(server);
  ObjectSnapshot files = Complete(1);
  Add("p", "", &files);
  files_.Publish(files);
  const auto all = source_->Snapshot();
  EXPECT_THAT(PodsOf(*all), ElementsAre("p/"));
  ASSERT_THAT(all->problems, SizeIs(1));
  EXPECT_EQ(all->problems[0].message,
            "Pod 'default/p' of server is left out: directory /d has one of "
            "that name, or with that UID");
}

TEST_F(JoinedSourceTest, TheMarkerOfTheFilesSaysNothingOfTheServer) {
  ObjectSnapshot files = Complete(4);
  files.marker = "m";
  files_.Publish(files);
  server_.Publish(Complete(7));
  const auto before = source_->Snapshot();
  EXPECT_FALSE(before->vouched);
  EXPECT_EQ(before->marker, "");
  server_.Publish(Complete(7, true));
  EXPECT_EQ(source_->Snapshot()->marker, "m");
  EXPECT_EQ(source_->Snapshot()->watch, before->watch);
  source_->Mark("m2", before->watch);
  EXPECT_THAT(files_.marks, ElementsAre(std::pair("m2", 4u)));
  EXPECT_THAT(server_.marks, ElementsAre(std::pair("m2", 7u)));
  server_.Publish(Complete(8, true));
  EXPECT_GT(source_->Snapshot()->watch, before->watch);
  source_->Mark("m3", before->watch);
  EXPECT_THAT(files_.marks, SizeIs(1));
}

}  // namespace
}  // namespace devmgr
