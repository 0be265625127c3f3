// SPDX-License-Identifier: Apache-2.0
#include "dra/api_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha2/dra.pb.h"
#include "devmgr/wire/dra/v1alpha3/dra.pb.h"
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
namespace v1alpha1 = wire::dra::v1alpha1;
namespace v1alpha2 = wire::dra::v1alpha2;
namespace v1alpha3 = wire::dra::v1alpha3;
namespace v1beta1 = wire::dra::v1beta1;

const ApiOptions kCompat{.compat = true};

absl::StatusOr<std::vector<const ApiVersion*>> Choose(
    const std::vector<std::string>& advertised, const ApiOptions& options) {
  return ChooseApiVersions(kDriver, advertised, options);
}

/// Names of the versions to be tried, with blanks between them.
std::string Chosen(const std::vector<std::string>& advertised,
                   const ApiOptions& options = {}) {
  const auto versions = Choose(advertised, options);
  EXPECT_THAT(versions, IsOk());
  std::string names;
  for (const ApiVersion* version :
       versions.value_or(std::vector<const ApiVersion*>())) {
    names += (names.empty() ? "" : " ") + std::string(version->name);
  }
  return names;
}

const ApiVersion& VersionNamed(const std::string& name) {
  return *FindApiVersion(name.substr(0, name.find('.')));
}

const std::vector<ClaimReference> kTwoClaims = {
    {ClaimUid{"u-1"}, {"ns", "one"}}, {ClaimUid{"u-2"}, {"other", "two"}}};

// DRA-001, DRA-002
TEST(ChooseApiVersionTest, TakesTheOneThatIsAdvertised) {
  EXPECT_EQ(Chosen({"v1.DRAPlugin"}), "v1");
  EXPECT_EQ(Chosen({"v1beta1.DRAPlugin"}), "v1beta1");
}

TEST(ChooseApiVersionTest, OurOrderDecidesNotThePlugins) {
  EXPECT_EQ(Chosen({"v1beta1.DRAPlugin", "v1.DRAPlugin"}), "v1");
}

// DRA-003
TEST(ChooseApiVersionTest, AnEmptyListIsRefused) {
  EXPECT_THAT(Choose({}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("empty list of supported gRPC services (aka "
                                 "supported versions)")));
}

// DRA-004
TEST(ChooseApiVersionTest, AListWithoutOursIsRefusedWithBothLists) {
  EXPECT_THAT(
      Choose({"1.0.0", "0.9"}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("none of services supported by the plugin "
                               "([1.0.0 0.9]) are supported"),
                     HasSubstr("([v1.DRAPlugin v1beta1.DRAPlugin])"))));
}

