// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "api/only_error.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A pod `p` with the text, indented by two, below `spec`, then `rest`.
DecodedManifest DecodeSpec(const std::string& spec,
                           const std::string& rest = "") {
  return DecodeManifest(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" + spec + rest,
      "pod.yaml");
}

Pod OnlyPod(const DecodedManifest& manifest) {
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  for (const MalformedPod& pod : manifest.malformed_pods) {
    ADD_FAILURE() << pod.problem.ToString();
  }
  if (manifest.objects.size() != 1) {
    ADD_FAILURE() << manifest.objects.size() << " objects";
    return {};
  }
  return std::get<Pod>(manifest.objects[0].object);
}

std::string OnlyMalformed(const DecodedManifest& manifest) {
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  EXPECT_THAT(manifest.objects, IsEmpty());
  if (manifest.malformed_pods.size() != 1) {
    ADD_FAILURE() << manifest.malformed_pods.size() << " malformed pods";
    return "";
  }
  EXPECT_EQ(manifest.malformed_pods[0].pod.metadata.name, "p");
  return manifest.malformed_pods[0].problem.ToString();
}

TEST(DecodePod, TakesLimitsAsRequestsPerResource) {
  const Pod pod =
      OnlyPod(DecodeSpec("  initContainers:\n  - name: i\n    resources:\n"
                         "      limits: {a.com/x: 1}\n"
                         "  containers:\n  - name: c\n    resources:\n"
                         "      limits: {cpu: 2, memory: 1Gi, a.com/x: '3'}\n"
                         "      requests: {cpu: 1}\n"));
  const ResourceRequirements& resources = pod.spec.containers[0].resources;
  EXPECT_EQ(resources.requests.at("cpu").whole, 1);
  EXPECT_EQ(resources.requests.at("memory").text, "1Gi");
  EXPECT_EQ(resources.requests.at("a.com/x").whole, 3);
  EXPECT_EQ(resources.limits.at("cpu").whole, 2);
  EXPECT_EQ(pod.spec.init_containers[0].resources.requests.at("a.com/x").whole,
            1);
}

TEST(DecodePod, TakesNullAsAbsent) {
  const Pod pod = OnlyPod(DecodeSpec(
      "  nodeName: null\n  priority:\n  initContainers: ~\n"
      "  resourceClaims:\n  containers:\n  - name: c\n    resources:\n"
      "      limits: {cpu: null, memory: 1Gi}\n      requests:\n"
      "      claims: null\n",
      "status: {extendedResourceClaimStatus: null, resourceClaimStatuses: "
      "}\n"));
  EXPECT_EQ(pod.spec.node_name, "");
  EXPECT_EQ(pod.spec.priority, 0);
  EXPECT_FALSE(pod.spec.containers[0].resources.limits.contains("cpu"));
  EXPECT_FALSE(pod.status.extended_resource_claim_status.has_value());
}

TEST(DecodePod, IgnoresUnknownFields) {
  OnlyPod(
      DecodeSpec("  volumes: [{name: v, emptyDir: {}}]\n  hostNetwork: 7\n"
                 "  containers:\n  - {name: c, image: [x], Resources: 1}\n",
                 "surprise: {a: [b]}\nstatus: {conditions: 7}\n"));
}

TEST(DecodePod, KeepsTheRestartPolicyOfSidecarsOnly) {
  const Pod pod = OnlyPod(DecodeSpec(
      "  initContainers:\n  - {name: a, restartPolicy: Always}\n"
      "  - {name: b}\n  containers:\n  - {name: c, restartPolicy: Always}\n"));
  EXPECT_EQ(pod.spec.init_containers[0].restart_policy, "Always");
  EXPECT_EQ(pod.spec.init_containers[1].restart_policy, "");
  EXPECT_EQ(pod.spec.containers[0].restart_policy, "");
}

TEST(DecodePod, KeepsWhatItsStatusIsMadeOf) {
  const Pod pod = OnlyPod(DecodeSpec(
      "  restartPolicy: Never\n  readinessGates: [{conditionType: a.com/b}]\n"
      "  containers:\n  - {name: c, image: busybox}\n",
      "status: {conditions: [{type: Ready, status: 'True'}, "
      "{type: a.com/b, status: 'False'}]}\n"));
  EXPECT_EQ(pod.spec.restart_policy, "Never");
  EXPECT_EQ(pod.spec.containers[0].image.view(), "busybox");
  ASSERT_EQ(pod.spec.readiness_gates.size(), 1u);
  EXPECT_EQ(pod.spec.readiness_gates[0], "a.com/b");
  ASSERT_EQ(pod.status.gate_conditions.size(), 1u);
  EXPECT_EQ(pod.status.gate_conditions.at("a.com/b"), "False");
  EXPECT_EQ(pod.generation, 0);
}

