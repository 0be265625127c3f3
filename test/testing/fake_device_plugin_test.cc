// SPDX-License-Identifier: Apache-2.0
//
// What the fake device plugin does when nobody tells it to misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/status.h"
#include "testing/fake_plugin_fixture.h"

namespace devmgr::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Way = FakeDevicePluginOptions::Way;

class FakeDevicePluginTest : public FakePluginFixture {};

TEST_F(FakeDevicePluginTest, RegistersWithARegistryThatIsThere) {
  StartRegistry();
  auto options = Options();
  options.preferred = true;
  StartPlugin(options);
  const auto request = NextRegistration();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->version(), "v1beta1");
  EXPECT_EQ(request->endpoint(), "example.com_gpu.sock");
  EXPECT_EQ(request->resource_name(), kResource);
  EXPECT_TRUE(request->options().get_preferred_allocation_available());
  EXPECT_FALSE(request->options().pre_start_required());
  EXPECT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  EXPECT_EQ(plugin_->last_registration_error(), "");
  EXPECT_EQ(Events("registered").size(), 1u);
}

TEST_F(FakeDevicePluginTest, ServesBeforeItRegisters) {
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(NextRegistration().has_value());
  EXPECT_TRUE(GetOptions().ok());
}

TEST_F(FakeDevicePluginTest, WaitsForTheRegistry) {
  StartPlugin();
  ASSERT_TRUE(WaitForEvent("registry-away"));
  StartRegistry();
  EXPECT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  EXPECT_EQ(registrations_.size(), 1u);
}

TEST_F(FakeDevicePluginTest, TriesAgainWhileItIsRefused) {
  verdict_ = MakeStatus(absl::StatusCode::kUnknown, "not you");
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_EQ(plugin_->last_registration_error(), "not you");
  EXPECT_EQ(Events("registration-refused").front().at("error"), "not you");
}

TEST_F(FakeDevicePluginTest, StartsOverWithANewRegistry) {
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()),
              ElementsAre("gpu-0 Healthy", "gpu-1 Healthy"));
  StopRegistry();
  StartRegistry();
  // A try at the old one may have failed meanwhile.
  ASSERT_TRUE(WaitForEvent("registered", 2));
  EXPECT_EQ(registrations_.size(), 2u);
  // What the last one held is gone, and the devices are the same.
  EXPECT_FALSE(stream->End().ok());
  EXPECT_THAT(NextList(Watch().get()),
              ElementsAre("gpu-0 Healthy", "gpu-1 Healthy"));
}

// As a kubelet that starts does: DP-021.
TEST_F(FakeDevicePluginTest, ComesBackWhenItsSocketIsDeleted) {
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  fs::remove(Socket());
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_TRUE(GetOptions().ok());
}

TEST_F(FakeDevicePluginTest, ComesBackWhenTheDirectoryIsDeleted) {
  StartPlugin();
  // In one step: the plugin makes it anew as soon as something is missing.
  fs::rename(Socket().parent_path(), root_ / "deleted");
  fs::remove_all(root_ / "deleted");
  ASSERT_TRUE(WaitForEvent("serving", 2));
  EXPECT_TRUE(GetOptions().ok());
  StartRegistry();
  EXPECT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
}

TEST_F(FakeDevicePluginTest, RegistersOnceMoreWhenTold) {
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  const auto stream = Watch();
  NextList(stream.get());
  plugin_->Register();
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  // All goes on as it was.
  EXPECT_TRUE(plugin_->SetHealth("gpu-0", "Unhealthy"));
  EXPECT_THAT(NextList(stream.get()),
              ElementsAre("gpu-0 Unhealthy", "gpu-1 Healthy"));
}

TEST_F(FakeDevicePluginTest, SaysOfItselfWhatItIsTold) {
  StartRegistry();
  auto options = Options();
  options.version = "v1alpha2";
  options.endpoint = "../elsewhere.sock";
  options.resource = "gpu";
  StartPlugin(options);
  const auto request = NextRegistration();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->version(), "v1alpha2");
  EXPECT_EQ(request->endpoint(), "../elsewhere.sock");
  EXPECT_EQ(request->resource_name(), "gpu");
  EXPECT_TRUE(fs::exists(root_ / "device-plugins" / "gpu.sock"));
}

TEST_F(FakeDevicePluginTest, ServesAnyResourceName) {
  for (const std::string& resource :
       {std::string(), std::string("a/b/c"), std::string(".."),
        std::string(600, 'x'), std::string("x/\xff\n")}) {
    auto options = Options();
    options.resource = resource;
    StartPlugin(options);
    ASSERT_NE(plugin_, nullptr);
    const auto serving = Events("serving").back();
    EXPECT_TRUE(fs::exists(serving.at("socket").get<std::string>()));
  }
}

