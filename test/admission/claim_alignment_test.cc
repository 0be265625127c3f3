// SPDX-License-Identifier: Apache-2.0
#include "admission/claim_alignment.h"

#include <devmgr/manifests.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace devmgr::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Devices `d0` to `d2` on nodes 0, 1 and none.
constexpr char kSlice[] =
    "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
    "spec:\n  driver: d.example.com\n  nodeName: n1\n  pool: {name: n1, "
    "generation: 1, resourceSliceCount: 1}\n  devices:\n"
    "  - {name: d0, attributes: {resource.kubernetes.io/numaNode: {int: 0}}}\n"
    "  - {name: d1, attributes: {resource.kubernetes.io/numaNode: {int: 1}}}\n"
    "  - {name: d2}\n---\n";

/// A claim with `request: device` for each of these.
std::string Allocated(
    const std::string& name,
    const std::vector<std::pair<std::string, std::string>>& results) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\nstatus: {{allocation: {{devices: "
      "{{results: [",
      name);
  for (const auto& [request, device] : results) {
    text += fmt::format(
        "{{request: {}, driver: d.example.com, pool: n1, device: {}}}, ",
        request, device);
  }
  return text + "]}}}\n---\n";
}

/// Containers `c` and `d` with GPUs of the special claim, `c` with a NIC too.
constexpr char kSpecialPod[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
    "spec:\n  containers:\n"
    "  - {name: c, resources: {requests: {example.com/gpu: 1, "
    "example.com/nic: 1}, limits: {example.com/gpu: 1, example.com/nic: 1}}}\n"
    "  - {name: d, resources: {requests: {example.com/gpu: 1}, limits: "
    "{example.com/gpu: 1}}}\n"
    "status:\n  extendedResourceClaimStatus:\n    resourceClaimName: special\n"
    "    requestMappings:\n"
    "    - {containerName: c, resourceName: example.com/gpu, requestName: a}\n"
    "    - {containerName: c, resourceName: example.com/nic, requestName: x}\n"
    "    - {containerName: d, resourceName: example.com/gpu, requestName: "
    "b}\n---\n";

class HintsOfClaimsTest : public ::testing::Test {
 protected:
  void Add(const std::string& yaml) {
    DecodedManifest decoded = DecodeManifest(yaml, "test");
    ASSERT_TRUE(decoded.errors.empty()) << decoded.errors.front().ToString();
    for (DecodedObject& item : decoded.objects) {
      if (auto* pod = std::get_if<Pod>(&item.object)) {
        pod_ = std::move(*pod);
      } else if (auto* claim = std::get_if<ResourceClaim>(&item.object)) {
        Put(*claim, &objects_.claims);
      } else if (auto* slice = std::get_if<ResourceSlice>(&item.object)) {
        Put(*slice, &objects_.resource_slices);
      }
    }
  }
  /// `resource: nodes`, each with a star where preferred; `!` where binding.
  std::vector<std::string> Hints(const std::string& container,
                                 bool is_local = false) {
    std::vector<std::string> shown;
    for (const auto& list :
         HintsOfClaims(pod_, ContainerName(container), objects_, options_,
                       NumaMask(3), [&](const auto&) { return is_local; })) {
      EXPECT_EQ(list.provider, "claim");
      std::string text = list.resource + (list.binding ? "!:" : ":");
      if (!list.hints) text += " any";
      for (const TopologyHint& hint :
           list.hints.value_or(std::vector<TopologyHint>())) {
        text +=
            fmt::format(" {}{}", hint.nodes->bits(), hint.preferred ? "*" : "");
      }
      shown.push_back(text);
    }
    return shown;
  }

 private:
  template <typename T>
  static void Put(const T& object, ObjectMap<T>* objects) {
    objects->insert_or_assign(object.metadata.FullName(),
                              std::make_shared<const T>(object));
  }

 protected:
  Pod pod_;
  ObjectSnapshot objects_;
  claim::PlanOptions options_;
};

TEST_F(HintsOfClaimsTest, OfAnEntryAreThoseOfItsDevices) {
  Add(std::string(kSlice) + Allocated("q", {{"r", "d1"}, {"s", "d0"}}) +
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n"
      "spec:\n  resourceClaims: [{name: own, resourceClaimName: q}]\n"
      "  containers:\n"
      "  - {name: c, resources: {claims: [{name: own, request: r}]}}\n"
      "  - {name: d, resources: {claims: [{name: own}]}}\n");
  EXPECT_THAT(Hints("c"), ElementsAre("own/r: 2*"));
  EXPECT_THAT(Hints("d", /*is_local=*/true), ElementsAre("own!: 3*"));
  EXPECT_THAT(Hints(""), ElementsAre("own: 3*", "own/r: 2*"));
}

// KEP-5004: of the claim for extended resources each container has its own
// requests, under the names of the resources.
TEST_F(HintsOfClaimsTest, OfTheSpecialClaimAreThoseOfTheMappedRequests) {
  Add(std::string(kSlice) + kSpecialPod +
      Allocated("special", {{"a", "d1"}, {"x", "d0"}, {"b", "d0"}}));
  EXPECT_THAT(Hints("c"),
              ElementsAre("example.com/gpu: 2*", "example.com/nic: 1*"));
  EXPECT_THAT(Hints("d", /*is_local=*/true),
              ElementsAre("example.com/gpu!: 1*"));
  // Of the pod: one device on each node.
  EXPECT_THAT(Hints(""),
              ElementsAre("example.com/gpu: 3*", "example.com/nic: 1*"));
}

TEST_F(HintsOfClaimsTest, OfTheSpecialClaimADeviceOnNoNodeHasNoOpinion) {
  Add(std::string(kSlice) + kSpecialPod +
      Allocated("special", {{"a", "d2"}, {"b", "d1"}}));
  EXPECT_THAT(Hints("c"),
              ElementsAre("example.com/gpu: any", "example.com/nic: any"));
}

TEST_F(HintsOfClaimsTest, ASpecialClaimWithoutAllocationHasNone) {
  Add(std::string(kSlice) + kSpecialPod);
  EXPECT_THAT(Hints("c"), IsEmpty());
  Add("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "special, uid: u-special}\nspec: {devices: {requests: [{name: a, "
      "exactly: {deviceClassName: gpu}}]}}\n---\n");
  EXPECT_THAT(Hints("c"), IsEmpty());
}

TEST_F(HintsOfClaimsTest, WithTheGateOffTheSpecialClaimCountsForNothing) {
  Add(std::string(kSlice) + kSpecialPod + Allocated("special", {{"a", "d1"}}));
  options_.extended_resources = false;
  EXPECT_THAT(Hints("c"), IsEmpty());
}

}  // namespace
}  // namespace devmgr::admission
