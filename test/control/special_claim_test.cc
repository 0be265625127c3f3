// SPDX-License-Identifier: Apache-2.0
#include "control/special_claim.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::control {
namespace {

constexpr char kGpu[] = "example.com/gpu";
constexpr char kNic[] = "example.com/nic";
constexpr char kImplicit[] = "deviceclass.resource.kubernetes.io/c";

class SpecialClaimTest : public testing::Test {
 protected:
  SpecialClaimTest() {
    Add("c", kGpu);
    Add("n", kNic);
  }

  void Add(const std::string& name, const std::string& resource) {
    DeviceClass item;
    item.metadata.name = name;
    item.extended_resource_name = resource;
    classes_.insert_or_assign({"", name},
                              std::make_shared<const DeviceClass>(item));
  }

  auto TryBuild(const Pod& pod) const {
    return BuildSpecialClaim(pod, classes_, [this](const ResourceName& name) {
      return !of_plugins_.contains(name);
    });
  }
  std::optional<SpecialClaim> Build(const Pod& pod) const {
    auto built = TryBuild(pod);
    EXPECT_THAT(built, IsOk());
    return built.ok() ? *built : std::nullopt;
  }

  /// `request=class*count` of each request.
  static std::vector<std::string> Requests(const SpecialClaim& special) {
    std::vector<std::string> texts;
    for (const DeviceRequest& request : special.claim.spec.requests) {
      EXPECT_EQ(request.exactly->name, request.name);
      EXPECT_EQ(request.exactly->allocation_mode, "ExactCount");
      EXPECT_TRUE(request.exactly->selectors.empty());
      texts.push_back(fmt::format("{}={}*{}", request.name,
                                  request.exactly->device_class_name,
                                  request.exactly->count));
    }
    return texts;
  }
  /// `container: resource=request` of each mapping.
  static std::vector<std::string> Mappings(const SpecialClaim& special) {
    std::vector<std::string> texts;
    for (const auto& mapping : special.mappings) {
      texts.push_back(fmt::format("{}: {}={}", mapping.container_name,
                                  mapping.resource_name, mapping.request_name));
    }
    return texts;
  }

  ObjectMap<DeviceClass> classes_;
  std::set<ResourceName> of_plugins_;
};

using Texts = std::vector<std::string>;

TEST_F(SpecialClaimTest, AL078OneRequestPerContainerAndResource) {
  const auto special = Build(PodBuilder("web")
                                 .Container("main")
                                 .Requests("cpu")
                                 .Requests(kGpu, 2)
                                 .Requests("memory", 1024));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special), Texts{"container-0-request-1=c*2"});
  EXPECT_EQ(Mappings(*special),
            Texts{"main: example.com/gpu=container-0-request-1"});
  const ObjectMeta& metadata = special->claim.metadata;
  EXPECT_EQ(metadata.name, "<extended-resources>");
  EXPECT_EQ(metadata.ns, kNamespace);
  EXPECT_EQ(metadata.annotations,
            (std::map<std::string, std::string>{
                {"resource.kubernetes.io/extended-resource-claim", "true"}}));
  ASSERT_EQ(metadata.owner_references.size(), 1U);
  EXPECT_EQ(metadata.owner_references[0],
            (OwnerReference{"v1", "Pod", "web", "u-web", true}));
  EXPECT_FALSE(special->claim.status.allocation.has_value());
}

TEST_F(SpecialClaimTest, AL079WhatAPluginServesIsInNoClaim) {
  of_plugins_ = {kGpu};
  const Pod pod = PodBuilder().Container("main").Requests(kGpu, 2);
  EXPECT_FALSE(Build(pod).has_value());
  // And beside a name that a class serves it is left out.
  const auto special =
      Build(PodBuilder().Container("main").Requests(kGpu, 2).Requests(kNic));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special), Texts{"container-0-request-1=n*1"});
}

