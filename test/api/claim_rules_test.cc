// SPDX-License-Identifier: Apache-2.0
//
// The rules of claims, templates and classes: what breaks one is an error with
// its place, or a warning once the claim is allocated. A number such as AL-010
// names a scenario of allocation.
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

constexpr const char* kAllocated =
    "\nstatus: {allocation: {devices: {results: [{request: q, driver: d, pool: "
    "p, device: g}]}}}";

/// What is in `spec.devices` besides a request `q`, and a request `r` with the
/// alternatives `s` and `t`.
std::string Devices(const std::string& fields) {
  return "spec: {devices: {requests: [{name: q, exactly: {deviceClassName: "
         "c}}, {name: r, firstAvailable: [{name: s, deviceClassName: c}, "
         "{name: t, deviceClassName: c}]}], " +
         fields + "}}";
}

/// A claim with one request, which has these fields besides its class.
std::string Request(const std::string& fields) {
  return "spec: {devices: {requests: [{name: q, exactly: {deviceClassName: "
         "c, " +
         fields + "}}]}}";
}

/// An error of a claim that is not allocated, and a warning of one that is.
void ExpectProblem(const std::string& body, const std::string& problem) {
  EXPECT_THAT(OnlyError(DecodeClaim(body)), HasSubstr(problem)) << body;
  const DecodedManifest allocated = DecodeClaim(body + kAllocated);
  ExpectFine(allocated, body);
  ASSERT_THAT(allocated.warnings, SizeIs(1)) << body;
  EXPECT_THAT(allocated.warnings[0].ToString(), HasSubstr(problem));
}

TEST(ClaimRules, Tolerations) {
  const std::vector<RuleCase> kCases = {
      {"{key: -a}",
       "claim.yaml:4: spec.devices.requests[0].exactly.tolerations[0].key: "
       "'-a' is not a qualified name"},
      {"{}", "tolerations[0].key: is required with operator Equal"},
      {"{key: a, operator: Is}",
       "tolerations[0].operator: 'Is' is unknown; 'Equal' and 'Exists' are"},
      {"{key: a, operator: 7}", "tolerations[0].operator: must be a string"},
      {"{key: a, operator: Exists, value: b}",
       "tolerations[0].value: must not be given with operator Exists"},
      {"{key: a, value: -b}", "tolerations[0].value: '-b' is not a label's"},
      {"{key: a, effect: Some}", "tolerations[0].effect: 'Some' is unknown"},
      {"{key: a, effect: []}", "tolerations[0].effect: must be a string"},
      {"{key: a, tolerationSeconds: 1.5}",
       "tolerations[0].tolerationSeconds: must be an integer"},
      {Numbered(17, "{key: a", "},"),
       "tolerations: has 17 entries, at most 16"},
  };
  for (const RuleCase& c : kCases) {
    ExpectProblem(Request("tolerations: [" + c.text + "]"), c.problem);
  }
}

// AL-050
TEST(ClaimRules, TolerationsHaveWildcards) {
  const DecodedManifest manifest = DecodeClaim(Request(
      "tolerations: [{operator: Exists}, {key: a, operator: '', effect: ''}, "
      "{key: a, value: b, tolerationSeconds: -1}]"));
  ExpectFine(manifest, "wildcards");
  EXPECT_THAT(std::get<ResourceClaim>(manifest.objects.at(0).object)
                  .spec.requests.at(0)
                  .exactly->tolerations,
              ElementsAre(DeviceToleration{"", "Exists", "", "", std::nullopt},
                          DeviceToleration{"a", "Equal", "", "", std::nullopt},
                          DeviceToleration{"a", "Equal", "b", "", -1}));
}

TEST(ClaimRules, CapacityRequests) {
  const std::vector<RuleCase> kCases = {
      {"{requests: {a-b: 1}}",
       "exactly.capacity.requests[a-b]: 'a-b' is not an attribute name"},
      {"{requests: {a: some}}", "requests[a]: 'some' is not a quantity"},
      {"{requests: {a: -1}}", "requests[a]: '-1' is negative"},
      {"{requests: {a: null}}", "requests[a]: is required"},
      {"{requests: {a: 10E}}", "requests[a]: '10E' is more than"},
      {"{requests: [a]}", "capacity.requests: must be a map, is a list"},
      {"7", "exactly.capacity: must be a map, is the number 7"},
  };
  for (const RuleCase& c : kCases) {
    ExpectProblem(Request("capacity: " + c.text), c.problem);
  }
}

