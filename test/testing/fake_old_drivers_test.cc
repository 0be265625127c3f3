// SPDX-License-Identifier: Apache-2.0
//
// A fake driver of Kubernetes 1.26 to 1.33: what it announces, and how it
// answers.
#include <devmgr/wire/dra/v1alpha1/dra.pb.h>
#include <devmgr/wire/dra/v1alpha2/dra.pb.h>
#include <devmgr/wire/dra/v1alpha3/dra.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "rpc/message.h"
#include "testing/fake_driver_fixture.h"

namespace devmgr::testing {
namespace {

namespace v1alpha1 = wire::dra::v1alpha1;
namespace v1alpha2 = wire::dra::v1alpha2;
namespace v1alpha3 = wire::dra::v1alpha3;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeOldDriversTest : public FakeDriverFixture {
 protected:
  void StartDriverOf(std::vector<std::string> api) {
    auto options = Options();
    options.api = std::move(api);
    StartDriver(std::move(options));
  }

  /// A call for claim `c1`, with what the request of that API has beside.
  template <typename Request, typename Response>
  absl::StatusOr<Response> CallOne(const std::string& method, Request request) {
    request.set_namespace_("default");
    request.set_claim_name("c1");
    request.set_claim_uid("uid-1");
    const auto bytes = Call(method, rpc::Encode(request));
    if (!bytes.ok()) return bytes.status();
    return rpc::Decode<Response>(*bytes);
  }

  absl::StatusOr<v1alpha2::NodePrepareResourceResponse> Prepare2(
      const v1alpha2::NodePrepareResourceRequest& request) {
    return CallOne<v1alpha2::NodePrepareResourceRequest,
                   v1alpha2::NodePrepareResourceResponse>(
        "/v1alpha2.Node/NodePrepareResource", request);
  }
};

TEST_F(FakeOldDriversTest, AnnounceWhatSuchDriversDid) {
  StartDriverOf({"v1beta1", "v1alpha4"});
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1beta1.DRAPlugin", "v1alpha3.NodeService"));
  StartDriverOf({"v1alpha3", "v1alpha2"});
  EXPECT_THAT(GetInfo()->supported_versions(), ElementsAre("1.0.0"));
}

TEST_F(FakeOldDriversTest, TwoApisWithTheSameNameCannotBothBeServed) {
  auto options = Options();
  options.api = {"v1alpha4", "v1alpha3"};
  const auto driver = FakeDraDriver::Start(std::move(options));
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(driver.status().message()),
              HasSubstr("the same method names"));
}

// DRA-023, the driver's side: no manifest is needed.
TEST_F(FakeOldDriversTest, PrepareByTheHandleAndAnswerCdiNames) {
  StartDriverOf({"v1alpha2"});
  v1alpha2::NodePrepareResourceRequest request;
  request.set_resource_handle("h");
  const auto answer = Prepare2(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->cdi_devices(),
              ElementsAre("gpu.example.com/claim=uid-1-claim-0"));
  EXPECT_EQ(SpecOf("uid-1")["devices"].size(), 1u);
  const auto call = driver_->Calls().back();
  EXPECT_EQ(call.api, "v1alpha2");
  EXPECT_THAT(call.claims, ElementsAre("c1"));
  ASSERT_EQ(call.handles.size(), 1u);
  EXPECT_EQ(call.handles[0].data, "h");
  EXPECT_EQ(Events("call")[0]["claims"][0]["handle"], "h");
}

TEST_F(FakeOldDriversTest, PrepareADeviceForEachStructuredResult) {
  StartDriverOf({"v1alpha2"});
  v1alpha2::NodePrepareResourceRequest request;
  auto* handle = request.add_structured_resource_handle();
  for (const char* name : {"gpu-3", "gpu-4"}) {
    handle->add_results()
        ->mutable_allocation_result_model()
        ->mutable_named_resources()
        ->set_name(name);
  }
  const auto answer = Prepare2(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->cdi_devices(),
              ElementsAre("gpu.example.com/claim=uid-1-gpu-3-0",
                          "gpu.example.com/claim=uid-1-gpu-4-1"));
}

TEST_F(FakeOldDriversTest, AClaimThatFailsIsACallThatFails) {
  StartDriverOf({"v1alpha2"});
  ScenarioStep step;
  step.action = ScenarioStep::Action::kFailClaim;
  step.message = "no luck";
  driver_->AddStep(step);
  const auto failed = Prepare2({});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("no luck"));
  EXPECT_TRUE(Prepare2({}).ok());
}

TEST_F(FakeOldDriversTest, UnprepareOfTheOldestIsToldTheCdiNames) {
  StartDriverOf({"v1alpha1"});
  v1alpha1::NodeUnprepareResourceRequest request;
  request.add_cdi_devices("a.b/c=1");
  const auto answer = CallOne<v1alpha1::NodeUnprepareResourceRequest,
                              v1alpha1::NodeUnprepareResourceResponse>(
      "/v1alpha1.Node/NodeUnprepareResource", request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(driver_->Calls().back().cdi_devices, ElementsAre("a.b/c=1"));
}

TEST_F(FakeOldDriversTest, BatchesAnswerEachClaim) {
  StartDriverOf({"v1alpha3"});
  v1alpha3::NodePrepareResourcesRequest request;
  for (const char* uid : {"uid-1", "uid-2"}) {
    auto* claim = request.add_claims();
    claim->set_uid(uid);
    claim->set_name(std::string("c-") + uid);
  }
  ScenarioStep step;
  step.action = ScenarioStep::Action::kFailClaim;
  driver_->AddStep(step);
  const auto bytes =
      Call("/v1alpha3.Node/NodePrepareResources", rpc::Encode(request));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto answer =
      rpc::Decode<v1alpha3::NodePrepareResourcesResponse>(*bytes);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->claims().at("uid-1").cdi_devices(),
              ElementsAre("gpu.example.com/claim=uid-1-claim-0"));
  EXPECT_NE(answer->claims().at("uid-2").error(), "");
  EXPECT_THAT(answer->claims().at("uid-2").cdi_devices(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::testing
