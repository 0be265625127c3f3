// SPDX-License-Identifier: Apache-2.0
//
// Claims of Kubernetes 1.30 from manifests to what is written of them:
// devmgr/manifests.h, devmgr/allocate.h, and back.
#include <devmgr/allocate.h>
#include <devmgr/manifests.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace devmgr {
namespace {

std::string Object(const std::string& kind, const std::string& name,
                   const std::string& body) {
  return "---\napiVersion: resource.k8s.io/v1alpha2\nkind: " + kind +
         "\nmetadata: {name: " + name + "}\n" + body + "\n";
}

std::string Slice(const std::string& name, const std::string& driver,
                  const std::string& instances) {
  return Object("ResourceSlice", name,
                "nodeName: n1\ndriverName: " + driver +
                    "\nnamedResources: {instances: [" + instances + "]}");
}

std::string Class(const std::string& more = "") {
  return Object("ResourceClass", "s",
                "driverName: a\nstructuredParameters: true\n" + more);
}

/// A claim of the class s; with parameters p, unless there are none.
std::string Claim(const std::string& name, bool has_parameters = true) {
  return Object(
      "ResourceClaim", name,
      std::string("spec: {resourceClassName: s") +
          (has_parameters ? ", parametersRef: {apiGroup: resource.k8s.io, "
                            "kind: ResourceClaimParameters, name: p}}"
                          : "}"));
}

std::string Parameters(const std::string& body) {
  return Object("ResourceClaimParameters", "p", body);
}

AllocationInput Read(const std::string& text) {
  AllocationInput input;
  input.node.metadata.name = "n1";
  DecodedManifest manifest = DecodeManifest(text, "f.yaml", "n1");
  for (const auto& error : manifest.errors) ADD_FAILURE() << error.ToString();
  for (DecodedObject& each : manifest.objects) {
    std::visit(
        [&](auto& object) {
          using T = std::decay_t<decltype(object)>;
          if constexpr (std::is_same_v<T, ResourceClaim>) {
            input.claims.push_back(object);
          } else if constexpr (std::is_same_v<T, ResourceSlice>) {
            input.slices.push_back(object);
          } else if constexpr (std::is_same_v<T, DeviceClass>) {
            input.classes.push_back(object);
          } else if constexpr (std::is_same_v<T, ResourceClass>) {
            input.resource_classes.push_back(object);
          } else if constexpr (std::is_same_v<T, ResourceClassParameters>) {
            input.resource_class_parameters.push_back(object);
          } else if constexpr (std::is_same_v<T, ResourceClaimParameters>) {
            input.resource_claim_parameters.push_back(object);
          }
        },
        each.object);
  }
  return input;
}

/// `c: a/n1/i1 b/n1/j1; `, or the outcome and its message.
std::string TextOf(const AllocatedClaims& result) {
  if (result.outcome != AllocationOutcome::kSolved) {
    return std::string(AllocationOutcomeName(result.outcome)) + ": " +
           result.message;
  }
  std::string text;
  for (const ResourceClaim& claim : result.claims) {
    text += claim.metadata.name + ":";
    for (const auto& each : claim.status.allocation->results) {
      text += " " + each.driver + "/" + each.pool + "/" + each.device;
    }
    text += "; ";
  }
  return text;
}

std::string Solve(const std::string& text) {
  return TextOf(AllocateClaims(Read(text)));
}

/// The claim as it is read when it was written.
ResourceClaim Again(const ResourceClaim& claim) {
  AllocationInput input = Read(EncodeResourceClaim(claim));
  if (input.claims.size() != 1) return {};
  return input.claims[0];
}

TEST(OldClaims, NeedTheirObjectsAL117) {
  const std::string all = Slice("s1", "a", "{name: i1}") +
                          Parameters(
                              "driverRequests: [{driverName: a, requests: "
                              "[{namedResources: {selector: 'true'}}]}]") +
                          Claim("c");
  EXPECT_EQ(Solve(all),
            "NoSolution: claim default/c: ResourceClass s is missing");
  EXPECT_EQ(Solve(all + Class()), "c: a/n1/i1; ");
  EXPECT_EQ(Solve(Slice("s1", "a", "{name: i1}") + Class() + Claim("c")),
            "NoSolution: claim default/c: ResourceClaimParameters default/p "
            "is missing");
  EXPECT_EQ(Solve(all + Object("ResourceClass", "s", "driverName: a")),
            "BadInput: claim default/c: ResourceClass s has no structured "
            "parameters: the controller of driver a allocates its claims");
}

TEST(OldClaims, AreWrittenInTheirOldFormAL124) {
  const std::string requests = R"(driverRequests:
- driverName: b
  requests: [{namedResources: {selector: 'true'}}]
- driverName: a
  vendorParameters: {claim: 1}
  requests:
  - {vendorParameters: {request: 1}, namedResources: {selector: 'true'}}
  - {namedResources: {selector: 'true'}}
)";
  const auto result = AllocateClaims(
      Read(Slice("s1", "a", "{name: i1}, {name: i2}") +
           Slice("s2", "b", "{name: j1}") +
           Class("parametersRef: {apiGroup: resource.k8s.io, kind: "
                 "ResourceClassParameters, name: q, namespace: default}") +
           Object("ResourceClassParameters", "q",
                  "vendorParameters: [{driverName: a, parameters: "
                  "{class: [1]}}]") +
           Parameters(requests) + Claim("c")));
  EXPECT_EQ(TextOf(result), "c: b/n1/j1 a/n1/i1 a/n1/i2; ");
  EXPECT_EQ(
      EncodeResourceClaim(result.claims.at(0)),
      R"({"apiVersion":"resource.k8s.io/v1alpha2","kind":"ResourceClaim",)"
      R"("metadata":{"name":"c","namespace":"default","finalizers":)"
      R"(["dra.k8s.io/delete-protection"]},"spec":)"
      R"({"resourceClassName":"s","parametersRef":{"apiGroup":)"
      R"("resource.k8s.io","kind":"ResourceClaimParameters","name":"p"}},)"
      R"("status":{"driverName":"a","allocation":{"resourceHandles":)"
      R"([{"driverName":"b","structuredData":{"nodeName":"n1","results":)"
      R"([{"namedResources":{"name":"j1"}}]}},{"driverName":"a",)"
      R"("structuredData":{"vendorClassParameters":{"class":[1]},)"
      R"("vendorClaimParameters":{"claim":1},"nodeName":"n1","results":)"
      R"([{"vendorRequestParameters":{"request":1},"namedResources":)"
      R"({"name":"i1"}},{"namedResources":{"name":"i2"}}]}}],)"
      R"("availableOnNodes":{"nodeSelectorTerms":[{"matchExpressions":)"
      R"([{"key":"kubernetes.io/hostname","operator":"In","values":)"
      R"(["n1"]}]}]}}}})");
}