TEST(ClaimRules, DerivedAttributes) {
  const auto claim = [](const std::string& list,
                        const std::string& constraint) {
    return "spec: {devices: {requests: [{name: q, exactly: {deviceClassName: "
           "c, derivedAttributes: [" +
           list + "]}}, {name: o, exactly: {deviceClassName: c}}], " +
           "constraints: [{matchAttribute: x/y" + constraint + "}]}}";
  };
  const std::vector<RuleCase> kCases = {
      {"{expression: '1'}", "derivedAttributes[0].name: is required"},
      {"{name: b, expression: '1'}", "[0].name: 'b' has no domain"},
      {"{name: x/y}", "derivedAttributes[0].expression: is required"},
      {"{name: x/y, expression: '" + std::string(10241, '1') + "'}",
       "[0].expression: has 10241 bytes, at most 10240"},
      {"{name: x/y, expression: '1'}, {name: x/y, expression: '2'}",
       "[1].name: 'x/y' is the name of another attribute"},
      {"{name: x/z, expression: '1'}",
       "[0].name: no matchAttribute or distinctAttribute of a constraint for "
       "request 'q' is 'x/z'"},
  };
  for (const RuleCase& c : kCases) {
    const DecodedManifest manifest = DecodeClaim(claim(c.text, ""));
    ASSERT_FALSE(manifest.errors.empty()) << c.text;
    EXPECT_THAT(manifest.errors[0].ToString(), HasSubstr(c.problem)) << c.text;
    ExpectFine(DecodeClaim(claim(c.text, "") + kAllocated), c.text);
  }
  const std::string good = "{name: x/y, expression: '1'}";
  ExpectFine(DecodeClaim(claim(good, "")), "for all requests");
  ExpectFine(DecodeClaim(claim(good, ", requests: [q]")), "for this one");
  ExpectProblem(claim(good, ", requests: [o]"), "for request 'q' is 'x/y'");
}

TEST(ClaimRules, DerivedAttributesOfAlternatives) {
  const auto claim = [](const std::string& requests) {
    return "spec: {devices: {requests: [{name: r, firstAvailable: [{name: s, "
           "deviceClassName: c}, {name: t, deviceClassName: c, "
           "derivedAttributes: [{name: x/y, expression: '1'}]}]}], "
           "constraints: [{distinctAttribute: x/y, requests: [" +
           requests + "]}]}}";
  };
  ExpectFine(DecodeClaim(claim("r")), "all alternatives");
  ExpectFine(DecodeClaim(claim("r/t")), "this alternative");
  ExpectProblem(claim("r/s"),
                "requests[0].firstAvailable[1].derivedAttributes[0].name: no "
                "matchAttribute or distinctAttribute of a constraint for "
                "request 'r/t' is 'x/y'");
}

// AL-010
TEST(ClaimRules, UnknownFutureParts) {
  EXPECT_THAT(OnlyError(DecodeClaim(Request("selectors: [{}]"))),
              HasSubstr("exactly.selectors[0].cel: is required"));
  EXPECT_THAT(OnlyError(DecodeClaim(Request("selectors: [{cel: {}}]"))),
              HasSubstr("selectors[0].cel.expression: is required"));
  EXPECT_THAT(OnlyError(DecodeClaim(Request("allocationMode: future-mode"))),
              HasSubstr("exactly.allocationMode: 'future-mode' is unknown"));
  ExpectProblem(Devices("constraints: [{}]"),
                "spec.devices.constraints[0]: has neither matchAttribute nor");
}

// AL-076
TEST(ClaimRules, LongExpressions) {
  const auto claim = [](int length) {
    return Request("selectors: [{cel: {expression: '" +
                   std::string(static_cast<std::size_t>(length), '1') + "'}}]");
  };
  ExpectFine(DecodeClaim(claim(10240)), "10240");
  EXPECT_THAT(OnlyError(DecodeClaim(claim(10241))),
              HasSubstr("has 10241 bytes, at most 10240 are allowed"));
}

