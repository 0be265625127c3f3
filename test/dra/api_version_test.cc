// SPDX-License-Identifier: Apache-2.0
#include "dra/api_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace v1 = wire::dra::v1;
namespace v1beta1 = wire::dra::v1beta1;

std::string Chosen(const std::vector<std::string>& advertised) {
  const auto version = ChooseApiVersion(advertised);
  EXPECT_THAT(version, IsOk());
  return version.ok() ? std::string((*version)->name) : "";
}

const ApiVersion& VersionNamed(const std::string& name) {
  const auto version = ChooseApiVersion({name});
  EXPECT_THAT(version, IsOk());
  return **version;
}

const std::vector<ClaimReference> kTwoClaims = {
    {ClaimUid{"u-1"}, {"ns", "one"}}, {ClaimUid{"u-2"}, {"other", "two"}}};

// DRA-001, DRA-002
TEST(ChooseApiVersionTest, TakesTheOneThatIsAdvertised) {
  EXPECT_EQ(Chosen({"v1.DRAPlugin"}), "v1.DRAPlugin");
  EXPECT_EQ(Chosen({"v1beta1.DRAPlugin"}), "v1beta1.DRAPlugin");
}

TEST(ChooseApiVersionTest, OurOrderDecidesNotThePlugins) {
  EXPECT_EQ(Chosen({"v1beta1.DRAPlugin", "v1.DRAPlugin"}), "v1.DRAPlugin");
}

