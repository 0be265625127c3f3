// SPDX-License-Identifier: Apache-2.0
//
// Claims of resource.k8s.io/v1alpha1 to v1alpha3, as far as a node needs them.
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "api/json_text.h"
#include "api/only_error.h"
#include "api/parser.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

DecodedManifest DecodeResource(const std::string& version,
                               const std::string& body,
                               const std::string& kind = "ResourceClaim") {
  return DecodeManifest("apiVersion: resource.k8s.io/" + version + "\nkind: " +
                            kind + "\nmetadata: {name: c}\n" + body + "\n",
                        "claim.yaml");
}

ResourceClaimStatus StatusOf(const std::string& version,
                             const std::string& status) {
  const DecodedManifest manifest = DecodeResource(version, "status: " + status);
  for (const auto& error : manifest.errors) ADD_FAILURE() << error.ToString();
  if (manifest.objects.size() != 1) return {};
  return std::get<ResourceClaim>(manifest.objects[0].object).status;
}

std::string ErrorOfStatus(const std::string& status) {
  SCOPED_TRACE(status);
  return OnlyError(DecodeResource("v1alpha2", "status: " + status));
}

std::string Json(const std::string& text) {
  return api::JsonText(*api::ParseText(text, false).documents.at(0));
}

TEST(DecodeResourceHandles, ReadsTheHandlesOfEachDriver) {
  const auto status = StatusOf(
      "v1alpha2",
      "{driverName: a.example.com, allocation: {resourceHandles: [{data: h1}, "
      "{driverName: b.example.com, data: h2}]}, reservedFor: [{resource: pods, "
      "name: p, uid: u}]}");
  ASSERT_TRUE(status.allocation.has_value());
  EXPECT_THAT(status.allocation->results, IsEmpty());
  const auto& handles = status.allocation->resource_handles;
  ASSERT_THAT(handles, SizeIs(2));
  EXPECT_EQ(handles.at("a.example.com").data, "h1");
  EXPECT_EQ(handles.at("b.example.com").data, "h2");
  EXPECT_THAT(status.reserved_for, SizeIs(1));
}

TEST(DecodeResourceHandles, WithoutHandlesTheClaimsDriverHasAnEmptyOne) {
  for (const char* version : {"v1alpha1", "v1alpha2"}) {
    const auto status =
        StatusOf(version, "{driverName: a.example.com, allocation: {}}");
    EXPECT_EQ(status.allocation->resource_handles.at("a.example.com"),
              ResourceHandle());
  }
}

TEST(DecodeResourceHandles, ReadsTheOneHandleOfV1alpha1) {
  const auto status =
      StatusOf("v1alpha1",
               "{driverName: a.example.com, allocation: {resourceHandle: h}}");
  EXPECT_EQ(status.allocation->resource_handles.at("a.example.com").data, "h");
}

TEST(DecodeResourceHandles, ReadsStructuredHandles) {
  const auto status = StatusOf(
      "v1alpha2",
      "{allocation: {resourceHandles: [{driverName: a.example.com, "
      "structuredData: {vendorClassParameters: {z: [1, true], a: x}, "
      "nodeName: node-1, results: [{vendorRequestParameters: {m: 4Gi}, "
      "namedResources: {name: gpu-0}}, {namedResources: {name: gpu-1}}]}}]}}");
  const auto& handle = status.allocation->resource_handles.at("a.example.com");
  ASSERT_TRUE(handle.structured.has_value());
  const StructuredResourceHandle& structured = *handle.structured;
  EXPECT_EQ(structured.vendor_class_parameters, R"({"a":"x","z":[1,true]})");
  EXPECT_EQ(structured.vendor_claim_parameters, "");
  EXPECT_EQ(structured.node_name, "node-1");
  EXPECT_THAT(
      structured.results,
      ElementsAre(StructuredResourceHandle::Result{R"({"m":"4Gi"})", "gpu-0"},
                  StructuredResourceHandle::Result{"", "gpu-1"}));
}

