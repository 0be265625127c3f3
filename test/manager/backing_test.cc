// SPDX-License-Identifier: Apache-2.0
//
// One name, served by a device plugin and by a device class: who has it, when
// it changes hands, and that nobody gets a device twice by it.
#include "manager/device_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kGpuClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
    "metadata: {name: gpu}\nspec: {extendedResourceName: example.com/gpu}\n"
    "---\n";

/// Pod `name` whose GPU is mapped to the claim `name-gpu`, and that claim.
std::string MappedPod(const std::string& name) {
  const std::string claim = name + "-gpu";
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: "
         "{name: " +
         claim + ", uid: u-" + claim +
         "}\nspec: {devices: {requests: [{name: r, exactly: "
         "{deviceClassName: gpu}}]}}\n"
         "status:\n  allocation:\n    devices:\n      results:\n"
         "      - {request: r, driver: d.example.com, pool: pool-1, device: " +
         name + "}\n  reservedFor:\n  - {resource: pods, name: " + name +
         ", uid: u-" + name + "}\n---\n" +
         "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-" +
         name + "}\nspec:\n  containers:\n" + ContainerYaml("c", {{kGpu, 1}}) +
         "status:\n  extendedResourceClaimStatus:\n    resourceClaimName: " +
         claim +
         "\n    requestMappings:\n    - {containerName: c, resourceName: "
         "example.com/gpu, requestName: r}\n---\n";
}

class BackingTest : public DeviceNodeTest {
 protected:
  void SetUp() override {
    node_.drivers.Register("d.example.com");
    node_.options.device_plugins.grace_period = std::chrono::milliseconds(50);
  }

  /// Pod `p` holds one of the plugin's two devices, and there is a class.
  void StartWithHolder() {
    node_.Start();
    node_.plugins.Serve(kGpu, 2);
    node_.Publish(kGpuClass + holder_);
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  }

  testing::AssertionResult WaitUntilForgotten() {
    return node_.WaitUntil("the grace period is over", [&] {
      return Gpu().state == ResourceState::kForgotten;
    });
  }

  ResourceInfo Gpu() {
    for (const ResourceInfo& resource : node_.manager().View()->Resources()) {
      if (resource.name == kGpu) return resource;
    }
    return {};
  }
  testing::AssertionResult WaitForOwner(ResourceOwner owner) {
    return node_.WaitUntil(
        "the owner is " + std::string(ResourceOwnerName(owner)),
        [&] { return Gpu().owner == owner; });
  }

  const std::string holder_ = DevicePod("p", {{kGpu, 1}});
};

// AL-080
TEST_F(BackingTest, ANameThatOnlyAClassHasIsAResource) {
  node_.Start();
  EXPECT_EQ(Gpu().owner, std::nullopt);
  node_.Publish(kGpuClass);
  ASSERT_TRUE(WaitForOwner(ResourceOwner::kDeviceClass));
  EXPECT_EQ(Gpu().device_class, "gpu");
  EXPECT_EQ(Gpu().held, 0);
  EXPECT_EQ(Gpu().state, std::nullopt) << "no plugin has served it";
}

TEST_F(BackingTest, APluginThatRestartsKeepsItsName) {
  node_.options.device_plugins.grace_period = std::chrono::hours(1);
  node_.Start();
  node_.plugins.Serve(kGpu, 2);
  node_.Publish(kGpuClass);
  node_.plugins.Lose(kGpu);
  node_.Publish(std::string(kGpuClass) + DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "PluginNotReady"));
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
  node_.plugins.Serve(kGpu, 2);
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// AL-080: after the grace period and the last holder, not before.
TEST_F(BackingTest, TheClassTakesOverWhenTheLastHolderHasGone) {
  StartWithHolder();
  node_.plugins.Lose(kGpu);
  ASSERT_TRUE(WaitUntilForgotten());
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
  // Through a claim it would be the same hardware.
  node_.Publish(kGpuClass + holder_ + MappedPod("m"));
  ASSERT_TRUE(node_.WaitForReason("m", "ResourceHeldByPlugin"));
  EXPECT_THAT(node_.PodNamed("m").message, HasSubstr("default/p"));
  node_.Publish(kGpuClass + MappedPod("m"));
  ASSERT_TRUE(node_.WaitFor("m", PodState::kReady));
  ASSERT_TRUE(WaitForOwner(ResourceOwner::kDeviceClass));
  EXPECT_EQ(Gpu().capacity, 0);
  // What is held through the class counts, and whose devices they are.
  EXPECT_EQ(Gpu().held, 1);
  EXPECT_EQ(Gpu().device_class, "gpu");
  EXPECT_EQ(Gpu().drivers, std::vector<std::string>{"d.example.com"});
  EXPECT_THAT(MessagesOf("ResourceHandedOver"), SizeIs(1));
}

TEST_F(BackingTest, ThePluginGetsItsNameBackWhenNoClaimIsHeldForIt) {
  node_.Start();
  node_.Publish(kGpuClass + MappedPod("m"));
  ASSERT_TRUE(node_.WaitFor("m", PodState::kReady));
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDeviceClass);
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(kGpuClass + MappedPod("m") + DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "ExtendedResourceNotMapped"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("device class"));
  EXPECT_EQ(Gpu().capacity, 0) << "what a class serves is not counted";
  node_.Publish(kGpuClass + DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
  EXPECT_EQ(Gpu().capacity, 1);
}