// AL-029
TEST(ClaimRules, AdminAccessIsToldFromItsAbsence) {
  for (const auto& [text, says] :
       {std::pair{"adminAccess: false", true}, std::pair{"count: 1", false},
        std::pair{"adminAccess: true", true}}) {
    const DecodedManifest manifest = DecodeClaim(Request(text));
    ExpectFine(manifest, text);
    EXPECT_EQ(std::get<ResourceClaim>(manifest.objects.at(0).object)
                  .spec.requests.at(0)
                  .says_admin_access,
              says)
        << text;
  }
  ExpectProblem(
      "spec: {devices: {requests: [{name: r, firstAvailable: [{name: s, "
      "deviceClassName: c, adminAccess: true}]}]}}",
      "firstAvailable[0].adminAccess: is not known in alternatives");
}

TEST(ClaimRules, Constraints) {
  const std::vector<RuleCase> kCases = {
      {"{matchAttribute: a/b, distinctAttribute: a/b}",
       "spec.devices.constraints[0]: has both matchAttribute and"},
      {"{matchAttribute: b}", "constraints[0].matchAttribute: 'b' has no"},
      {"{distinctAttribute: a/-}", "constraints[0].distinctAttribute: 'a/-'"},
      {"{matchAttribute: ''}", "constraints[0].matchAttribute: is required"},
      {"{matchAttribute: a/b, requests: [o]}",
       "constraints[0].requests[0]: 'o' is neither a request of the claim"},
      {"{matchAttribute: a/b, requests: [r/q]}",
       "constraints[0].requests[0]: 'r/q' is neither"},
      {"{matchAttribute: a/b, requests: [r/s/t]}",
       "constraints[0].requests[0]: 's/t' is not a DNS label"},
      {"{matchAttribute: a/b, requests: [q, q]}",
       "constraints[0].requests[1]: 'q' is in the list already"},
      {"{matchAttribute: a/b, requests: {}}",
       "constraints[0].requests: must be a list, is a map"},
      {Numbered(33, "{matchAttribute: a/b", "},"),
       "constraints: has 33 entries, at most 32"},
  };
  for (const RuleCase& c : kCases) {
    ExpectProblem(Devices("constraints: [" + c.text + "]"), c.problem);
  }
  ExpectFine(
      DecodeClaim(Devices(
          "constraints: [{matchAttribute: a/b, requests: [q, r, r/t]}]")),
      "references");
}

TEST(ClaimRules, Config) {
  const std::vector<RuleCase> kCases = {
      {"{}", "spec.devices.config[0].opaque: is required"},
      {"{opaque: {parameters: {}}}", "config[0].opaque.driver: is required"},
      {"{opaque: {driver: d}}", "config[0].opaque.parameters: is required"},
      {"{opaque: {driver: d, parameters: null}}",
       "config[0].opaque.parameters: is required"},
      {"{opaque: {driver: d, parameters: [1]}}",
       "config[0].opaque.parameters: must be a map, is a list"},
      {"{opaque: {driver: d, parameters: {a: " + std::string(10240, 'x') +
           "}}}",
       "config[0].opaque.parameters: has 10248 bytes as JSON, at most 10240"},
      {"{requests: [o], opaque: {driver: d, parameters: {}}}",
       "config[0].requests[0]: 'o' is neither"},
      {Numbered(33, "{opaque: {driver: d, parameters: {a: ", "}}},"),
       "config: has 33 entries, at most 32"},
  };
  for (const RuleCase& c : kCases) {
    ExpectProblem(Devices("config: [" + c.text + "]"), c.problem);
  }
}

