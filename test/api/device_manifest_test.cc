// SPDX-License-Identifier: Apache-2.0
//
// A manifest with each field that resource.k8s.io/v1 has, as it is decoded.
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <variant>

#include "api/manifests_dir.h"
#include "api/quantity.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Quantity Amount(const std::string& text) {
  return api::ParseQuantity(text).value();
}

NodeSelector OneNode(const std::string& op, const std::string& name) {
  return {{NodeSelectorTerm{{}, {{"metadata.name", op, {name}}}}}};
}

class DeviceManifest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(DEVMGR_MANIFESTS_DIR) + "/devices.yaml");
    std::ostringstream text;
    text << file.rdbuf();
    manifest_ = DecodeManifest(text.str(), "devices.yaml");
    for (const ManifestProblem& problem : manifest_.errors) {
      ADD_FAILURE() << problem.ToString();
    }
    for (const ManifestProblem& problem : manifest_.warnings) {
      ADD_FAILURE() << problem.ToString();
    }
    ASSERT_THAT(manifest_.objects, SizeIs(7));
  }

  template <typename T>
  const T& At(std::size_t index) const {
    return std::get<T>(manifest_.objects[index].object);
  }

  DecodedManifest manifest_;
};

TEST_F(DeviceManifest, ASliceHasItsOwnFields) {
  const auto& slice = At<ResourceSlice>(0);
  EXPECT_TRUE(slice.per_device_node_selection);
  EXPECT_FALSE(slice.all_nodes);
  EXPECT_EQ(slice.node_name, "");
  EXPECT_FALSE(slice.node_selector.has_value());
  EXPECT_THAT(slice.skip_node_operations,
              ElementsAre("NodePrepareResources", "NodeUnprepareResources"));
  EXPECT_EQ(slice.partition_type_attribute, "gpu.example.com/kind");
  EXPECT_THAT(slice.devices, SizeIs(3));
}

TEST_F(DeviceManifest, ADeviceHasAttributesOfAllKinds) {
  const auto& attributes = At<ResourceSlice>(0).devices[0].attributes;
  const SortedMap<DeviceAttribute> wanted = {
      {"kind", SharedText("half")},
      {"example.com/index", std::int64_t{-7}},
      {"healthy", true},
      {"driverVersion", DeviceVersion{"1.2.3-rc.1+build"}},
      {"numa", RareVector<std::int64_t>{0, 1}},
      {"flags", RareVector<bool>{true, false}},
      {"links", RareVector<SharedText>{"a", "b"}},
      {"versions", RareVector<DeviceVersion>{{"1.0.0"}, {"2.0.0"}}}};
  EXPECT_EQ(attributes, wanted);
}

TEST_F(DeviceManifest, ADeviceHasCapacityWithPolicies) {
  const auto& capacity = At<ResourceSlice>(0).devices[0].capacity;
  ASSERT_THAT(capacity, SizeIs(3));
  EXPECT_EQ(capacity.at("plain").value, Amount("1000"));
  EXPECT_EQ(capacity.at("plain").request_policy, nullptr);
  EXPECT_EQ(*capacity.at("cores").request_policy,
            (CapacityRequestPolicy{Amount("0.5"),
                                   {Amount("0.5"), Amount("1"), Amount("8")},
                                   std::nullopt}));
  EXPECT_EQ(*capacity.at("memory").request_policy,
            (CapacityRequestPolicy{Amount("2Gi"),
                                   {},
                                   CapacityRange{Amount("1Gi"), Amount("41Gi"),
                                                 Amount("512Mi")}}));
}

TEST_F(DeviceManifest, ADeviceHasTaintsCountersAndConditions) {
  const SliceDevice& device = At<ResourceSlice>(0).devices[0];
  EXPECT_EQ(device.taints,
            (RareVector<DeviceTaint>{{"example.com/broken", "fan", "NoExecute",
                                      "2026-01-31T12:00:00Z"},
                                     {"noisy", "", "None", ""}}));
  EXPECT_EQ(device.consumes_counters,
            (RareVector<DeviceCounterConsumption>{
                {"board",
                 {{"memory", Amount("40Gi")}, {"slots", Amount("1")}},
                 {"mig", "vgpu"}}}));
  EXPECT_THAT(device.binding_conditions, ElementsAre("example.com/attached"));
  EXPECT_THAT(device.binding_failure_conditions,
              ElementsAre("example.com/failed"));
  EXPECT_TRUE(device.binds_to_node);
  EXPECT_TRUE(device.allow_multiple_allocations);
  ASSERT_THAT(device.node_allocatable_resources, SizeIs(2));
  EXPECT_EQ(device.node_allocatable_resources[0],
            (NodeAllocatableResource{"cpu", "cores", Amount("2"), std::nullopt,
                                     Amount("0.1"), Amount("0.05")}));
  EXPECT_EQ(
      device.node_allocatable_resources[1],
      (NodeAllocatableResource{"hugepages-2Mi", "", std::nullopt, Amount("4Mi"),
                               std::nullopt, std::nullopt}));
}