// A mapping in a pod's status wins for that pod; the owner stays who it is.
TEST_F(BackingTest, TwoOwnersAreReportedAndNeverServeAtTheSameTime) {
  node_.options.device_plugins.grace_period = std::chrono::hours(1);
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  ASSERT_TRUE(WaitForOwner(ResourceOwner::kDevicePlugin));
  node_.Publish(kGpuClass + MappedPod("m"));
  ASSERT_TRUE(node_.WaitFor("m", PodState::kReady));
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
  EXPECT_THAT(MessagesOf("ResourceHasTwoOwners"),
              ElementsAre(HasSubstr("default/m")));
  node_.Publish(kGpuClass + MappedPod("m") + DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitForReason("p", "ResourceHeldByClaims"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("'default/m'"));
  node_.Publish(kGpuClass + DevicePod("p", {{kGpu, 1}}));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(BackingTest, AHolderKeepsItsNameOverARestart) {
  StartWithHolder();
  node_.Restart();
  ASSERT_TRUE(WaitUntilForgotten());
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
  node_.Publish(kGpuClass);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_TRUE(WaitForOwner(ResourceOwner::kDeviceClass));
}

// The class is recorded when the plugin is back already.
TEST_F(BackingTest, APluginThatRestartsAtOnceHasItsNameInTheEnd) {
  node_.options.policies.profile = Profile::kStrictKubelet;
  StartWithHolder();
  node_.RunAndWait([&] {
    node_.plugins.Lose(kGpu);
    node_.plugins.Serve(kGpu, 2);
  });
  EXPECT_TRUE(node_.WaitUntil("it has changed hands twice", [&] {
    return MessagesOf("ResourceHandedOver").size() == 2;
  }));
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDevicePlugin);
}

TEST_F(BackingTest, AHandOverThatCannotBeWrittenIsTriedAgain) {
  node_.Start();
  node_.Publish(kGpuClass + MappedPod("m"));
  ASSERT_TRUE(node_.WaitFor("m", PodState::kReady));
  node_.Publish(kGpuClass);
  ASSERT_TRUE(node_.WaitUntilGone("m"));
  ASSERT_EQ(Gpu().owner, ResourceOwner::kDeviceClass);
  node_.store.FailNext(SharedStore::Failure::kLost);
  node_.plugins.Serve(kGpu, 1);
  EXPECT_TRUE(WaitForOwner(ResourceOwner::kDevicePlugin));
}

// AL-080
TEST_F(BackingTest, TheKubeletHandsANameOverAtOnce) {
  node_.options.policies.profile = Profile::kStrictKubelet;
  node_.options.device_plugins.grace_period = std::chrono::hours(1);
  StartWithHolder();
  node_.plugins.Lose(kGpu);
  ASSERT_TRUE(WaitForOwner(ResourceOwner::kDeviceClass));
  node_.Publish(kGpuClass + holder_ + MappedPod("m"));
  EXPECT_TRUE(node_.WaitFor("m", PodState::kReady));
}

// AL-080: by an operator's word; holders are drained, nobody new is let in.
TEST_F(BackingTest, AnOperatorMovesANameToItsClassWhileThePluginRuns) {
  node_.options.device_plugins.grace_period = std::chrono::hours(1);
  StartWithHolder();
  ASSERT_THAT(node_.manager().maintenance().HandOverResource(
                  kGpu, ResourceOwner::kDeviceClass, "moving to DRA"),
              IsOk());
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDeviceClass);
  EXPECT_EQ(Gpu().by_operator, "moving to DRA");
  EXPECT_THAT(MessagesOf("HandedOverByOperator"),
              ElementsAre(HasSubstr("moving to DRA")));
  node_.Publish(kGpuClass + holder_ + DevicePod("q", {{kGpu, 1}}) +
                MappedPod("m"));
  ASSERT_TRUE(node_.WaitForReason("m", "ResourceHeldByPlugin"));
  ASSERT_TRUE(node_.WaitForReason("q", "ExtendedResourceNotMapped"));
  EXPECT_THAT(node_.PodNamed("q").message, HasSubstr("moving to DRA"));
  node_.Restart();
  node_.plugins.Serve(kGpu, 2);
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDeviceClass);
  node_.Publish(kGpuClass + MappedPod("m"));
  ASSERT_TRUE(node_.WaitFor("m", PodState::kReady));
  // He takes it back: the plugin is there, and once nobody holds a claim...
  ASSERT_THAT(node_.manager().maintenance().HandOverResource(
                  kGpu, ResourceOwner::kAutomatic, "a mistake"),
              IsOk());
  EXPECT_EQ(Gpu().owner, ResourceOwner::kDeviceClass);
  node_.Publish(kGpuClass);
  ASSERT_TRUE(node_.WaitUntilGone("m"));
  EXPECT_TRUE(WaitForOwner(ResourceOwner::kDevicePlugin));
}

}  // namespace
}  // namespace devmgr
