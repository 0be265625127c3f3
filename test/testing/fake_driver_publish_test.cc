// SPDX-License-Identifier: Apache-2.0
//
// A fake driver that publishes its devices to an API server, and reads claims
// there. With the endpoint of devmgrd: test/e2e/publish_test.cc.
#include <devmgr/testing_api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/status_matchers.h"
#include "testing/fake_driver_fixture.h"

namespace devmgr::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr char kSlicesPath[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kNode[] =
    "{apiVersion: v1, kind: Node, metadata: {name: n1, uid: u-node}}\n";

class FakeDriverPublishTest : public FakeDriverFixture {
 protected:
  void StartServer(const std::string& objects = kNode) {
    ScriptedApiServerOptions options;
    options.objects = objects;
    auto server = ScriptedApiServer::Start(std::move(options));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    WriteKubeconfig();
  }
  std::filesystem::path Kubeconfig() const {
    return root_ / "kubeconfig" / kDriver;
  }
  /// In one step, as devmgrd does.
  void WriteKubeconfig() const {
    std::filesystem::create_directories(Kubeconfig().parent_path());
    std::ofstream(root_ / "new")
        << "current-context: c\n"
           "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters: [{name: k, cluster: {server: '"
        << server_->url() << "'}}]\nusers: [{name: u, user: {}}]\n";
    std::filesystem::rename(root_ / "new", Kubeconfig());
  }
  FakeDraDriverOptions PublishOptions(int devices = 3) {
    FakeDraDriverOptions options = Options();
    options.publish = true;
    options.devices = devices;
    return options;
  }
  std::vector<Json> Slices() const {
    const auto list = server_->Do("GET", kSlicesPath);
    EXPECT_THAT(list, IsOk());
    return Json::parse(list.value_or("{}"))["items"];
  }
  ::testing::AssertionResult WaitForPublished(std::size_t count) const {
    if (WaitForEvents("published", count)) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure()
           << Json(Events("publish-failed")).dump();
  }

  std::unique_ptr<ScriptedApiServer> server_;
};

TEST_F(FakeDriverPublishTest, WaitsForItsKubeconfig) {
  StartDriver(PublishOptions());
  ASSERT_TRUE(WaitForEvent("publish-failed"));
  EXPECT_THAT(Events("publish-failed")[0]["error"].get<std::string>(),
              HasSubstr(Kubeconfig().string()));
  StartServer();
  ASSERT_TRUE(WaitForPublished(1));
  EXPECT_EQ(Events("published")[0]["pool"], "n1");
  ASSERT_THAT(Slices(), SizeIs(1));
  const Json slice = Slices()[0];
  EXPECT_EQ(slice["spec"]["pool"]["name"], "n1");
  EXPECT_THAT(slice["spec"]["devices"], SizeIs(3));
  EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "u-node");
}

TEST_F(FakeDriverPublishTest, PublishesAnewWhatWasDeleted) {
  StartServer();
  StartDriver(PublishOptions(200));
  ASSERT_TRUE(WaitForPublished(1));
  const std::string name = Slices()[0]["metadata"]["name"];
  ASSERT_THAT(server_->Do("DELETE", std::string(kSlicesPath) + "/" + name),
              IsOk());
  ASSERT_TRUE(WaitForPublished(2));
  EXPECT_THAT(Slices(), SizeIs(2));
  EXPECT_EQ(Events("published")[1]["generation"], 2);
}

TEST_F(FakeDriverPublishTest, TakesOverWhatItHasPublishedBefore) {
  StartServer();
  StartDriver(PublishOptions());
  ASSERT_TRUE(WaitForPublished(1));
  const std::vector<Json> before = Slices();
  ASSERT_THAT(driver_->Restart(), IsOk());
  ASSERT_TRUE(WaitForPublished(2));
  EXPECT_EQ(Slices(), before);
}

