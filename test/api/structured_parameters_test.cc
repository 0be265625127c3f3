// SPDX-License-Identifier: Apache-2.0
#include "api/structured_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/parser.h"
#include "api/problems.h"

namespace devmgr::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// An object, and the errors in it as texts.
template <typename T>
struct Read {
  T object;
  std::vector<std::string> errors;
};

template <typename Decode>
auto ReadText(const std::string& text, Decode decode) {
  const ParsedText parsed = ParseText(text, false);
  Problems problems("f");
  Read<decltype(decode(std::declval<const Field&>()))> read;
  if (parsed.documents.size() != 1) {
    read.errors.push_back("unreadable: " + parsed.error);
    return read;
  }
  read.object = decode(Field(*parsed.documents[0], "", problems));
  for (const ManifestProblem& each : problems.TakeErrors()) {
    read.errors.push_back(each.field + ": " + each.message);
  }
  return read;
}

auto ReadSlice(const std::string& instances) {
  return ReadText(
      "{metadata: {name: s}, nodeName: n1, driverName: a, namedResources: "
      "{instances: [" +
          instances + "]}}",
      DecodeNamedResources);
}

TEST(StructuredParameters, SlicesAreThoseOfAPoolNamedLikeTheNode) {
  const auto [slice, errors] = ReadSlice("{name: i1}, {name: i2.x-y}");
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(slice.driver, "a");
  EXPECT_EQ(slice.pool, "n1");
  EXPECT_EQ(slice.node_name, "n1");
  EXPECT_EQ(slice.pool_generation, 1);
  EXPECT_EQ(slice.pool_slice_count, 0);
  ASSERT_EQ(slice.devices.size(), 2);
  EXPECT_EQ(slice.devices[1].name, "i2.x-y");
}

// AL-120
TEST(StructuredParameters, AttributesAreOfSevenKinds) {
  const auto [slice, errors] = ReadSlice(
      "{name: i1, attributes: ["
      "{name: mem.example.com, quantity: 8Gi}, {name: b, bool: true},"
      "{name: i, int: -3}, {name: ids, intSlice: {ints: [1, 2]}},"
      "{name: s, string: text}, {name: t, stringSlice: {strings: [x, z]}},"
      "{name: driver-version, version: 1.10.0}]}");
  ASSERT_THAT(errors, IsEmpty());
  const SliceDevice& device = slice.devices.at(0);
  EXPECT_EQ(device.capacity.Find("mem.example.com")->value.text.str(), "8Gi");
  const auto is = [&](const char* name, const DeviceAttribute& value) {
    const DeviceAttribute* found = device.attributes.Find(name);
    EXPECT_TRUE(found != nullptr && *found == value) << name;
  };
  is("b", true);
  is("i", std::int64_t{-3});
  is("ids", RareVector<std::int64_t>({1, 2}));
  is("s", SharedText("text"));
  is("t", RareVector<SharedText>({SharedText("x"), SharedText("z")}));
  is("driver-version", DeviceVersion{SharedText("1.10.0")});
  EXPECT_EQ(device.attributes.size(), 6);
}

TEST(StructuredParameters, AListMayBeEmpty) {
  const auto [slice, errors] = ReadSlice(
      "{name: i1, attributes: [{name: ids, intSlice: {ints: []}}, {name: t, "
      "stringSlice: {}}]}");
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(slice.devices.at(0).attributes.size(), 2);
}

TEST(StructuredParameters, SlicesHaveRules) {
  const auto errors = [](const std::string& instances) {
    return ReadSlice(instances).errors;
  };
  EXPECT_THAT(errors("{name: i1}, {name: i1}"),
              ElementsAre("namedResources.instances[1].name: 'i1' is the name "
                          "of another instance"));
  EXPECT_THAT(errors("{name: i1, attributes: [{name: x, int: 1}, {name: x, "
                     "quantity: 1}]}"),
              ElementsAre("namedResources.instances[0].attributes[1].name: 'x' "
                          "is the name of another attribute"));
  EXPECT_THAT(
      errors("{name: i1, attributes: [{name: x}]}"),
      ElementsAre(
          "namedResources.instances[0].attributes[0]: has 0 values; exactly "
          "one of quantity, bool, int, intSlice, string, stringSlice, version "
          "is required"));
  EXPECT_THAT(
      errors("{name: i1, attributes: [{name: x, version: v1}]}"),
      ElementsAre("namedResources.instances[0].attributes[0].version: 'v1' is "
                  "not a semantic version 2.0.0"));
  EXPECT_EQ(errors("{name: I1}").size(), 1);
  EXPECT_EQ(errors("{name: i1, attributes: [{name: x_y, int: 1}]}").size(), 1);
  EXPECT_THAT(ReadText("{metadata: {name: s}, nodeName: n1, driverName: a}",
                       DecodeNamedResources)
                  .errors,
              ElementsAre(": has no namedResources, the only model that is "
                          "known"));
}