TEST_F(SpecialClaimTest, AL080bMoreThanFitIntoAClaimIsRefusedWithTheLimit) {
  const Pod fits =
      PodBuilder().Container("a").Requests(kGpu, 20).Container("b").Requests(
          kNic, 12);
  EXPECT_TRUE(Build(fits).has_value());
  const Pod pod =
      PodBuilder().Container("a").Requests(kGpu, 20).Container("b").Requests(
          kNic, 13);
  const auto built = TryBuild(pod);
  ASSERT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(built.status().message(),
            "pod 'ns/P': its extended resources need 33 devices by claim, at "
            "most 32 fit into one ResourceClaim");
}

TEST_F(SpecialClaimTest, AL080bCountsBeyondAllNumbersAreRefusedAsWell) {
  Pod pod = PodBuilder().Container("a").Container("b");
  const Quantity most{std::numeric_limits<std::int64_t>::max(), 0, "8E"};
  pod.spec.containers[0].resources.requests[kGpu] = most;
  pod.spec.containers[1].resources.requests[kGpu] = most;
  const auto built = TryBuild(pod);
  ASSERT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(built.status()).find("at most 32"), std::string::npos);
}

TEST_F(SpecialClaimTest, AL081AnImplicitNameIsAsGood) {
  const auto special =
      Build(PodBuilder().Container("main").Requests(kImplicit));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special), Texts{"container-0-request-0=c*1"});
}

TEST_F(SpecialClaimTest, AL083InitContainersThatEndShareTheLargestRequest) {
  const auto special = Build(PodBuilder()
                                 .InitContainer("a")
                                 .Requests(kGpu, 1)
                                 .InitContainer("b")
                                 .Requests(kGpu, 2)
                                 .Container("main")
                                 .Requests(kNic, 1));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special),
            (Texts{"container-1-request-0=c*2", "container-2-request-0=n*1"}));
  EXPECT_EQ(Mappings(*special),
            (Texts{"a: example.com/gpu=container-1-request-0",
                   "b: example.com/gpu=container-1-request-0",
                   "main: example.com/nic=container-2-request-0"}));
}

TEST_F(SpecialClaimTest, AL083AnInitContainerUsesWhatALaterSidecarGets) {
  Pod pod = PodBuilder()
                .InitContainer("a")
                .Requests(kGpu, 1)
                .InitContainer("sidecar")
                .Requests(kGpu, 1)
                .InitContainer("b")
                .Requests(kGpu, 2)
                .Container("main")
                .Requests(kNic, 1);
  pod.spec.init_containers[1].restart_policy = "Always";
  const auto special = Build(pod);
  ASSERT_TRUE(special.has_value());
  // `b` starts after the sidecar, which keeps its device.
  EXPECT_EQ(Requests(*special),
            (Texts{"container-1-request-0=c*1", "container-2-request-0=c*2",
                   "container-3-request-0=n*1"}));
  EXPECT_EQ(Mappings(*special),
            (Texts{"sidecar: example.com/gpu=container-1-request-0",
                   "a: example.com/gpu=container-1-request-0",
                   "b: example.com/gpu=container-2-request-0",
                   "main: example.com/nic=container-3-request-0"}));
}

TEST_F(SpecialClaimTest, AL083AnInitContainerUsesWhatOrdinaryOnesGet) {
  const auto special = Build(PodBuilder()
                                 .InitContainer("init")
                                 .Requests(kGpu, 2)
                                 .Container("main")
                                 .Requests(kGpu, 3));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special), Texts{"container-1-request-0=c*3"});
  EXPECT_EQ(Mappings(*special),
            (Texts{"main: example.com/gpu=container-1-request-0",
                   "init: example.com/gpu=container-1-request-0"}));
}

