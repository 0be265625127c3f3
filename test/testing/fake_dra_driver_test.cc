// SPDX-License-Identifier: Apache-2.0
//
// What an honest fake driver does: sockets, claims, CDI files, its own state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <string>

#include "cdi/qualified_name.h"
#include "testing/fake_driver_fixture.h"

namespace devmgr::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class FakeDraDriverTest : public FakeDriverFixture {};

TEST_F(FakeDraDriverTest, BadOptionsAreRefusedAllAtOnce) {
  FakeDraDriverOptions options;
  options.name = "a/b";
  options.api = {"v1", "v7"};
  options.devices = -1;
  const auto driver = FakeDraDriver::Start(std::move(options));
  ASSERT_EQ(driver.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string text(driver.status().message());
  EXPECT_THAT(text, HasSubstr("'a/b'"));
  EXPECT_THAT(text, HasSubstr("root is empty"));
  EXPECT_THAT(text, HasSubstr("'v7'"));
  EXPECT_THAT(text, HasSubstr("devices is -1"));
}

TEST_F(FakeDraDriverTest, IntroducesItself) {
  StartDriver();
  const auto info = GetInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->type(), "DRAPlugin");
  EXPECT_EQ(info->name(), kDriver);
  EXPECT_EQ(info->endpoint(), ServiceSocket().string());
  EXPECT_THAT(info->supported_versions(),
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin"));
}

TEST_F(FakeDraDriverTest, MakesMissingFolders) {
  StartDriver();
  for (const char* folder : {"manifests", "cdi", "plugins_registry"}) {
    EXPECT_TRUE(std::filesystem::is_directory(root_ / folder)) << folder;
  }
}

TEST_F(FakeDraDriverTest, AdvertisesAndServesWhatItIsTold) {
  auto options = Options();
  options.api = {"v1beta1"};
  StartDriver(std::move(options));
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1beta1.DRAPlugin"));
  WriteClaim("c1", "uid-1", {{}});
  const auto v1_call = Prepare({{"c1", "uid-1"}});
  EXPECT_EQ(v1_call.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(v1_call.status().message()),
              HasSubstr("unknown service k8s.io.kubelet.pkg.apis.dra.v1."
                        "DRAPlugin"));
}

// DRA-008, the driver's side.
TEST_F(FakeDraDriverTest, CanLieAboutWhatItServes) {
  auto options = Options();
  options.api = {"v1beta1"};
  options.served_api = {"v1"};
  StartDriver(std::move(options));
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1beta1.DRAPlugin"));
  const auto answer = Call(
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
      "");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(answer.status().message()),
      HasSubstr("unknown service k8s.io.kubelet.pkg.apis.dra.v1beta1."));
}

TEST_F(FakeDraDriverTest, ListsAnyVersionsItIsTold) {
  auto options = Options();
  options.supported_versions = {"v9.DRAPlugin", "v1.DRAPlugin"};
  StartDriver(std::move(options));
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v9.DRAPlugin", "v1.DRAPlugin"));
}

// DRA-018, the driver's side.
TEST_F(FakeDraDriverTest, ServesEverythingOnOneSocketIfToldSo) {
  auto options = Options();
  options.common_socket = true;
  StartDriver(std::move(options));
  EXPECT_EQ(GetInfo()->endpoint(), "");
  EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
  service_ = Dial(RegistrationSocket());
  WriteClaim("c1", "uid-1", {{}});
  const auto answer = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("uid-1").devices_size(), 1);
}

// DRA-019, the driver's side.
TEST_F(FakeDraDriverTest, FailsGetInfoAtFirstIfToldSo) {
  auto options = Options();
  options.fail_get_info = 2;
  StartDriver(std::move(options));
  EXPECT_FALSE(GetInfo().ok());
  EXPECT_FALSE(GetInfo().ok());
  EXPECT_TRUE(GetInfo().ok());
}

TEST_F(FakeDraDriverTest, RemembersWhatTheManagerSaid) {
  StartDriver();
  EXPECT_FALSE(driver_->WaitForRegistrations(1, std::chrono::milliseconds(0)));
  ASSERT_TRUE(Notify(false, "name is taken").ok());
  EXPECT_TRUE(driver_->WaitForRegistrations(1, kLimit));
  EXPECT_EQ(driver_->last_registration_error(), "name is taken");
  ASSERT_TRUE(Notify(true, "").ok());
  EXPECT_TRUE(driver_->WaitForRegistrations(2, kLimit));
  EXPECT_EQ(driver_->last_registration_error(), "");
  ASSERT_EQ(Events("registration-refused").size(), 1u);
  EXPECT_EQ(Events("registration-refused")[0]["error"], "name is taken");
  EXPECT_EQ(Events("registered").size(), 1u);
}

