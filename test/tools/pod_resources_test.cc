// SPDX-License-Identifier: Apache-2.0
//
// podresources list|allocatable|get.
#include <devmgr/pod_resources_client.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// What the socket tells.
struct Told {
  std::vector<ListedPod> pods;
  AllocatableResources allocatable;
};

class FakeClient final : public PodResourcesClient {
 public:
  explicit FakeClient(const Told& told) : told_(told) {}
  absl::StatusOr<std::vector<ListedPod>> List() override { return told_.pods; }
  absl::StatusOr<AllocatableResources> Allocatable() override {
    return told_.allocatable;
  }
  absl::StatusOr<ListedPod> Get(const ObjectName& name) override {
    for (const ListedPod& pod : told_.pods) {
      if (pod.name == name) return pod;
    }
    return absl::NotFoundError("pod not found");
  }

 private:
  const Told& told_;
};

class PodResourcesCommandTest : public CommandLineTest {
 protected:
  PodResourcesCommandTest() {
    connect_pod_resources_ = [this](const std::filesystem::path& socket,
                                    std::chrono::milliseconds)
        -> absl::StatusOr<std::unique_ptr<PodResourcesClient>> {
      sockets_.push_back(socket.string());
      return std::make_unique<FakeClient>(told_);
    };
    ListedPod pod;
    pod.name = {"default", "p"};
    ListedContainer main;
    main.resources.name = "main";
    main.resources.devices = {{"example.com/gpu", {{"gpu-0", {0, 1}}}}};
    main.resources.claims = {
        {{"default", "c"},
         {},
         {{"gpu.example.com", "pool", "d1", "share", {"v.com/c=x"}}}}};
    main.cpu_ids = {2, 3};
    main.memory = {{"hugepages-2Mi", 4'194'304, {0}}};
    ListedContainer idle;
    idle.resources.name = "idle";
    pod.containers = {main, idle};
    ListedPod other;
    other.name = {"team", "q"};
    told_.pods = {pod, other};
    told_.allocatable.devices = {
        {"example.com/gpu", {{"gpu-0", {0}}, {"gpu-1", {}}}}};
  }

  Told told_;
  std::vector<std::string> sockets_;
};

TEST_F(PodResourcesCommandTest, ListsAllThatContainersHave) {
  const Result result = Run({"podresources", "list"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("NUMA NODES"), HasSubstr("gpu-0"), HasSubstr("0,1"),
            HasSubstr("claim/c"), HasSubstr("gpu.example.com/pool/d1/share"),
            HasSubstr("2,3"), HasSubstr("4194304 bytes"), HasSubstr("idle"),
            HasSubstr("team"), Not(HasSubstr("v.com/c=x"))));
  EXPECT_THAT(Run({"podresources", "list", "-o", "wide"}).out,
              HasSubstr("v.com/c=x"));
  EXPECT_EQ(Run({"podresources", "list", "-o", "name"}).out,
            "pod/default/p\npod/team/q\n");
  EXPECT_EQ(Run({"podresources", "list", "-n", "team", "-o", "name"}).out,
            "pod/team/q\n");
}

// k/k#101522: node 0 is to be seen.
TEST_F(PodResourcesCommandTest, TellsProgramsOfNode0) {
  const auto list = RunJson({"podresources", "list"});
  EXPECT_EQ(list["kind"], "PodResourcesList");
  ASSERT_THAT(list["items"], SizeIs(2));
  const auto& main = list["items"][0]["containers"][0];
  EXPECT_EQ(main["devices"][0]["numaNodes"], (std::vector<int>{0, 1}));
  EXPECT_EQ(main["claims"][0]["devices"][0]["shareID"], "share");
  EXPECT_EQ(main["memory"][0]["numaNodes"], (std::vector<int>{0}));
  const auto allocatable = RunJson({"podresources", "allocatable"});
  EXPECT_EQ(allocatable["kind"], "AllocatableResources");
  ASSERT_THAT(allocatable["devices"], SizeIs(2));
  EXPECT_EQ(allocatable["devices"][0]["numaNodes"], (std::vector<int>{0}));
  EXPECT_FALSE(allocatable["devices"][1].contains("numaNodes"));
  EXPECT_THAT(Run({"podresources", "allocatable"}).out, HasSubstr("gpu-1"));
}

TEST_F(PodResourcesCommandTest, GetsOnePod) {
  EXPECT_EQ(RunJson({"podresources", "get", "p"})["name"], "p");
  EXPECT_EQ(RunJson({"podresources", "get", "pod/team/q"})["name"], "q");
  EXPECT_EQ(Run({"podresources", "get", "none"}).code, kExitNotFound);
  EXPECT_EQ(Run({"podresources", "get"}).code, kExitUsage);
  EXPECT_EQ(Run({"podresources"}).code, kExitUsage);
}

TEST_F(PodResourcesCommandTest, AsksTheKubeletsSocketUnlessTold) {
  Run({"podresources", "list"});
  Run({"podresources", "--socket", "unix:///run/x.sock", "list"});
  EXPECT_THAT(sockets_,
              ElementsAre("/var/lib/kubelet/pod-resources/kubelet.sock",
                          "/run/x.sock"));
  const Result offline = Run({"--state-dir", "/s", "podresources", "list"});
  EXPECT_NE(offline.code, 0);
  EXPECT_THAT(offline.err, HasSubstr("podresources needs a running daemon"));
}

}  // namespace
}  // namespace devmgr::ctl