TEST(ClaimRules, OldVersionsHaveTheSameRules) {
  for (const char* version : {"v1beta1", "v1alpha3"}) {
    const std::string before =
        "spec: {devices: {requests: [{name: q, deviceClassName: c, ";
    EXPECT_THAT(OnlyError(DecodeClaim(before + "tolerations: [{key: -a}]}]}}",
                                      version)),
                HasSubstr("requests[0].tolerations[0].key: '-a'"));
    const DecodedManifest manifest = DecodeClaim(
        before +
            "tolerations: [{operator: Exists}], capacity: {requests: {m: "
            "1Gi}}, derivedAttributes: [{name: x/y, expression: '1'}]}], "
            "constraints: [{matchAttribute: x/y}], config: [{opaque: {driver: "
            "d, parameters: {}}}]}, controller: c.example.com}",
        version);
    ExpectFine(manifest, version);
    const auto& spec =
        std::get<ResourceClaim>(manifest.objects.at(0).object).spec;
    EXPECT_THAT(spec.requests.at(0).exactly->tolerations, SizeIs(1));
    EXPECT_THAT(spec.requests.at(0).exactly->capacity_requests, SizeIs(1));
    EXPECT_THAT(spec.constraints, SizeIs(1));
    EXPECT_THAT(spec.config, SizeIs(1));
    EXPECT_EQ(spec.controller == "c.example.com",
              version == std::string("v1alpha3"));
  }
}

/// Of a claim whose allocation has these fields in its only result, and these
/// beside `devices`.
DecodedManifest DecodeResult(const std::string& fields,
                             const std::string& beside = "") {
  return DecodeClaim(
      "status: {allocation: {" + beside +
      "devices: {results: [{request: q, driver: d, pool: p, device: g, " +
      fields + "}]}}}");
}

void ExpectRemark(const DecodedManifest& manifest, const std::string& remark) {
  ExpectFine(manifest, remark);
  ASSERT_THAT(manifest.warnings, SizeIs(1)) << remark;
  EXPECT_THAT(manifest.warnings[0].ToString(),
              HasSubstr("claim.yaml:4: " + remark));
}

TEST(AllocationRules, AreRemarks) {
  const std::string kResult = "status.allocation.devices.results[0].";
  const std::vector<RuleCase> kCases = {
      {"shareID: A", "shareID: 'A' is not a UUID in lower case"},
      {"tolerations: [{key: a, operator: Is}]",
       "tolerations[0].operator: 'Is' is unknown"},
      {"bindingConditions: [a]", "bindingFailureConditions: is required"},
      {"consumedCapacity: {a: -1}", "consumedCapacity[a]: '-1' is negative"},
      {"consumedCapacity: []", "consumedCapacity: must be a map, is a list"},
  };
  for (const RuleCase& c : kCases) {
    ExpectRemark(DecodeResult(c.text), kResult + c.problem);
  }
  ExpectRemark(DecodeResult("", "allocationTimestamp: now, "),
               "status.allocation.allocationTimestamp: 'now' is not a time");
  ExpectRemark(DecodeResult("", "nodeSelector: {}, "),
               "status.allocation.nodeSelector.nodeSelectorTerms: is required");
}

TEST(AllocationRules, ConfigIsRemarkedOn) {
  const std::vector<RuleCase> kCases = {
      {"{opaque: {driver: d, parameters: {}}}", "[0].source: is required"},
      {"{source: FromHere, opaque: {driver: d, parameters: {}}}",
       "[0].source: 'FromHere' is unknown; 'FromClass' and 'FromClaim' are"},
      {"{source: FromClass}", "[0].opaque: is required"},
      {"{source: FromClass, requests: [A], opaque: {driver: d, parameters: "
       "{}}}",
       "[0].requests[0]: 'A' is not a DNS label"},
      {Numbered(65, "{source: FromClass, opaque: {driver: d, parameters: {a: ",
                "}}},"),
       ": has 65 entries, at most 64"},
  };
  for (const RuleCase& c : kCases) {
    ExpectRemark(DecodeClaim("status: {allocation: {devices: {config: [" +
                             c.text + "]}}}"),
                 "status.allocation.devices.config" + c.problem);
  }
}

