// SPDX-License-Identifier: Apache-2.0
#include "control/generated_claim.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/names.h"
#include "control/generated_name.h"
#include "control/owned_claim.h"
#include "control/special_claim.h"
#include "support/builders.h"

namespace devmgr::control {
namespace {

using TextMap = std::map<std::string, std::string>;

ResourceClaimTemplate Template() {
  ResourceClaimTemplate source;
  source.metadata.name = "template";
  source.claim_labels = {{"x", "1"}};
  source.claim_annotations = {{"y", "2"}};
  DeviceRequest& request = source.spec.requests.emplace_back();
  request.name = "r";
  request.exactly.emplace().device_class_name = "c";
  return source;
}

void Put(ObjectMap<ResourceClaim>& claims, const ResourceClaim& claim) {
  claims.insert_or_assign(claim.metadata.FullName(),
                          std::make_shared<const ResourceClaim>(claim));
}

TEST(GenerateClaimTest, AL087HasWhatTheTemplateSaysAndBelongsToThePod) {
  const Pod pod = PodBuilder("web").Template("gpu");
  const ResourceClaim claim =
      GenerateClaim(pod, pod.spec.resource_claims[0], Template(), "x2x4x");
  EXPECT_EQ(claim.metadata.FullName(), NameOf("web-gpu-x2x4x"));
  EXPECT_EQ(claim.metadata.labels, (TextMap{{"x", "1"}}));
  EXPECT_EQ(
      claim.metadata.annotations,
      (TextMap{{"resource.kubernetes.io/pod-claim-name", "gpu"}, {"y", "2"}}));
  ASSERT_EQ(claim.metadata.owner_references.size(), 1U);
  EXPECT_EQ(claim.metadata.owner_references[0],
            (OwnerReference{"v1", "Pod", "web", "u-web", true, true}));
  EXPECT_TRUE(IsControlledBy(claim, pod));
  EXPECT_EQ(claim.spec, Template().spec);
  EXPECT_FALSE(claim.status.allocation.has_value());
  EXPECT_TRUE(IsMadeForPod(claim));
}

TEST(GenerateClaimTest, AL087ATemplateCannotSayWhichEntryAClaimIsFor) {
  ResourceClaimTemplate source = Template();
  source.claim_annotations[kPodClaimNameAnnotation] = "other";
  const Pod pod = PodBuilder("web").Template("gpu");
  const ResourceClaim claim =
      GenerateClaim(pod, pod.spec.resource_claims[0], source, "x2x4x");
  EXPECT_TRUE(IsGeneratedFor(claim, pod, pod.spec.resource_claims[0]));
}

TEST(MissingClaimsTest, AL087FindsTheClaimThatACrashLeftUnrecorded) {
  const Pod pod =
      PodBuilder("web").Claim("named", "C").Template("gpu").Template("nic");
  ObjectMap<ResourceClaim> claims;
  Put(claims,
      GenerateClaim(pod, pod.spec.resource_claims[1], Template(), "x2x4x"));
  const auto missing = MissingClaims(pod, claims);
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_EQ(missing[0].entry->name, "gpu");
  ASSERT_NE(missing[0].made, nullptr);
  EXPECT_EQ(missing[0].made->metadata.name, "web-gpu-x2x4x");
  EXPECT_EQ(missing[1].entry->name, "nic");
  EXPECT_EQ(missing[1].made, nullptr);
}

TEST(MissingClaimsTest, WhatIsRecordedAndOwnedIsNotMissing) {
  const Pod pod = PodBuilder("web")
                      .Template("gpu")
                      .Template("none")
                      .Made("gpu", "web-gpu-x2x4x")
                      .Made("none", std::nullopt);
  ObjectMap<ResourceClaim> claims;
  Put(claims,
      GenerateClaim(pod, pod.spec.resource_claims[0], Template(), "x2x4x"));
  EXPECT_TRUE(MissingClaims(pod, claims).empty());
}

TEST(MissingClaimsTest, ARecordedClaimThatIsGoneOrForeignIsReplaced) {
  const Pod pod =
      PodBuilder("web").Template("gpu").Made("gpu", "web-gpu-x2x4x");
  const Pod other = PodBuilder("web").Uid("u-before").Template("gpu");
  ObjectMap<ResourceClaim> claims;
  ASSERT_EQ(MissingClaims(pod, claims).size(), 1U);
  Put(claims,
      GenerateClaim(other, pod.spec.resource_claims[0], Template(), "x2x4x"));
  const auto missing = MissingClaims(pod, claims);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].made, nullptr);
}

TEST(MissingClaimsTest, AClaimThatIsBeingDeletedIsNotTakenUp) {
  const Pod pod = PodBuilder("web").Template("gpu");
  ResourceClaim claim =
      GenerateClaim(pod, pod.spec.resource_claims[0], Template(), "x2x4x");
  claim.metadata.deletion_timestamp = "2026-01-02T03:04:05Z";
  ObjectMap<ResourceClaim> claims;
  Put(claims, claim);
  const auto missing = MissingClaims(pod, claims);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].made, nullptr);
}

TEST(MissingClaimsTest, APodThatHasEndedOrGoesGetsNone) {
  EXPECT_TRUE(
      MissingClaims(PodBuilder().Template("gpu").Deleted(), {}).empty());
  Pod ended = PodBuilder().Template("gpu");
  ended.status.phase = "Failed";
  EXPECT_TRUE(MissingClaims(ended, {}).empty());
}

class FindSpecialClaimTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& owner_uid,
           const std::string& created = "", bool controller = true) {
    ResourceClaim claim = ClaimBuilder(name).NotAllocated();
    claim.metadata.annotations[kExtendedResourceClaimAnnotation] = "true";
    claim.metadata.owner_references = {
        {"v1", "Pod", "P", owner_uid, controller}};
    claim.metadata.creation_timestamp = created;
    Put(claims_, claim);
  }
  std::string Found(const Pod& pod) const {
    const auto claim = FindSpecialClaim(pod, claims_);
    return claim != nullptr ? claim->metadata.name : "";
  }

  ObjectMap<ResourceClaim> claims_;
};

TEST_F(FindSpecialClaimTest, AL085AClaimOfAForeignOwnerIsNeverUsed) {
  Add("forged", "u-other");
  Add("owned-but-not-controlled", "u-P", "", false);
  Add("without-uid", "");
  EXPECT_EQ(Found(PodBuilder()), "");
  EXPECT_EQ(Found(PodBuilder().SpecialClaim("forged")), "");
  Add("own", "u-P");
  EXPECT_EQ(Found(PodBuilder()), "own");
}

TEST_F(FindSpecialClaimTest, AL085OfSeveralOneIsFoundAndTheOthersAreLeftOver) {
  Add("a", "u-P", "2026-01-02T00:00:00Z");
  Add("b", "u-P", "2026-01-01T00:00:00Z");
  Add("c", "u-P", "2026-01-01T00:00:00Z");
  Add("foreign", "u-other");
  const Pod pod = PodBuilder();
  EXPECT_EQ(Found(pod), "b");
  EXPECT_EQ(Found(PodBuilder().SpecialClaim("c")), "c");
  const auto kept = FindSpecialClaim(pod, claims_);
  const auto others = LeftOverSpecialClaims(pod, claims_, kept.get());
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0]->metadata.name, "a");
  EXPECT_EQ(others[1]->metadata.name, "c");
}

TEST_F(FindSpecialClaimTest, APodOfTheSameNameElsewhereHasNoPartInIt) {
  Add("own", "u-P");
  Pod elsewhere = PodBuilder();
  elsewhere.metadata.ns = "other";
  EXPECT_EQ(Found(elsewhere), "");
}

TEST_F(FindSpecialClaimTest, WithoutTheAnnotationItIsNone) {
  ResourceClaim claim = ClaimBuilder("own").OwnedBy(Owner("u-P"));
  Put(claims_, claim);
  EXPECT_EQ(Found(PodBuilder()), "");
  claim.metadata.annotations[kExtendedResourceClaimAnnotation] = "P";
  Put(claims_, claim);
  EXPECT_EQ(Found(PodBuilder()), "");
}

TEST(NameSuffixTest, HasFiveOfTheCharactersOfAnApiServer) {
  std::set<std::string> suffixes;
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    const std::string suffix = NameSuffix(number);
    EXPECT_EQ(suffix.size(), 5U);
    EXPECT_EQ(suffix.find_first_not_of("bcdfghjklmnpqrstvwxz2456789"),
              std::string::npos);
    suffixes.insert(suffix);
  }
  EXPECT_EQ(suffixes.size(), 20'000U);
  EXPECT_EQ(NameSuffix(7), NameSuffix(7));
  EXPECT_EQ(NameSuffix(~std::uint64_t{0}).size(), 5U);
}

TEST(GeneratedBaseTest, AL113HasAPartOfBothNamesWhenTheyAreLong) {
  const std::string pod(63, 'p');
  const std::string entry(63, 'e');
  const std::string base = GeneratedBase(pod, entry);
  EXPECT_LE(base.size(), 57U);
  EXPECT_EQ(base, std::string(28, 'p') + "-" + std::string(28, 'e'));
  EXPECT_EQ(api::CheckLabel(base), "");
  EXPECT_EQ(api::CheckLabel(GeneratedName(base, NameSuffix(1))), "");
}

TEST(GeneratedBaseTest, AL113WhereverANameIsCutTheResultIsOne) {
  for (std::size_t dot = 1; dot < 100; ++dot) {
    std::string pod(101, 'p');
    pod[dot] = dot % 2 == 0 ? '.' : '-';
    for (std::size_t hyphen = 1; hyphen < 62; ++hyphen) {
      std::string entry(63, 'e');
      entry[hyphen] = '-';
      const std::string base = GeneratedBase(pod, entry);
      ASSERT_LE(base.size(), 57U);
      ASSERT_EQ(api::CheckSubdomain(base), "");
      ASSERT_EQ(api::CheckSubdomain(GeneratedName(base, "22222")), "");
    }
  }
}

TEST(GeneratedBaseTest, AL113AnEntryOfOneCharacterBesideALongPod) {
  const std::string base = GeneratedBase(std::string(253, 'p'), "e");
  EXPECT_EQ(base, std::string(55, 'p') + "-e");
  EXPECT_EQ(GeneratedBase("p", std::string(63, 'e')),
            "p-" + std::string(55, 'e'));
}

TEST(SpecialClaimNameTest, SaysWhatItIsForAsWell) {
  EXPECT_EQ(SpecialClaimName(PodBuilder("web"), "x2x4x"),
            "web-extended-resources-x2x4x");
  const std::string name =
      SpecialClaimName(PodBuilder(std::string(253, 'p')), "x2x4x");
  EXPECT_EQ(api::CheckLabel(name), "");
}

}  // namespace
}  // namespace devmgr::control