// From there on it is a claim of v1alpha2 like any other, whose drivers get
// what the handle says (OldDriversNode).
TEST(OldClaims, ReachTheirDriversByTheHandleAL125) {
  const auto result = AllocateClaims(
      Read(Slice("s1", "a", "{name: i1}") + Class() + Claim("c", false)));
  ASSERT_EQ(result.claims.size(), 1u);
  const AllocationResult& allocation = *result.claims[0].status.allocation;
  const ResourceClaim again = Again(result.claims[0]);
  EXPECT_EQ(again.status.allocation->resource_handles,
            allocation.resource_handles);
  const auto& handle = allocation.resource_handles.at("a").structured;
  ASSERT_TRUE(handle.has_value());
  EXPECT_EQ(handle->results.at(0).named_resource, "i1");
  EXPECT_EQ(allocation.resource_handles.at("a").data, "");
}

TEST(OldClaims, WithoutRequestsCallTheDriverOfTheClassAL127) {
  const auto result = AllocateClaims(
      Read(Class() + Parameters("shareable: true") + Claim("c")));
  EXPECT_EQ(TextOf(result), "c:; ");
  const std::map<std::string, ResourceHandle> handles = {{"a", {}}};
  EXPECT_EQ(result.claims.at(0).status.allocation->resource_handles, handles);
  EXPECT_EQ(Again(result.claims[0]).status.allocation->resource_handles,
            handles);
  EXPECT_EQ(EncodeResourceClaim(result.claims[0]).find("resourceHandles"),
            std::string::npos);
}

