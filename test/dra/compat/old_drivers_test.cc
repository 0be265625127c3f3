// SPDX-License-Identifier: Apache-2.0
//
// Drivers of Kubernetes 1.26 to 1.33, which are served with compatibility on:
// what they speak is found out by what they announce, know and answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "devmgr/wire/dra/v1alpha1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha2/dra.pb.h"
#include "devmgr/wire/dra/v1alpha3/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "dra/claim_c.h"
#include "dra/driver_registry.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace v1alpha1 = wire::dra::v1alpha1;
namespace v1alpha2 = wire::dra::v1alpha2;
namespace v1alpha3 = wire::dra::v1alpha3;
namespace v1beta1 = wire::dra::v1beta1;

constexpr char kPrepareBatch[] = "/v1alpha3.Node/NodePrepareResources";
constexpr char kUnprepareBatch[] = "/v1alpha3.Node/NodeUnprepareResources";
constexpr char kPrepare2[] = "/v1alpha2.Node/NodePrepareResource";
constexpr char kUnprepare2[] = "/v1alpha2.Node/NodeUnprepareResource";
constexpr char kPrepare1[] = "/v1alpha1.Node/NodePrepareResource";

ClaimReference ClaimNamed(const std::string& name,
                          const std::string& handle = "h") {
  return {ClaimUid{"u-" + name}, NameOf(name), {handle, {}}, {}};
}

/// As an answer of CDI names is kept.
state::PreparedDevice Plain(std::vector<std::string> cdi_device_ids) {
  state::PreparedDevice device;
  device.cdi_device_ids = std::move(cdi_device_ids);
  return device;
}

class OldDriversTest : public testing::Test {
 protected:
  void Register(const std::vector<std::string>& announced,
                ApiOptions api = {.compat = true}, int max_calls = 64) {
    DriverRegistryOptions options;
    options.instance.max_calls = max_calls;
    options.api = std::move(api);
    options.now = [] { return WallTime(); };
    options.on_change = [](const std::string&) {};
    if (probes_) peer_.AnswerProbes("");
    registry_.emplace(
        executor_,
        [this](const auto& socket, auto on_hang_up) {
          return peer_.Dial(socket, std::move(on_hang_up));
        },
        std::move(options));
    ASSERT_THAT(registry_->Register({DriverRegistry::kPluginType, kDriver,
                                     "/d.sock", announced, "/d-reg.sock"}),
                IsOk());
    executor_.RunPending();
  }

  void Prepare(std::vector<ClaimReference> claims = {ClaimNamed("C")}) {
    prepared_.reset();
    registry_->Prepare(kDriver, std::move(claims),
                       [this](PrepareAnswer answer) {
                         if (!prepared_.has_value()) prepared_.emplace();
                         prepared_->merge(answer);
                         EXPECT_THAT(answer, IsEmpty()) << "answered twice";
                       });
  }
  void Unprepare(std::vector<ClaimReference> claims = {ClaimNamed("C")}) {
    unprepared_.reset();
    registry_->Unprepare(kDriver, std::move(claims),
                         [this](UnprepareAnswer answer) {
                           if (!unprepared_.has_value()) unprepared_.emplace();
                           unprepared_->merge(answer);
                           EXPECT_THAT(answer, IsEmpty()) << "answered twice";
                         });
  }

  const FakePeer::Call& LastCall() { return peer_.calls().back(); }
  void Answer(absl::StatusOr<std::string> answer) {
    peer_.Answer(peer_.calls().size() - 1, std::move(answer));
    executor_.RunPending();
  }
  /// The methods in the order they were called.
  std::vector<std::string> Methods() const {
    std::vector<std::string> methods;
    for (const auto& call : peer_.calls()) methods.push_back(call.method);
    return methods;
  }
  std::string Version() const { return registry_->Plugins().at(0)->version; }