TEST_F(DeviceManifest, DevicesSayWhereTheyAre) {
  const auto& devices = At<ResourceSlice>(0).devices;
  EXPECT_EQ(devices[0].node_name, "node-1");
  const NodeSelector wanted = {
      {NodeSelectorTerm{{{"zone", "In", {"a", "b"}},
                         {"example.com/gpus", "Gt", {"1"}},
                         {"retired", "DoesNotExist", {}}},
                        {{"metadata.name", "NotIn", {"node-2"}}}}}};
  EXPECT_EQ(devices[1].node_selector, wanted);
  EXPECT_FALSE(devices[1].all_nodes);
  EXPECT_TRUE(devices[2].all_nodes);
}

TEST_F(DeviceManifest, ASliceHasCountersAndASelector) {
  const auto& slice = At<ResourceSlice>(1);
  EXPECT_EQ(slice.node_selector, OneNode("In", "node-1"));
  ASSERT_THAT(slice.shared_counters, SizeIs(1));
  EXPECT_EQ(slice.shared_counters[0],
            (CounterSet{"board",
                        {{"memory", Amount("80Gi")}, {"slots", Amount("2")}}}));
}

TEST_F(DeviceManifest, AClassHasConfig) {
  const auto& item = At<DeviceClass>(2);
  ASSERT_THAT(item.config, SizeIs(1));
  EXPECT_EQ(item.config[0],
            (OpaqueDeviceConfiguration{"gpu.example.com",
                                       R"({"kind":"Sharing","slices":4})"}));
}

TEST_F(DeviceManifest, ATemplateHasWhatItsClaimsGet) {
  const auto& item = At<ResourceClaimTemplate>(3);
  EXPECT_EQ(item.claim_labels.at("team"), "a");
  EXPECT_EQ(item.claim_annotations.at("example.com/note"), "text");
}

TEST_F(DeviceManifest, RequestsHaveAllThatTheyAskFor) {
  const auto& requests = At<ResourceClaimTemplate>(3).spec.requests;
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_TRUE(requests[0].says_admin_access);
  EXPECT_FALSE(requests[0].admin_access);
  const DeviceSubRequest& exactly = *requests[0].exactly;
  EXPECT_THAT(
      exactly.tolerations,
      ElementsAre(DeviceToleration{"example.com/broken", "Equal", "fan",
                                   "NoExecute", 60},
                  DeviceToleration{"", "Exists", "", "", std::nullopt}));
  EXPECT_EQ(exactly.capacity_requests,
            (SortedMap<Quantity>{{"memory", Amount("3Gi")},
                                 {"example.com/lanes", Amount("2")}}));
  ASSERT_THAT(exactly.derived_attributes, SizeIs(1));
  EXPECT_EQ(exactly.derived_attributes[0].name, "derived/row");
  EXPECT_FALSE(requests[1].says_admin_access);
  ASSERT_THAT(requests[1].first_available, SizeIs(2));
  EXPECT_EQ(requests[1].first_available[0],
            (DeviceSubRequest{"large",
                              "gpu",
                              {"true"},
                              "All",
                              0,
                              {{"noisy", "Equal", "", "", std::nullopt}},
                              {},
                              {}}));
  EXPECT_EQ(requests[1].first_available[1],
            (DeviceSubRequest{"small",
                              "gpu",
                              {},
                              "ExactCount",
                              2,
                              {},
                              {{"memory", Amount("0.5")}},
                              {{"derived/row", "1"}}}));
}

TEST_F(DeviceManifest, AClaimHasConstraintsAndConfig) {
  const auto& spec = At<ResourceClaimTemplate>(3).spec;
  EXPECT_THAT(spec.constraints,
              ElementsAre(DeviceConstraint{{"big", "any"}, "derived/row", ""},
                          DeviceConstraint{
                              {"any/small"}, "", "gpu.example.com/index"}));
  EXPECT_THAT(
      spec.config,
      ElementsAre(DeviceClaimConfiguration{{"any/large", "big"},
                                           {"gpu.example.com",
                                            R"({"a":null,"b":[1,2.5]})"}},
                  DeviceClaimConfiguration{{}, {"gpu.example.com", "{}"}}));
}

