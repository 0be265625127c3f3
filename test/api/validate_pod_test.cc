// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "api/pod.h"
#include "api/quantity.h"

namespace devmgr::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Quantity Q(const char* text) { return *ParseQuantity(text); }

/// A pod that uses everything there are rules for.
Pod GoodPod() {
  Pod pod;
  pod.metadata.name = "p";
  pod.metadata.ns = "default";
  Container init;
  init.name = "init";
  init.resources.limits["deviceclass.resource.kubernetes.io/gpu"] = Q("1");
  Container main;
  main.name = "main";
  main.resources.limits = {{"a.com/gpu", Q("2")}, {"cpu", Q("1")}};
  main.resources.requests = {{"cpu", Q("500m")}, {"memory", Q("1Gi")}};
  main.resources.claims = {{"x", "r1"}, {"x", "r2"}, {"y", ""}};
  pod.spec.init_containers = {init};
  pod.spec.containers = {main};
  pod.spec.resource_claims = {{"x", "claim-x", std::nullopt},
                              {"y", std::nullopt, "template-y"}};
  pod.status.resource_claim_statuses = {{"y", "claim-y"}};
  PodExtendedResourceClaimStatus status;
  status.resource_claim_name = "special";
  status.request_mappings = {
      {"init", "deviceclass.resource.kubernetes.io/gpu", "r-0"},
      {"main", "a.com/gpu", "r-1"},
      {"main", "a.com/gpu", "r-2"}};
  pod.status.extended_resource_claim_status = status;
  DefaultPod(pod);
  return pod;
}

std::vector<std::string> Problems(const Pod& pod) {
  std::vector<std::string> texts;
  for (const PodProblem& problem : ValidatePod(pod)) {
    texts.push_back(problem.field + ": " + problem.message);
  }
  return texts;
}

TEST(ValidatePod, AcceptsAGoodPod) {
  EXPECT_THAT(Problems(GoodPod()), IsEmpty());
}

struct BrokenPod {
  const char* name;
  std::function<void(Pod&)> breakIt;
  const char* problem;
};

class BrokenPodTest : public testing::TestWithParam<BrokenPod> {};

TEST_P(BrokenPodTest, IsRefusedForTheRightReason) {
  Pod pod = GoodPod();
  GetParam().breakIt(pod);
  const std::vector<std::string> problems = Problems(pod);
  ASSERT_EQ(problems.size(), 1u) << testing::PrintToString(problems);
  EXPECT_THAT(problems[0], HasSubstr(GetParam().problem));
}

ResourceRequirements& Main(Pod& pod) {
  return pod.spec.containers[0].resources;
}

PodExtendedResourceClaimStatus& Special(Pod& pod) {
  return *pod.status.extended_resource_claim_status;
}

