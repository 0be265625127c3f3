// SPDX-License-Identifier: Apache-2.0
//
// Expressions in manifests, compiled when they are read.
#include <devmgr/cel.h>
#include <devmgr/manifests.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr {
namespace {

std::string Class(const std::string& expression) {
  return "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
         "metadata: {name: c}\nspec:\n  selectors:\n"
         "  - cel: {expression: '" +
         expression + "'}\n";
}

std::string Claim(const std::string& request, const std::string& more = "") {
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
         "metadata: {name: c}\nspec:\n  devices:\n    requests:\n"
         "    - name: r\n      exactly: {deviceClassName: c, " +
         request + "}\n" + more;
}

constexpr char kAllocated[] =
    "status: {allocation: {devices: {results: [{request: r, driver: a, pool: "
    "p, device: d}]}}}\n";

TEST(DecodeCheckedManifest, NamesTheExpressionThatDoesNotCompile) {
  EXPECT_TRUE(DecodeCheckedManifest(Class("device.driver == \"a\""), "f")
                  .errors.empty());
  const DecodedManifest manifest =
      DecodeCheckedManifest(Class("device.drivr == \"a\""), "f.yaml");
  ASSERT_EQ(manifest.errors.size(), 1u);
  EXPECT_TRUE(manifest.objects.empty());
  const ManifestProblem& error = manifest.errors[0];
  EXPECT_EQ(error.file, "f.yaml");
  EXPECT_EQ(error.line, 6);
  EXPECT_EQ(error.field, "spec.selectors[0].cel.expression");
  EXPECT_EQ(error.message,
            "line 1, column 7 of the expression: undefined field 'drivr'");
  EXPECT_EQ(error.excerpt,
            " | device.drivr == \"a\"\n"
            " | ......^");
  ASSERT_EQ(manifest.unusable.size(), 1u);
  EXPECT_EQ(manifest.unusable[0].object_kind, "DeviceClass");
  // Without the check it is read.
  EXPECT_TRUE(DecodeManifest(Class("device.drivr"), "f").errors.empty());
}

TEST(DecodeCheckedManifest, WantsEachKindInItsOwnLanguage) {
  const auto error = [](const std::string& text) {
    const DecodedManifest manifest = DecodeCheckedManifest(text, "f");
    return manifest.errors.empty() ? "" : manifest.errors[0].ToString();
  };
  const auto selector = [](const std::string& text) {
    return Claim("selectors: [{cel: {expression: '" + text + "'}}]");
  };
  EXPECT_EQ(error(selector("device.driver == \"a\"")), "");
  EXPECT_NE(error(selector("attributes.bool[\"x\"]")), "");
  EXPECT_NE(error(selector("device.driver")), "") << "it is no bool";
  const auto derived = [](const std::string& text) {
    return Claim("derivedAttributes: [{name: x/y, expression: '" + text +
                 "'}]") +
           "    constraints: [{matchAttribute: x/y}]\n";
  };
  EXPECT_EQ(error(derived("device.driver")), "");
  EXPECT_NE(error(derived("1.5")), "");
  const auto old = [](const std::string& text) {
    return "apiVersion: resource.k8s.io/v1alpha2\n"
           "kind: ResourceClaimParameters\nmetadata: {name: p}\n"
           "driverRequests: [{driverName: a, requests: [{namedResources: "
           "{selector: '" +
           text + "'}}]}]\n";
  };
  EXPECT_EQ(error(old("attributes.bool[\"x\"]")), "");
  EXPECT_NE(error(old("device.driver == \"a\"")), "");
}

TEST(DecodeCheckedManifest, OnlyRemarksOnWhatIsAllocated) {
  const std::string wrong = "selectors: [{cel: {expression: 'device.x'}}]";
  EXPECT_EQ(DecodeCheckedManifest(Claim(wrong), "f").errors.size(), 1u);
  const DecodedManifest allocated =
      DecodeCheckedManifest(Claim(wrong, kAllocated), "f");
  EXPECT_TRUE(allocated.errors.empty());
  EXPECT_EQ(allocated.objects.size(), 1u);
  ASSERT_EQ(allocated.warnings.size(), 1u);
  EXPECT_EQ(allocated.warnings[0].field,
            "spec.devices.requests[0].exactly.selectors[0].cel.expression");
  EXPECT_NE(allocated.warnings[0].excerpt, "");
}

TEST(DecodeCheckedManifest, SaysOfEachPlaceThatOneTextIsWrong) {
  std::string text;
  for (const char* name : {"a", "b"}) {
    std::string item = Class("devic");
    item.replace(item.find("name: c"), 7, std::string("name: ") + name);
    text += "---\n" + item;
  }
  const DecodedManifest manifest = DecodeCheckedManifest(text, "f");
  ASSERT_EQ(manifest.errors.size(), 2u);
  EXPECT_EQ(manifest.errors[0].message, manifest.errors[1].message);
  EXPECT_LT(manifest.errors[0].line, manifest.errors[1].line);
}

}  // namespace
}  // namespace devmgr
