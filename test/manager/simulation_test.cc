// SPDX-License-Identifier: Apache-2.0
//
// Simulations beside a manager that decides: the same answers, and no trace.
#include <devmgr/simulation.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "support/numa_folder.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

using ::testing::IsSupersetOf;
using ::testing::SizeIs;

constexpr char kClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n";
constexpr char kTemplate[] =
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: "
    "{name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: "
    "{deviceClassName: gpu, count: 2}}]}}}\n---\n";
constexpr char kQuota[] =
    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: "
    "default}\nspec: {hard: {requests.example.com/gpu: 6}}\n---\n";

/// `numa_nodes`: each device is on one of so many, by its number; 0: on none.
std::string Slice(int devices, int numa_nodes = 0) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s}}\nspec:\n  driver: {}\n  nodeName: node-1\n  pool: {{name: node-1, "
      "generation: 1, resourceSliceCount: 1}}\n  devices: [",
      kDriver);
  for (int i = 0; i < devices; ++i) {
    text += fmt::format("{{name: gpu-{}", i);
    if (numa_nodes > 0) {
      text += fmt::format(
          ", attributes: {{resource.kubernetes.io/numaNode: {{int: {}}}}}",
          i % numa_nodes);
    }
    text += "}, ";
  }
  return text + "]\n---\n";
}

std::string Claim(const std::string& name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n",
      name);
}

/// The names of claims that are made are by chance.
std::string WithoutChance(const std::string& text) {
  static const std::regex kSuffix("(-extended-resources|-own)-[a-z0-9]{5}");
  return std::regex_replace(text, kSuffix, "$1");
}

std::string PodText(const std::string& name, const std::string& spec) {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n{1}---\n",
      name, spec);
}

Pod PodWithSpec(const std::string& name, const std::string& spec) {
  return *SnapshotOf(PodText(name, spec)).pods.at({"default", name});
}

/// One container with these limits, and a claim from this source.
std::string Spec(const std::string& limits, const std::string& source = "",
                 int priority = 0) {
  const std::string claims =
      source.empty() ? "" : fmt::format("{{name: own, {}}}", source);
  return fmt::format(
      "  priority: {}\n  resourceClaims: [{}]\n  containers: [{{name: c, "
      "resources: {{limits: {{{}}}, claims: [{}]}}}}]\n",
      priority, claims, limits, source.empty() ? "" : "{name: own}");
}

std::string RandomSpec(std::mt19937& random) {
  const auto pick = [&](unsigned most) { return random() % (most + 1); };
  std::string limits;
  for (const char* resource : {kGpu, kNic}) {
    if (const auto count = pick(3); count > 0) {
      limits += fmt::format("{}: \"{}\", ", resource, count);
    }
  }
  static const std::vector<std::string> kSources = {
      "", "resourceClaimName: a", "resourceClaimName: b",
      "resourceClaimTemplateName: t", "resourceClaimName: missing"};
  return Spec(limits, kSources[pick(4)], static_cast<int>(pick(2)));
}