  static std::string Named() {
    v1beta1::NodePrepareResourcesResponse response;
    auto* device = (*response.mutable_claims())["u-C"].add_devices();
    device->set_pool_name("pool-1");
    device->set_device_name("dev-1");
    device->add_request_names("r");
    device->add_cdi_device_ids("a.b/c=1");
    return response.SerializeAsString();
  }
  static std::string Batch() {
    v1alpha3::NodePrepareResourcesResponse response;
    (*response.mutable_claims())["u-C"].add_cdi_devices("a.b/c=1");
    (*response.mutable_claims())["u-C"].add_cdi_devices("a.b/c=2");
    return response.SerializeAsString();
  }
  static std::string One() {
    v1alpha2::NodePrepareResourceResponse response;
    response.add_cdi_devices("a.b/c=1");
    return response.SerializeAsString();
  }
  static absl::Status Unknown() {
    return UnimplementedError("unknown service");
  }

  ManualExecutor executor_;
  FakePeer peer_;
  bool probes_ = true;  ///< Are answered, and are no calls of a test.
  std::optional<PrepareAnswer> prepared_;
  std::optional<UnprepareAnswer> unprepared_;
  std::optional<DriverRegistry> registry_;
};

// Claims of these go one by one, and none without an effect.
TEST_F(OldDriversTest, AreAskedForTheirHealthToSeeThatTheyAreThere) {
  for (const auto& [api, method] :
       std::vector<std::pair<std::string, std::string>>{
           {"v1alpha1", "/grpc.health.v1.Health/Check"},
           {"v1alpha2", "/grpc.health.v1.Health/Check"},
           {"v1alpha3", "/v1alpha3.Node/NodePrepareResources"},
           {"v1alpha4", "/v1alpha3.Node/NodePrepareResources"}}) {
    probes_ = false;
    Register({}, {true, {{kDriver, api}}});
    EXPECT_EQ(LastCall().method, method) << api;
    EXPECT_EQ(LastCall().request, "") << api;
    Answer(Unknown());
    EXPECT_EQ(registry_->Plugins().at(0)->state, PluginState::kConnected)
        << api;
  }
}

// DRA-022
TEST_F(OldDriversTest, ADriverOfKubernetes131IsServedOnThePathOfV1alpha3) {
  Register({"v1alpha3.NodeService"});
  EXPECT_EQ(Version(), "v1alpha4|v1alpha3");
  Prepare();
  EXPECT_EQ(LastCall().method, kPrepareBatch);
  Answer(Named());
  ASSERT_THAT(prepared_->at(kC), IsOk());
  EXPECT_THAT(*prepared_->at(kC),
              ElementsAre(devmgr::Prepared("dev-1", {"a.b/c=1"})));
  EXPECT_EQ(Version(), "v1alpha4");
  Unprepare();
  EXPECT_EQ(LastCall().method, kUnprepareBatch);
  v1beta1::NodeUnprepareResourcesResponse done;
  (*done.mutable_claims())["u-C"];
  Answer(done.SerializeAsString());
  EXPECT_THAT(unprepared_->at(kC), IsOk());
}

TEST_F(OldDriversTest, TheAnswerTellsADriverOfKubernetes128) {
  Register({"1.0.0"});
  EXPECT_EQ(Version(), "v1alpha4|v1alpha3|v1alpha2|v1alpha1");
  Prepare();
  v1alpha3::NodePrepareResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(LastCall().request));
  EXPECT_EQ(request.claims(0).resource_handle(), "h");
  Answer(Batch());
  ASSERT_THAT(prepared_->at(kC), IsOk());
  EXPECT_THAT(*prepared_->at(kC), ElementsAre(Plain({"a.b/c=1", "a.b/c=2"})));
  EXPECT_EQ(Version(), "v1alpha3");
}

// What has no devices is of both.
TEST_F(OldDriversTest, WhatDoesNotShowInOneAnswerShowsInTheNext) {
  Register({"v1alpha3.NodeService"});
  Prepare();
  v1alpha3::NodePrepareResourcesResponse failed;
  (*failed.mutable_claims())["u-C"].set_error("boom");
  Answer(failed.SerializeAsString());
  EXPECT_THAT(prepared_->at(kC),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("boom")));
  EXPECT_EQ(Version(), "v1alpha4|v1alpha3");
  Prepare();
  Answer(Named());
  EXPECT_THAT(prepared_->at(kC), IsOk());
  EXPECT_EQ(Version(), "v1alpha4");
}