TEST(StructuredParameters, ClassesReferToParameters) {
  const auto [old_class, errors] = ReadText(
      "{metadata: {name: c}, driverName: a, structuredParameters: true, "
      "parametersRef: {apiGroup: g, kind: K, namespace: ns, name: p}, "
      "defaultClaimParametersRef: {kind: ConfigMap, name: d}}",
      DecodeResourceClass);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(old_class.driver, "a");
  EXPECT_TRUE(old_class.has_structured_parameters);
  EXPECT_EQ(old_class.parameters, (ParametersReference{"g", "K", "ns", "p"}));
  EXPECT_EQ(old_class.default_claim_parameters,
            (ParametersReference{"", "ConfigMap", "", "d"}));
  const auto classic =
      ReadText("{metadata: {name: c}, driverName: a}", DecodeResourceClass);
  EXPECT_FALSE(classic.object.has_structured_parameters);
  EXPECT_FALSE(classic.object.parameters.has_value());
}

TEST(StructuredParameters, ClassParametersKeepTheOrderOfFilters) {
  const auto [parameters, errors] = ReadText(
      "{metadata: {name: p, namespace: ns}, generatedFrom: {apiGroup: g, kind: "
      "K, name: x}, vendorParameters: [{driverName: a, parameters: {kind: P, "
      "z: [1, null]}}], filters: [{driverName: a, namedResources: {selector: "
      "'true'}}, {driverName: a, namedResources: {selector: 'false'}}]}",
      DecodeClassParameters);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(parameters.generated_from,
            (ParametersReference{"g", "K", "", "x"}));
  EXPECT_EQ(parameters.vendor_parameters.at("a"),
            R"({"kind":"P","z":[1,null]})");
  ASSERT_EQ(parameters.filters.size(), 2);
  EXPECT_EQ(parameters.filters[0].selector, "true");
  EXPECT_EQ(parameters.filters[1].selector, "false");
}

// AL-119
TEST(StructuredParameters, ClaimParametersKeepTheOrderOfRequests) {
  const auto [parameters, errors] = ReadText(
      "{metadata: {name: p, namespace: ns}, shareable: true, driverRequests: "
      "[{driverName: b, requests: []}, {driverName: a, vendorParameters: "
      "{count: 4, split: 2}, requests: [{vendorParameters: {x: 1}, "
      "namedResources: {selector: 'attributes.bool[\"x\"]'}}, {namedResources: "
      "{selector: 'true'}}]}]}",
      DecodeClaimParameters);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_TRUE(parameters.is_shareable);
  ASSERT_EQ(parameters.driver_requests.size(), 2);
  EXPECT_EQ(parameters.driver_requests[0].driver, "b");
  EXPECT_THAT(parameters.driver_requests[0].requests, IsEmpty());
  const auto& driver = parameters.driver_requests[1];
  EXPECT_EQ(driver.vendor_parameters, R"({"count":4,"split":2})");
  ASSERT_EQ(driver.requests.size(), 2);
  EXPECT_EQ(driver.requests[0].vendor_parameters, R"({"x":1})");
  EXPECT_EQ(driver.requests[0].selector, "attributes.bool[\"x\"]");
  EXPECT_EQ(driver.requests[1].vendor_parameters, "");
  const auto empty =
      ReadText("{metadata: {name: p, namespace: ns}}", DecodeClaimParameters);
  EXPECT_THAT(empty.errors, IsEmpty());
  EXPECT_FALSE(empty.object.is_shareable);
}

TEST(StructuredParameters, ParametersHaveRules) {
  const auto errors = [](const std::string& more) {
    return ReadText("{metadata: {name: p, namespace: ns}, " + more + "}",
                    DecodeClaimParameters)
        .errors;
  };
  EXPECT_THAT(errors("driverRequests: [{driverName: a, requests: [{}]}]"),
              ElementsAre("driverRequests[0].requests[0]: has no "
                          "namedResources, the only model that is known"));
  EXPECT_THAT(errors("driverRequests: [{driverName: a, requests: "
                     "[{namedResources: {}}]}]"),
              ElementsAre("driverRequests[0].requests[0].namedResources."
                          "selector: is required"));
  EXPECT_THAT(errors("driverRequests: [{requests: []}]"),
              ElementsAre("driverRequests[0].driverName: is required"));
  std::string many = "driverRequests: [{driverName: a, requests: [";
  for (int i = 0; i < 257; ++i) many += "{namedResources: {selector: x}},";
  EXPECT_THAT(errors(many + "]}]"),
              ElementsAre("driverRequests: has 257 requests in all, at most "
                          "256 are allowed"));
  EXPECT_THAT(
      ReadText("{metadata: {name: p, namespace: ns}, vendorParameters: "
               "[{driverName: a}, {driverName: a}]}",
               DecodeClassParameters)
          .errors,
      ElementsAre("vendorParameters[1].driverName: 'a' is the driver of "
                  "another entry"));
}

TEST(StructuredParameters, ClaimsNameAClass) {
  const auto [spec, errors] = ReadText(
      "{resourceClassName: c, parametersRef: {apiGroup: resource.k8s.io, kind: "
      "ResourceClaimParameters, name: p}, allocationMode: Immediate}",
      DecodeOldClaimSpec);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(spec.class_name, "c");
  EXPECT_EQ(spec.parameters->kind, "ResourceClaimParameters");
  EXPECT_TRUE(spec.is_immediate);
  EXPECT_FALSE(ReadText("{resourceClassName: c}", DecodeOldClaimSpec)
                   .object.is_immediate);
  EXPECT_THAT(ReadText("{allocationMode: Later}", DecodeOldClaimSpec).errors,
              ElementsAre("resourceClassName: is required",
                          ::testing::HasSubstr("allocationMode: 'Later'")));
}

}  // namespace
}  // namespace devmgr::api