TEST(DecodePod, TakesNoOffenceAtWhatItsStatusIsMadeOf) {
  const Pod pod =
      OnlyPod(DecodeSpec("  restartPolicy: 7\n  readinessGates: [1, {a: b}]\n"
                         "  containers:\n  - {name: c, image: [x]}\n",
                         "status: {conditions: [1, {type: 2}]}\n"));
  EXPECT_EQ(pod.spec.restart_policy, "Always");
  EXPECT_TRUE(pod.spec.containers[0].image.empty());
}

TEST(DecodePod, DistinguishesQuotedAndPlainScalars) {
  EXPECT_EQ(OnlyPod(DecodeSpec("  containers: [{name: '1'}]\n"))
                .spec.containers[0]
                .name,
            "1");
  for (const char* scalar : {"1", "true", "1.5", "yes"}) {
    EXPECT_THAT(OnlyError(DecodeSpec(std::string("  containers: [{name: ") +
                                     scalar + "}]\n")),
                HasSubstr("pod.yaml:5: spec.containers[0].name: must be a "
                          "string"));
  }
  EXPECT_THAT(
      OnlyError(DecodeSpec("  priority: '1'\n  containers: [{name: c}]\n")),
      HasSubstr("spec.priority: must be an integer, is the string '1'"));
}

TEST(DecodePod, ReadsQuantitiesFromNumbersAndStrings) {
  const Pod pod = OnlyPod(DecodeSpec(
      "  containers:\n  - name: c\n    resources:\n      limits:\n"
      "        cpu: 0.5\n        memory: 1e3\n        a.com/a: 0x10\n"
      "        a.com/b: '2'\n        a.com/c: 1k\n        a.com/d: 1_000\n"));
  const auto& limits = pod.spec.containers[0].resources.limits;
  EXPECT_EQ(limits.at("cpu").nanos, 500'000'000);
  EXPECT_EQ(limits.at("memory").whole, 1000);
  EXPECT_EQ(limits.at("a.com/a").whole, 16);
  EXPECT_EQ(limits.at("a.com/b").whole, 2);
  EXPECT_EQ(limits.at("a.com/c").whole, 1000);
  EXPECT_EQ(limits.at("a.com/d").whole, 1000);
  for (const char* bad : {"true", "[1]", "{a: 1}", "''", ".inf", "1 Gi"}) {
    EXPECT_THAT(
        OnlyError(DecodeSpec("  containers:\n  - name: c\n    resources:\n"
                             "      limits:\n        cpu: " +
                             std::string(bad) + "\n")),
        HasSubstr("pod.yaml:9: spec.containers[0].resources.limits[cpu]: "));
  }
}

TEST(DecodePod, ReportsPriorityOutOfRange) {
  for (const char* bad :
       {"2147483648", "-2147483649", "99999999999999999999"}) {
    EXPECT_THAT(OnlyError(DecodeSpec("  priority: " + std::string(bad) +
                                     "\n  containers: [{name: c}]\n")),
                HasSubstr("out of range"));
  }
}

TEST(DecodePod, ReadsTheOldNestingOfClaimSources) {
  const Pod pod = OnlyPod(
      DecodeSpec("  containers: [{name: c}]\n  resourceClaims:\n"
                 "  - {name: a, source: {resourceClaimName: x}}\n"
                 "  - {name: b, source: {resourceClaimTemplateName: t}}\n"
                 "  - {name: d, source: null, resourceClaimName: z}\n"));
  EXPECT_EQ(pod.spec.resource_claims[0].resource_claim_name, "x");
  EXPECT_EQ(pod.spec.resource_claims[1].resource_claim_template_name, "t");
  EXPECT_EQ(pod.spec.resource_claims[2].resource_claim_name, "z");
}

TEST(DecodePod, RefusesSourcesInBothPlaces) {
  EXPECT_THAT(OnlyMalformed(
                  DecodeSpec("  containers: [{name: c}]\n  resourceClaims:\n"
                             "  - {name: a, resourceClaimName: x,\n"
                             "     source: {resourceClaimTemplateName: t}}\n")),
              HasSubstr("pod.yaml:8: spec.resourceClaims[0].source: "));
}

TEST(DecodePod, PassesClaimsWithoutSourceOn) {
  const Pod pod = OnlyPod(
      DecodeSpec("  containers: [{name: c}]\n  resourceClaims: [{name: a}]\n"));
  EXPECT_FALSE(pod.spec.resource_claims[0].resource_claim_name.has_value());
  EXPECT_FALSE(
      pod.spec.resource_claims[0].resource_claim_template_name.has_value());
}

constexpr const char* kGpuSpec =
    "  containers:\n  - name: c\n    resources: {limits: {a.com/gpu: 1}}\n";