TEST(OldClaims, AreShareableIfTheirParametersSaySoAL129) {
  const std::string rest = Slice("s1", "a", "{name: i1}") + Class();
  const std::string requests =
      "driverRequests: [{driverName: a, requests: [{namedResources: "
      "{selector: 'true'}}]}]";
  const auto solve = [](const std::string& text) {
    const auto result = AllocateClaims(Read(text));
    EXPECT_EQ(TextOf(result), "c: a/n1/i1; ");
    const ResourceClaim again = Again(result.claims.at(0));
    EXPECT_EQ(again.status.allocation->shareable,
              result.claims[0].status.allocation->shareable);
    return again.status.allocation->shareable;
  };
  EXPECT_FALSE(solve(rest + Parameters(requests) + Claim("c")));
  EXPECT_TRUE(
      solve(rest + Parameters("shareable: true\n" + requests) + Claim("c")));
  EXPECT_TRUE(solve(rest + Claim("c", false)));
}

TEST(OldClaims, HoldTheDevicesOfTheirHandlesAL131) {
  const std::string rest = Slice("s1", "a", "{name: i1}, {name: i2}") + Class();
  const auto first = AllocateClaims(Read(rest + Claim("c", false)));
  ASSERT_EQ(TextOf(first), "c: a/n1/i1; ");
  AllocationInput input = Read(rest + Claim("d", false));
  input.claims.push_back(Again(first.claims[0]));
  ASSERT_TRUE(input.claims[1].status.allocation->results.empty());
  EXPECT_EQ(TextOf(AllocateClaims(input)), "d: a/n1/i2; ");
  input.slices[0].devices.pop_back();
  const auto none = AllocateClaims(input);
  ASSERT_EQ(none.refusals.size(), 1u);
  EXPECT_EQ(none.refusals[0].devices.at(0).reason, "busy");
  EXPECT_EQ(none.refusals[0].devices[0].detail, "default/c");
}

TEST(OldClaims, FindAnInstanceInTwoSlicesToBeAMistakeAL130) {
  const std::string rest = Class() + Claim("c", false);
  EXPECT_EQ(Solve(rest + Slice("s1", "a", "{name: i1}") +
                  Slice("s2", "a", "{name: i1}")),
            "HereNotNow: invalid resource pools were encountered: a/n1: "
            "duplicate device name 'i1'");
  // Slices of a driver and node are one pool, in the order of their names.
  EXPECT_EQ(Solve(rest + Slice("s2", "a", "{name: i1}") +
                  Slice("s1", "a", "{name: i2}")),
            "c: a/n1/i2; ");
}

TEST(OldClaims, StandBesideClaimsAndClassesOfTodayAL131) {
  // A DeviceClass may have the name of a ResourceClass.
  const std::string today = R"(---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: s}
spec: {selectors: [{cel: {expression: 'device.attributes["a"].model == "m"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: today}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: s}}]}}
)";
  EXPECT_EQ(Solve(Slice("s1", "a",
                        "{name: i1, attributes: [{name: model, string: k}, "
                        "{name: driver-version, version: 1.0.0}]}, "
                        "{name: i2, attributes: [{name: model, string: m}]}") +
                  Class() + Claim("c", false) + today),
            "c: a/n1/i1; today: a/n1/i2; ");
}

}  // namespace
}  // namespace devmgr