TEST_F(DeviceManifest, AnAllocationHasAllOfIt) {
  const auto& claim = At<ResourceClaim>(4);
  ASSERT_TRUE(claim.status.allocation.has_value());
  const AllocationResult& allocation = *claim.status.allocation;
  EXPECT_EQ(allocation.allocation_timestamp, "2026-01-31T12:00:00Z");
  EXPECT_EQ(allocation.node_selector, OneNode("In", "node-1"));
  EXPECT_FALSE(allocation.many_nodes);
  EXPECT_THAT(allocation.results,
              ElementsAre(DeviceRequestAllocationResult{
                  "big",
                  "gpu.example.com",
                  "node-1",
                  "gpu-0",
                  true,
                  "0f2c6a1e-0000-4000-8000-00000000000a",
                  {"*"},
                  {{"noisy", "Exists", "", "", std::nullopt}},
                  {"example.com/attached"},
                  {"example.com/failed"},
                  {{"memory", Amount("3Gi")}, {"cores", Amount("0.5")}}}));
  EXPECT_THAT(
      allocation.config,
      ElementsAre(
          DeviceAllocationConfiguration{
              "FromClass", {"big"}, {"gpu.example.com", R"({"slices":4})"}},
          DeviceAllocationConfiguration{
              "FromClaim", {}, {"gpu.example.com", "{}"}}));
}

TEST_F(DeviceManifest, AClaimHasWhatDriversSayOfItsDevices) {
  const AllocatedDeviceStatus wanted{
      "gpu.example.com",
      "node-1",
      "gpu-0",
      "0f2c6a1e-0000-4000-8000-00000000000a",
      {{"example.com/attached", "True", "Attached", "all is well",
        "2026-01-31T12:00:01Z", 2}},
      R"({"port":7})",
      NetworkDeviceData{
          "eth1", {"192.0.2.5/24", "2001:db8::5/64"}, "02:00:00:00:00:01"}};
  EXPECT_THAT(At<ResourceClaim>(4).status.devices, ElementsAre(wanted));
}

TEST_F(DeviceManifest, ATaintRuleSelectsDevices) {
  const auto& rule = At<DeviceTaintRule>(5);
  EXPECT_EQ(rule.metadata.name, "drain");
  EXPECT_EQ(rule.device_selector,
            (DeviceTaintSelector{"gpu.example.com", "node-1", "gpu-0"}));
  EXPECT_EQ(rule.taint,
            (DeviceTaint{"example.com/drain", "", "NoExecute", ""}));
  ASSERT_THAT(rule.conditions, SizeIs(1));
  EXPECT_EQ(rule.conditions[0].type, "EvictionInProgress");
}

TEST_F(DeviceManifest, ANodeHasItsFeatures) {
  EXPECT_THAT(
      At<Node>(6).declared_features,
      ElementsAre("DRANodeAllocatableResources", "DRAOptionalNodeOperations"));
}

TEST(DecodeResourceSlice, SharesEqualTextsOfItsDevices) {
  const DecodedManifest manifest = DecodeManifest(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
      "metadata: {name: s}\nspec:\n  driver: d\n  allNodes: true\n"
      "  pool: {name: p, resourceSliceCount: 1}\n  devices:\n"
      "  - {name: a, attributes: {m: {string: x}}, capacity: {c: {value: 1}}}\n"
      "  - {name: b, attributes: {m: {string: x}}, capacity: {c: {value: "
      "1}}}\n",
      "slice.yaml");
  ASSERT_THAT(manifest.errors, IsEmpty());
  const auto& devices =
      std::get<ResourceSlice>(manifest.objects.at(0).object).devices;
  const auto bytes_of = [](const SharedText& text) {
    return text.view().data();
  };
  const auto& a = *devices[0].attributes.begin();
  const auto& b = *devices[1].attributes.begin();
  EXPECT_EQ(bytes_of(a.first), bytes_of(b.first));
  EXPECT_EQ(bytes_of(std::get<SharedText>(a.second)),
            bytes_of(std::get<SharedText>(b.second)));
  EXPECT_EQ(bytes_of(devices[0].capacity.at("c").value.text),
            bytes_of(devices[1].capacity.at("c").value.text));
}

}  // namespace
}  // namespace devmgr