TEST_F(FakeDevicePluginTest, OffersItselfInTheDirectory) {
  auto options = Options();
  options.way = Way::kDirectory;
  StartPlugin(options);
  const fs::path socket = root_ / "plugins_registry" / "example.com_gpu.sock";
  const auto info = GetInfo(socket);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->type(), "DevicePlugin");
  EXPECT_EQ(info->name(), kResource);
  // The socket that has answered is the plugin's: DP-035.
  EXPECT_EQ(info->endpoint(), "");
  EXPECT_THAT(info->supported_versions(), ElementsAre("v1beta1"));
  EXPECT_FALSE(fs::exists(Socket()));
  EXPECT_TRUE(Allocate({"gpu-0"}, socket).ok());

  EXPECT_TRUE(Notify(socket, false, "not you").ok());
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  EXPECT_EQ(plugin_->last_registration_error(), "not you");
  EXPECT_TRUE(Notify(socket, true, "").ok());
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_EQ(plugin_->last_registration_error(), "");
}

TEST_F(FakeDevicePluginTest, RegistersBothWays) {
  StartRegistry();
  auto options = Options();
  options.way = Way::kBoth;
  StartPlugin(options);
  ASSERT_TRUE(NextRegistration().has_value());
  const auto info = GetInfo(RegistrationSocket());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->endpoint(), Socket().string());
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  // The directory's socket is for the handshake.
  EXPECT_EQ(Allocate({"gpu-0"}, RegistrationSocket()).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(FakeDevicePluginTest, DoesNotCallTheRegistryWhenItIsInTheDirectory) {
  StartRegistry();
  auto options = Options();
  options.way = Way::kDirectory;
  StartPlugin(options);
  EXPECT_TRUE(
      GetInfo(root_ / "plugins_registry" / "example.com_gpu.sock").ok());
  EXPECT_EQ(registry_->accepted_connections(), 0u);
}

TEST_F(FakeDevicePluginTest, TellsItsOptions) {
  for (const bool pre_start : {false, true}) {
    for (const bool preferred : {false, true}) {
      auto options = Options();
      options.pre_start = pre_start;
      options.preferred = preferred;
      StartPlugin(options);
      const auto told = GetOptions();
      ASSERT_TRUE(told.ok()) << told.status();
      EXPECT_EQ(told->pre_start_required(), pre_start);
      EXPECT_EQ(told->get_preferred_allocation_available(), preferred);
    }
  }
}

TEST_F(FakeDevicePluginTest, SpreadsDevicesOverNumaNodes) {
  auto options = Options();
  options.devices = 3;
  options.numa = {0, 1};
  StartPlugin(options);
  EXPECT_THAT(
      NextList(Watch().get()),
      ElementsAre("gpu-0 Healthy@0", "gpu-1 Healthy@1", "gpu-2 Healthy@0"));
}

TEST_F(FakeDevicePluginTest, TellsEveryStreamOfEveryChange) {
  StartPlugin();
  const auto one = Watch();
  const auto other = Watch();
  for (const auto* stream : {&one, &other}) {
    EXPECT_THAT(NextList(stream->get()),
                ElementsAre("gpu-0 Healthy", "gpu-1 Healthy"));
  }
  EXPECT_EQ(plugin_->open_streams(), 2u);
  EXPECT_TRUE(plugin_->SetHealth("gpu-1", "Unhealthy"));
  EXPECT_FALSE(plugin_->SetHealth("gpu-2", "Unhealthy"));
  plugin_->SetDevices({{"a", "Healthy", {3}}});
  for (const auto* stream : {&one, &other}) {
    EXPECT_THAT(NextList(stream->get()),
                ElementsAre("gpu-0 Healthy", "gpu-1 Unhealthy"));
    EXPECT_THAT(NextList(stream->get()), ElementsAre("a Healthy@3"));
  }
  EXPECT_EQ(plugin_->Devices().size(), 1u);
  plugin_->SetDevices({});
  EXPECT_THAT(NextList(one.get()), IsEmpty());
}

TEST_F(FakeDevicePluginTest, NoticesThatAStreamHasEnded) {
  StartPlugin();
  auto stream = Watch();
  NextList(stream.get());
  stream.reset();
  EXPECT_TRUE(WaitForEvent("stream-ended"));
  EXPECT_EQ(plugin_->open_streams(), 0u);
}

TEST_F(FakeDevicePluginTest, EndsStreamsWhenTold) {
  StartPlugin();
  const auto stream = Watch();
  NextList(stream.get());
  plugin_->DropStreams(DataLossError("burnt"));
  EXPECT_EQ(stream->End().error_message(), "burnt");
  EXPECT_EQ(plugin_->open_streams(), 0u);
}

TEST_F(FakeDevicePluginTest, AnswersAllocateWithAVariableNodesAndMounts) {
  StartPlugin();
  const auto answer = Allocate({"gpu-1", "gpu-0"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->envs().size(), 1u);
  EXPECT_EQ(answer->envs().at("EXAMPLE_COM_GPU"), "gpu-1,gpu-0");
  ASSERT_EQ(answer->devices_size(), 2);
  EXPECT_EQ(answer->devices(0).container_path(), "/dev/gpu-1");
  EXPECT_TRUE(fs::exists(answer->devices(0).host_path()));
  EXPECT_EQ(answer->devices(0).permissions(), "rw");
  EXPECT_EQ(answer->devices(1).container_path(), "/dev/gpu-0");
  ASSERT_EQ(answer->mounts_size(), 2);
  EXPECT_EQ(answer->mounts(1).container_path(), "/run/devices/gpu-0");
  EXPECT_TRUE(fs::is_directory(answer->mounts(1).host_path()));
  EXPECT_TRUE(answer->mounts(1).read_only());
  EXPECT_EQ(answer->cdi_devices_size(), 0);
  EXPECT_EQ(answer->annotations_size(), 0);
}

TEST_F(FakeDevicePluginTest, AnswersAllocateWithCdiNamesOnRequest) {
  auto options = Options();
  options.cdi = true;
  StartPlugin(options);
  const auto answer = Allocate({"gpu-0"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->envs().at("EXAMPLE_COM_GPU"), "gpu-0");
  EXPECT_EQ(answer->devices_size() + answer->mounts_size(), 0);
  ASSERT_EQ(answer->cdi_devices_size(), 1);
  EXPECT_EQ(answer->cdi_devices(0).name(), "example.com/gpu=gpu-0");

  std::ifstream file(root_ / "cdi" / "example.com_gpu.json");
  const auto spec = nlohmann::json::parse(file);
  EXPECT_EQ(spec.at("kind"), kResource);
  ASSERT_EQ(spec.at("devices").size(), 2u);
  const auto& edits = spec.at("devices").at(0).at("containerEdits");
  EXPECT_EQ(edits.at("deviceNodes").at(0).at("path"), "/dev/gpu-0");
  const std::string mounted = edits.at("mounts").at(0).at("hostPath");
  EXPECT_TRUE(fs::is_directory(mounted));

  plugin_->SetDevices({{"late", "Healthy", {}}});
  std::ifstream again(root_ / "cdi" / "example.com_gpu.json");
  EXPECT_EQ(nlohmann::json::parse(again).at("devices").at(0).at("name"),
            "late");
}

TEST_F(FakeDevicePluginTest, MakesNoDirectoryOutsideOfItsOwn) {
  StartPlugin();
  plugin_->SetDevices({{"../../../escaped", "Healthy", {}}, {"..", "", {}}});
  EXPECT_TRUE(Allocate({"../../../escaped", ".."}).ok());
  EXPECT_FALSE(fs::exists(root_ / "escaped"));
  EXPECT_FALSE(fs::exists(root_.parent_path() / "escaped"));
}

TEST_F(FakeDevicePluginTest, RefusesDevicesItDoesNotHave) {
  StartPlugin();
  const auto answer = Allocate({"gpu-0", "gpu-7"});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(MessageOf(answer.status()), "unknown device 'gpu-7'");
  EXPECT_FALSE(PreStart({"gpu-7"}).ok());
  EXPECT_EQ(Events("answer").front().at("error"), "unknown device 'gpu-7'");
}

TEST_F(FakeDevicePluginTest, PrefersWhatItMustAndThenTheLast) {
  StartPlugin();
  const auto chosen = Prefer({"a", "b", "c", "d"}, {"b"}, 3);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(*chosen, ElementsAre("b", "d", "c"));
  EXPECT_THAT(*Prefer({"a"}, {}, 5), ElementsAre("a"));
  EXPECT_THAT(*Prefer({"a"}, {}, -1), IsEmpty());
}

TEST_F(FakeDevicePluginTest, RemembersWhatItWasAsked) {
  StartPlugin();
  ASSERT_TRUE(GetOptions().ok());
  ASSERT_TRUE(Prefer({"gpu-0", "gpu-1"}, {"gpu-0"}, 2).ok());
  ASSERT_TRUE(Allocate({"gpu-0", "gpu-1"}).ok());
  ASSERT_TRUE(PreStart({"gpu-1"}).ok());
  const auto calls = plugin_->Calls();
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].method, "get-options");
  EXPECT_EQ(calls[1].method, "get-preferred-allocation");
  EXPECT_THAT(calls[1].devices, ElementsAre("gpu-0", "gpu-1"));
  EXPECT_THAT(calls[1].must_include, ElementsAre("gpu-0"));
  EXPECT_EQ(calls[1].size, 2);
  EXPECT_EQ(calls[2].method, "allocate");
  EXPECT_THAT(calls[2].devices, ElementsAre("gpu-0", "gpu-1"));
  EXPECT_EQ(calls[3].method, "pre-start-container");
  EXPECT_THAT(calls[3].devices, ElementsAre("gpu-1"));
  EXPECT_TRUE(plugin_->WaitForCalls("allocate", 1, kPatience));
  EXPECT_FALSE(
      plugin_->WaitForCalls("allocate", 2, std::chrono::milliseconds(1)));
  EXPECT_EQ(Events("answer").size(), 3u);
}

TEST_F(FakeDevicePluginTest, TellsWhatWasSentAlongWithACall) {
  StartPlugin();
  const StreamClient client(Socket(), "/v1beta1.DevicePlugin/Allocate", "",
                            {{"devmgr-pod-uid", "u1"}, {"other", "x"}});
  ASSERT_TRUE(plugin_->WaitForCalls("allocate", 1, kPatience));
  const auto metadata = plugin_->Calls().front().metadata;
  EXPECT_EQ(metadata.size(), 1u);
  EXPECT_EQ(metadata.at("devmgr-pod-uid"), "u1");
  EXPECT_EQ(Events("call").front().at("metadata").at("devmgr-pod-uid"), "u1");
}

TEST_F(FakeDevicePluginTest, AnswersWhatIsNoRequest) {
  StartPlugin();
  for (const char* method :
       {"GetPreferredAllocation", "Allocate", "PreStartContainer"}) {
    EXPECT_EQ(Call(std::string("/v1beta1.DevicePlugin/") + method, "\xff\xff")
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(FakeDevicePluginTest, HasTheSameDevicesAfterARestart) {
  StartRegistry();
  StartPlugin();
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  const auto before = NextList(Watch().get());
  ASSERT_TRUE(plugin_->Restart().ok());
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_EQ(NextList(Watch().get()), before);
  StartPlugin();
  EXPECT_EQ(NextList(Watch().get()), before);
  EXPECT_EQ(NextRegistration()->endpoint(), "example.com_gpu.sock");
}

TEST_F(FakeDevicePluginTest, StopsUntilItIsRestarted) {
  StartRegistry();
  auto options = Options();
  options.way = Way::kBoth;
  StartPlugin(options);
  ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  plugin_->Stop();
  EXPECT_FALSE(fs::exists(Socket()));
  EXPECT_FALSE(fs::exists(RegistrationSocket()));
  // A new registry is none of its business now.
  StopRegistry();
  StartRegistry();
  EXPECT_EQ(registrations_.size(), 1u);
  ASSERT_TRUE(plugin_->Restart().ok());
  // Twice, if it hears of the new registry only now.
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
}

TEST_F(FakeDevicePluginTest, LeavesNoSocketBehind) {
  StartPlugin();
  plugin_.reset();
  EXPECT_FALSE(fs::exists(Socket()));
}

TEST_F(FakeDevicePluginTest, TwoInstancesHaveSocketsOfTheirOwn) {
  StartPlugin();
  auto options = Options();
  options.instance = "b";
  const auto second = FakeDevicePlugin::Start(options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(
      Allocate({"gpu-0"}, root_ / "device-plugins" / "example.com_gpu-b.sock")
          .ok());
  EXPECT_EQ((*second)->accepted_connections(), 1u);
  EXPECT_EQ(plugin_->accepted_connections(), 0u);
}

TEST_F(FakeDevicePluginTest, ASecondOneAtTheSamePathIsRefused) {
  StartPlugin();
  const auto second = FakeDevicePlugin::Start(Options());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(GetOptions().ok());
}

TEST_F(FakeDevicePluginTest, AllOptionsThatAreWrongAreNamed) {
  auto options = Options();
  options.root.clear();
  options.devices = -1;
  options.instance = "a/b";
  options.resource = std::string(2000, 'r');
  const auto plugin = FakeDevicePlugin::Start(options);
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message = MessageOf(plugin.status());
  EXPECT_THAT(message, HasSubstr("root is empty"));
  EXPECT_THAT(message, HasSubstr("devices is -1"));
  EXPECT_THAT(message, HasSubstr("instance 'a/b'"));
  EXPECT_THAT(message, HasSubstr("resource has 2000 bytes"));
}

}  // namespace
}  // namespace devmgr::testing