TEST(AllocationRules, StatusOfDevicesIsRemarkedOn) {
  const std::vector<RuleCase> kCases = {
      {"device: h", "[0]: device 'h' of pool 'p' is not allocated"},
      {"device: g, shareID: 0f2c6a1e-0000-4000-8000-00000000000a",
       "[0]: device 'g' of pool 'p' is not allocated"},
      {"device: g}, {driver: d, pool: p, device: g",
       "[1]: is about the device of another entry"},
      {"device: g, data: 7", "[0].data: must be a map, is the number 7"},
      {"device: g, conditions: [{type: a, status: 'True', reason: R}]",
       "[0].conditions[0].lastTransitionTime: is required"},
      {"device: g, networkData: {ips: [192.0.2.1]}",
       "[0].networkData.ips[0]: '192.0.2.1' is not an address such as"},
      {"device: g, networkData: {ips: [192.0.2.1/33]}",
       "[0].networkData.ips[0]: '192.0.2.1/33' is not an address"},
      {"device: g, networkData: {interfaceName: " + std::string(257, 'e') + "}",
       "[0].networkData.interfaceName: has 257 bytes, at most 256"},
      {"device: g, networkData: {hardwareAddress: " + std::string(129, 'e') +
           "}",
       "[0].networkData.hardwareAddress: has 129 bytes, at most 128"},
  };
  for (const RuleCase& c : kCases) {
    ExpectRemark(
        DecodeClaim("status: {allocation: {devices: {results: [{request: q, "
                    "driver: d, pool: p, device: g}]}}, devices: [{driver: d, "
                    "pool: p, " +
                    c.text + "}]}"),
        "status.devices" + c.problem);
  }
}

TEST(AllocationRules, ConditionsHaveRules) {
  const std::vector<RuleCase> kCases = {
      {"type: -a", "type: '-a' is not a qualified name"},
      {"status: Perhaps", "status: 'Perhaps' is unknown"},
      {"reason: 1a", "reason: '1a' is not a reason"},
      {"reason: 'a:'", "reason: 'a:' is not a reason"},
      {"observedGeneration: -1", "observedGeneration: -1 is out of range"},
      {"message: " + std::string(32769, 'm'), "message: has 32769 bytes"},
  };
  for (const RuleCase& c : kCases) {
    std::string condition =
        "type: a, status: 'True', reason: R, lastTransitionTime: "
        "'2026-01-31T12:00:00Z'";
    const std::string key = c.text.substr(0, c.text.find(':'));
    if (const auto at = condition.find(key + ":"); at != std::string::npos) {
      const auto end = condition.find(',', at);
      condition.replace(at, end - at, c.text);
    } else {
      condition += ", " + c.text;
    }
    const DecodedManifest manifest = DecodeManifest(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\n"
        "metadata: {name: r}\nspec: {taint: {key: a, effect: None}}\n"
        "status: {conditions: [{" +
            condition + "}]}\n",
        "rule.yaml");
    ASSERT_THAT(manifest.warnings, SizeIs(1)) << c.text;
    EXPECT_THAT(manifest.warnings[0].ToString(),
                HasSubstr("rule.yaml:5: status.conditions[0]." + c.problem));
  }
}

TEST(ClassRules, Config) {
  const auto decode = [](const std::string& config) {
    return DecodeManifest(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
        "metadata: {name: c}\nspec: {config: [" +
            config + "]}\n",
        "class.yaml");
  };
  const std::vector<RuleCase> kCases = {
      {"{}", "class.yaml:4: spec.config[0].opaque: is required"},
      {"{opaque: {driver: D, parameters: {}}}",
       "config[0].opaque.driver: 'D': invalid DRA driver name"},
      {"{opaque: {driver: d, parameters: text}}",
       "config[0].opaque.parameters: must be a map"},
      {Numbered(33, "{opaque: {driver: d, parameters: {a: ", "}}},"),
       "config: has 33 entries, at most 32"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(decode(c.text)), HasSubstr(c.problem)) << c.text;
  }
}

TEST(TemplateRules, AreThoseOfClaims) {
  EXPECT_THAT(OnlyError(DecodeManifest(
                  "apiVersion: resource.k8s.io/v1\nkind: "
                  "ResourceClaimTemplate\nmetadata: {name: t}\nspec:\n"
                  "  spec: {devices: {constraints: [{}]}}\n",
                  "t.yaml")),
              HasSubstr("t.yaml:5: spec.spec.devices.constraints[0]: has "
                        "neither"));
}

}  // namespace
}  // namespace devmgr
