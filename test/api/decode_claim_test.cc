// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "api/only_error.h"
#include "api/rule_cases.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A claim with these entries, in flow style, as its requests.
DecodedManifest DecodeRequests(const std::string& requests,
                               const std::string& version = "v1") {
  return DecodeClaim("spec: {devices: {requests: [" + requests + "]}}",
                     version);
}

ResourceClaim OnlyClaim(const DecodedManifest& manifest) {
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  if (manifest.objects.size() != 1) {
    ADD_FAILURE() << manifest.objects.size() << " objects";
    return {};
  }
  return std::get<ResourceClaim>(manifest.objects[0].object);
}

TEST(DecodeResourceClaim, GivesRequestsTheirDefaults) {
  const ResourceClaim claim =
      OnlyClaim(DecodeRequests("{name: r, exactly: {deviceClassName: gpu}}"));
  EXPECT_EQ(claim.metadata.ns, "default");
  ASSERT_THAT(claim.spec.requests, SizeIs(1));
  const DeviceRequest& request = claim.spec.requests[0];
  EXPECT_EQ(request.exactly->name, "r");
  EXPECT_EQ(request.exactly->allocation_mode, "ExactCount");
  EXPECT_EQ(request.exactly->count, 1);
  EXPECT_FALSE(request.admin_access);
  EXPECT_FALSE(claim.status.allocation.has_value());
}

TEST(DecodeResourceClaim, ReadsTheSameFromAllVersions) {
  const std::string exact =
      "deviceClassName: gpu, count: 3, adminAccess: true, selectors: [{cel: "
      "{expression: x}}]";
  const struct {
    const char* version;
    std::string request;
  } kCases[] = {{"v1", "{name: r, exactly: {" + exact + "}}"},
                {"v1beta2", "{name: r, exactly: {" + exact + "}}"},
                {"v1beta1", "{name: r, " + exact + "}"}};
  for (const auto& c : kCases) {
    const ResourceClaim claim = OnlyClaim(DecodeRequests(c.request, c.version));
    const DeviceRequest& request = claim.spec.requests[0];
    ASSERT_TRUE(request.exactly.has_value()) << c.version;
    EXPECT_EQ(request.exactly->device_class_name, "gpu");
    EXPECT_EQ(request.exactly->count, 3);
    EXPECT_THAT(request.exactly->selectors, ElementsAre("x"));
    EXPECT_TRUE(request.admin_access);
  }
}

TEST(DecodeResourceClaim, ReadsAlternativesFromAllVersions) {
  for (const char* version : {"v1", "v1beta2", "v1beta1"}) {
    const ResourceClaim claim = OnlyClaim(DecodeRequests(
        "{name: r, firstAvailable: [{name: a, deviceClassName: x, count: 2}, "
        "{name: b, deviceClassName: z, allocationMode: All}]}",
        version));
    const DeviceRequest& request = claim.spec.requests[0];
    EXPECT_FALSE(request.exactly.has_value());
    ASSERT_THAT(request.first_available, SizeIs(2));
    EXPECT_EQ(request.first_available[0].count, 2);
    EXPECT_EQ(request.first_available[1].name, "b");
    EXPECT_EQ(request.first_available[1].allocation_mode, "All");
  }
}

TEST(DecodeResourceClaim, AcceptsClaimsWithoutRequestsAndWithoutAllocation) {
  for (const char* body :
       {"", "spec: {}", "spec: {devices: {}}", "spec: {devices: null}",
        "spec: {devices: {requests: []}}\nstatus: {}",
        "status: {reservedFor: [{resource: pods, name: p, uid: u}]}"}) {
    const ResourceClaim claim = OnlyClaim(DecodeClaim(body));
    EXPECT_THAT(claim.spec.requests, IsEmpty());
    EXPECT_FALSE(claim.status.allocation.has_value());
  }
}

TEST(DecodeResourceClaim, TellsAnEmptyAllocationFromNone) {
  EXPECT_TRUE(OnlyClaim(DecodeClaim("status: {allocation: {}}"))
                  .status.allocation.has_value());
  EXPECT_FALSE(OnlyClaim(DecodeClaim("status: {allocation: null}"))
                   .status.allocation.has_value());
}