// DRA-023
TEST_F(OldDriversTest, ADriverOfV1alpha2IsFoundAndGetsTheHandle) {
  Register({"1.0.0"});
  Prepare();
  Answer(Unknown());
  EXPECT_THAT(Methods(), ElementsAre(kPrepareBatch, kPrepare2));
  v1alpha2::NodePrepareResourceRequest request;
  ASSERT_TRUE(request.ParseFromString(LastCall().request));
  EXPECT_EQ(request.namespace_(), kNamespace);
  EXPECT_EQ(request.claim_uid(), "u-C");
  EXPECT_EQ(request.claim_name(), "C");
  EXPECT_EQ(request.resource_handle(), "h");
  Answer(One());
  ASSERT_THAT(prepared_->at(kC), IsOk());
  EXPECT_THAT(*prepared_->at(kC), ElementsAre(Plain({"a.b/c=1"})));
  EXPECT_EQ(Version(), "v1alpha2");
  // From then on it is known.
  Unprepare();
  EXPECT_EQ(LastCall().method, kUnprepare2);
  v1alpha2::NodeUnprepareResourceRequest unprepare;
  ASSERT_TRUE(unprepare.ParseFromString(LastCall().request));
  EXPECT_EQ(unprepare.resource_handle(), "h");
  Answer("");
  EXPECT_THAT(unprepared_->at(kC), IsOk());
}

TEST_F(OldDriversTest, TheOldestIsTriedLast) {
  Register({"1.0.0"});
  Unprepare();
  Answer(Unknown());
  Answer(Unknown());
  EXPECT_EQ(Version(), "v1alpha1");
  Answer("");
  EXPECT_THAT(unprepared_->at(kC), IsOk());
  Prepare();
  EXPECT_EQ(LastCall().method, kPrepare1);
  Answer(One());
  EXPECT_THAT(prepared_->at(kC), IsOk());
}

TEST_F(OldDriversTest, ADriverThatKnowsNothingIsAnError) {
  Register({"1.0.0"});
  Prepare();
  for (int i = 0; i < 3; ++i) Answer(Unknown());
  EXPECT_EQ(peer_.calls().size(), 3u);
  EXPECT_THAT(prepared_->at(kC),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("serves no API of v1alpha4|v1alpha3|v1alpha2|"
                                 "v1alpha1: unknown service")));
  // It used to be held for a driver of v1alpha1 until it registered anew; but
  // some drivers register their service after they listen.
  EXPECT_EQ(Version(), "v1alpha4|v1alpha3|v1alpha2|v1alpha1");
  Prepare();
  EXPECT_EQ(LastCall().method, kPrepareBatch);
  Answer(Batch());
  EXPECT_THAT(prepared_->at(kC), IsOk());
  EXPECT_EQ(Version(), "v1alpha3");
}