TEST_F(FakeDraDriverTest, PreparesWhatTheAllocationSays) {
  StartDriver();
  WriteClaim("c1", "uid-1",
             {{"gpu/large", "gpu-7", kDriver, "far/pool", "share-1"},
              {"nic", "nic-0", "other.example.com"},
              {"aux", "gpu-3"}});
  const auto answer = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto& claim = answer->claims().at("uid-1");
  EXPECT_EQ(claim.error(), "");
  ASSERT_EQ(claim.devices_size(), 2);
  EXPECT_THAT(claim.devices(0).request_names(), ElementsAre("gpu"));
  EXPECT_EQ(claim.devices(0).pool_name(), "far/pool");
  EXPECT_EQ(claim.devices(0).device_name(), "gpu-7");
  EXPECT_EQ(claim.devices(0).share_id(), "share-1");
  EXPECT_THAT(claim.devices(1).request_names(), ElementsAre("aux"));
  EXPECT_EQ(claim.devices(1).device_name(), "gpu-3");
  EXPECT_FALSE(claim.devices(1).has_share_id());
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-1"));
}

TEST_F(FakeDraDriverTest, V1beta1HasNoShareIds) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{"gpu", "gpu-0", kDriver, "pool-0", "share-1"}});
  v1beta1::NodePrepareResourcesRequest request;
  request.add_claims()->set_name("c1");
  request.mutable_claims(0)->set_namespace_("default");
  request.mutable_claims(0)->set_uid("uid-1");
  const auto bytes = Call(
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
      request.SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1beta1::NodePrepareResourcesResponse answer;
  ASSERT_TRUE(answer.ParseFromString(*bytes));
  ASSERT_EQ(answer.claims().at("uid-1").devices_size(), 1);
  v1::Device as_v1;
  ASSERT_TRUE(as_v1.ParseFromString(
      answer.claims().at("uid-1").devices(0).SerializeAsString()));
  EXPECT_FALSE(as_v1.has_share_id());
  EXPECT_EQ(driver_->Calls().at(0).api, "v1beta1");
}