TEST(DecodeResourceClaim, RefusesBadRequests) {
  const struct {
    const char* request;
    const char* problem;
  } kCases[] = {
      {"{exactly: {deviceClassName: g}}", "requests[0].name: is required"},
      {"{name: R, exactly: {deviceClassName: g}}", "requests[0].name: 'R'"},
      {"{name: r}", "requests[0]: asks for nothing: 'exactly' or"},
      {"{name: r, deviceClassName: g}", "stand under 'exactly' since v1beta2"},
      {"{name: r, exactly: {}}", "exactly.deviceClassName: is required"},
      {"{name: r, exactly: {deviceClassName: 7}}",
       "exactly.deviceClassName: must be a string"},
      {"{name: r, exactly: {deviceClassName: G}}", "deviceClassName: 'G'"},
      {"{name: r, exactly: [1]}", "exactly: must be a map, is a list"},
      {"{name: r, exactly: {deviceClassName: g, count: 0}}",
       "exactly.count: 0 is out of range"},
      {"{name: r, exactly: {deviceClassName: g, count: -1}}", "-1 is out of"},
      {"{name: r, exactly: {deviceClassName: g, count: 1.5}}",
       "count: must be an integer, is the number 1.5"},
      {"{name: r, exactly: {deviceClassName: g, count: 9223372036854775808}}",
       "out of range"},
      {"{name: r, exactly: {deviceClassName: g, allocationMode: Some}}",
       "allocationMode: 'Some' is unknown"},
      {"{name: r, exactly: {deviceClassName: g, allocationMode: All, count: "
       "2}}",
       "count: must not be given with allocationMode All"},
      {"{name: r, exactly: {deviceClassName: g}, firstAvailable: [{name: a, "
       "deviceClassName: g}]}",
       "only one of the two"},
      {"{name: r, firstAvailable: [{deviceClassName: g}]}",
       "firstAvailable[0].name: is required"},
      {"{name: r, firstAvailable: [{name: a, deviceClassName: g}, {name: a, "
       "deviceClassName: g}]}",
       "firstAvailable[1].name: 'a' is the name of another alternative"},
      {"{name: r, firstAvailable: {}}", "firstAvailable: must be a list"},
      {"{name: r, exactly: {deviceClassName: g, selectors: [{}]}}",
       "selectors[0].cel: is required"},
      {"{name: r, exactly: {deviceClassName: g, selectors: [{cel: {}}]}}",
       "selectors[0].cel.expression: is required"},
      {"{name: r, exactly: {deviceClassName: g, adminAccess: 'yes'}}",
       "adminAccess: must be a boolean"},
      {"{name: r, exactly: {deviceClassName: g}}, {name: r, exactly: "
       "{deviceClassName: g}}",
       "requests[1].name: 'r' is the name of another request"},
      {"7", "requests[0]: must be a map, is the number 7"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeRequests(c.request)), HasSubstr(c.problem))
        << c.request;
  }
  EXPECT_THAT(OnlyError(DecodeRequests("{name: r}", "v1beta1")),
              HasSubstr("deviceClassName is required"));
  EXPECT_THAT(OnlyError(DecodeRequests(
                  "{name: r, exactly: {deviceClassName: g}}", "v1beta1")),
              HasSubstr("'exactly' is not known in v1beta1"));
}

TEST(DecodeResourceClaim, HoldsListsToTheirLimits) {
  EXPECT_THAT(OnlyError(DecodeRequests(Numbered(
                  33, "{name: r", ", exactly: {deviceClassName: g}},"))),
              HasSubstr("requests: has 33 entries, at most 32"));
  OnlyClaim(DecodeRequests(
      Numbered(32, "{name: r", ", exactly: {deviceClassName: g}},")));
  EXPECT_THAT(OnlyError(DecodeRequests(
                  "{name: r, firstAvailable: [" +
                  Numbered(9, "{name: a", ", deviceClassName: g},") + "]}")),
              HasSubstr("has 9 entries, at most 8"));
  EXPECT_THAT(OnlyError(DecodeRequests(
                  "{name: r, exactly: {deviceClassName: g, selectors: [" +
                  Numbered(33, "{cel: {expression: x", "}},") + "]}}")),
              HasSubstr("has 33 entries, at most 32"));
  EXPECT_THAT(OnlyError(DecodeRequests(
                  "{name: r, exactly: {deviceClassName: g, selectors: [{cel: "
                  "{expression: " +
                  std::string(10241, 'x') + "}}]}}")),
              HasSubstr("has 10241 bytes, at most 10240"));
  EXPECT_THAT(
      OnlyError(DecodeClaim(
          "status: {allocation: {devices: {results: [" +
          Numbered(33, "{request: r, driver: d, pool: p, device: d", "},") +
          "]}}}")),
      HasSubstr("results: has 33 entries, at most 32"));
  EXPECT_THAT(
      OnlyError(DecodeClaim(
          "status: {reservedFor: [" +
          Numbered(257, "{resource: pods, name: p, uid: u", "},") + "]}")),
      HasSubstr("reservedFor: has 257 entries, at most 256"));
}

