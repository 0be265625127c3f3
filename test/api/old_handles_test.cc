// SPDX-License-Identifier: Apache-2.0
#include "api/old_handles.h"

#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace devmgr::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Handles = std::map<std::string, ResourceHandle>;

Handles HandlesOf(const std::string& results, const std::string& config = "",
                  const std::string& version = "v1") {
  const DecodedManifest manifest = DecodeManifest(
      "apiVersion: resource.k8s.io/" + version +
          "\nkind: ResourceClaim\nmetadata: {name: c}\nstatus: {allocation: "
          "{nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: "
          "metadata.name, operator: In, values: [node-1]}]}]}, devices: "
          "{results: [" +
          results + "], config: [" + config + "]}}}\n",
      "claim.yaml");
  for (const auto& error : manifest.errors) ADD_FAILURE() << error.ToString();
  if (manifest.objects.size() != 1) return {};
  return std::get<ResourceClaim>(manifest.objects[0].object)
      .status.allocation->resource_handles;
}

std::string Result(const std::string& request, const std::string& device,
                   const std::string& more = "") {
  return "{request: " + request + ", driver: d, pool: p, device: " + device +
         more + "}";
}

std::string Config(const std::string& source, const std::string& requests,
                   const std::string& parameters) {
  return "{source: " + source + ", requests: [" + requests +
         "], opaque: {driver: d, parameters: " + parameters + "}}";
}

std::string WhyNot(const std::string& results, const std::string& config = "") {
  const Handles handles = HandlesOf(results, config);
  return handles.contains("d") ? std::string(WhyNotSayable(handles.at("d")))
                               : "no handle";
}

// AL-126
TEST(AddOldHandles, PutsWhatADriverIsToldIntoItsPlaces) {
  for (const char* version : {"v1", "v1beta2", "v1beta1", "v1alpha3"}) {
    const Handles handles = HandlesOf(
        Result("b/x", "dev-2") + "," + Result("a", "dev-1") +
            ", {request: a, driver: e, pool: p, device: dev-9}",
        Config("FromClass", "", "{k: class}") + "," +
            Config("FromClaim", "", "{k: claim}") + "," +
            Config("FromClaim", "b", "{k: b}") +
            ", {source: FromClaim, opaque: {driver: e, parameters: {k: e}}}",
        version);
    ASSERT_EQ(handles.size(), 2u) << version;
    const ResourceHandle& handle = handles.at("d");
    EXPECT_EQ(handle.data, "");
    EXPECT_EQ(WhyNotSayable(handle), "");
    ASSERT_TRUE(handle.structured.has_value());
    EXPECT_EQ(handle.structured->vendor_class_parameters, R"({"k":"class"})");
    EXPECT_EQ(handle.structured->vendor_claim_parameters, R"({"k":"claim"})");
    EXPECT_EQ(handle.structured->node_name, "node-1");
    EXPECT_THAT(
        handle.structured->results,
        ElementsAre(StructuredResourceHandle::Result{R"({"k":"b"})", "dev-2"},
                    StructuredResourceHandle::Result{"", "dev-1"}));
    EXPECT_EQ(handles.at("e").structured->vendor_claim_parameters,
              R"({"k":"e"})");
  }
}

TEST(AddOldHandles, TheSameOfAClassForEachRequestIsSaidOnce) {
  const std::string config = Config("FromClass", "a", "{k: 1}");
  const std::string results = Result("a", "x") + "," + Result("a", "z");
  const Handles handles = HandlesOf(results, config);
  EXPECT_EQ(handles.at("d").structured->vendor_class_parameters, R"({"k":1})");
  EXPECT_EQ(WhyNot(Result("a", "x") + "," + Result("b", "z"),
                   config + "," + Config("FromClass", "b", "{k: 1}")),
            "");
}

TEST(AddOldHandles, SaysWhyThereCanBeNone) {
  const std::string one = Result("a", "x");
  const struct {
    std::string results;
    std::string config;
    std::string why;
  } kCases[] = {
      {Result("a", "x", ", adminAccess: true"), "", "adminAccess"},
      {Result("a", "x", ", shareID: s"), "", "a shareID"},
      {Result("a", "x", ", consumedCapacity: {m: 1Gi}"), "",
       "consumed capacity"},
      {one + ", {request: a, driver: d, pool: q, device: x}", "",
       "two devices of the name 'x'"},
      {one, Config("FromClass", "", "{}") + "," + Config("FromClass", "", "{}"),
       "more than one opaque config of the class"},
      {one, Config("FromClaim", "", "{}") + "," + Config("FromClaim", "", "{}"),
       "more than one opaque config of the claim"},
      {Result("a/s", "x"),
       Config("FromClaim", "a", "{}") + "," + Config("FromClaim", "a/s", "{}"),
       "more than one opaque config of request 'a/s'"},
      {one + "," + Result("b", "z"), Config("FromClass", "b", "{}"),
       "opaque configs of classes that differ by request"},
  };
  for (const auto& c : kCases) EXPECT_EQ(WhyNot(c.results, c.config), c.why);
}

TEST(AddOldHandles, WithoutDevicesThereIsNone) {
  EXPECT_THAT(HandlesOf(""), IsEmpty());
}

TEST(WhyNotSayable, OtherHandlesAreSayable) {
  EXPECT_EQ(WhyNotSayable({}), "");
  EXPECT_EQ(WhyNotSayable({"h", {}}), "");
  EXPECT_EQ(WhyNotSayable({"", StructuredResourceHandle()}), "");
}

}  // namespace
}  // namespace devmgr::api