/// Whether an old claim, and one of today, with this node selector is for more
/// than one node.
bool IsForManyNodes(const std::string& requirements) {
  const std::string selector = "{nodeSelectorTerms: [{" + requirements + "}]}";
  const bool old =
      StatusOf("v1alpha2", "{driverName: d, allocation: {availableOnNodes: " +
                               selector + "}}")
          .allocation->many_nodes;
  EXPECT_EQ(StatusOf("v1", "{allocation: {nodeSelector: " + selector + "}}")
                .allocation->many_nodes,
            old);
  return old;
}

// Schedulers of Kubernetes 1.30 write the label; such claims used to be taken
// for network-attached.
TEST(DecodeResourceHandles, OneNodeIsMeantByNameOrByLabel) {
  EXPECT_FALSE(IsForManyNodes(
      "matchFields: [{key: metadata.name, operator: In, values: [node-1]}]"));
  EXPECT_FALSE(IsForManyNodes(
      "matchExpressions: [{key: zone, operator: In, values: [a, b]}, {key: "
      "kubernetes.io/hostname, operator: In, values: [node-1]}]"));
  EXPECT_TRUE(IsForManyNodes(
      "matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: "
      "[node-1, node-2]}]"));
  EXPECT_TRUE(IsForManyNodes(
      "matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, "
      "values: [node-1]}]"));
  EXPECT_TRUE(
      IsForManyNodes("matchExpressions: [{key: zone, operator: In, values: "
                     "[a]}]"));
  EXPECT_TRUE(IsForManyNodes(""));
}

std::string StructuredResults(int count) {
  std::string results;
  for (int i = 0; i < count; ++i) {
    results += "{namedResources: {name: gpu-" + std::to_string(i) + "}}, ";
  }
  return "{allocation: {resourceHandles: [{driverName: d, structuredData: "
         "{results: [" +
         results + "]}}]}}";
}

TEST(DecodeResourceHandles, AHandleHasAsManyResultsAsARequestMay) {
  const auto status = StatusOf("v1alpha2", StructuredResults(256));
  EXPECT_THAT(status.allocation->resource_handles.at("d").structured->results,
              SizeIs(256));
  EXPECT_THAT(ErrorOfStatus(StructuredResults(257)),
              HasSubstr("results: has 257 entries, at most 256 are allowed"));
}

TEST(DecodeResourceHandles, RefusesWhatCannotBe) {
  const struct {
    std::string status;
    const char* problem;
  } kCases[] = {
      {"{allocation: {}}", "status.driverName: is required"},
      {"{allocation: {resourceHandles: [{data: h}]}}",
       "status.driverName: is required"},
      {"{allocation: {resourceHandles: [{driverName: D}]}}",
       "resourceHandles[0].driverName: 'D'"},
      {"{allocation: {resourceHandles: [{driverName: d}, {driverName: d}]}}",
       "resourceHandles[1].driverName: 'd' is the driver of another handle"},
      {"{allocation: {resourceHandles: [{driverName: d, data: '" +
           std::string(16385, 'x') + "'}]}}",
       "data: has 16385 bytes, at most 16384"},
      {"{allocation: {resourceHandles: [{driverName: d, structuredData: "
       "{results: [{}]}}]}}",
       "results[0].namedResources: is required"},
      {"{allocation: {resourceHandles: [{driverName: d, structuredData: "
       "{vendorClaimParameters: '" +
           std::string(16384, 'x') + "'}}]}}",
       "vendorClaimParameters: has 16386 bytes"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ErrorOfStatus(c.status), HasSubstr(c.problem));
  }
}