const BrokenPod kNames[] = {
    {"PodName", [](Pod& p) { p.metadata.name = "A"; }, "metadata.name: 'A'"},
    {"Namespace", [](Pod& p) { p.metadata.ns = "a.b"; }, "metadata.namespace"},
    {"NoContainer",
     [](Pod& p) {
       p.spec.containers.clear();
       p.status.extended_resource_claim_status.reset();
     },
     "spec.containers: at least one container"},
    {"ContainerName",
     [](Pod& p) {
       p.spec.containers.push_back({"a.b", {}, ""});
     },
     "spec.containers[1].name: 'a.b' is not a DNS label"},
    {"ContainerNameTwice",
     [](Pod& p) {
       p.spec.containers.push_back({"main", {}, ""});
     },
     "spec.containers[1].name: 'main' is the name of another container"},
    {"ContainerNamedAsInitContainer",
     [](Pod& p) {
       p.spec.containers.push_back({"init", {}, ""});
     },
     "spec.containers[1].name: 'init' is the name of another container"},
};
const BrokenPod kResources[] = {
    {"FractionOfADevice",
     [](Pod& p) {
       Main(p).limits["b.com/x"] = Main(p).requests["b.com/x"] = Q("1500m");
     },
     "limits[b.com/x]: '1500m' is not an integer"},
    {"FractionUnderAnImplicitName",
     [](Pod& p) {
       const char* name = "deviceclass.resource.kubernetes.io/x";
       Main(p).limits[name] = Main(p).requests[name] = Q("0.5");
     },
     "kubernetes.io/x]: '0.5' is not an integer"},
    {"NegativeDevices",
     [](Pod& p) {
       Main(p).limits["b.com/x"] = Main(p).requests["b.com/x"] = Q("-1");
     },
     "limits[b.com/x]: '-1' is negative"},
    {"NegativeCpu", [](Pod& p) { Main(p).requests["cpu"] = Q("-1"); },
     "requests[cpu]: '-1' is negative"},
    {"RequestBelowLimit",
     [](Pod& p) { Main(p).requests["a.com/gpu"] = Q("1"); },
     "requests[a.com/gpu]: '1' must be equal to the limit '2'"},
    {"RequestWithoutLimit",
     [](Pod& p) { Main(p).requests["b.com/x"] = Q("1"); },
     "requests[b.com/x]: 'b.com/x' is requested without a limit"},
    {"ImplicitNameWithoutLimit",
     [](Pod& p) {
       Main(p).requests["deviceclass.resource.kubernetes.io/x"] = Q("1");
     },
     "is requested without a limit"},
    {"CpuAboveLimit", [](Pod& p) { Main(p).requests["cpu"] = Q("1001m"); },
     "requests[cpu]: '1001m' is more than the limit '1'"},
    {"HugePagesWithoutLimit",
     [](Pod& p) { Main(p).requests["hugepages-2Mi"] = Q("2Mi"); },
     "requests[hugepages-2Mi]: 'hugepages-2Mi' is requested without"},
    {"ResourceWithoutDomain", [](Pod& p) { Main(p).requests["gpu"] = Q("1"); },
     "requests[gpu]: 'gpu' is not a standard resource"},
    {"QuotaName", [](Pod& p) { Main(p).limits["requests.a.com/gpu"] = Q("1"); },
     "limits[requests.a.com/gpu]: 'requests.a.com/gpu' is not an extended "
     "resource name"},
};
const BrokenPod kClaims[] = {
    {"UnknownClaim",
     [](Pod& p) {
       Main(p).claims.push_back({"z", ""});
     },
     "spec.containers[0].resources.claims[3].name: 'z' is not the name"},
    {"ClaimWithoutName",
     [](Pod& p) {
       Main(p).claims.push_back({"", ""});
     },
     "claims[3].name: is required"},
    {"RequestTwice",
     [](Pod& p) {
       Main(p).claims.push_back({"x", "r1"});
     },
     "claims[3]: claim 'x' with request 'r1' is listed twice"},
    {"ClaimTwice",
     [](Pod& p) {
       Main(p).claims.push_back({"y", ""});
     },
     "claims[3]: claim 'y' is listed twice"},
    {"WholeAfterRequests",
     [](Pod& p) {
       Main(p).claims.push_back({"x", ""});
     },
     "claims[3]: claim 'x' is used as a whole and by request"},
    {"RequestAfterWhole",
     [](Pod& p) {
       Main(p).claims.push_back({"y", "r"});
     },
     "claims[3]: claim 'y' is used as a whole and by request"},
    {"Subrequest",
     [](Pod& p) {
       Main(p).claims.push_back({"x", "r/a"});
     },
     "claims[3].request: 'r/a' is not a DNS label"},
    {"PodClaimName",
     [](Pod& p) {
       p.spec.resource_claims.push_back({"A", "c", {}});
     },
     "spec.resourceClaims[2].name: 'A'"},
    {"PodClaimTwice",
     [](Pod& p) {
       p.spec.resource_claims.push_back({"x", "c", {}});
     },
     "spec.resourceClaims[2].name: 'x' is the name of another entry"},
    {"BothSources",
     [](Pod& p) {
       p.spec.resource_claims.push_back({"z", "c", "t"});
     },
     "spec.resourceClaims[2]: resourceClaimName and"},
    {"ClaimObjectName",
     [](Pod& p) { p.spec.resource_claims[0].resource_claim_name = ""; },
     "spec.resourceClaims[0].resourceClaimName: '' is empty"},
    {"TemplateName",
     [](Pod& p) {
       p.spec.resource_claims[1].resource_claim_template_name = "_";
     },
     "spec.resourceClaims[1].resourceClaimTemplateName: '_'"},
};
const BrokenPod kStatus[] = {
    {"StatusOfUnknownClaim",
     [](Pod& p) { p.status.resource_claim_statuses[0].name = "z"; },
     "status.resourceClaimStatuses[0].name: 'z' is not the name"},
    {"StatusTwice",
     [](Pod& p) {
       p.status.resource_claim_statuses.push_back({"y", {}});
     },
     "status.resourceClaimStatuses[1].name: 'y' is the name of another"},
    {"StatusClaimName",
     [](Pod& p) {
       p.status.resource_claim_statuses[0].resource_claim_name = "A";
     },
     "status.resourceClaimStatuses[0].resourceClaimName: 'A'"},
    {"NoMapping", [](Pod& p) { Special(p).request_mappings.clear(); },
     "requestMappings: at least one mapping"},
    {"NoClaimName", [](Pod& p) { Special(p).resource_claim_name = ""; },
     "status.extendedResourceClaimStatus.resourceClaimName: '' is empty"},
    {"UnknownContainer",
     [](Pod& p) { Special(p).request_mappings[1].container_name = "none"; },
     "requestMappings[1].containerName: 'none' is neither"},
    {"ResourceOfAnotherContainer",
     [](Pod& p) { Special(p).request_mappings[0].resource_name = "a.com/gpu"; },
     "requestMappings[0].resourceName: 'a.com/gpu' is not among the requests "
     "of container 'init'"},
    {"MappedRequestName",
     [](Pod& p) { Special(p).request_mappings[1].request_name = "r/1"; },
     "requestMappings[1].requestName: 'r/1' is not a DNS label"},
    {"MappingTwice",
     [](Pod& p) { Special(p).request_mappings[1].request_name = "r-2"; },
     "requestMappings[2]: the same mapping is listed twice"},
};