TEST_F(SpecialClaimTest, AL083WhatIsLackingAfterReuseIsRequested) {
  const auto special = Build(PodBuilder()
                                 .InitContainer("x")
                                 .Requests(kGpu, 5)
                                 .InitContainer("y")
                                 .Requests(kGpu, 4)
                                 .Container("a")
                                 .Requests(kGpu, 1)
                                 .Container("b")
                                 .Requests(kGpu, 2));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special),
            (Texts{"container-0-request-0=c*2", "container-2-request-0=c*1",
                   "container-3-request-0=c*2"}));
  EXPECT_EQ(Mappings(*special),
            (Texts{"a: example.com/gpu=container-2-request-0",
                   "b: example.com/gpu=container-3-request-0",
                   "x: example.com/gpu=container-2-request-0",
                   "x: example.com/gpu=container-3-request-0",
                   "x: example.com/gpu=container-0-request-0",
                   "y: example.com/gpu=container-2-request-0",
                   "y: example.com/gpu=container-3-request-0",
                   "y: example.com/gpu=container-0-request-0"}));
}

TEST_F(SpecialClaimTest, AL083ReuseKeepsAPodWithinTheLimit) {
  EXPECT_TRUE(Build(PodBuilder()
                        .InitContainer("init")
                        .Requests(kGpu, 32)
                        .Container("main")
                        .Requests(kGpu, 32))
                  .has_value());
}

TEST_F(SpecialClaimTest, AL084NothingWantedIsNoClaim) {
  EXPECT_FALSE(Build(PodBuilder().Container("main")).has_value());
  EXPECT_FALSE(
      Build(PodBuilder().Container("main").Requests(kGpu, 0).Requests("cpu"))
          .has_value());
  Pod half = PodBuilder().Container("main");
  half.spec.containers[0].resources.requests[kGpu] = {0, 500'000'000, "500m"};
  EXPECT_FALSE(Build(half).has_value());
}

TEST_F(SpecialClaimTest, AL085AClaimIsKeptWhileThePodWantsTheSame) {
  const auto before = Build(PodBuilder().Container("main").Requests(kGpu, 2));
  const auto same = Build(PodBuilder().Container("main").Requests(kGpu, 2));
  const auto more = Build(PodBuilder().Container("main").Requests(kGpu, 3));
  ResourceClaim left_over = before->claim;
  left_over.metadata.name = "P-extended-resources-x2x4x";
  left_over.status.allocation.emplace();
  EXPECT_TRUE(IsAsWanted(left_over, *same));
  EXPECT_FALSE(IsAsWanted(left_over, *more));
}

TEST_F(SpecialClaimTest, AL111BothNamesOfAClassAreDifferentResources) {
  const auto special =
      Build(PodBuilder().Container("main").Requests(kGpu).Requests(kImplicit));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special),
            (Texts{"container-0-request-0=c*1", "container-0-request-1=c*1"}));
}

TEST_F(SpecialClaimTest, AL111NeitherNameUsesDevicesOfTheOther) {
  const auto special = Build(PodBuilder()
                                 .InitContainer("init")
                                 .Requests(kImplicit)
                                 .Container("main")
                                 .Requests(kGpu));
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(Requests(*special),
            (Texts{"container-0-request-0=c*1", "container-1-request-0=c*1"}));
}

TEST_F(SpecialClaimTest, RequestsAreInTheOrderOfTheirTexts) {
  PodBuilder builder;
  for (int i = 0; i < 11; ++i) {
    builder.Container(fmt::format("c{}", i)).Requests(kGpu);
  }
  const auto special = Build(builder);
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(special->claim.spec.requests[1].name, "container-1-request-0");
  EXPECT_EQ(special->claim.spec.requests[2].name, "container-10-request-0");
  EXPECT_EQ(special->claim.spec.requests[3].name, "container-2-request-0");
}

TEST_F(SpecialClaimTest, ANameWhoseClassIsGoneIsNamed) {
  const Pod pod = PodBuilder().Container("main").Requests("example.com/x");
  const auto built = TryBuild(pod);
  ASSERT_EQ(built.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(built.status().message(),
            "extended resource 'example.com/x': no DeviceClass has the "
            "extendedResourceName 'example.com/x'");
}

}  // namespace
}  // namespace devmgr::control
