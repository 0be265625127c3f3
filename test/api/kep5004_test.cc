// SPDX-License-Identifier: Apache-2.0
//
// The objects that the text of KEP-5004 shows, as it writes them.
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "api/manifests_dir.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

DecodedManifest DecodeFile(const std::string& name) {
  std::ifstream file(std::string(DEVMGR_MANIFESTS_DIR) + "/" + name);
  EXPECT_TRUE(file.good()) << name;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  DecodedManifest manifest = DecodeManifest(text, name, "here");
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  for (const MalformedPod& pod : manifest.malformed_pods) {
    ADD_FAILURE() << pod.problem.ToString();
  }
  return manifest;
}

TEST(Kep5004, ItsClassSliceAndNodesDecode) {
  const DecodedManifest manifest = DecodeFile("kep-5004.yaml");
  ASSERT_THAT(manifest.objects, SizeIs(5)) << "no Deployment";

  const auto& device_class = std::get<DeviceClass>(manifest.objects[0].object);
  EXPECT_EQ(device_class.metadata.name, "gpu.example.com");
  EXPECT_EQ(device_class.extended_resource_name, "example.com/gpu");
  ASSERT_THAT(device_class.selectors, SizeIs(1));
  EXPECT_EQ(device_class.selectors[0],
            "device.driver == 'gpu.example.com' && "
            "device.attributes['gpu.example.com'].type == 'gpu'");

  const auto& slice = std::get<ResourceSlice>(manifest.objects[1].object);
  EXPECT_EQ(slice.driver, "gpu.example.com");
  ASSERT_THAT(slice.devices, SizeIs(8));
  EXPECT_EQ(slice.devices[7].name, "gpu-7");

  const auto& with_plugin = std::get<Node>(manifest.objects[3].object);
  EXPECT_EQ(with_plugin.capacity.at("example.com/gpu").whole, 2);
  EXPECT_EQ(with_plugin.capacity.at("ephemeral-storage").whole,
            std::int64_t{101430960} * 1024);
}

TEST(Kep5004, ItsQuotaDecodes) {
  const DecodedManifest manifest = DecodeFile("kep-5004.yaml");
  const auto& quota = std::get<ResourceQuota>(manifest.objects[4].object);
  EXPECT_EQ(quota.metadata.FullName(), (ObjectName{"default", "gpu"}));
  EXPECT_THAT(quota.hard, SizeIs(2));
  EXPECT_EQ(quota.hard.at("requests.example.com/gpu").whole, 10);
  EXPECT_EQ(quota.hard.at("gpu.example.com.deviceclass.resource.k8s.io/devices")
                .whole,
            10);
}

TEST(Kep5004, ItsSliceGetsAPoolWithAWarning) {
  const DecodedManifest manifest = DecodeFile("kep-5004.yaml");
  const auto& slice = std::get<ResourceSlice>(manifest.objects[1].object);
  EXPECT_EQ(slice.pool, "gke-drabeta-n1-standard-4-2xt4-346fe653-zrw2");
  EXPECT_EQ(slice.pool_generation, 1);
  EXPECT_EQ(slice.pool_slice_count, 1);
  std::vector<std::string> warnings;
  for (const ManifestProblem& warning : manifest.warnings) {
    warnings.push_back(warning.ToString());
  }
  EXPECT_THAT(
      warnings,
      UnorderedElementsAre(HasSubstr("kep-5004.yaml:40: spec.pool: is missing"),
                           HasSubstr("is not used by this node")));
}

TEST(Kep5004, ItsPodWithOnlyLimitsGetsRequests) {
  const DecodedManifest manifest = DecodeFile("kep-5004-pods.yaml");
  ASSERT_THAT(manifest.objects, SizeIs(2));
  const auto& pod = std::get<Pod>(manifest.objects[0].object);
  EXPECT_EQ(pod.metadata.ns, "default");
  const ResourceRequirements& resources = pod.spec.containers[0].resources;
  ASSERT_TRUE(resources.requests.contains("example.com/gpu"));
  EXPECT_EQ(resources.requests.at("example.com/gpu").whole, 1);
  EXPECT_FALSE(pod.status.extended_resource_claim_status.has_value());
}

TEST(Kep5004, ItsStatusIsReadInItsOwnSpelling) {
  const DecodedManifest manifest = DecodeFile("kep-5004-pods.yaml");
  ASSERT_THAT(manifest.objects, SizeIs(2));
  const auto& pod = std::get<Pod>(manifest.objects[1].object);
  ASSERT_TRUE(pod.status.extended_resource_claim_status.has_value());
  const auto& status = *pod.status.extended_resource_claim_status;
  EXPECT_EQ(status.resource_claim_name, "ccc-gpu-57999b9c4c-vpq68-gpu-8s27z");
  ASSERT_THAT(status.request_mappings, SizeIs(1));
  EXPECT_EQ(status.request_mappings[0].container_name, "container-name");
  EXPECT_EQ(status.request_mappings[0].resource_name, "foo.domain/bar");
  EXPECT_EQ(status.request_mappings[0].request_name, "container-0-request-2");
}

