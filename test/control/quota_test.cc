// SPDX-License-Identifier: Apache-2.0
#include "control/quota.h"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>

#include "api/quota.h"
#include "control/generated_claim.h"
#include "control/special_claim.h"
#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::control {
namespace {

constexpr char kE[] = "example.com/gpu";
constexpr char kImplicitName[] = "deviceclass.resource.kubernetes.io/c";
constexpr char kOfE[] = "requests.example.com/gpu";
constexpr char kOfImplicit[] = "requests.deviceclass.resource.kubernetes.io/c";
constexpr char kOfClass[] = "c.deviceclass.resource.k8s.io/devices";
constexpr char kOfClaims[] = "count/resourceclaims.resource.k8s.io";

DeviceSubRequest Wants(const std::string& device_class, std::int64_t count) {
  DeviceSubRequest wanted;
  wanted.device_class_name = device_class;
  wanted.allocation_mode = count > 0 ? "ExactCount" : "All";
  wanted.count = count;
  return wanted;
}

ResourceClaimSpec Spec(const DeviceSubRequest& wanted) {
  ResourceClaimSpec spec;
  spec.requests.emplace_back().exactly = wanted;
  return spec;
}

class QuotaTest : public testing::Test {
 protected:
  QuotaTest() { AddClass("c", kE); }

  void AddClass(const std::string& name, const std::string& resource) {
    DeviceClass item;
    item.metadata.name = name;
    item.extended_resource_name = resource;
    classes_.insert_or_assign({"", name},
                              std::make_shared<const DeviceClass>(item));
  }
  const Pod& Add(const Pod& pod) {
    objects_.pods.push_back(&pods_.emplace_back(pod));
    return pods_.back();
  }
  ResourceClaim& Add(const ResourceClaim& claim) {
    objects_.claims.push_back(&claims_.emplace_back(claim));
    return claims_.back();
  }
  /// A pod and the special claim that is made for it.
  ResourceClaim& AddByClaim(const Pod& pod, const std::string& name) {
    const auto special = BuildSpecialClaim(
        Add(pod), classes_, [](const ResourceName&) { return true; });
    ResourceClaim& claim = Add(special.value()->claim);
    claim.metadata.name = name;
    return claim;
  }
  ResourceClaim AClaim(const std::string& name,
                       const ResourceClaimSpec& spec) const {
    ResourceClaim claim = ClaimBuilder(name).NotAllocated();
    claim.spec = spec;
    return claim;
  }
  /// What KEP-5004 counts: a device of a plugin and one of a driver under the
  /// explicit name, one under the implicit name, one by a claim, one by a claim
  /// from a template.
  void AddFive() {
    Add(PodBuilder("plugin").Container("main").Requests(kE));
    AddByClaim(PodBuilder("driver").Container("main").Requests(kE), "s1");
    AddByClaim(PodBuilder("implicit").Container("main").Requests(kImplicitName),
               "s2");
    Add(PodBuilder("by-claim").Claim("gpu", "C").Container("main").Uses("gpu"));
    Add(AClaim("C", Spec(Wants("c", 1))));
    const Pod& pod = Add(PodBuilder("by-template").Template("gpu"));
    ResourceClaimTemplate source;
    source.spec = Spec(Wants("c", 1));
    Add(GenerateClaim(pod, pod.spec.resource_claims[0], source, "x2x4x"));
  }
  QuotaUsage Usage(QuotaRule rule = QuotaRule::kStrict) const {
    return UsageOf(kNamespace, objects_, classes_, rule);
  }