TEST(DecodeResourceHandles, ReadsWhatTheClaimAsksFor) {
  const DecodedManifest claim = DecodeResource(
      "v1alpha2", "spec: {resourceClassName: gpu, allocationMode: Immediate}");
  EXPECT_THAT(claim.errors, IsEmpty());
  ASSERT_THAT(claim.objects, SizeIs(1));
  const auto& spec = std::get<ResourceClaim>(claim.objects[0].object).spec;
  EXPECT_EQ(spec.old, (OldClaimSpec{"gpu", std::nullopt, true}));
  const DecodedManifest claim_template =
      DecodeResource("v1alpha2", "spec: {spec: {resourceClassName: gpu}}",
                     "ResourceClaimTemplate");
  EXPECT_THAT(claim_template.errors, IsEmpty());
  ASSERT_THAT(claim_template.objects, SizeIs(1));
  EXPECT_TRUE(std::get<ResourceClaimTemplate>(claim_template.objects[0].object)
                  .spec.old.has_value());
  EXPECT_THAT(OnlyError(DecodeResource("v1alpha2", "spec: {}")),
              HasSubstr("spec.resourceClassName: is required"));
  // What was asked for is a remark once it is allocated.
  const DecodedManifest allocated = DecodeResource(
      "v1alpha2", "spec: {}\nstatus: {driverName: d, allocation: {}}");
  EXPECT_THAT(allocated.errors, IsEmpty());
  EXPECT_THAT(allocated.warnings, SizeIs(1));
}

TEST(DecodeResourceHandles, ReadsTheObjectsThatClaimsReferTo) {
  const auto index = [](const std::string& kind, const std::string& body,
                        const std::string& version = "v1alpha2") {
    const DecodedManifest manifest = DecodeResource(version, body, kind);
    EXPECT_THAT(manifest.errors, IsEmpty()) << kind;
    if (manifest.objects.empty()) {
      EXPECT_THAT(manifest.warnings, SizeIs(1));
      return std::string("skipped");
    }
    return std::to_string(manifest.objects[0].object.index());
  };
  EXPECT_EQ(index("ResourceClass", "driverName: d"), "7");
  EXPECT_EQ(index("ResourceClass", "driverName: d", "v1alpha1"), "7");
  EXPECT_EQ(index("ResourceClassParameters", ""), "8");
  EXPECT_EQ(index("ResourceClaimParameters", "shareable: true"), "9");
  EXPECT_EQ(
      index("ResourceSlice", "nodeName: n1\ndriverName: d\nnamedResources: {}"),
      "4");
  EXPECT_EQ(index("PodSchedulingContext", ""), "skipped");
  EXPECT_EQ(index("ResourceClaimParameters", "", "v1alpha1"), "skipped");
  EXPECT_EQ(index("ResourceClass", "driverName: d", "v1"), "skipped");
  EXPECT_EQ(index("DeviceClass", "", "v1alpha2"), "skipped");
}

TEST(DecodeV1alpha3, HasTheClaimsOfV1beta1AndPlainCapacities) {
  const DecodedManifest claim = DecodeResource(
      "v1alpha3",
      "spec: {devices: {requests: [{name: r, deviceClassName: gpu}]}}\n"
      "status: {allocation: {devices: {results: [{request: r, driver: d, pool: "
      "p, device: x}]}}}");
  EXPECT_THAT(claim.errors, IsEmpty());
  ASSERT_THAT(claim.objects, SizeIs(1));
  const auto& decoded = std::get<ResourceClaim>(claim.objects[0].object);
  EXPECT_EQ(decoded.spec.requests.at(0).exactly->device_class_name, "gpu");
  EXPECT_EQ(decoded.status.allocation->results.at(0).device, "x");
  const DecodedManifest slice = DecodeResource(
      "v1alpha3",
      "spec: {driver: d, nodeName: node-1, pool: {name: p, generation: 1, "
      "resourceSliceCount: 1}, devices: [{name: x, basic: {attributes: {a: "
      "{int: 1}}, capacity: {memory: 4Gi}}}]}",
      "ResourceSlice");
  EXPECT_THAT(slice.errors, IsEmpty());
  ASSERT_THAT(slice.objects, SizeIs(1));
  const auto& device =
      std::get<ResourceSlice>(slice.objects[0].object).devices.at(0);
  EXPECT_EQ(device.capacity.count("memory"), 1u);
}

TEST(JsonText, IsCompactAndInOrder) {
  EXPECT_EQ(Json("{b: [1, -2, 0x10, ~], a: {}}"),
            R"({"a":{},"b":[1,-2,16,null]})");
  EXPECT_EQ(Json("[true, no, 1.5, .inf, '1']"), R"([true,false,1.5,null,"1"])");
  EXPECT_EQ(Json("\"quote \\\" and\\nline\""), R"("quote \" and\nline")");
}

}  // namespace
}  // namespace devmgr
