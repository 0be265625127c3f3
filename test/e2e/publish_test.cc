// SPDX-License-Identifier: Apache-2.0
//
// A node without an API server, and a driver that publishes its devices to
// devmgrd as stock drivers do. Of the issue: API-038 to API-041 as a driver
// sees them; the requests one by one are in test/endpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/daemon.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

constexpr char kDriver[] = "gpu.example.com";
constexpr std::chrono::milliseconds kLimit{30'000};
constexpr char kClass[] = R"(
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel:
      expression: device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'
)";
constexpr char kPod[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    resources: {limits: {example.com/gpu: 1}}
)";

class PublishTest : public ::testing::Test {
 protected:
  void StartDaemon(std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--node-name", "n1"});
    daemon_ = std::make_unique<Daemon>(node_.root(), std::move(flags));
    inspector_ = daemon_->Inspect();
    ASSERT_NE(inspector_, nullptr) << daemon_->log();
  }
  void KillDaemon() {
    inspector_.reset();
    daemon_->Kill();
  }
  void StartDriver(int devices = 2) {
    testing::FakeDraDriverOptions options;
    options.publish = true;
    options.devices = devices;
    driver_ = node_.StartDriver(options);
    ASSERT_NE(driver_, nullptr);
  }
  Exit AskForKubeconfig(const std::string& driver = kDriver) const {
    return node_.Ctl({"endpoint", "kubeconfig", driver});
  }
  std::filesystem::path Kubeconfig() const {
    return node_.root() / "kubeconfig" / kDriver;
  }