TEST(DecodePod, ReadsBothSpellingsOfTheExtendedClaimStatus) {
  for (const char* mapping :
       {"requestMappings: [{containerName: c, resourceName: a.com/gpu, "
        "requestName: r}]",
        "requestMapping: [{containerName: c, extendedResourceName: a.com/gpu, "
        "requestName: r}]",
        "requestMappings: [{containerName: c, extendedResourceName: a.com/gpu, "
        "requestName: r}]"}) {
    const Pod pod = OnlyPod(DecodeSpec(
        kGpuSpec, std::string("status:\n  extendedResourceClaimStatus:\n"
                              "    resourceClaimName: x\n    ") +
                      mapping + "\n"));
    const auto& status = *pod.status.extended_resource_claim_status;
    ASSERT_THAT(status.request_mappings, SizeIs(1));
    EXPECT_EQ(status.request_mappings[0].resource_name, "a.com/gpu");
  }
}

TEST(DecodePod, RefusesBothSpellingsAtOnce) {
  EXPECT_THAT(
      OnlyError(DecodeSpec(
          kGpuSpec,
          "status:\n  extendedResourceClaimStatus:\n"
          "    resourceClaimName: x\n"
          "    requestMappings: [{containerName: c, resourceName: a.com/gpu, "
          "requestName: r}]\n    requestMapping: []\n")),
      HasSubstr("pod.yaml:12: status.extendedResourceClaimStatus."
                "requestMapping: 'requestMappings' is given as well"));
}

TEST(DecodePod, TellsProblemsOfTheStatusInItsOwnSpelling) {
  EXPECT_THAT(
      OnlyMalformed(DecodeSpec(
          kGpuSpec,
          "status:\n  extendedResourceClaimStatus:\n"
          "    resourceClaimName: x\n    requestMapping:\n"
          "    - containerName: c\n      extendedResourceName: a.com/nic\n"
          "      requestName: r\n")),
      HasSubstr("pod.yaml:13: status.extendedResourceClaimStatus."
                "requestMapping[0].extendedResourceName: 'a.com/nic' is not "
                "among the requests"));
}

TEST(DecodePod, RefusesDevicesInEphemeralContainers) {
  for (const char* resources :
       {"{claims: [{name: a}]}", "{limits: {a.com/gpu: 1}}",
        "{requests: {deviceclass.resource.kubernetes.io/gpu: 1}}"}) {
    EXPECT_THAT(OnlyMalformed(DecodeSpec(
                    "  containers: [{name: c}]\n  resourceClaims: [{name: a}]\n"
                    "  ephemeralContainers:\n  - name: e\n    resources: " +
                    std::string(resources) + "\n")),
                HasSubstr("pod.yaml:9: spec.ephemeralContainers[0].resources"));
  }
  OnlyPod(
      DecodeSpec("  containers: [{name: c}]\n"
                 "  ephemeralContainers: [{name: e, resources: {}}]\n"));
}

TEST(DecodePod, ReportsTheLineOfABrokenRule) {
  EXPECT_THAT(
      OnlyMalformed(DecodeSpec("  containers:\n  - name: c\n    resources:\n"
                               "      requests:\n        cpu: 1\n"
                               "        example.com/gpu: 2\n"
                               "      limits:\n        example.com/gpu: 1\n")),
      HasSubstr("pod.yaml:10: spec.containers[0].resources."
                "requests[example.com/gpu]: '2' must be equal to the "
                "limit '1'"));
}

TEST(DecodePod, TellsAllBrokenRulesInOneProblem) {
  const std::string problem =
      OnlyMalformed(DecodeSpec("  containers:\n  - name: A\n  - name: B\n"));
  EXPECT_THAT(problem, HasSubstr("pod.yaml:6: spec.containers[0].name: 'A'"));
  EXPECT_THAT(problem, HasSubstr("; spec.containers[1].name: 'B'"));
}

TEST(DecodePod, RequiresASpec) {
  EXPECT_THAT(
      OnlyError(DecodeManifest(
          "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "pod.yaml")),
      HasSubstr("spec: is required"));
  EXPECT_THAT(OnlyMalformed(DecodeSpec("  {}\n")),
              HasSubstr("spec.containers: at least one container"));
  EXPECT_THAT(OnlyError(DecodeSpec("  containers: [null]\n")),
              HasSubstr("spec.containers[0]: must be a map, is null"));
}

TEST(DecodePod, AcceptsAPodWithAMalformedNeighbour) {
  const DecodedManifest manifest = DecodeSpec(
      "  containers: [{name: A}]\n",
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: q, uid: u-1}\n"
      "spec: {containers: [{name: c}]}\n");
  EXPECT_THAT(manifest.malformed_pods, SizeIs(1));
  EXPECT_THAT(manifest.objects, SizeIs(1));
}

}  // namespace
}  // namespace devmgr