TEST_F(FakeDriverPublishTest, DoublesNothingWhenAnAnswerGetsLost) {
  StartServer();
  ApiFault lost;
  lost.action = ApiFault::Action::kLoseAnswer;
  lost.verb = "create";
  lost.times = 2;
  server_->AddFault(lost);
  StartDriver(PublishOptions(300));
  ASSERT_TRUE(WaitForPublished(1));
  EXPECT_THAT(Slices(), SizeIs(3));
  EXPECT_THAT(Events("publish-failed"), ::testing::Not(IsEmpty()));
}

TEST_F(FakeDriverPublishTest, GoesOnWhenTheServerIsBackElsewhere) {
  StartServer();
  StartDriver(PublishOptions());
  ASSERT_TRUE(WaitForPublished(1));
  server_.reset();
  ASSERT_TRUE(WaitForEvent("publish-failed"));
  StartServer();
  ASSERT_TRUE(WaitForPublished(2));
  EXPECT_THAT(Slices(), SizeIs(1));
}

TEST_F(FakeDriverPublishTest, SaysWhatTheServerSays) {
  StartServer();
  ApiFault refusal;
  refusal.action = ApiFault::Action::kFail;
  refusal.verb = "create";
  refusal.code = 403;
  refusal.message = "driver may not write slices today";
  server_->AddFault(refusal);
  StartDriver(PublishOptions());
  ASSERT_TRUE(WaitForEvent("publish-failed"));
  const std::string error = Events("publish-failed")[0]["error"];
  EXPECT_THAT(error, HasSubstr("cannot create slice 'n1-gpu.example.com-'"));
  EXPECT_THAT(error, HasSubstr("403"));
  EXPECT_THAT(error, HasSubstr("driver may not write slices today"));
  EXPECT_TRUE(WaitForPublished(1));
}

TEST_F(FakeDriverPublishTest, HasToBeToldItsNodeAmongSeveral) {
  StartServer(std::string(kNode) +
              "---\n{apiVersion: v1, kind: Node, "
              "metadata: {name: n2, uid: u-node-2}}\n");
  FakeDraDriverOptions options = PublishOptions();
  StartDriver(options);
  ASSERT_TRUE(WaitForEvent("publish-failed"));
  EXPECT_THAT(Events("publish-failed")[0]["error"].get<std::string>(),
              HasSubstr("the server shows 2 nodes"));
  options.node_name = "n2";
  StartDriver(options);
  ASSERT_TRUE(WaitForPublished(1));
  EXPECT_EQ(Events("published")[0]["pool"], "n2");
}

TEST_F(FakeDriverPublishTest, ReadsClaimsFromTheServer) {
  StartServer();
  StartDriver(PublishOptions());
  ASSERT_TRUE(WaitForPublished(1));
  // A manifest of it does not count.
  WriteClaim("c1", "u-1", {Result()});
  const auto missing = Prepare({{"c1", "u-1"}});
  ASSERT_THAT(missing, IsOk());
  EXPECT_THAT(missing->claims().at("u-1").error(), HasSubstr("404"));
  ASSERT_THAT(server_->Apply(R"(
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, namespace: default, uid: u-1}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices:
      results:
      - {request: gpu, driver: gpu.example.com, pool: n1, device: gpu-1}
)"),
              IsOk());
  const auto prepared = Prepare({{"c1", "u-1"}});
  ASSERT_THAT(prepared, IsOk());
  EXPECT_EQ(prepared->claims().at("u-1").error(), "");
  ASSERT_EQ(prepared->claims().at("u-1").devices_size(), 1);
  EXPECT_EQ(prepared->claims().at("u-1").devices(0).pool_name(), "n1");
  const auto other = Prepare({{"c1", "u-2"}});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(other->claims().at("u-2").error(),
              HasSubstr("asked for uid 'u-2', there is 'u-1'"));
}

TEST_F(FakeDriverPublishTest, RefusesAServerWithoutPublish) {
  FakeDraDriverOptions options = Options();
  options.kubeconfig = Kubeconfig();
  EXPECT_THAT(
      FakeDraDriver::Start(options).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kubeconfig")));
}

}  // namespace
}  // namespace devmgr::testing