TEST(Manifests, EveryFieldOfEveryKindIsRead) {
  const DecodedManifest manifest = DecodeFile("full.yaml");
  EXPECT_THAT(manifest.warnings, IsEmpty());
  ASSERT_THAT(manifest.objects, SizeIs(6));

  const auto& pod = std::get<Pod>(manifest.objects[0].object);
  EXPECT_EQ(pod.metadata.FullName().ToString(), "ml/train");
  EXPECT_EQ(pod.metadata.creation_timestamp, "2026-01-31T12:00:00Z");
  EXPECT_EQ(pod.metadata.deletion_timestamp, "2026-01-31T13:00:00.5+01:00");
  EXPECT_EQ(pod.metadata.labels.at("empty"), "");
  EXPECT_EQ(pod.metadata.annotations.at("note"), "two\nlines\n");
  ASSERT_THAT(pod.metadata.owner_references, SizeIs(1));
  EXPECT_TRUE(pod.metadata.owner_references[0].controller);
  EXPECT_EQ(pod.spec.node_name, "node-1");
  EXPECT_EQ(pod.spec.priority, -10);
  EXPECT_EQ(pod.spec.init_containers[0].restart_policy, "Always");
  EXPECT_EQ(pod.spec.init_containers[0].resources.requests.at("cpu").nanos,
            100'000'000);
  EXPECT_EQ(pod.spec.containers[0].resources.requests.at("memory").whole,
            1'610'612'736);
  EXPECT_EQ(pod.spec.containers[0].resources.claims[0].request, "big");
  EXPECT_EQ(pod.spec.containers[0].resources.claims[1].request, "");
  EXPECT_EQ(pod.spec.resource_claims[0].resource_claim_name, "my-gpus");
  EXPECT_EQ(pod.spec.resource_claims[1].resource_claim_template_name,
            "nic-template");
  EXPECT_EQ(pod.status.phase, "Running");
  EXPECT_EQ(pod.status.resource_claim_statuses[0].resource_claim_name,
            "train-nics-x7f2k");
  EXPECT_THAT(pod.status.extended_resource_claim_status->request_mappings,
              SizeIs(2));

  const auto& claim = std::get<ResourceClaim>(manifest.objects[1].object);
  ASSERT_THAT(claim.spec.requests, SizeIs(2));
  EXPECT_EQ(claim.spec.requests[0].exactly->count, 2);
  EXPECT_EQ(claim.spec.requests[0].exactly->name, "big");
  EXPECT_TRUE(claim.spec.requests[0].admin_access);
  EXPECT_EQ(claim.spec.requests[1].first_available[0].allocation_mode, "All");
  EXPECT_EQ(claim.spec.requests[1].first_available[0].count, 0);
  EXPECT_EQ(claim.spec.requests[1].first_available[1].count, 1);
  ASSERT_TRUE(claim.status.allocation.has_value());
  EXPECT_EQ(claim.status.allocation->results[1].pool, "node-1/left");
  EXPECT_EQ(claim.status.allocation->results[1].request, "any/small");
  EXPECT_EQ(claim.status.reserved_for[0].uid, pod.metadata.uid);

  const auto& claim_template =
      std::get<ResourceClaimTemplate>(manifest.objects[2].object);
  EXPECT_EQ(claim_template.spec.requests[0].exactly->device_class_name,
            "nic.example.com");

  const auto& slice = std::get<ResourceSlice>(manifest.objects[4].object);
  EXPECT_EQ(slice.pool_generation, 3);
  EXPECT_EQ(slice.pool_slice_count, 2);
  const SliceDevice& device = slice.devices[0];
  EXPECT_EQ(device.attributes.at("index"), DeviceAttribute(std::int64_t{0}));
  EXPECT_EQ(device.attributes.at("gpu.example.com/healthy"),
            DeviceAttribute(true));
  EXPECT_EQ(device.attributes.at("model"), DeviceAttribute(std::string("A")));
  EXPECT_EQ(device.attributes.at("driverVersion"),
            DeviceAttribute(DeviceVersion{"1.2.3-rc.1+build"}));
  EXPECT_EQ(device.attributes.at("links"),
            DeviceAttribute(RareVector<std::int64_t>{1, 2}));
  EXPECT_EQ(device.capacity.at("memory").value.whole, std::int64_t{80} << 30);

  const auto& node = std::get<Node>(manifest.objects[5].object);
  EXPECT_EQ(node.metadata.labels.at("zone"), "a");
  EXPECT_EQ(node.allocatable.at("cpu").nanos, 500'000'000);
}

TEST(Manifests, ListsInJsonAreRead) {
  const DecodedManifest manifest = DecodeFile("list.json");
  ASSERT_THAT(manifest.objects, SizeIs(2));
  const auto& pod = std::get<Pod>(manifest.objects[0].object);
  EXPECT_EQ(pod.metadata.annotations.at("url"),
            "http://x/\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(
      pod.spec.containers[0].resources.requests.at("example.com/gpu").whole, 1);
  const auto& claim = std::get<ResourceClaim>(manifest.objects[1].object);
  EXPECT_EQ(claim.spec.requests[0].exactly->count, 2);
}

}  // namespace
}  // namespace devmgr