TEST_F(FakeDraDriverTest, EveryDeviceIsInTheSpecFileOfItsClaim) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{"a", "gpu-0"}, {"b", "gpu-0"}});
  WriteClaim("c2", "uid-2", {{"a", "gpu-0"}});
  const auto answer = Prepare({{"c1", "uid-1"}, {"c2", "uid-2"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  std::set<std::string> ids;
  std::set<std::string> environment;
  for (const auto& [uid, claim] : answer->claims()) {
    const nlohmann::json spec = SpecOf(uid);
    ASSERT_TRUE(spec.is_object()) << uid;
    EXPECT_EQ(spec["cdiVersion"], "0.5.0");
    EXPECT_EQ(spec["kind"], "gpu.example.com/claim");
    std::set<std::string> in_spec;
    for (const auto& device : spec["devices"]) {
      in_spec.insert(device["name"]);
      const std::string edit = device["containerEdits"]["env"][0];
      EXPECT_THAT(edit, HasSubstr("=pool-0/gpu-0"));
      environment.insert(edit.substr(0, edit.find('=')));
    }
    for (const auto& device : claim.devices()) {
      for (const std::string& id : device.cdi_device_ids()) {
        const auto name = ParseCdiName(id);
        ASSERT_TRUE(name.ok()) << name.status();
        EXPECT_EQ(name->vendor + "/" + name->device_class, spec["kind"]);
        EXPECT_EQ(in_spec.count(name->name), 1u) << id;
        ids.insert(id);
      }
    }
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(environment.size(), 3u);
  EXPECT_THAT(FilesIn("cdi"),
              UnorderedElementsAre("gpu.example.com-uid-1.json",
                                   "gpu.example.com-uid-2.json"));
}

// A driver name may begin with a digit; a CDI vendor may not.
TEST_F(FakeDraDriverTest, ADriverNameThatIsNoVendorStillGivesCdiNames) {
  auto options = Options();
  options.name = "9.example.com";
  StartDriver(std::move(options));
  WriteClaim("c1", "9-uid", {{"gpu", "0", "9.example.com"}});
  service_ = Dial(root_ / "plugins/9.example.com/dra.sock");
  const auto answer = Prepare({{"c1", "9-uid"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto& claim = answer->claims().at("9-uid");
  ASSERT_EQ(claim.devices_size(), 1) << claim.error();
  const std::string id = claim.devices(0).cdi_device_ids(0);
  EXPECT_TRUE(cdi::CheckQualifiedName(id).ok()) << id;
}

TEST_F(FakeDraDriverTest, RepeatedPrepareGivesTheSameAnswer) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  const auto first = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto again = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("gpu.example.com-uid-1.json"));
}

TEST_F(FakeDraDriverTest, RepeatedPrepareWritesALostSpecFileAgain) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  const nlohmann::json spec = SpecOf("uid-1");
  std::filesystem::remove_all(root_ / "cdi");
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_EQ(SpecOf("uid-1"), spec);
}

TEST_F(FakeDraDriverTest, AClaimWithoutDevicesOfTheDriverHasNoSpecFile) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{"nic", "nic-0", "other.example.com"}});
  const auto answer = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("uid-1").error(), "");
  EXPECT_EQ(answer->claims().at("uid-1").devices_size(), 0);
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverTest, BadClaimsFailAloneAndAreNamed) {
  StartDriver();
  WriteClaim("fine", "uid-1", {{}});
  WriteClaim("pending", "uid-2", {});
  WriteClaim("newer", "uid-3b", {{}});
  WriteClaim("evil", "", {{}});
  const auto answer = Prepare({{"fine", "uid-1"},
                               {"pending", "uid-2"},
                               {"newer", "uid-3a"},
                               {"absent", "uid-4"},
                               {"evil", "../../../evil"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto& claims = answer->claims();
  EXPECT_EQ(claims.at("uid-1").error(), "");
  EXPECT_THAT(claims.at("uid-2").error(),
              HasSubstr("'default/pending' with uid 'uid-2': not allocated"));
  EXPECT_THAT(claims.at("uid-3a").error(), HasSubstr("default/newer"));
  EXPECT_THAT(claims.at("uid-3a").error(), HasSubstr("uid-3b"));
  EXPECT_THAT(claims.at("uid-4").error(), HasSubstr("'default/absent'"));
  EXPECT_THAT(claims.at("../../../evil").error(), HasSubstr("default/evil"));
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("gpu.example.com-uid-1.json"));
}

TEST_F(FakeDraDriverTest, AManifestWithoutUidFitsAnyUid) {
  StartDriver();
  WriteClaim("c1", "", {{}});
  const auto answer = Prepare({{"c1", "derived-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("derived-1").error(), "");
}

TEST_F(FakeDraDriverTest, ABadManifestIsNamedWhenAClaimIsMissing) {
  StartDriver();
  std::ofstream(root_ / "manifests" / "broken.yaml") << "kind: [\n";
  const auto answer = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->claims().at("uid-1").error(), HasSubstr("broken.yaml"));
}

TEST_F(FakeDraDriverTest, OfTwoManifestsOfOneClaimTheFirstFileCounts) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{"gpu", "gpu-1"}});
  std::filesystem::copy(root_ / "manifests/c1.yaml", root_ / "manifests/b.yml");
  WriteClaim("c1", "uid-1", {{"gpu", "gpu-2"}});
  const auto answer = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("uid-1").devices(0).device_name(), "gpu-1");
}

TEST_F(FakeDraDriverTest, UnprepareLeavesNothing) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  WriteClaim("c2", "uid-2", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}, {"c2", "uid-2"}}).ok());
  RemoveManifest("c1");
  const auto one = Unprepare({{"c1", "uid-1"}});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->claims().at("uid-1").error(), "");
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-2"));
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("gpu.example.com-uid-2.json"));
  ASSERT_TRUE(Unprepare({{"c2", "uid-2"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
  EXPECT_THAT(FilesIn("plugins/gpu.example.com/claims"), IsEmpty());
}

TEST_F(FakeDraDriverTest, UnprepareOfAnUnknownClaimSucceeds) {
  StartDriver();
  const auto answer = Unprepare({{"c1", "uid-1"}, {"c2", "../x"}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("uid-1").error(), "");
  EXPECT_EQ(answer->claims().at("../x").error(), "");
}

TEST_F(FakeDraDriverTest, FilesOfOthersInTheCdiFolderStay) {
  StartDriver();
  std::ofstream(root_ / "cdi" / "vendor.json") << "{}";
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("vendor.json"));
}

TEST_F(FakeDraDriverTest, ANewProcessUnpreparesWhatTheOldOnePrepared) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  const auto before = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(before.ok()) << before.status();
  StartDriver();
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-1"));
  const auto after = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(before->SerializeAsString(), after->SerializeAsString());
  RemoveManifest("c1");
  StartDriver();
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverTest, LeftoversOfAKilledProcessGoWithTheClaim) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  driver_.reset();
  // As if it had been killed between writing and renaming.
  std::ofstream(root_ / "cdi/gpu.example.com-uid-1.json.a1B2c3.tmp") << "{";
  std::ofstream(root_ / "plugins/gpu.example.com/claims/uid-2.json.tmp") << "{";
  StartDriver();
  EXPECT_THAT(FilesIn("plugins/gpu.example.com/claims"),
              ElementsAre("uid-1.json"));
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverTest, ABadRecordIsNamedAndNothingIsTouched) {
  const auto claims = root_ / "plugins/gpu.example.com/claims";
  std::filesystem::create_directories(claims);
  std::ofstream(claims / "uid-1.json") << "[1]";
  const auto driver = FakeDraDriver::Start(Options());
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(driver.status().message()), HasSubstr("uid-1.json"));
  EXPECT_TRUE(std::filesystem::exists(claims / "uid-1.json"));
  EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
}