std::string NameOfBrokenPod(const testing::TestParamInfo<BrokenPod>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Names, BrokenPodTest, testing::ValuesIn(kNames),
                         NameOfBrokenPod);
INSTANTIATE_TEST_SUITE_P(Resources, BrokenPodTest,
                         testing::ValuesIn(kResources), NameOfBrokenPod);
INSTANTIATE_TEST_SUITE_P(Claims, BrokenPodTest, testing::ValuesIn(kClaims),
                         NameOfBrokenPod);
INSTANTIATE_TEST_SUITE_P(Status, BrokenPodTest, testing::ValuesIn(kStatus),
                         NameOfBrokenPod);

TEST(ValidatePod, AcceptsEqualAmountsInOtherSpellings) {
  Pod pod = GoodPod();
  Main(pod).requests["a.com/gpu"] = Q("2000m");
  EXPECT_THAT(Problems(pod), IsEmpty());
}

TEST(ValidatePod, AcceptsZeroOfAMappedResource) {
  Pod pod = GoodPod();
  Main(pod).limits["a.com/gpu"] = Main(pod).requests["a.com/gpu"] = Q("0");
  EXPECT_THAT(Problems(pod), IsEmpty());
}

TEST(ValidatePod, LeavesClaimsWithoutSourceToOthers) {
  Pod pod = GoodPod();
  pod.spec.resource_claims.push_back({"z", std::nullopt, std::nullopt});
  EXPECT_THAT(Problems(pod), IsEmpty());
}

TEST(ValidatePod, AcceptsAStatusThatNeedsNoClaim) {
  Pod pod = GoodPod();
  pod.status.resource_claim_statuses[0].resource_claim_name.reset();
  EXPECT_THAT(Problems(pod), IsEmpty());
}

TEST(ValidatePod, AcceptsNativeResourcesWithASlash) {
  Pod pod = GoodPod();
  Main(pod).requests["alpha.kubernetes.io/thing"] = Q("1");
  EXPECT_THAT(Problems(pod), IsEmpty());
}

}  // namespace
}  // namespace devmgr::api