  Json Get(const std::string& kind) const {
    const Exit exit = node_.Ctl({"get", kind, "-o", "json"});
    EXPECT_EQ(exit.code, 0) << exit.err;
    return Json::parse(exit.out, nullptr, false)["items"];
  }
  /// The states of all slices; waits until `wanted` of them are in `state`.
  ::testing::AssertionResult WaitForSlices(std::size_t wanted,
                                           const std::string& state) const {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    std::uint64_t version = 0;
    for (;;) {
      // Before the look, so that a change after it is not missed.
      const auto now = inspector_->WaitForChange(
          version, std::chrono::milliseconds(version == 0 ? 0 : 1'000));
      if (!now.ok()) return ::testing::AssertionFailure() << now.status();
      version = *now;
      const Json slices = Get("slices");
      std::size_t found = 0;
      for (const Json& slice : slices) {
        if (slice["status"]["state"] == state) ++found;
      }
      if (found == wanted && slices.size() == wanted) {
        return ::testing::AssertionSuccess();
      }
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << slices.dump() << daemon_->log();
      }
    }
  }
  ::testing::AssertionResult WaitForPod(const std::string& state) const {
    const Exit exit =
        node_.Ctl({"wait", "pod", "p", "--for=" + state, "--timeout", "30s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << exit.err << node_.Ctl({"explain", "pod", "p"}).out;
  }

  NodeFolder node_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Inspector> inspector_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
};

/// Pod, class, a driver: no claim by hand.
TEST_F(PublishTest, APodGetsADeviceThatADriverPublishes) {
  StartDaemon();
  const Exit asked = AskForKubeconfig();
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_EQ(asked.out, Kubeconfig().string() + "\n");
  struct stat info {};
  ASSERT_EQ(stat(Kubeconfig().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  StartDriver();
  ASSERT_TRUE(WaitForSlices(1, "Complete"));
  const Json slice = Get("slices")[0];
  EXPECT_EQ(slice["status"]["driver"], kDriver);
  EXPECT_EQ(slice["status"]["pool"]["name"], "n1");
  EXPECT_EQ(slice["status"]["source"], "endpoint");
  EXPECT_THAT(slice["status"]["devices"], SizeIs(2));

  node_.Write("class.yaml", kClass);
  node_.Write("pod.yaml", kPod);
  ASSERT_TRUE(WaitForPod("ready"));
  const Exit resolved = node_.Ctl({"resolve", "p", "-o", "json"});
  EXPECT_THAT(resolved.out, HasSubstr("\"pool\": \"n1\""));
  // As an API server would show it.
  const Json claims = Get("claims");
  ASSERT_THAT(claims, SizeIs(1));
  const Json& object = claims[0]["object"];
  EXPECT_EQ(object["kind"], "ResourceClaim");
  EXPECT_EQ(object["metadata"]["annotations"]
                  ["resource.kubernetes.io/extended-resource-claim"],
            "true");
  const Json& result = object["status"]["allocation"]["devices"]["results"][0];
  EXPECT_EQ(result["driver"], kDriver);
  EXPECT_EQ(result["pool"], "n1");
  EXPECT_EQ(object["status"]["reservedFor"][0]["name"], "p");
  const std::string name = slice["metadata"]["name"];
  EXPECT_THAT(node_.Ctl({"describe", "slice", name}).out,
              HasSubstr("default/p"));

  node_.Remove("pod.yaml");
  ASSERT_TRUE(WaitForPod("released"));
  EXPECT_THAT(Get("claims"), IsEmpty());
  EXPECT_EQ(node_.cdi_files(), 0u);
}

TEST_F(PublishTest, ADriverMayStartFirst) {
  StartDriver(200);
  StartDaemon();
  ASSERT_EQ(AskForKubeconfig().code, 0);
  EXPECT_TRUE(WaitForSlices(2, "Complete"));
}

TEST_F(PublishTest, TheEndpointIsKilledUnderADriver) {
  StartDaemon();
  ASSERT_EQ(AskForKubeconfig().code, 0);
  StartDriver();
  node_.Write("class.yaml", kClass);
  node_.Write("pod.yaml", kPod);
  ASSERT_TRUE(WaitForPod("ready"));
  const Json before = Get("slices");
  for (int kill = 0; kill < 3; ++kill) {
    KillDaemon();
    // Its kubeconfig is good for the next one: it was not asked for again.
    StartDaemon();
    ASSERT_TRUE(WaitForSlices(1, "Complete"));
    EXPECT_EQ(Get("slices"), before);
    ASSERT_TRUE(WaitForPod("ready"));
  }
  node_.Remove("pod.yaml");
  EXPECT_TRUE(WaitForPod("released"));
}

TEST_F(PublishTest, SlicesAreHiddenAfterARebootUntilTheDriverRegisters) {
  StartDaemon();
  ASSERT_EQ(AskForKubeconfig().code, 0);
  StartDriver();
  ASSERT_TRUE(WaitForSlices(1, "Complete"));
  driver_.reset();
  KillDaemon();
  StartDaemon({"--boot-id", "another"});
  ASSERT_TRUE(WaitForSlices(1, "Hidden"));
  EXPECT_EQ(Get("slices")[0]["status"]["why"],
            "driver 'gpu.example.com' is not registered");
  node_.Write("class.yaml", kClass);
  node_.Write("pod.yaml", kPod);
  ASSERT_TRUE(WaitForPod("waiting"));
  StartDriver();
  ASSERT_TRUE(WaitForSlices(1, "Complete"));
  EXPECT_TRUE(WaitForPod("ready"));
}

TEST_F(PublishTest, SlicesAreDeletedByAnOperatorOnly) {
  StartDaemon();
  ASSERT_EQ(AskForKubeconfig().code, 0);
  StartDriver();
  ASSERT_TRUE(WaitForSlices(1, "Complete"));
  driver_.reset();
  const std::vector<std::string> command = {
      "delete", "slices", "--driver", kDriver, "--reason", "card is gone"};
  const Exit shown = node_.Ctl(command);
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err, HasSubstr("1 slices that driver 'gpu.example.com' has "
                                   "published would be deleted"));
  EXPECT_THAT(Get("slices"), SizeIs(1));
  std::vector<std::string> meant = command;
  meant.emplace_back("--yes");
  const Exit done = node_.Ctl(meant);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("1 slices of driver 'gpu.example.com' are "
                                  "deleted"));
  ASSERT_TRUE(WaitForSlices(0, "Complete"));
  const Exit history = node_.Ctl({"history"});
  EXPECT_THAT(history.out, HasSubstr("SlicesDeleted"));
  EXPECT_THAT(history.out, HasSubstr("are deleted by uid "));
  EXPECT_THAT(history.out, HasSubstr("card is gone"));
  // They stay deleted.
  KillDaemon();
  StartDaemon();
  EXPECT_THAT(Get("slices"), IsEmpty());
}

TEST_F(PublishTest, RefusesWhatIsNoDriver) {
  StartDaemon();
  for (const char* name : {"no driver", "../evil", ".serviceaccount"}) {
    const Exit refused = AskForKubeconfig(name);
    EXPECT_NE(refused.code, 0) << name;
    EXPECT_THAT(refused.err, HasSubstr(name));
  }
  EXPECT_FALSE(std::filesystem::exists(node_.root() / "kubeconfig"));
}

TEST_F(PublishTest, ThereIsNoEndpointBelowAScheduler) {
  StartDaemon({"--authority", "scheduler"});
  const Exit refused = AskForKubeconfig();
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("serves no endpoint for drivers"));
}

TEST_F(PublishTest, APoolThatContradictsItselfIsInvalid) {
  StartDaemon();
  std::string slices;
  for (const std::string name : {"a", "b"}) {
    slices += R"(
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: )" +
              name + R"(}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: p, generation: 1, resourceSliceCount: 2}
  devices: [{name: gpu-0}]
)";
  }
  node_.Write("slices.yaml", slices);
  ASSERT_TRUE(WaitForSlices(2, "Invalid"));
  EXPECT_THAT(node_.Ctl({"get", "slices", "-o", "wide"}).out,
              HasSubstr("duplicate device name 'gpu-0'"));
}

}  // namespace
}  // namespace devmgr
