// SPDX-License-Identifier: Apache-2.0
//
// What wakes which pod, counted: each event has those judged again that it may
// help, and no other. TestNode audits it besides.
#include <fmt/format.h>

#include <map>
#include <string>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

constexpr char kApi[] = "apiVersion: resource.k8s.io/v1\n";

std::string ClassOf(const std::string& name, const std::string& driver,
                    const std::string& label = "x") {
  return fmt::format(
      "{}kind: DeviceClass\nmetadata: {{name: {}, labels: {{l: {}}}}}\nspec: "
      "{{selectors: [{{cel: {{expression: 'device.driver == \"{}\"'}}}}]}}\n"
      "---\n",
      kApi, name, label, driver);
}

/// Devices `gpu-FROM` to `gpu-(TO - 1)`, all of model `small`.
std::string SliceOf(const std::string& driver, int from, int to,
                    const std::string& name = "s", int generation = 1,
                    int slices = 1, const std::string& version = "1") {
  std::string text = fmt::format(
      "{}kind: ResourceSlice\nmetadata: {{name: {}-{}, resourceVersion: "
      "\"{}\"}}\nspec:\n  driver: {}\n  nodeName: node-1\n  pool: {{name: "
      "node-1, generation: {}, resourceSliceCount: {}}}\n  devices: [",
      kApi, name, driver, version, driver, generation, slices);
  for (int i = from; i < to; ++i) {
    text += fmt::format(
        "{{name: gpu-{}, attributes: {{model: {{string: small}}}}}}, ", i);
  }
  return text + "]\n---\n";
}

/// A pod, and the claim `c-NAME` that it uses. `request` is what the request
/// has besides its class.
std::string PodOf(const std::string& name, const std::string& device_class,
                  const std::string& request = "count: 1") {
  return fmt::format(
      "{0}kind: ResourceClaim\nmetadata: {{name: c-{1}, uid: u-c-{1}}}\n"
      "spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: "
      "{2}, {3}}}}}]}}}}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {1}, uid: u-{1}}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{{name: own, resourceClaimName: "
      "c-{1}}}]\n  containers: [{{name: c, resources: {{claims: [{{name: "
      "own}}]}}}}]\n---\n",
      kApi, name, device_class, request);
}

std::string PodsOf(const std::string& prefix, int count,
                   const std::string& device_class) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += PodOf(fmt::format("{}{:04}", prefix, i), device_class);
  }
  return text;
}

constexpr char kBig[] =
    "count: 1, selectors: [{cel: {expression: "
    "'device.attributes[\"a.example.com\"].model == \"big\"'}}]";

constexpr char kA[] = "a.example.com";
constexpr char kB[] = "b.example.com";

class WakeUpTest : public DeviceNodeTest {
 protected:
  WakeUpTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kA);
    node_.drivers.Register(kB);
  }

  int Judged() {
    int all = 0;
    for (const auto& [what, count] : node_.Judgements()) all += count;
    return all;
  }
  ::testing::AssertionResult WaitUntilJudged(int count) {
    return node_.WaitUntil(fmt::format("{} judgements", count),
                           [&] { return Judged() >= count; });
  }
  /// What was posted, and what followed from that, has run.
  void Settle() {
    for (int i = 0; i < 20; ++i) node_.Sync();
  }
  /// Publishes what wakes no pod, and waits until the node has taken it in.
  void PublishForNone(const std::string& objects) {
    const int before = Judged();
    const auto shown = node_.manager().Objects();
    node_.Publish(objects);
    ASSERT_TRUE(node_.WaitUntil("the objects are taken in", [&] {
      return node_.manager().Objects() != shown;
    }));
    Settle();
    EXPECT_EQ(Judged(), before);
  }
  /// Publishes what has so many judged again.
  void PublishFor(int count, const std::string& objects) {
    const int before = Judged();
    node_.Publish(objects);
    ASSERT_TRUE(WaitUntilJudged(before + count));
    Settle();
    EXPECT_EQ(Judged(), before + count);
  }
};

TEST_F(WakeUpTest, AL148AClassWakesThoseThatNameIt) {
  const std::string objects = SliceOf(kA, 0, 1) + ClassOf("other", kA) +
                              PodsOf("x", 100, "x") + PodsOf("z", 100, "z");
  node_.Start();
  PublishFor(200, objects);
  PublishFor(100, objects + ClassOf("x", "none.example.com"));
  // Other metadata are no other class.
  PublishForNone(objects + ClassOf("x", "none.example.com", "z"));
}