TEST_F(OldDriversTest, SearchesSideBySideEndEach) {
  Register({"1.0.0"});
  Prepare({ClaimNamed("C")});
  Unprepare({ClaimNamed("D")});
  for (std::size_t i = 0; i < peer_.calls().size(); ++i) {
    ASSERT_LT(i, 10u);
    peer_.Answer(i, Unknown());
    executor_.RunPending();
  }
  ASSERT_TRUE(prepared_.has_value() && unprepared_.has_value());
  EXPECT_THAT(prepared_->at(kC), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(unprepared_->at(ClaimUid{"u-D"}),
              StatusIs(absl::StatusCode::kUnimplemented));
}

// Only Unimplemented says that the method is not known.
TEST_F(OldDriversTest, OtherErrorsAreTheClaims) {
  Register({"1.0.0"});
  Prepare();
  Answer(DeadlineExceededError("slow"));
  EXPECT_THAT(prepared_->at(kC), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(Version(), "v1alpha4|v1alpha3|v1alpha2|v1alpha1");
}

TEST_F(OldDriversTest, AMethodThatWorkedIsNotGivenUp) {
  Register({"1.0.0"});
  Prepare();
  Answer(Batch());
  Prepare();
  Answer(Unknown());
  EXPECT_THAT(prepared_->at(kC), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(Version(), "v1alpha3");
}

TEST_F(OldDriversTest, ACallUnderWayFollowsWhatAnotherFoundOut) {
  Register({"1.0.0"});
  Prepare();
  Unprepare({ClaimNamed("D")});
  Answer(Unknown());  // unprepare
  peer_.Answer(0, Unknown());
  executor_.RunPending();
  EXPECT_THAT(Methods(), ElementsAre(kPrepareBatch, kUnprepareBatch,
                                     kUnprepare2, kPrepare2));
}

TEST_F(OldDriversTest, ClaimsGoSideBySideAndEachIsAnsweredByItself) {
  Register({}, {true, {{kDriver, "v1alpha2"}}});
  Prepare({ClaimNamed("C"), ClaimNamed("D"), ClaimNamed("E")});
  ASSERT_EQ(peer_.calls().size(), 3u);
  peer_.Answer(1, absl::UnknownError("no such handle"));
  executor_.RunPending();
  // What the others do may take a minute.
  ASSERT_TRUE(prepared_.has_value());
  EXPECT_EQ(prepared_->size(), 1u);
  peer_.Answer(2, One());
  executor_.RunPending();
  EXPECT_EQ(prepared_->size(), 2u);
  peer_.Answer(0, "");
  executor_.RunPending();
  ASSERT_EQ(prepared_->size(), 3u);
  EXPECT_THAT(*prepared_->at(kC), IsEmpty());
  EXPECT_THAT(
      prepared_->at(ClaimUid{"u-D"}),
      StatusIs(absl::StatusCode::kUnknown, HasSubstr("no such handle")));
  EXPECT_THAT(prepared_->at(ClaimUid{"u-E"}), IsOk());
}

TEST_F(OldDriversTest, ManyClaimsLeaveRoomForOthers) {
  Register({}, {true, {{kDriver, "v1alpha1"}}}, /*max_calls=*/8);
  std::vector<ClaimReference> claims;
  for (int i = 0; i < 40; ++i) claims.push_back(ClaimNamed(std::to_string(i)));
  Prepare(claims);
  EXPECT_EQ(peer_.calls().size(), 2u) << "three others fit in beside it";
  for (std::size_t i = 0; i < peer_.calls().size(); ++i) {
    peer_.Answer(i, One());
    executor_.RunPending();
  }
  ASSERT_TRUE(prepared_.has_value());
  EXPECT_EQ(prepared_->size(), 40u);
  for (const auto& [uid, devices] : *prepared_) EXPECT_THAT(devices, IsOk());
}

TEST_F(OldDriversTest, WhatTheOldestCannotExpressIsSaid) {
  Register({}, {true, {{kDriver, "v1alpha1"}}});
  ClaimReference claim = ClaimNamed("C");
  claim.handle = {"", StructuredResourceHandle{"", "", "node-1", {}}};
  Prepare({claim});
  EXPECT_FALSE(prepared_.has_value());
  executor_.RunPending();
  EXPECT_THAT(peer_.calls(), IsEmpty());
  EXPECT_THAT(
      prepared_->at(kC),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("claim 'ns/C' was allocated by structured parameters, "
                         "which API v1alpha1 cannot express")));
  // But what was prepared by another instance can be taken back.
  Unprepare({claim});
  Answer("");
  EXPECT_THAT(unprepared_->at(kC), IsOk());
}

/// Of a claim in today's shape: what an old driver is handed for it.
ClaimReference Structured(const std::string& name) {
  return {ClaimUid{"u-" + name},
          NameOf(name),
          {"", StructuredResourceHandle{"", "", "node-1", {{"", "dev-1"}}}},
          {}};
}
ClaimReference Unsayable(const std::string& name) {
  return {ClaimUid{"u-" + name},
          NameOf(name),
          {"adminAccess", StructuredResourceHandle()},
          {}};
}

// AL-125, AL-126. Such claims used to be called with an empty handle.
TEST_F(OldDriversTest, WhatAHandleCannotExpressIsRefusedAndOthersGoOn) {
  Register({}, {true, {{kDriver, "v1alpha3"}}});
  Prepare({Unsayable("D"), Structured("C")});
  v1alpha3::NodePrepareResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(LastCall().request));
  ASSERT_EQ(request.claims_size(), 1);
  EXPECT_EQ(request.claims(0).resource_handle(), "");
  ASSERT_EQ(request.claims(0).structured_resource_handle_size(), 1);
  EXPECT_EQ(request.claims(0).structured_resource_handle(0).node_name(),
            "node-1");
  Answer(Batch());
  EXPECT_THAT(prepared_->at(kC), IsOk());
  EXPECT_THAT(prepared_->at(ClaimUid{"u-D"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("claim 'ns/D' has adminAccess, which API "
                                 "v1alpha3 cannot express")));
}

TEST_F(OldDriversTest, NoCallIsMadeForWhatNoHandleCanExpress) {
  for (const char* api : {"v1alpha3", "v1alpha2", "v1alpha1"}) {
    Register({}, {true, {{kDriver, api}}});
    Prepare({Unsayable("C")});
    executor_.RunPending();
    ASSERT_TRUE(prepared_.has_value()) << api;
    EXPECT_THAT(peer_.calls(), IsEmpty()) << api;
    EXPECT_THAT(
        prepared_->at(kC),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(api)));
    registry_.reset();
    executor_.RunPending();
  }
}

// Drivers of Kubernetes 1.31 read the claim themselves. Whether it is one shows
// in the answer alone.
TEST_F(OldDriversTest, ADriverThatReadsClaimsNeedsNoHandle) {
  Register({"v1alpha3.NodeService"});
  Prepare({Unsayable("C")});
  v1alpha3::NodePrepareResourcesRequest request;
  ASSERT_TRUE(request.ParseFromString(LastCall().request));
  EXPECT_EQ(request.claims(0).resource_handle(), "");
  Answer(Named());
  EXPECT_THAT(prepared_->at(kC), IsOk());
}

TEST_F(OldDriversTest, WhatADriverPreparedWithoutItsHandleDoesNotCount) {
  Register({"v1alpha3.NodeService"});
  Prepare({Unsayable("C")});
  Answer(Batch());
  EXPECT_THAT(prepared_->at(kC),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("adminAccess, which API v1alpha3")));
  // It did prepare it.
  Unprepare({Unsayable("C")});
  EXPECT_EQ(LastCall().method, kUnprepareBatch);
}

