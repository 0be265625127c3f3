// SPDX-License-Identifier: Apache-2.0
//
// A host that links its own copies of the wire schemas, under upstream's names
// and with protobuf's full runtime, beside both of our libraries. It sees
// public headers only, and talks to the fake driver with its own messages.
#include <devmgr/device_manager.h>
#include <devmgr/testing.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "conformance/wire_samples.h"
#include "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.pb.h"
#include "k8s.io/kubelet/pkg/apis/dra/v1/api.pb.h"
#include "k8s.io/kubelet/pkg/apis/dra/v1beta1/api.pb.h"
#include "k8s.io/kubelet/pkg/apis/pluginregistration/v1/api.pb.h"

namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;
using devmgr::conformance::ToHex;
using devmgr::conformance::WireSample;

constexpr char kManifest[] = R"(apiVersion: v1
kind: Pod
metadata: {name: p1, namespace: default, uid: pod-1}
spec:
  containers:
  - name: main
    resources: {claims: [{name: accelerator}]}
  resourceClaims:
  - {name: accelerator, resourceClaimName: c1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, namespace: default, uid: uid-1}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices:
      results:
      - {request: gpu, driver: gpu.example.com, pool: pool-0, device: gpu-0}
  reservedFor: [{resource: pods, name: p1, uid: pod-1}]
)";

/// Waits until a pod is Ready.
class ReadyObserver final : public devmgr::DeviceManagerObserver {
 public:
  void OnPod(const devmgr::PodInfo& pod, bool) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ = pod;
    changed_.notify_all();
  }
  /// The last that was said; of a Ready pod, unless that takes 30 s.
  devmgr::PodInfo Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [this] {
      return last_.state == devmgr::PodState::kReady;
    });
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  devmgr::PodInfo last_;
};

class HostSchemasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/devmgr-host-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    root_ = path;
    std::filesystem::create_directory(root_ / "manifests");
    std::ofstream(root_ / "manifests/all.yaml") << kManifest;
    devmgr::testing::FakeDraDriverOptions options;
    options.name = "gpu.example.com";
    options.root = root_;
    auto driver = devmgr::testing::FakeDraDriver::Start(std::move(options));
    ASSERT_TRUE(driver.ok()) << driver.status().ToString();
    driver_ = *std::move(driver);
  }
  void TearDown() override {
    driver_.reset();
    std::filesystem::remove_all(root_);
  }

  /// Calls a method with the host's own messages and the host's own gRPC.
  template <typename Response, typename Request>
  grpc::Status Call(const std::filesystem::path& socket,
                    const std::string& method, const Request& request,
                    Response* response) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    grpc::TemplatedGenericStub<Request, Response> stub(
        grpc::CreateCustomChannel("unix:" + socket.string(),
                                  grpc::InsecureChannelCredentials(),
                                  arguments));
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    return status;
  }

  std::filesystem::path root_;
  std::unique_ptr<devmgr::testing::FakeDraDriver> driver_;
};

TEST_F(HostSchemasTest, OnlyTheHostsSchemasAreInThePool) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* file : {"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/"
                           "api.proto",
                           "k8s.io/kubelet/pkg/apis/dra/v1/api.proto",
                           "k8s.io/kubelet/pkg/apis/dra/v1beta1/api.proto",
                           "k8s.io/kubelet/pkg/apis/pluginregistration/v1/"
                           "api.proto"}) {
    EXPECT_NE(pool->FindFileByName(file), nullptr) << file;
  }
  for (const char* file :
       {"devmgr/wire/deviceplugin/v1beta1/deviceplugin.proto",
        "devmgr/wire/dra/v1/dra.proto", "devmgr/wire/dra/v1beta1/dra.proto",
        "devmgr/wire/pluginregistration/v1/registration.proto",
        "devmgr/ledger/v1/ledger.proto"}) {
    EXPECT_EQ(pool->FindFileByName(file), nullptr) << file;
  }
}