/// Devices of claims and plugins that the ledger has for the pod.
std::vector<std::string> Given(TestNode& node, const PodUid& uid) {
  std::vector<std::string> devices;
  const state::State state = node.store.Load();
  for (const auto& [claim, record] : state.local_claims) {
    const ResourceClaimStatus& status = record->object->status;
    const bool is_its = std::any_of(
        status.reserved_for.begin(), status.reserved_for.end(),
        [&](const auto& consumer) { return consumer.uid == uid.value; });
    if (!is_its) continue;
    for (const auto& result : status.allocation->results) {
      devices.push_back(result.pool + "/" + result.device);
    }
  }
  if (const auto* record = state.FindPod(uid)) {
    for (const state::DeviceHold& hold : record->holds) {
      for (const auto& device : hold.devices) {
        devices.push_back(hold.resource.value + "/" + device.id.value);
      }
    }
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

std::vector<std::string> DevicesOf(const SimulatedPod& pod) {
  std::vector<std::string> devices;
  for (const ResourceClaim& claim : pod.claims) {
    for (const auto& result : claim.status.allocation->results) {
      devices.push_back(result.pool + "/" + result.device);
    }
  }
  for (const SimulatedContainer& container : pod.containers) {
    for (const auto& [resource, ids] : container.devices) {
      for (const DeviceId& id : ids) {
        devices.push_back(resource.value + "/" + id.value);
      }
    }
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

/// What was decided so far has had its consequences: a pod that is seen for the
/// first time is a write behind all of them.
void Settle(TestNode& node, int number) {
  for (const char* side : {"l", "r"}) {
    const Pod pod = PodWithSpec(fmt::format("settle-{}{}", number, side),
                                Spec("", "resourceClaimName: nowhere"));
    ASSERT_TRUE(node.manager().AdmitPod(pod).ok());
    node.Sync();
  }
}

/// The pod is simulated and then admitted, with no event in between. `reasons`
/// gets that of the verdict.
void TryBoth(TestNode& node, const Pod& pod, std::set<std::string>* reasons) {
  SimulationRequest request;
  request.pods = {pod};
  const auto result = node.manager().Simulate(request);
  ASSERT_TRUE(result.ok()) << result.status();
  const SimulatedPod& simulated = result->pods.front();
  const auto admitted = node.manager().AdmitPod(pod);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(simulated.verdict.kind, admitted->kind)
      << simulated.verdict.message << " | " << admitted->message;
  EXPECT_EQ(simulated.verdict.reason, admitted->reason);
  reasons->insert(admitted->reason);
  EXPECT_EQ(WithoutChance(simulated.verdict.message),
            WithoutChance(admitted->message));
  EXPECT_EQ(simulated.verdict.waiting_for, admitted->waiting_for);
  if (admitted->kind == Verdict::Kind::kAdmit) {
    EXPECT_EQ(DevicesOf(simulated), Given(node, PodUid{pod.metadata.uid}));
  } else {
    EXPECT_TRUE(DevicesOf(simulated).empty());
  }
}

/// The node aligns devices to the NUMA nodes of `machine`, which has so many,
/// by a policy that random numbers say.
void AlignTo(const NumaFolder& machine, int numa_nodes, std::mt19937& random,
             TestNode& node) {
  node.sysfs_dir = machine.path();
  static const std::vector<TopologyPolicy> kPolicies = {
      TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted,
      TopologyPolicy::kSingleNumaNode};
  node.options.topology.policy = kPolicies[random() % 3];
  node.options.topology.scope =
      random() % 2 == 0 ? TopologyScope::kContainer : TopologyScope::kPod;
  std::vector<device::Device> nics;
  for (unsigned i = random() % 5; i > 0; --i) {
    const auto on = static_cast<std::int64_t>(random()) % numa_nodes;
    nics.push_back(
        {std::to_string(nics.size()), device::Health::kHealthy, {on}});
  }
  node.plugins.Connect(kNic);
  node.plugins.Report(kNic, nics);
}

/// One random node, to which pods come and come again. Null: it has no NUMA
/// nodes. `reasons` gets those of all verdicts.
void LiveOnce(std::mt19937& random, std::set<std::string>* reasons,
              const NumaFolder* machine = nullptr, int numa_nodes = 0) {
  const auto pick = [&](unsigned most) {
    return static_cast<int>(random() % (most + 1));
  };
  TestNode node;
  node.options.node_name = "node-1";
  node.drivers.Register(kDriver);
  if (machine != nullptr) {
    AlignTo(*machine, numa_nodes, random, node);
  } else {
    node.plugins.Serve(kNic, pick(4));
  }
  node.Start(/*with_actuator=*/false);
  std::string objects = std::string(kClass) + kTemplate +
                        Slice(pick(8), numa_nodes) + Claim("a") + Claim("b");
  if (pick(2) == 0) objects += kQuota;
  std::vector<Pod> pods;
  for (int i = 0; i < 6; ++i) {
    const std::string name = fmt::format("p{}", i);
    const std::string spec = RandomSpec(random);
    objects += PodText(name, spec);
    pods.push_back(PodWithSpec(name, spec));
  }
  node.Publish(objects);
  ASSERT_TRUE(node.WaitUntil("the objects are there", [&] {
    return node.manager().Objects()->pods.size() == pods.size();
  }));
  for (int i = 0; i < 9; ++i) {
    const auto number = static_cast<std::size_t>(i < 6 ? i : pick(5));
    SCOPED_TRACE(fmt::format("step {}, pod p{}", i, number));
    ASSERT_NO_FATAL_FAILURE(Settle(node, i));
    ASSERT_NO_FATAL_FAILURE(TryBoth(node, pods[number], reasons));
  }
}

class SimulationTest : public DeviceNodeTest {
 protected:
  SimulationTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
  }
};

TEST_F(SimulationTest, AL176IsTheSameAsAdmission) {
  const std::uint32_t seed = TestSeed(176);
  std::mt19937 random(seed);
  std::set<std::string> reasons;
  for (int i = 0; i < 110 * TestScale() && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}, node {}", seed, i));
    LiveOnce(random, &reasons);
  }
}

// The same, along NUMA nodes.
TEST_F(SimulationTest, AL176IsTheSameAsAdmissionAlongNumaNodes) {
  const std::uint32_t seed = TestSeed(177);
  std::mt19937 random(seed);
  const NumaFolder machine(2);
  std::set<std::string> reasons;
  for (int i = 0; i < 110 * TestScale() && !HasFailure(); ++i) {
    SCOPED_TRACE(fmt::format("seed {}, node {}", seed, i));
    LiveOnce(random, &reasons, &machine, 2);
  }
  EXPECT_THAT(reasons,
              IsSupersetOf({"", "DevicesNotAligned", "TopologyAffinityError"}));
}

TEST_F(SimulationTest, AL177LeavesNoTrace) {
  const std::string one = Spec("example.com/gpu: 1");
  const std::string two = Spec("example.com/gpu: 2");
  node_.plugins.Serve(kNic, 2);
  node_.Start();
  const std::string objects = std::string(kClass) + Slice(2);
  node_.Publish(objects + PodText("x", one));
  ASSERT_TRUE(node_.WaitFor("x", PodState::kReady));
  node_.Publish(objects + PodText("x", one) + PodText("w", two));
  ASSERT_TRUE(node_.WaitForReason("w", "CannotAllocateClaims"));
  node_.Sync();
  DeviceManager& manager = node_.manager();
  const std::uint64_t sequence = manager.View()->Node().ledger_sequence;
  const std::uint64_t last_event = manager.View()->LastEvent();
  const int appends = node_.store.appends();
  const auto driver_calls = node_.drivers.calls().size();
  SimulationRequest request;
  for (int i = 0; i < 100; ++i) {
    request.pods.push_back(PodWithSpec(fmt::format("s{}", i), one));
    request.pods.back().spec.priority = 9;
  }
  const auto result = manager.Simulate(request);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->pods, SizeIs(100));
  EXPECT_EQ(result->pods[0].verdict.kind, Verdict::Kind::kAdmit);
  EXPECT_EQ(result->pods[1].verdict.kind, Verdict::Kind::kWait);
  EXPECT_EQ(result->sequence, sequence);
  node_.Sync();
  EXPECT_EQ(manager.View()->Node().ledger_sequence, sequence);
  EXPECT_EQ(manager.View()->LastEvent(), last_event);
  EXPECT_EQ(node_.store.appends(), appends);
  EXPECT_THAT(manager.View()->Pods(), SizeIs(2));
  EXPECT_EQ(node_.drivers.calls().size(), driver_calls);
  EXPECT_THAT(node_.plugins.calls(), SizeIs(0));
  EXPECT_EQ(manager.Simulations().wait, 1U);
  EXPECT_EQ(manager.Simulations().admit, 0U);
  // The queue is as it was: what waits gets its devices.
  node_.Publish(objects + PodText("w", two));
  ASSERT_TRUE(node_.WaitFor("w", PodState::kReady));
}

TEST_F(SimulationTest, AL184FourRunAtOnceAndTheFifthIsBusy) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(2));
  SimulationRequest request;
  request.pods = {PodWithSpec("p", Spec("example.com/gpu: 1"))};
  std::promise<void> held;
  std::promise<void> let;
  // While the manager's thread is held, simulations wait for their copy of what
  // it knows: whichever of the five comes last does not wait.
  std::thread holder([&] {
    node_.RunAndWait([&] {
      held.set_value();
      let.get_future().wait();
    });
  });
  held.get_future().wait();
  std::vector<std::thread> threads;
  std::vector<absl::Status> results(kMostSimulations + 1);
  std::promise<void> refused;
  for (absl::Status& result : results) {
    threads.emplace_back([&] {
      result = node_.manager().Simulate(request).status();
      if (absl::IsResourceExhausted(result)) refused.set_value();
    });
  }
  const auto outcome = refused.get_future().wait_for(std::chrono::seconds(60));
  let.set_value();
  holder.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outcome, std::future_status::ready);
  EXPECT_EQ(std::count_if(results.begin(), results.end(),
                          [](const absl::Status& s) { return s.ok(); }),
            kMostSimulations);
  // None is counted any more.
  EXPECT_TRUE(node_.manager().Simulate(request).ok());
}

TEST_F(SimulationTest, AL184AnInterruptedOneIsCountedAsSuch) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(2));
  SimulationRequest request;
  request.pods = {PodWithSpec("p", Spec("example.com/gpu: 1"))};
  request.deadline = std::chrono::milliseconds(-1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(node_.manager().Simulate(request).status()));
  request.deadline = std::chrono::milliseconds(1'000);
  request.stop = std::make_shared<std::atomic<bool>>(true);
  const auto result = node_.manager().Simulate(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(node_.manager().Simulations().interrupted, 1U);
}

}  // namespace
}  // namespace devmgr