TEST_F(WakeUpTest, AL149ASliceWakesThoseThatMaySelectItsDriver) {
  const std::string pods = ClassOf("a", kA) + ClassOf("b", kB) +
                           PodOf("pa", "a", "count: 20") +
                           PodOf("pb", "b", "count: 20") + SliceOf(kB, 0, 2);
  node_.Start();
  PublishFor(2, pods + SliceOf(kA, 0, 2));
  PublishFor(1, pods + SliceOf(kA, 0, 3));
  // The same again, and one less.
  PublishForNone(pods + SliceOf(kA, 0, 3, "s", 1, 1, "2"));
  PublishForNone(pods + SliceOf(kA, 0, 2));
  EXPECT_THAT(node_.PodNamed("pa").message, HasSubstr("20 devices wanted"));
}

TEST_F(WakeUpTest, AL149ARequestForAllIsHelpedByAPoolThatGoes) {
  const std::string objects = ClassOf("a", kA) + PodOf("few", "a", "count: 9") +
                              PodOf("all", "a", "allocationMode: All") +
                              SliceOf(kA, 0, 2);
  std::string broken = SliceOf(kA, 5, 6, "t", 1, 2);
  broken.replace(broken.find("pool: {name: node-1"), 19, "pool: {name: broken");
  node_.Start();
  PublishFor(2, objects + broken);
  ASSERT_TRUE(node_.WaitFor("all", PodState::kWaiting));
  PublishFor(1, objects);
  EXPECT_TRUE(node_.WaitFor("all", PodState::kReady));
}

TEST_F(WakeUpTest, AL150ADeallocationWakesThoseThatFailedOnBusyDevices) {
  const std::string objects = ClassOf("a", kA) + SliceOf(kA, 0, 1) +
                              PodOf("p2", "missing") + PodOf("p3", "a", kBig);
  const std::string p1 = PodOf("p1", "a");
  node_.Start();
  PublishFor(3, objects + PodOf("holder", "a"));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  PublishFor(1, objects + PodOf("holder", "a") + p1);
  PublishFor(1, objects + p1);
  EXPECT_TRUE(node_.WaitFor("p1", PodState::kReady));
  Settle();
  EXPECT_EQ(Judged(), 5);
}

TEST_F(WakeUpTest, AL151OneUnitOfAPluginForMany) {
  constexpr int kPods = 1'000;
  std::string pods;
  for (int i = 0; i < kPods; ++i) {
    pods += DevicePod(fmt::format("p{:04}", i), {{kGpu, 1}},
                      "  nodeName: node-1\n");
  }
  const std::string holder =
      DevicePod("holder", {{kGpu, 1}}, "  nodeName: node-1\n");
  node_.Start();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(holder);
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  PublishFor(kPods, holder + pods);
  const int before = Judged();
  node_.Publish(pods);
  ASSERT_TRUE(node_.WaitForAny(PodState::kReady));
  ASSERT_TRUE(node_.WaitUntilGone("holder"));
  ASSERT_TRUE(node_.WaitForAny(PodState::kReady));
  Settle();
  EXPECT_GE(Judged() - before, 1);
  EXPECT_LE(Judged() - before, 2);
}

TEST_F(WakeUpTest, AL151OneDeviceOfADriverForMany) {
  constexpr int kPods = 1'000;
  const std::string objects = ClassOf("a", kA) + SliceOf(kA, 0, 1);
  const std::string pods = PodsOf("p", kPods, "a");
  node_.Start();
  node_.Publish(objects + PodOf("holder", "a"));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  PublishFor(kPods, objects + PodOf("holder", "a") + pods);
  const int before = Judged();
  node_.Publish(objects + pods);
  ASSERT_TRUE(node_.WaitUntilGone("holder"));
  ASSERT_TRUE(node_.WaitForAny(PodState::kReady));
  Settle();
  EXPECT_GE(Judged() - before, 1);
  EXPECT_LE(Judged() - before, 2);
}