TEST_F(FakeDraDriverTest, SocketsGoWhenItEnds) {
  StartDriver();
  EXPECT_TRUE(std::filesystem::is_socket(ServiceSocket()));
  EXPECT_TRUE(std::filesystem::is_socket(RegistrationSocket()));
  driver_.reset();
  EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
  EXPECT_FALSE(std::filesystem::exists(RegistrationSocket()));
}

TEST_F(FakeDraDriverTest, ASecondDriverOfThatNameIsRefused) {
  StartDriver();
  const auto second = FakeDraDriver::Start(Options());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(GetInfo().ok());
}

TEST_F(FakeDraDriverTest, RestartMakesNewSocketsAndKeepsClaims) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  struct stat before {};
  ASSERT_EQ(::stat(RegistrationSocket().c_str(), &before), 0);
  auto hung_up = std::make_shared<PendingAnswer>();
  const auto watcher =
      Dial(ServiceSocket(), [hung_up] { hung_up->Set(std::string()); });
  ASSERT_NE(watcher, nullptr);
  ASSERT_TRUE(driver_->Restart().ok());
  EXPECT_TRUE(hung_up->Wait().ok());
  EXPECT_EQ(Events("serving").size(), 2u);
  EXPECT_TRUE(GetInfo().ok());
  HangUp();
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverTest, CountsConnectionsAndCalls) {
  StartDriver();
  EXPECT_EQ(driver_->accepted_connections(), 0u);
  EXPECT_TRUE(GetInfo().ok());
  EXPECT_EQ(driver_->accepted_connections(), 0u);
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_EQ(driver_->accepted_connections(), 1u);
  ASSERT_TRUE(driver_->Restart().ok());
  HangUp();
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_EQ(driver_->accepted_connections(), 2u);
  ASSERT_TRUE(driver_->WaitForCalls(2, kLimit));
  EXPECT_FALSE(driver_->WaitForCalls(3, std::chrono::milliseconds(0)));
  const auto calls = driver_->Calls();
  EXPECT_EQ(calls[0].method, "prepare");
  EXPECT_EQ(calls[0].api, "v1");
  EXPECT_THAT(calls[0].claims, ElementsAre("c1"));
  EXPECT_THAT(calls[0].claim_uids, ElementsAre("uid-1"));
  EXPECT_EQ(calls[1].method, "unprepare");
}

TEST_F(FakeDraDriverTest, EventsTellCallsAndAnswers) {
  StartDriver();
  WriteClaim("c1", "uid-1", {{}});
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}, {"c2", "uid-2"}}).ok());
  const auto calls = Events("call");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["method"], "prepare");
  EXPECT_EQ(calls[0]["api"], "v1");
  EXPECT_EQ(calls[0]["claims"][0],
            (nlohmann::json{
                {"namespace", "default"}, {"name", "c1"}, {"uid", "uid-1"}}));
  const auto answers = Events("answer");
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]["claims"][0]["devices"][0]["device"], "gpu-0");
  EXPECT_THAT(answers[0]["claims"][1]["error"].get<std::string>(),
              HasSubstr("default/c2"));
}

TEST_F(FakeDraDriverTest, BytesThatAreNoRequestAreRefused) {
  StartDriver();
  const auto answer =
      Call("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
           "\xff\xff");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(driver_->Calls(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::testing
