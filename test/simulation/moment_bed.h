// SPDX-License-Identifier: Apache-2.0
//
// A node as a manager knows it at one moment, from manifests, for simulations.
#pragma once

#include <devmgr/manifests.h>
#include <devmgr/simulation.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulation/simulate.h"
#include "simulation/simulated_node.h"
#include "simulation/trial.h"

namespace devmgr::simulation {

inline constexpr char kGpu[] = "example.com/gpu";
inline constexpr char kNic[] = "example.com/nic";
inline constexpr char kDriver[] = "d.example.com";

inline constexpr auto kAdmit = Verdict::Kind::kAdmit;
inline constexpr auto kWait = Verdict::Kind::kWait;
inline constexpr auto kReject = Verdict::Kind::kReject;

/// Class `gpu`, with the extended resource kGpu.
inline constexpr char kClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n";

/// Pool `pool` with `devices` devices `g0`, `g1`, ...; `where` says on which
/// nodes.
inline std::string Slice(const std::string& pool, int devices,
                         const std::string& where = "nodeName: n1") {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s-{0}}}\nspec:\n  driver: {1}\n  {2}\n  pool: {{name: {0}, generation: "
      "1, resourceSliceCount: 1}}\n  devices: [",
      pool, kDriver, where);
  for (int i = 0; i < devices; ++i) text += fmt::format("{{name: g{}}}, ", i);
  return text + "]\n---\n";
}

inline std::string Claim(const std::string& name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n",
      name);
}

/// One container with these limits, and the claim unless it is empty.
inline std::string PodText(const std::string& name, const std::string& limits,
                           const std::string& claim = "") {
  const std::string claims =
      claim.empty()
          ? ""
          : fmt::format("{{name: own, resourceClaimName: {}}}", claim);
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}}}\nspec:\n"
      "  resourceClaims: [{1}]\n  containers: [{{name: c, resources: {{limits: "
      "{{{2}}}, claims: [{3}]}}}}]\n---\n",
      name, claims, limits, claim.empty() ? "" : "{name: own}");
}

inline std::string GpuPod(const std::string& name, int count) {
  return PodText(name, fmt::format("{}: {}", kGpu, count));
}

inline std::vector<Object> Decoded(const std::string& yaml) {
  DecodedManifest decoded = DecodeManifest(yaml, "test");
  EXPECT_TRUE(decoded.errors.empty()) << decoded.errors.front().ToString();
  std::vector<Object> objects;
  for (DecodedObject& each : decoded.objects) {
    objects.push_back(std::move(each.object));
  }
  return objects;
}

inline Pod OnePod(const std::string& yaml) {
  return std::get<Pod>(Decoded(yaml).at(0));
}

inline device::Device Device(const std::string& id,
                             device::Health health = device::Health::kHealthy) {
  return {DeviceId(id), health, {}};
}

class SimulationTest : public ::testing::Test {
 protected:
  SimulationTest() {
    moment_.node_name = "n1";
    moment_.boot_id = "boot-1";
    moment_.allocates = true;
    moment_.now_ms = 1'000;
    moment_.drivers = {kDriver};
    moment_.objects.complete = true;
    moment_.random = [this] { return ++random_; };
  }

  void Add(const std::string& yaml) {
    for (const Object& item : Decoded(yaml)) {
      std::visit([&](const auto& object) { AddOne(object); }, item);
    }
    moment_.of_source = moment_.objects;
  }

  void AddPlugin(const std::string& resource, int count) {
    std::vector<device::Device> list;
    for (int i = 0; i < count; ++i) {
      list.push_back(Device(fmt::format("{}", i)));
    }
    AddPlugin(resource, std::move(list));
  }
  void AddPlugin(const std::string& resource,
                 std::vector<device::Device> list) {
    device::Inventory& inventory = moment_.inventories[resource];
    inventory.Connect(1, 0);
    inventory.Report(
        1, std::move(list), [](const DeviceId&) { return false; }, 0);
  }

  absl::StatusOr<Simulation> Try(const std::string& pods) {
    request_.pods.clear();
    for (Object& object : Decoded(pods)) {
      request_.pods.push_back(std::get<Pod>(std::move(object)));
    }
    return Simulate(moment_, request_);
  }
  /// Of the only pod.
  SimulatedPod TryOne(const std::string& pod) {
    auto result = Try(pod);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok() || result->pods.empty()) return {};
    return result->pods.front();
  }
  /// The pod is admitted, and is one of the node's from now on.
  void Run(const std::string& pod) {
    SimulationRequest request;
    const Pod object = OnePod(pod);
    auto node = SimulatedNode::Make(moment_, request);
    ASSERT_TRUE(node.ok()) << node.status();
    Trials trials(moment_, 1'000, nullptr);
    const auto tried = trials.Try(object, *node);
    ASSERT_TRUE(tried.ok()) << tried.status();
    ASSERT_EQ(tried->verdict.kind, Verdict::Kind::kAdmit)
        << tried->verdict.message;
    moment_.state = node->state();
    moment_.objects = node->objects();
    moment_.inventories = node->inventories();
    const ObjectName name{"default", object.metadata.name};
    moment_.of_source.pods.insert_or_assign(name,
                                            node->objects().pods.at(name));
  }

  /// `pool/device` of all its claims.
  static std::vector<std::string> DevicesOf(const SimulatedPod& pod) {
    std::vector<std::string> devices;
    for (const ResourceClaim& claim : pod.claims) {
      for (const auto& result : claim.status.allocation->results) {
        devices.push_back(result.pool + "/" + result.device);
      }
    }
    return devices;
  }
  static std::map<std::string, std::size_t> Counts(const SimulatedPod& pod) {
    std::map<std::string, std::size_t> counts;
    for (const RefusedRequest& request : pod.refusals) {
      for (const auto& [reason, count] : request.counts) {
        counts[reason] += count;
      }
    }
    return counts;
  }

  NodeMoment moment_;
  SimulationRequest request_;

 private:
  template <typename T>
  static void Put(const T& object, ObjectMap<T>* objects) {
    objects->insert_or_assign(object.metadata.FullName(),
                              std::make_shared<const T>(object));
  }
  void AddOne(const ResourceClaim& item) { Put(item, &moment_.objects.claims); }
  void AddOne(const ResourceClaimTemplate& item) {
    Put(item, &moment_.objects.claim_templates);
  }
  void AddOne(const DeviceClass& item) {
    Put(item, &moment_.objects.device_classes);
  }
  void AddOne(const ResourceSlice& item) {
    Put(item, &moment_.objects.resource_slices);
  }
  void AddOne(const DeviceTaintRule& item) {
    Put(item, &moment_.objects.device_taint_rules);
  }
  void AddOne(const ResourceQuota& item) { Put(item, &moment_.objects.quotas); }
  template <typename T>
  void AddOne(const T&) {
    FAIL() << "no object of a node";
  }

  std::uint64_t random_ = 0;
};

}  // namespace devmgr::simulation