TEST_F(WakeUpTest, AL152ATaintThatEndsWakesThoseThatItRefused) {
  const std::string objects = ClassOf("a", kA) + SliceOf(kA, 0, 1) +
                              ClassOf("b", kB) + SliceOf(kB, 0, 1) +
                              PodOf("many", "a", "count: 3") +
                              PodOf("b3", "b", "count: 3");
  const auto rule = [](const std::string& driver) {
    return fmt::format(
        "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\n"
        "metadata: {{name: r-{0}}}\nspec: {{deviceSelector: {{driver: {0}}}, "
        "taint: {{key: k.example.com/x, effect: NoSchedule}}}}\n---\n",
        driver);
  };
  node_.Start();
  PublishFor(2, objects);
  PublishForNone(objects + rule(kA) + rule(kB));
  PublishFor(1, objects + rule(kA) + rule(kB) + PodOf("p", "a"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  PublishForNone(objects + rule(kA) + PodOf("p", "a"));
  PublishFor(1, objects + PodOf("p", "a"));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// What a vendor's driver reads when it prepares decides nothing. Selectors are
// those of classes: a claim's own cannot be edited.
TEST_F(WakeUpTest, AL153ASelectorWakesThoseThatReferToItAndAVendorsNone) {
  const auto vendor = [](const std::string& mode) {
    return fmt::format(
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimParameters\n"
        "metadata: {{name: p}}\nvendorParameters: [{{driverName: {}, "
        "parameters: {{mode: {}}}}}]\n---\n",
        kA, mode);
  };
  const std::string objects = SliceOf(kA, 0, 1) + SliceOf(kB, 0, 1) +
                              ClassOf("b", "none.example.com") +
                              PodOf("pa", "a") + PodOf("pb", "b");
  const std::string before = objects + ClassOf("a", "none.example.com");
  node_.Start();
  PublishFor(2, before + vendor("slow"));
  PublishForNone(before + vendor("fast"));
  PublishFor(1, objects + ClassOf("a", kA) + vendor("fast"));
  EXPECT_TRUE(node_.WaitFor("pa", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("pb").state, PodState::kWaiting);
}

TEST_F(WakeUpTest, AL154WhatConcernsNoPodWakesNone) {
  constexpr int kPods = 1'000;
  node_.options.policies.audit_wakeups = false;  // All pods for each event.
  const std::string all = ClassOf("a", kA) + SliceOf(kA, 0, 1) +
                          PodOf("holder", "a") + PodsOf("p", kPods, "a");
  node_.Start();
  node_.Publish(ClassOf("a", kA) + SliceOf(kA, 0, 1) + PodOf("holder", "a"));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  PublishFor(kPods, all);
  ObjectSnapshot snapshot = *node_.source->Snapshot();
  const auto claim = snapshot.claims.at(ObjectName{"default", "c-p0000"});
  const auto device_class = snapshot.device_classes.at(ObjectName{"", "a"});
  const ObjectSnapshot other = SnapshotOf(SliceOf("z.example.com", 0, 3));
  const auto slice = other.resource_slices.begin()->second;
  const int before = Judged();
  int events = 0;
  while (events < 10'000) {
    for (int i = 0; i < 500; ++i) {
      const std::string name = fmt::format("n{}", events);
      auto another = std::make_shared<ResourceClaim>(*claim);
      another->metadata.ns = "elsewhere";
      another->metadata.name = name;
      another->metadata.uid = "u-" + name;
      snapshot.claims.insert_or_assign(another->metadata.FullName(), another);
      auto new_class = std::make_shared<DeviceClass>(*device_class);
      new_class->metadata.name = name;
      snapshot.device_classes.insert_or_assign(ObjectName{"", name}, new_class);
      events += 2;
    }
    auto changed = std::make_shared<ResourceSlice>(*slice);
    changed->devices.emplace_back().name = fmt::format("d{}", events);
    snapshot.resource_slices.insert_or_assign(ObjectName{"", "other"}, changed);
    ++events;
    const auto shown = node_.manager().Objects();
    node_.source->Publish(snapshot);
    ASSERT_TRUE(node_.WaitUntil("the objects are taken in", [&] {
      return node_.manager().Objects() != shown;
    }));
  }
  Settle();
  EXPECT_EQ(Judged(), before);
}

TEST_F(WakeUpTest, AL155ABurstOfSlicesWakesOnceWhenThePoolIsComplete) {
  constexpr int kSlices = 100;
  const std::string objects = ClassOf("a", kA) + PodOf("p", "a", kBig) +
                              PodOf("q", "a", kBig) + PodOf("r", "a", kBig);
  const auto pool = [](int replaced) {
    std::string text;
    for (int i = 0; i < kSlices; ++i) {
      text += SliceOf(kA, i, i + 1, fmt::format("s{:03}", i),
                      i < replaced ? 2 : 1, kSlices);
    }
    return text;
  };
  node_.Start();
  PublishFor(3, objects + pool(0));
  for (int replaced = 1; replaced < kSlices; replaced += 14) {
    PublishForNone(objects + pool(replaced));
  }
  PublishFor(3, objects + pool(kSlices));
}

/// Before, every pod was judged again when the first slice came.
TEST_F(WakeUpTest, TheFirstSliceWakesThoseThatWantDevicesOfDrivers) {
  const std::string objects =
      ClassOf("a", kA) + PodOf("p", "a") +
      DevicePod("plugin", {{kGpu, 1}}, "  nodeName: node-1\n") +
      DevicePod("none", {}, "  nodeName: node-1\n");
  node_.Start();
  PublishFor(3, objects);
  ASSERT_TRUE(node_.WaitFor("none", PodState::kReady));
  PublishFor(1, objects + SliceOf(kA, 0, 1));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

}  // namespace
}  // namespace devmgr