TEST(DecodeResourceClaim, RefusesBadStatus) {
  const struct {
    const char* status;
    const char* problem;
  } kCases[] = {
      {"{allocation: {devices: {results: [{driver: d, pool: p, device: d}]}}}",
       "results[0].request: is required"},
      {"{allocation: {devices: {results: [{request: a/b/c, driver: d, pool: p, "
       "device: d}]}}}",
       "results[0].request: 'b/c' is not a DNS label"},
      {"{allocation: {devices: {results: [{request: r, driver: D, pool: p, "
       "device: d}]}}}",
       "results[0].driver: 'D': invalid DRA driver name"},
      {"{allocation: {devices: {results: [{request: r, driver: d, pool: p//q, "
       "device: d}]}}}",
       "results[0].pool: 'p//q' is not a pool name"},
      {"{allocation: {devices: {results: [{request: r, driver: d, pool: p, "
       "device: a.b}]}}}",
       "results[0].device: 'a.b' is not a DNS label"},
      {"{allocation: []}", "status.allocation: must be a map, is a list"},
      {"{reservedFor: [{resource: pods, name: p}]}",
       "reservedFor[0].uid: is required"},
      {"{reservedFor: [{resource: pods, name: p, uid: u}, {resource: pods, "
       "name: q, uid: u}]}",
       "reservedFor[1].uid: 'u' is the uid of another consumer"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeClaim(std::string("status: ") + c.status)),
                HasSubstr(c.problem))
        << c.status;
  }
}

TEST(DecodeResourceClaim, ChecksNameAndNamespace) {
  EXPECT_THAT(OnlyError(DecodeManifest("apiVersion: resource.k8s.io/v1\nkind: "
                                       "ResourceClaim\nmetadata: {name: A}\n",
                                       "c.yaml")),
              HasSubstr("c.yaml:3: metadata.name: 'A' is not a DNS subdomain"));
  EXPECT_THAT(OnlyError(DecodeManifest(
                  "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
                  "metadata: {name: a, namespace: b.c}\n",
                  "c.yaml")),
              HasSubstr("metadata.namespace: 'b.c' is not a DNS label"));
}

TEST(DecodeResourceClaimTemplate, RequiresASpecAndReadsTheInnerOne) {
  const auto decode = [](const std::string& body, const std::string& version) {
    return DecodeManifest("apiVersion: resource.k8s.io/" + version +
                              "\nkind: ResourceClaimTemplate\nmetadata: {name: "
                              "t}\n" +
                              body,
                          "t.yaml");
  };
  EXPECT_THAT(OnlyError(decode("", "v1")), HasSubstr("spec: is required"));
  const DecodedManifest manifest = decode(
      "spec: {spec: {devices: {requests: [{name: r, deviceClassName: g}]}}}\n",
      "v1beta1");
  ASSERT_THAT(manifest.objects, SizeIs(1));
  const auto& claim_template =
      std::get<ResourceClaimTemplate>(manifest.objects[0].object);
  EXPECT_EQ(claim_template.metadata.ns, "default");
  EXPECT_EQ(claim_template.spec.requests[0].exactly->device_class_name, "g");
  EXPECT_THAT(OnlyError(decode(
                  "spec: {spec: {devices: {requests: [{name: r}]}}}\n", "v1")),
              HasSubstr("t.yaml:4: spec.spec.devices.requests[0]: asks"));
}

TEST(DecodeDeviceClass, ChecksTheExtendedResourceName) {
  const auto decode = [](const std::string& name) {
    return DecodeManifest(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
        "metadata: {name: c}\nspec:\n  extendedResourceName: " +
            name + "\n",
        "class.yaml");
  };
  EXPECT_THAT(decode("example.com/gpu").objects, SizeIs(1));
  EXPECT_THAT(decode("null").objects, SizeIs(1));
  for (const char* bad :
       {"gpu", "''", "kubernetes.io/gpu", "requests.a.com/gpu", "a.com/-x",
        "deviceclass.resource.kubernetes.io/gpu"}) {
    EXPECT_THAT(OnlyError(decode(bad)),
                HasSubstr("class.yaml:5: spec.extendedResourceName: "))
        << bad;
  }
}

TEST(DecodeDeviceClass, WarnsWhenThereIsNoImplicitName) {
  const auto decode = [](std::size_t length) {
    return DecodeManifest(
        "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceClass\n"
        "metadata:\n  name: " +
            std::string(length, 'a') + "\n",
        "class.yaml");
  };
  EXPECT_THAT(decode(63).warnings, IsEmpty());
  const DecodedManifest manifest = decode(64);
  EXPECT_THAT(manifest.objects, SizeIs(1));
  ASSERT_THAT(manifest.warnings, SizeIs(1));
  EXPECT_THAT(manifest.warnings[0].ToString(),
              testing::AllOf(HasSubstr("class.yaml:4: metadata.name: "),
                             HasSubstr("64 characters"),
                             HasSubstr("set extendedResourceName")));
}

}  // namespace
}  // namespace devmgr
