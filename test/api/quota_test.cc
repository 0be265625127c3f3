// SPDX-License-Identifier: Apache-2.0
#include "api/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/only_error.h"

namespace devmgr::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::SizeIs;

std::string Quota(const std::string& spec) {
  return "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: q\n"
         "spec:\n" +
         spec;
}

TEST(DecodeQuotaTest, KeepsWhatConcernsDevicesAndClaims) {
  const DecodedManifest manifest = DecodeManifest(
      Quota("  hard:\n"
            "    pods: 4\n"
            "    requests.cpu: 100m\n"
            "    count/configmaps: 3\n"
            "    requests.example.com/gpu: 10\n"
            "    requests.deviceclass.resource.kubernetes.io/c: 2\n"
            "    c.deviceclass.resource.k8s.io/devices: 1k\n"
            "    count/resourceclaims.resource.k8s.io: 0\n"),
      "q.yaml");
  EXPECT_THAT(manifest.errors, IsEmpty());
  EXPECT_THAT(manifest.warnings, IsEmpty());
  ASSERT_THAT(manifest.objects, SizeIs(1));
  const auto& quota = std::get<ResourceQuota>(manifest.objects[0].object);
  EXPECT_EQ(quota.metadata.FullName(), (ObjectName{"default", "q"}));
  EXPECT_THAT(quota.hard,
              ElementsAre(Key("c.deviceclass.resource.k8s.io/devices"),
                          Key("count/resourceclaims.resource.k8s.io"),
                          Key("requests.deviceclass.resource.kubernetes.io/c"),
                          Key("requests.example.com/gpu")));
  EXPECT_EQ(quota.hard.at("c.deviceclass.resource.k8s.io/devices").whole, 1000);
}

TEST(DecodeQuotaTest, ReadsAListOfThem) {
  const DecodedManifest manifest = DecodeManifest(
      R"({"apiVersion": "v1", "kind": "ResourceQuotaList", "items": [
            {"metadata": {"name": "a", "namespace": "ns"}},
            {"metadata": {"name": "b"}, "spec": {}}]})",
      "q.json");
  EXPECT_THAT(manifest.errors, IsEmpty());
  EXPECT_THAT(manifest.objects, SizeIs(2));
}

TEST(DecodeQuotaTest, HalfADeviceIsAnError) {
  EXPECT_EQ(
      OnlyError(DecodeManifest(
          Quota("  hard:\n    requests.example.com/gpu: 500m\n"), "q.yaml")),
      "q.yaml:7: spec.hard[requests.example.com/gpu]: is '500m', must be "
      "a whole number from 0 on");
}

TEST(DecodeQuotaTest, OneWithScopesLimitsNothingAndSaysSo) {
  const DecodedManifest manifest =
      DecodeManifest(Quota("  scopes: [BestEffort]\n"
                           "  hard:\n    requests.example.com/gpu: 1\n"),
                     "q.yaml");
  ASSERT_THAT(manifest.objects, SizeIs(1));
  EXPECT_THAT(std::get<ResourceQuota>(manifest.objects[0].object).hard,
              IsEmpty());
  ASSERT_THAT(manifest.warnings, SizeIs(1));
  EXPECT_THAT(manifest.warnings[0].ToString(),
              HasSubstr("spec.scopes: a quota with scopes limits some pods"));
}

TEST(DecodeQuotaTest, OtherVersionsAreNone) {
  EXPECT_THAT(OnlyError(DecodeManifest("apiVersion: v2\nkind: ResourceQuota\n"
                                       "metadata: {name: q}\n",
                                       "q.yaml")),
              HasSubstr("kind ResourceQuota is of v1, not of 'v2'"));
}

TEST(DecodeOwnerTest, KeepsWhetherItWaitsForWhatItOwns) {
  const std::string text =
      R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
          "metadata": {"name": "c", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
             "controller": true, "blockOwnerDeletion": true}]},
          "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "x"}}]}}})";
  const DecodedManifest manifest = DecodeManifest(text, "c.json");
  ASSERT_THAT(manifest.objects, SizeIs(1));
  const auto& claim = std::get<ResourceClaim>(manifest.objects[0].object);
  ASSERT_THAT(claim.metadata.owner_references, SizeIs(1));
  EXPECT_TRUE(claim.metadata.owner_references[0].blocks_owner_deletion);
  EXPECT_THAT(EncodeResourceClaim(claim),
              HasSubstr(R"("blockOwnerDeletion":true)"));
}

}  // namespace
}  // namespace devmgr::api