TEST_F(HostSchemasTest, BothLibrariesWorkBesideThem) {
  const auto objects = devmgr::WatchManifests(root_ / "manifests");
  devmgr::DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.plugin_registry_dir = root_ / "plugins_registry";
  options.actuate = devmgr::Actuate::kSource;
  ReadyObserver observer;
  devmgr::Host host;
  host.objects = objects.get();
  host.observers = {&observer};
  const auto manager = devmgr::DeviceManager::Open(options, host);
  ASSERT_TRUE(manager.ok()) << manager.status().ToString();
  const devmgr::PodInfo pod = observer.Wait();
  EXPECT_EQ(pod.state, devmgr::PodState::kReady) << pod.message;
  const auto devices =
      (*manager)->ContainerDevicesOf(devmgr::PodUid{"pod-1"}, "main");
  EXPECT_TRUE(devices.ok()) << devices.status().ToString();
  if (devices.ok()) {
    ASSERT_EQ((*devices)->cdi_devices.size(), 1u);
    EXPECT_NE((*devices)->cdi_devices[0].name.find("gpu.example.com/claim="),
              std::string::npos);
  }
}

TEST_F(HostSchemasTest, TheHostsMessagesDriveTheFakeDriver) {
  pluginregistration::PluginInfo info;
  grpc::Status called =
      Call(root_ / "plugins_registry/gpu.example.com-reg.sock",
           "/pluginregistration.Registration/GetInfo",
           pluginregistration::InfoRequest(), &info);
  ASSERT_TRUE(called.ok()) << called.error_message();
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "gpu.example.com");
  ASSERT_EQ(info.supported_versions_size(), 2);

  v1::NodePrepareResourcesRequest request;
  auto* claim = request.add_claims();
  claim->set_namespace_("default");
  claim->set_uid("uid-1");
  claim->set_name("c1");
  v1::NodePrepareResourcesResponse response;
  called = Call(info.endpoint(),
                "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
                "NodePrepareResources",
                request, &response);
  ASSERT_TRUE(called.ok()) << called.error_message();
  ASSERT_EQ(response.claims().count("uid-1"), 1u);
  const auto& answer = response.claims().at("uid-1");
  EXPECT_EQ(answer.error(), "");
  ASSERT_EQ(answer.devices_size(), 1);
  EXPECT_EQ(answer.devices(0).request_names(0), "gpu");
  EXPECT_EQ(answer.devices(0).pool_name(), "pool-0");
  EXPECT_EQ(answer.devices(0).device_name(), "gpu-0");

  v1beta1::NodeUnprepareResourcesRequest unprepare;
  auto* same = unprepare.add_claims();
  same->set_namespace_("default");
  same->set_uid("uid-1");
  same->set_name("c1");
  v1beta1::NodeUnprepareResourcesResponse done;
  called = Call(info.endpoint(),
                "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"
                "NodeUnprepareResources",
                unprepare, &done);
  ASSERT_TRUE(called.ok()) << called.error_message();
  EXPECT_EQ(done.claims().at("uid-1").error(), "");
  EXPECT_TRUE(driver_->PreparedClaims().empty());
}

// The samples once more, by text, digits and field numbers that are not ours.
class SampleTextTest : public ::testing::TestWithParam<const char*> {};

std::string Deterministic(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream output(&stream);
    output.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&output);
  }
  return bytes;
}

TEST_P(SampleTextTest, TextAndDigitsAreTheSameMessage) {
  const auto samples = devmgr::conformance::ReadWireSamples(GetParam());
  ASSERT_FALSE(samples.empty());
  for (const WireSample& sample : samples) {
    const auto* type = google::protobuf::DescriptorPool::generated_pool()
                           ->FindMessageTypeByName(sample.message);
    ASSERT_NE(type, nullptr) << sample.message;
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(type)
            ->New());
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(sample.text,
                                                              message.get()))
        << sample.sample;
    EXPECT_EQ(ToHex(Deterministic(*message)), ToHex(sample.bytes))
        << sample.sample;
  }
}

INSTANTIATE_TEST_SUITE_P(AllSchemas, SampleTextTest,
                         ::testing::Values("pluginregistration-v1",
                                           "deviceplugin-v1beta1", "dra-v1",
                                           "dra-v1beta1"),
                         [](const auto& schema) {
                           std::string name = schema.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