  std::list<Pod> pods_;
  std::list<ResourceClaim> claims_;
  QuotaObjects objects_;
  ObjectMap<DeviceClass> classes_;
};

TEST_F(QuotaTest, AL086FiveDevicesInThreeWaysOfCounting) {
  AddFive();
  const QuotaUsage expected = {
      {kOfE, 5}, {kOfImplicit, 4}, {kOfClass, 4}, {kOfClaims, 4}};
  EXPECT_EQ(Usage(), expected);
}

TEST_F(QuotaTest, AL086EqualisedTheClassCountsDevicesOfPluginsAsWell) {
  AddFive();
  const QuotaUsage expected = {
      {kOfE, 5}, {kOfImplicit, 4}, {kOfClass, 5}, {kOfClaims, 4}};
  EXPECT_EQ(Usage(QuotaRule::kEqualised), expected);
}

TEST_F(QuotaTest, BothNamesInOnePodCountTwoDevices) {
  AddByClaim(
      PodBuilder().Container("main").Requests(kE).Requests(kImplicitName), "s");
  const QuotaUsage expected = {
      {kOfE, 2}, {kOfImplicit, 2}, {kOfClass, 2}, {kOfClaims, 1}};
  EXPECT_EQ(Usage(), expected);
}

TEST_F(QuotaTest, AL112AllCountsAsMuchAsAClaimCanHave) {
  EXPECT_EQ(DevicesByClass(Spec(Wants("c", 0))),
            (std::map<std::string, std::int64_t>{{"c", 32}}));
  DeviceSubRequest unknown = Wants("c", 3);
  unknown.allocation_mode = "Some";
  EXPECT_EQ(DevicesByClass(Spec(unknown)),
            (std::map<std::string, std::int64_t>{{"c", 0}}));
}

TEST_F(QuotaTest, AL112OfAlternativesTheLargestOfEachClassCounts) {
  ResourceClaimSpec spec;
  spec.requests.emplace_back().first_available = {Wants("c", 3), Wants("c", 5),
                                                  Wants("d", 1)};
  EXPECT_EQ(DevicesByClass(spec),
            (std::map<std::string, std::int64_t>{{"c", 5}, {"d", 1}}));
  Add(AClaim("C", spec));
  EXPECT_EQ(Usage().at(kOfClass), 5);
  EXPECT_EQ(Usage().at("d.deviceclass.resource.k8s.io/devices"), 1);
}

TEST_F(QuotaTest, AL112AForgedSpecialClaimPaysItself) {
  ResourceClaim& claim =
      AddByClaim(PodBuilder().Container("main").Requests(kE), "s");
  EXPECT_EQ(Usage().at(kOfE), 1);
  claim.metadata.owner_references[0].uid = "u-forged";
  EXPECT_EQ(Usage().at(kOfE), 2);
  claim.metadata.owner_references[0].uid = "u-P";
  claim.metadata.owner_references[0].controller = false;
  EXPECT_EQ(Usage().at(kOfE), 2);
}

TEST_F(QuotaTest, AL112OneSpecialClaimOfAPodIsPaidForByIt) {
  const Pod pod = PodBuilder().Container("main").Requests(kE);
  ResourceClaim& first = AddByClaim(pod, "a");
  ResourceClaim second = first;
  second.metadata.name = "b";
  second.spec.requests[0].exactly->count = 3;
  Add(second);
  // The pod's own one pays nothing, the other all of it.
  EXPECT_EQ(Usage().at(kOfE), 1 + 0 + 3);
  pods_.front()
      .status.extended_resource_claim_status.emplace()
      .resource_claim_name = "b";
  EXPECT_EQ(Usage().at(kOfE), 1 + 1 + 2);
}

TEST_F(QuotaTest, APodPaysForWhatItNeedsAtOnce) {
  Pod pod = PodBuilder()
                .InitContainer("sidecar")
                .Requests(kE, 1)
                .InitContainer("init")
                .Requests(kE, 4)
                .Container("main")
                .Requests(kE, 2)
                .Requests("cpu", 8);
  pod.spec.init_containers[0].restart_policy = "Always";
  Add(pod);
  EXPECT_EQ(Usage(), (QuotaUsage{{kOfE, 5}}));
  pods_.front().status.phase = "Succeeded";
  EXPECT_TRUE(Usage().empty());
}

TEST_F(QuotaTest, OtherNamespacesDoNotCount) {
  AddFive();
  EXPECT_TRUE(UsageOf("other", objects_, classes_, QuotaRule::kStrict).empty());
}

class ExceededQuotasTest : public testing::Test {
 protected:
  void AddQuota(const ObjectName& name,
                const std::map<std::string, int>& hard) {
    ResourceQuota quota;
    quota.metadata.ns = name.ns;
    quota.metadata.name = name.name;
    for (const auto& [key, amount] : hard) {
      quota.hard[key] = {amount, 0, std::to_string(amount)};
    }
    quotas_.insert_or_assign(name, std::make_shared<ResourceQuota>(quota));
  }

  ObjectMap<ResourceQuota> quotas_;
};

TEST_F(ExceededQuotasTest, NamesQuotaKeyAndFigures) {
  AddQuota({"ns", "gpu"}, {{kOfE, 10}, {kOfClass, 10}, {kOfClaims, 1}});
  AddQuota({"ns", "wide"}, {{kOfE, 100}});
  AddQuota({"other", "gpu"}, {{kOfE, 0}});
  const QuotaUsage before = {{kOfE, 9}, {kOfClass, 8}, {kOfClaims, 1}};
  const QuotaUsage after = {{kOfE, 11}, {kOfClass, 10}, {kOfClaims, 2}};
  const auto exceeded = ExceededQuotas("ns", quotas_, before, after);
  ASSERT_EQ(exceeded.size(), 1U);
  EXPECT_EQ(exceeded[0].quota, (ObjectName{"ns", "gpu"}));
  EXPECT_EQ(exceeded[0].ToString(),
            "exceeded quota: gpu, requested: "
            "count/resourceclaims.resource.k8s.io=1,"
            "requests.example.com/gpu=2, used: "
            "count/resourceclaims.resource.k8s.io=1,"
            "requests.example.com/gpu=9, limited: "
            "count/resourceclaims.resource.k8s.io=1,"
            "requests.example.com/gpu=10");
}

TEST_F(ExceededQuotasTest, WhatIsTooMuchAlreadyRefusesNothingElse) {
  AddQuota({"ns", "gpu"}, {{kOfE, 1}, {kOfClass, 5}});
  EXPECT_TRUE(
      ExceededQuotas("ns", quotas_, {{kOfE, 3}}, {{kOfE, 3}, {kOfClass, 1}})
          .empty());
  // Nor does what becomes less.
  EXPECT_TRUE(ExceededQuotas("ns", quotas_, {{kOfE, 3}}, {{kOfE, 2}}).empty());
}

TEST_F(ExceededQuotasTest, AQuotaOfNoneAllowsNone) {
  AddQuota({"ns", "gpu"}, {{kOfE, 0}});
  EXPECT_EQ(ExceededQuotas("ns", quotas_, {}, {{kOfE, 1}}).size(), 1U);
}

}  // namespace
}  // namespace devmgr::control