// DRA-005
TEST(ChooseApiVersionTest, HealthServicesAloneAreRefused) {
  EXPECT_THAT(
      Choose({"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("none of services supported by the plugin")));
}

// DRA-006, DRA-007
TEST(ChooseApiVersionTest, UnknownServicesAreIgnored) {
  EXPECT_EQ(Chosen({"v1.DRAPlugin", "v1.Other"}), "v1");
  EXPECT_EQ(Chosen({"v9.DRAPlugin", "v1.DRAPlugin"}), "v1");
}

// DRA-022: without compatibility for drivers of Kubernetes 1.31 to 1.33.
TEST(ChooseApiVersionTest, ServicesOfOldDriversAreRefused) {
  EXPECT_THAT(Choose({"v1alpha3.NodeService"}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[v1alpha3.NodeService]")));
}

// DRA-022: the name does not tell which of the two it is.
TEST(ChooseApiVersionTest, WithCompatOldDriversAreServedByWhatTheyAnnounce) {
  EXPECT_EQ(Chosen({"v1alpha3.NodeService"}, kCompat), "v1alpha4 v1alpha3");
  EXPECT_EQ(Chosen({"v1alpha3.Node"}, kCompat), "v1alpha4 v1alpha3");
  EXPECT_EQ(Chosen({"v1alpha2.Node", "1.0.0"}, kCompat), "v1alpha2");
}

TEST(ChooseApiVersionTest, WithCompatAPlainVersionMayBeAnyOldOne) {
  for (const char* plain : {"1.0.0", "v1.2", "0.9"}) {
    EXPECT_EQ(Chosen({plain}, kCompat), "v1alpha4 v1alpha3 v1alpha2 v1alpha1");
  }
  for (const char* other :
       {"1", "1.", ".1", "1..0", "v", "", "1.0-rc", "x.1"}) {
    EXPECT_THAT(Choose({other}, kCompat),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("v1beta1.DRAPlugin v1alpha3.NodeService")))
        << other;
  }
}

TEST(ChooseApiVersionTest, WithCompatNewServicesStillComeFirst) {
  EXPECT_EQ(Chosen({"1.0.0", "v1alpha3.NodeService", "v1.DRAPlugin"}, kCompat),
            "v1");
  EXPECT_EQ(Chosen({"v1alpha3.NodeService", "v1beta1.DRAPlugin"}, kCompat),
            "v1beta1");
}

TEST(ChooseApiVersionTest, ADriverMayBeToldToSpeakOneVersion) {
  const ApiOptions options{.compat = true,
                           .by_driver = {{kDriver, "v1alpha2"}}};
  EXPECT_EQ(Chosen({"v1.DRAPlugin"}, options), "v1alpha2");
  EXPECT_EQ(Chosen({}, options), "v1alpha2");
  EXPECT_THAT(ChooseApiVersions(kOtherDriver, {}, options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CheckApiOptionsTest, OldVersionsNeedCompatAndAllNeedToBeKnown) {
  EXPECT_THAT(CheckApiOptions({false, {{"d", "v1beta1"}}}), IsOk());
  EXPECT_THAT(CheckApiOptions({true, {{"d", "v1alpha1"}}}), IsOk());
  EXPECT_THAT(CheckApiOptions({false, {{"d", "v1alpha1"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "dra.apis of 'd': v1alpha1 needs dra.compat"));
  EXPECT_THAT(CheckApiOptions({true, {{"d", "v2"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'v2' is not one of v1, v1beta1")));
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
  const auto answer = VersionNamed("v1.DRAPlugin")
                          .decode_prepare(response.SerializeAsString(), {});
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
                          .decode_prepare(response.SerializeAsString(), {});
  ASSERT_THAT(answer, IsOk());
  EXPECT_THAT(
      answer->at("good").devices,
      ElementsAre(Prepared("dev-1", {"a.b/c=1", "a.b/c=2"}, {"r1", "r2"})));
}

// DRA-058, DRA-090 on the wire
TEST(ApiVersionTest, AnEmptyValueIsAnAnswer) {
  for (const ApiVersion& version : ApiVersions()) {
    if (!version.batched) continue;
    v1::NodePrepareResourcesResponse prepared;
    (*prepared.mutable_claims())["u-1"];
    const auto answer =
        version.decode_prepare(prepared.SerializeAsString(), {});
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(answer->count("u-1"), 1u);
    EXPECT_THAT(answer->at("u-1").devices, IsEmpty());

    v1::NodeUnprepareResourcesResponse unprepared;
    (*unprepared.mutable_claims())["u-1"];
    (*unprepared.mutable_claims())["u-2"].set_error("busy");
    const auto other =
        version.decode_unprepare(unprepared.SerializeAsString(), {});
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
      EXPECT_THAT(version.decode_prepare(bytes, kTwoClaims),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("NodePrepareResource")));
    }
  }
}

// DRA-023 on the wire
TEST(ApiVersionTest, OneClaimCallsCarryTheHandleAndAnswerCdiNames) {
  ClaimReference claim = kTwoClaims.front();
  claim.handle.data = "h";
  for (const char* name : {"v1alpha2", "v1alpha1"}) {
    const ApiVersion& version = VersionNamed(name);
    v1alpha1::NodePrepareResourceRequest request;
    ASSERT_TRUE(request.ParseFromString(version.encode_prepare({claim})));
    EXPECT_EQ(request.namespace_(), "ns");
    EXPECT_EQ(request.claim_uid(), "u-1");
    EXPECT_EQ(request.claim_name(), "one");
    EXPECT_EQ(request.resource_handle(), "h");
    v1alpha1::NodePrepareResourceResponse response;
    response.add_cdi_devices("a.b/c=1");
    response.add_cdi_devices("a.b/c=2");
    const auto answer =
        version.decode_prepare(response.SerializeAsString(), {claim});
    ASSERT_THAT(answer, IsOk());
    ASSERT_EQ(answer->size(), 1u);
    const RawClaimAnswer& raw = answer->at("u-1");
    EXPECT_TRUE(raw.only_cdi_ids);
    state::PreparedDevice device;
    device.cdi_device_ids = {"a.b/c=1", "a.b/c=2"};
    EXPECT_THAT(raw.devices, ElementsAre(device));
    EXPECT_THAT(version.decode_prepare("", {claim})->at("u-1").devices,
                IsEmpty());
    EXPECT_EQ(version.decode_unprepare("", {claim})->at("u-1").error, "");
  }
}

TEST(ApiVersionTest, UnprepareOfV1alpha1CarriesTheCdiNames) {
  ClaimReference claim = kTwoClaims.front();
  claim.handle.data = "h";
  claim.cdi_device_ids = {"a.b/c=1", "a.b/c=2"};
  v1alpha1::NodeUnprepareResourceRequest oldest;
  ASSERT_TRUE(oldest.ParseFromString(
      VersionNamed("v1alpha1").encode_unprepare({claim})));
  EXPECT_THAT(oldest.cdi_devices(), ElementsAre("a.b/c=1", "a.b/c=2"));
  v1alpha2::NodeUnprepareResourceRequest older;
  ASSERT_TRUE(older.ParseFromString(
      VersionNamed("v1alpha2").encode_unprepare({claim})));
  EXPECT_EQ(older.resource_handle(), "h");
}

}  // namespace
}  // namespace devmgr::dra