TEST_F(OldDriversTest, AnErrorOfADriverThatMayNotSeeTheHandleSaysSo) {
  Register({}, {true, {{kDriver, "v1alpha2"}}});
  Prepare({Structured("C")});
  v1alpha2::NodePrepareResourceRequest request;
  ASSERT_TRUE(request.ParseFromString(LastCall().request));
  EXPECT_EQ(request.structured_resource_handle_size(), 1);
  Answer(absl::UnknownError("no handle"));
  EXPECT_THAT(prepared_->at(kC),
              StatusIs(absl::StatusCode::kUnknown,
                       HasSubstr("no handle (a driver older than structured")));
  Prepare({ClaimNamed("C")});
  Answer(absl::UnknownError("boom"));
  EXPECT_THAT(prepared_->at(kC), StatusIs(absl::StatusCode::kUnknown,
                                          Not(HasSubstr("older than"))));
}

TEST_F(OldDriversTest, AnswersAreCheckedAsThoseOfOthers) {
  Register({}, {true, {{kDriver, "v1alpha2"}}});
  Prepare();
  v1alpha2::NodePrepareResourceResponse response;
  response.add_cdi_devices("not a CDI name");
  Answer(response.SerializeAsString());
  EXPECT_THAT(prepared_->at(kC),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("returned an invalid answer")));
  Prepare();
  Answer("\x0a\x7f\x01");
  EXPECT_THAT(prepared_->at(kC), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(OldDriversTest, ARegistryThatGoesInTheMiddleAnswersNevertheless) {
  Register({"1.0.0"});
  Prepare({ClaimNamed("C"), ClaimNamed("D")});
  registry_.reset();
  executor_.RunPending();
  ASSERT_TRUE(prepared_.has_value());
  EXPECT_EQ(prepared_->size(), 2u);
}

}  // namespace
}  // namespace devmgr::dra