// DRA-003
TEST(ChooseApiVersionTest, AnEmptyListIsRefused) {
  EXPECT_THAT(ChooseApiVersion({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("empty list of supported gRPC services (aka "
                                 "supported versions)")));
}

// DRA-004
TEST(ChooseApiVersionTest, AListWithoutOursIsRefusedWithBothLists) {
  EXPECT_THAT(
      ChooseApiVersion({"1.0.0", "0.9"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("none of services supported by the plugin "
                               "([1.0.0 0.9]) are supported"),
                     HasSubstr("([v1.DRAPlugin v1beta1.DRAPlugin])"))));
}

// DRA-005
TEST(ChooseApiVersionTest, HealthServicesAloneAreRefused) {
  EXPECT_THAT(
      ChooseApiVersion({"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("none of services supported by the plugin")));
}

// DRA-006, DRA-007
TEST(ChooseApiVersionTest, UnknownServicesAreIgnored) {
  EXPECT_EQ(Chosen({"v1.DRAPlugin", "v1.Other"}), "v1.DRAPlugin");
  EXPECT_EQ(Chosen({"v9.DRAPlugin", "v1.DRAPlugin"}), "v1.DRAPlugin");
}

// DRA-022: without compatibility for drivers of Kubernetes 1.31 to 1.33.
TEST(ChooseApiVersionTest, ServicesOfOldDriversAreRefused) {
  EXPECT_THAT(ChooseApiVersion({"v1alpha3.NodeService"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[v1alpha3.NodeService]")));
}

TEST(ApiVersionTest, MethodPathsAreTheWires) {
  const ApiVersion& newer = VersionNamed("v1.DRAPlugin");
  EXPECT_EQ(newer.PrepareMethod(),
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
  EXPECT_EQ(newer.UnprepareMethod(),
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources");
  const ApiVersion& older = VersionNamed("v1beta1.DRAPlugin");
  EXPECT_EQ(
      older.PrepareMethod(),
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources");
  EXPECT_EQ(
      older.UnprepareMethod(),
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources");
}

/// Requests carry exactly namespace, UID and name of each claim, in order.
template <typename Request>
void ExpectClaims(const std::string& bytes) {
  Request request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  ASSERT_EQ(request.claims_size(), 2);
  EXPECT_EQ(request.claims(0).namespace_(), "ns");
  EXPECT_EQ(request.claims(0).uid(), "u-1");
  EXPECT_EQ(request.claims(0).name(), "one");
  EXPECT_EQ(request.claims(1).namespace_(), "other");
  EXPECT_EQ(request.claims(1).uid(), "u-2");
  EXPECT_EQ(request.claims(1).name(), "two");
}

TEST(ApiVersionTest, RequestsCarryTheClaims) {
  const ApiVersion& newer = VersionNamed("v1.DRAPlugin");
  ExpectClaims<v1::NodePrepareResourcesRequest>(
      newer.encode_prepare(kTwoClaims));
  ExpectClaims<v1::NodeUnprepareResourcesRequest>(
      newer.encode_unprepare(kTwoClaims));
  const ApiVersion& older = VersionNamed("v1beta1.DRAPlugin");
  ExpectClaims<v1beta1::NodePrepareResourcesRequest>(
      older.encode_prepare(kTwoClaims));
  ExpectClaims<v1beta1::NodeUnprepareResourcesRequest>(
      older.encode_unprepare(kTwoClaims));
}

/// Claim `good` with one device, claim `bad` with an error.
template <typename Response>
Response SomeResponse() {
  Response response;
  auto* device = (*response.mutable_claims())["good"].add_devices();
  device->add_request_names("r1");
  device->add_request_names("r2");
  device->set_pool_name("pool-1");
  device->set_device_name("dev-1");
  device->add_cdi_device_ids("a.b/c=1");
  device->add_cdi_device_ids("a.b/c=2");
  (*response.mutable_claims())["bad"].set_error("boom");
  return response;
}

// DRA-075 on the wire
TEST(ApiVersionTest, PrepareAnswersOfV1CarryTheShareId) {
  auto response = SomeResponse<v1::NodePrepareResourcesResponse>();
  (*response.mutable_claims())["good"].mutable_devices(0)->set_share_id("s-1");
  const auto answer =
      VersionNamed("v1.DRAPlugin").decode_prepare(response.SerializeAsString());
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->size(), 2u);
  auto device = Prepared("dev-1", {"a.b/c=1", "a.b/c=2"}, {"r1", "r2"});
  device.share_id = "s-1";
  EXPECT_THAT(answer->at("good").devices, ElementsAre(device));
  EXPECT_EQ(answer->at("good").error, "");
  EXPECT_THAT(answer->at("bad").devices, IsEmpty());
  EXPECT_EQ(answer->at("bad").error, "boom");
}

// DRA-002
TEST(ApiVersionTest, PrepareAnswersOfV1Beta1HaveNoShareId) {
  // What v1 calls share_id is an unknown field here, and dropped.
  auto response = SomeResponse<v1::NodePrepareResourcesResponse>();
  (*response.mutable_claims())["good"].mutable_devices(0)->set_share_id("s-1");
  const auto answer = VersionNamed("v1beta1.DRAPlugin")
                          .decode_prepare(response.SerializeAsString());
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(
      answer->at("good").devices,
      ElementsAre(Prepared("dev-1", {"a.b/c=1", "a.b/c=2"}, {"r1", "r2"})));
}

// DRA-058, DRA-090 on the wire
TEST(ApiVersionTest, AnEmptyValueIsAnAnswer) {
  for (const ApiVersion& version : ApiVersions()) {
    v1::NodePrepareResourcesResponse prepared;
    (*prepared.mutable_claims())["u-1"];
    const auto answer = version.decode_prepare(prepared.SerializeAsString());
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(answer->count("u-1"), 1u);
    EXPECT_THAT(answer->at("u-1").devices, IsEmpty());

    v1::NodeUnprepareResourcesResponse unprepared;
    (*unprepared.mutable_claims())["u-1"];
    (*unprepared.mutable_claims())["u-2"].set_error("busy");
    const auto other = version.decode_unprepare(unprepared.SerializeAsString());
    ASSERT_THAT(other, IsOk());
    EXPECT_EQ(other->at("u-1").error, "");
    EXPECT_EQ(other->at("u-2").error, "busy");
  }
}

TEST(ApiVersionTest, BytesThatAreNoMessageAreAnError) {
  // A length that reaches beyond the end, and a string that is not UTF-8.
  v1::NodePrepareResourcesResponse response;
  (*response.mutable_claims())["u-1"].set_error("x");
  std::string bad_text = response.SerializeAsString();
  bad_text.back() = '\xff';
  for (const std::string& bytes : {std::string("\x0a\x7f\x01"), bad_text}) {
    for (const ApiVersion& version : ApiVersions()) {
      EXPECT_THAT(version.decode_prepare(bytes),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("NodePrepareResourcesResponse")));
    }
  }
}

}  // namespace
}  // namespace devmgr::dra
