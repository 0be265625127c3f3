// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "api/manifests_dir.h"

namespace devmgr {
namespace {

using ::testing::SizeIs;

/// Claims of a file, and those that its templates would make.
std::vector<ResourceClaim> ClaimsOf(const std::string& name) {
  std::ifstream file(std::string(DEVMGR_MANIFESTS_DIR) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<ResourceClaim> claims;
  for (const DecodedObject& decoded :
       DecodeManifest(text.str(), name).objects) {
    if (const auto* claim = std::get_if<ResourceClaim>(&decoded.object)) {
      claims.push_back(*claim);
    }
    if (const auto* item =
            std::get_if<ResourceClaimTemplate>(&decoded.object)) {
      claims.push_back({item->metadata, item->spec, {}});
    }
  }
  return claims;
}

ResourceClaim Again(const ResourceClaim& claim) {
  const std::string text = EncodeResourceClaim(claim);
  const DecodedManifest manifest = DecodeManifest(text, "claim.json");
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString() << "\n" << text;
  }
  if (manifest.objects.size() != 1) return {};
  return std::get<ResourceClaim>(manifest.objects[0].object);
}

TEST(EncodeResourceClaim, IsDecodedAsTheSameClaim) {
  int count = 0;
  for (const char* file : {"devices.yaml", "full.yaml", "kep-5004.yaml"}) {
    for (const ResourceClaim& claim : ClaimsOf(file)) {
      ++count;
      EXPECT_EQ(Again(claim), claim) << EncodeResourceClaim(claim);
    }
  }
  EXPECT_GE(count, 4);
}

TEST(EncodeResourceClaim, KeepsMetadata) {
  ResourceClaim claim;
  claim.metadata = {"c",
                    "ns",
                    "u",
                    "2026-01-31T12:00:00Z",
                    "2026-01-31T12:00:01Z",
                    {{"l", "1"}},
                    {{"a", "2"}},
                    {{"v1", "Pod", "p", "pu", true}},
                    {"example.com/f", "g"}};
  claim.spec.requests = {
      {"q",
       DeviceSubRequest{"q", "c", {}, "ExactCount", 1, {}, {}, {}},
       false,
       true,
       {}}};
  claim.status.allocation.emplace();
  EXPECT_EQ(Again(claim), claim) << EncodeResourceClaim(claim);
}

TEST(EncodeResourceClaim, HasTheKeysOfTheApi) {
  ResourceClaim claim;
  claim.metadata.name = "c";
  claim.metadata.ns = "ns";
  DeviceRequestAllocationResult result;
  result.request = "q";
  result.driver = "d";
  result.pool = "p";
  result.device = "g";
  // A sum has no text of its own.
  result.consumed_capacity = {{"m", Quantity{1, 500'000'000, {}}}};
  AllocationResult& allocation = claim.status.allocation.emplace();
  allocation.results = {result};
  allocation.config = {{"FromClass", {}, {"d", R"({"a":[1,{}]})"}}};
  EXPECT_EQ(EncodeResourceClaim(claim),
            R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",)"
            R"("metadata":{"name":"c","namespace":"ns"},)"
            R"("spec":{"devices":{}},"status":{"allocation":{"devices":)"
            R"({"results":[{"request":"q","driver":"d","pool":"p",)"
            R"("device":"g","consumedCapacity":{"m":"1.5"}}],)"
            R"("config":[{"source":"FromClass","opaque":{"driver":"d",)"
            R"("parameters":{"a":[1,{}]}}}]}}}})");
}

TEST(EncodeResourceClaim, WritesClaimsOfV1alpha2AsTheyCame) {
  ResourceClaim claim;
  claim.metadata.name = "c";
  claim.metadata.ns = "ns";
  claim.spec.old = {"s", {{"g", "K", "", "p"}}, true};
  EXPECT_EQ(Again(claim), claim);
  claim.status.driver = "a";
  AllocationResult& allocation = claim.status.allocation.emplace();
  allocation.resource_handles["a"];
  allocation.node_selector.emplace().terms = {
      {.match_expressions = {{"kubernetes.io/hostname", "In", {"n1"}}},
       .match_fields = {}}};
  EXPECT_EQ(EncodeResourceClaim(claim),
            R"({"apiVersion":"resource.k8s.io/v1alpha2",)"
            R"("kind":"ResourceClaim","metadata":{"name":"c",)"
            R"("namespace":"ns"},"spec":{"resourceClassName":"s",)"
            R"("parametersRef":{"apiGroup":"g","kind":"K","name":"p"},)"
            R"("allocationMode":"Immediate"},"status":{"driverName":"a",)"
            R"("allocation":{"availableOnNodes":{"nodeSelectorTerms":)"
            R"([{"matchExpressions":[{"key":"kubernetes.io/hostname",)"
            R"("operator":"In","values":["n1"]}]}]}}}})");
  EXPECT_EQ(Again(claim), claim) << "no handle is an empty one of the driver";
  allocation.shareable = true;
  allocation.resource_handles["b"].data = "opaque";
  auto& handle = allocation.resource_handles["a"].structured.emplace();
  handle.vendor_class_parameters = R"({"x":[1]})";
  handle.node_name = "n1";
  handle.results = {{"", "i1"}, {R"("text")", "i2"}};
  EXPECT_EQ(Again(claim), claim) << EncodeResourceClaim(claim);
  // One that is read without a spec is written in the form of v1.
  claim.spec.old.reset();
  EXPECT_EQ(EncodeResourceClaim(claim).find("driverName"), std::string::npos);
}

TEST(EncodeResourceClaim, TakesTextsOfAnyBytes) {
  ResourceClaim claim;
  claim.metadata.name = "\xff\"\n";
  claim.spec.config = {{{}, {"d", "{"}}};
  EXPECT_EQ(EncodeResourceClaim(claim),
            "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\","
            "\"metadata\":{\"name\":\"\xEF\xBF\xBD\\\"\\n\"},\"spec\":{"
            "\"devices\":{\"config\":[{\"opaque\":{\"driver\":\"d\","
            "\"parameters\":null}}]}}}");
}

}  // namespace
}  // namespace devmgr
