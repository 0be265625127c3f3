// SPDX-License-Identifier: Apache-2.0
//
// Our schemas against bytes that are not ours: test/data/conformance.
#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <devmgr/wire/dra/health/v1/health.pb.h>
#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/dra/v1alpha1/dra.pb.h>
#include <devmgr/wire/dra/v1alpha2/dra.pb.h>
#include <devmgr/wire/dra/v1alpha3/dra.pb.h>
#include <devmgr/wire/dra/v1beta1/dra.pb.h>
#include <devmgr/wire/pluginregistration/v1/registration.pb.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/deterministic.h"
#include "conformance/pod_resources_messages.h"
#include "conformance/wire_samples.h"

namespace devmgr::conformance {
namespace {

namespace health = wire::dra::health::v1;
namespace deviceplugin = wire::deviceplugin::v1beta1;
namespace v1 = wire::dra::v1;
namespace v1alpha1 = wire::dra::v1alpha1;
namespace v1alpha2 = wire::dra::v1alpha2;
namespace v1alpha3 = wire::dra::v1alpha3;
namespace v1beta1 = wire::dra::v1beta1;
namespace registration = wire::pluginregistration::v1;
using google::protobuf::MessageLite;

// What the samples hold, said once more by hand.

template <typename Claim>
void SetClaim(Claim* claim, const char* ns, const char* uid, const char* name) {
  claim->set_namespace_(ns);
  claim->set_uid(uid);
  claim->set_name(name);
}

template <typename Request>
Request TwoClaims() {
  Request request;
  SetClaim(request.add_claims(), "default", kUidA, "claim-a");
  SetClaim(request.add_claims(), "team-b", kUidB, "claim-b");
  return request;
}

template <typename Device>
Device FullDevice() {
  Device device;
  device.add_request_names("gpu");
  device.add_request_names("nic");
  device.set_pool_name("pool-0");
  device.set_device_name("gpu-3");
  device.add_cdi_device_ids("gpu.example.com/claim=a-0");
  device.add_cdi_device_ids("gpu.example.com/claim=a-1");
  return device;
}

template <typename Device>
Device NamesOnly() {
  Device device;
  device.set_pool_name("pool-0");
  device.set_device_name("gpu-3");
  return device;
}

v1::Device SharedDevice() {
  v1::Device device;
  device.add_request_names("net");
  device.set_pool_name("node-1/nics");
  device.set_device_name("nic-0");
  device.add_cdi_device_ids("net.example.com/nic=0");
  device.set_share_id("6f6a9d3e-7c0e-4b8f-8d6e-2b1a0c9f8e7d");
  return device;
}

template <typename Message>
Message WithError(const char* error) {
  Message message;
  message.set_error(error);
  return message;
}

using Built = std::map<std::string, std::shared_ptr<MessageLite>>;

template <typename Message>
std::shared_ptr<MessageLite> Own(Message message) {
  return std::make_shared<Message>(std::move(message));
}

/// The messages that both DRA versions have alike, by sample.
template <typename Claim, typename Device, typename PrepareRequest,
          typename PrepareResult, typename PrepareResponse,
          typename UnprepareRequest, typename UnprepareResult,
          typename UnprepareResponse>
Built CommonDraMessages() {
  Built built;
  Claim claim;
  SetClaim(&claim, "default", kUidA, "claim-a");
  built["claim"] = Own(claim);
  built["device"] = Own(FullDevice<Device>());
  built["device with names only"] = Own(NamesOnly<Device>());
  built["prepare request"] = Own(TwoClaims<PrepareRequest>());
  built["prepare request of nothing"] = Own(PrepareRequest());
  built["claim that failed to prepare"] =
      Own(WithError<PrepareResult>("no such device 'gpu-3'"));
  PrepareResponse prepared;
  *(*prepared.mutable_claims())[kUidA].add_devices() = FullDevice<Device>();
  (*prepared.mutable_claims())[kUidB].set_error("not allocated");
  built["prepare response"] = Own(prepared);
  PrepareResponse empty;
  (*empty.mutable_claims())[kUidA];
  built["prepare response without devices"] = Own(empty);
  built["unprepare request"] = Own(TwoClaims<UnprepareRequest>());
  built["unprepared claim"] = Own(UnprepareResult());
  built["claim that failed to unprepare"] =
      Own(WithError<UnprepareResult>("device is busy"));
  UnprepareResponse unprepared;
  (*unprepared.mutable_claims())[kUidA];
  (*unprepared.mutable_claims())[kUidB].set_error("device is busy");
  built["unprepare response"] = Own(unprepared);
  return built;
}

Built DraV1Messages() {
  Built built = CommonDraMessages<
      v1::Claim, v1::Device, v1::NodePrepareResourcesRequest,
      v1::NodePrepareResourceResponse, v1::NodePrepareResourcesResponse,
      v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourceResponse,
      v1::NodeUnprepareResourcesResponse>();
  built["device with share id"] = Own(SharedDevice());
  v1::Device empty_share;
  empty_share.set_pool_name("p");
  empty_share.set_device_name("d");
  empty_share.set_share_id("");
  built["device with empty share id"] = Own(empty_share);
  v1::NodePrepareResourceResponse claim;
  *claim.add_devices() = FullDevice<v1::Device>();
  *claim.add_devices() = SharedDevice();
  built["prepared claim"] = Own(claim);
  return built;
}

Built DraV1beta1Messages() {
  Built built = CommonDraMessages<v1beta1::Claim, v1beta1::Device,
                                  v1beta1::NodePrepareResourcesRequest,
                                  v1beta1::NodePrepareResourceResponse,
                                  v1beta1::NodePrepareResourcesResponse,
                                  v1beta1::NodeUnprepareResourcesRequest,
                                  v1beta1::NodeUnprepareResourceResponse,
                                  v1beta1::NodeUnprepareResourcesResponse>();
  v1beta1::NodePrepareResourceResponse claim;
  *claim.add_devices() = FullDevice<v1beta1::Device>();
  *claim.add_devices() = NamesOnly<v1beta1::Device>();
  built["prepared claim"] = Own(claim);
  return built;
}

template <typename Message>
Message WithCdiDevices() {
  Message message;
  message.add_cdi_devices("gpu.example.com/claim=a-0");
  message.add_cdi_devices("gpu.example.com/claim=a-1");
  return message;
}

template <typename Message>
Message WithStructuredHandle(Message message) {
  auto* handle = message.add_structured_resource_handle();
  handle->mutable_vendor_class_parameters()->set_raw(R"({"share":true})");
  handle->mutable_vendor_claim_parameters();
  handle->set_node_name("node-1");
  auto* result = handle->add_results();
  result->mutable_vendor_request_parameters()->set_raw(R"({"memory":"4Gi"})");
  result->mutable_allocation_result_model()
      ->mutable_named_resources()
      ->set_name("gpu-3");
  result = handle->add_results();
  result->mutable_vendor_request_parameters();
  result->mutable_allocation_result_model()
      ->mutable_named_resources()
      ->set_name("gpu-4");
  return message;
}

Built DraV1alpha3Messages() {
  Built built;
  v1alpha3::Claim claim;
  SetClaim(&claim, "default", kUidA, "claim-a");
  const v1alpha3::Claim structured = WithStructuredHandle(claim);
  built["claim"] = Own(claim);
  claim.set_resource_handle("handle-a");
  built["claim with handle"] = Own(claim);
  built["claim with structured handle"] = Own(structured);
  built["prepare request"] =
      Own(TwoClaims<v1alpha3::NodePrepareResourcesRequest>());
  v1alpha3::NodePrepareResourcesRequest handles;
  *handles.add_claims() = claim;
  *handles.add_claims() = structured;
  built["prepare request with handles"] = Own(handles);
  built["prepare request of nothing"] =
      Own(v1alpha3::NodePrepareResourcesRequest());
  using Result = v1alpha3::NodePrepareResourceResponse;
  built["prepared claim"] = Own(WithCdiDevices<Result>());
  built["claim that failed to prepare"] =
      Own(WithError<Result>("no such device 'gpu-3'"));
  v1alpha3::NodePrepareResourcesResponse prepared;
  (*prepared.mutable_claims())[kUidA] = WithCdiDevices<Result>();
  (*prepared.mutable_claims())[kUidB].set_error("not allocated");
  built["prepare response"] = Own(prepared);
  v1alpha3::NodePrepareResourcesResponse empty;
  (*empty.mutable_claims())[kUidA];
  built["prepare response without devices"] = Own(empty);
  built["unprepare request"] =
      Own(TwoClaims<v1alpha3::NodeUnprepareResourcesRequest>());
  using Unprepared = v1alpha3::NodeUnprepareResourceResponse;
  built["unprepared claim"] = Own(Unprepared());
  built["claim that failed to unprepare"] =
      Own(WithError<Unprepared>("device is busy"));
  v1alpha3::NodeUnprepareResourcesResponse unprepared;
  (*unprepared.mutable_claims())[kUidA];
  (*unprepared.mutable_claims())[kUidB].set_error("device is busy");
  built["unprepare response"] = Own(unprepared);
  return built;
}

/// A call for claim A alone.
template <typename Request>
Request OneClaim() {
  Request request;
  request.set_namespace_("default");
  request.set_claim_uid(kUidA);
  request.set_claim_name("claim-a");
  return request;
}

Built DraV1alpha2Messages() {
  Built built;
  auto prepare = OneClaim<v1alpha2::NodePrepareResourceRequest>();
  built["prepare request with structured handle"] =
      Own(WithStructuredHandle(prepare));
  prepare.set_resource_handle("handle-a");
  built["prepare request"] = Own(prepare);
  built["prepare response"] =
      Own(WithCdiDevices<v1alpha2::NodePrepareResourceResponse>());
  built["prepare response without devices"] =
      Own(v1alpha2::NodePrepareResourceResponse());
  auto unprepare = OneClaim<v1alpha2::NodeUnprepareResourceRequest>();
  built["unprepare request with structured handle"] =
      Own(WithStructuredHandle(unprepare));
  unprepare.set_resource_handle("handle-a");
  built["unprepare request"] = Own(unprepare);
  built["unprepare response"] = Own(v1alpha2::NodeUnprepareResourceResponse());
  return built;
}

Built DraV1alpha1Messages() {
  Built built;
  auto prepare = OneClaim<v1alpha1::NodePrepareResourceRequest>();
  built["prepare request without handle"] = Own(prepare);
  prepare.set_resource_handle("handle-a");
  built["prepare request"] = Own(prepare);
  built["prepare response"] =
      Own(WithCdiDevices<v1alpha1::NodePrepareResourceResponse>());
  built["prepare response without devices"] =
      Own(v1alpha1::NodePrepareResourceResponse());
  auto unprepare = OneClaim<v1alpha1::NodeUnprepareResourceRequest>();
  unprepare.add_cdi_devices("gpu.example.com/claim=a-0");
  unprepare.add_cdi_devices("gpu.example.com/claim=a-1");
  built["unprepare request"] = Own(unprepare);
  built["unprepare response"] = Own(v1alpha1::NodeUnprepareResourceResponse());
  return built;
}

Built RegistrationMessages() {
  Built built;
  built["info request"] = Own(registration::InfoRequest());
  registration::PluginInfo info;
  info.set_type("DRAPlugin");
  info.set_name("gpu.example.com");
  built["info without endpoint and versions"] = Own(info);
  info.set_endpoint("/var/lib/kubelet/plugins/gpu.example.com/dra.sock");
  info.add_supported_versions("v1.DRAPlugin");
  info.add_supported_versions("v1beta1.DRAPlugin");
  built["info of a driver"] = Own(info);
  registration::RegistrationStatus registered;
  registered.set_plugin_registered(true);
  built["registered"] = Own(registered);
  built["refused"] =
      Own(WithError<registration::RegistrationStatus>("driver name is empty"));
  built["status response"] = Own(registration::RegistrationStatusResponse());
  return built;
}

deviceplugin::Device PluginDevice(const char* id, const char* health) {
  deviceplugin::Device device;
  device.set_id(id);
  device.set_health(health);
  return device;
}

void AddDevices(Built* built) {
  auto on_two_nodes = PluginDevice("gpu-0", "Healthy");
  on_two_nodes.mutable_topology()->add_nodes();
  on_two_nodes.mutable_topology()->add_nodes()->set_id(1);
  const auto without = PluginDevice("gpu-1", "Unhealthy");
  auto empty = PluginDevice("gpu-2", "Healthy");
  empty.mutable_topology();
  auto negative = PluginDevice("gpu-3", "Healthy");
  negative.mutable_topology()->add_nodes()->set_id(-1);
  deviceplugin::ListAndWatchResponse list;
  *list.add_devices() = on_two_nodes;
  *list.add_devices() = without;
  *list.add_devices() = empty;
  (*built)["device on two nodes"] = Own(on_two_nodes);
  (*built)["device without topology"] = Own(without);
  (*built)["device with empty topology"] = Own(empty);
  (*built)["device on a negative node"] = Own(negative);
  (*built)["list"] = Own(list);
  (*built)["empty list"] = Own(deviceplugin::ListAndWatchResponse());
}

void AddAllocateMessages(Built* built) {
  deviceplugin::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("gpu-0");
  request.mutable_container_requests(0)->add_devices_ids("gpu-1");
  (*built)["allocate request"] = Own(request);

  deviceplugin::ContainerAllocateResponse full;
  (*full.mutable_envs())["GPU_VISIBLE"] = "gpu-0,gpu-1";
  (*full.mutable_envs())["GPU_EMPTY"] = "";
  auto* mount = full.add_mounts();
  mount->set_container_path("/usr/lib/gpu");
  mount->set_host_path("/opt/gpu/lib");
  mount->set_read_only(true);
  (*built)["mount"] = Own(*mount);
  mount = full.add_mounts();
  mount->set_container_path("/var/run/gpu");
  mount->set_host_path("/run/gpu");
  auto* node = full.add_devices();
  node->set_container_path("/dev/gpu0");
  node->set_host_path("/dev/gpu7");
  node->set_permissions("rw");
  (*built)["device node"] = Own(*node);
  (*full.mutable_annotations())["cdi.k8s.io/gpu"] = "example.com/gpu=0";
  full.add_cdi_devices()->set_name("example.com/gpu=0");
  full.add_cdi_devices()->set_name("example.com/gpu=1");
  (*built)["cdi device"] = Own(full.cdi_devices(0));
  (*built)["container response"] = Own(full);

  deviceplugin::AllocateResponse response;
  *response.add_container_responses() = full;
  (*built)["allocate response"] = Own(response);
  deviceplugin::AllocateResponse nothing;
  nothing.add_container_responses();
  (*built)["allocate response with nothing in it"] = Own(nothing);
  (*built)["allocate response without containers"] =
      Own(deviceplugin::AllocateResponse());
}

Built DevicePluginMessages() {
  Built built;
  deviceplugin::DevicePluginOptions options;
  built["no options"] = Own(options);
  options.set_get_preferred_allocation_available(true);
  deviceplugin::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint("gpu.sock");
  request.set_resource_name("example.com/gpu");
  built["register request without options"] = Own(request);
  *request.mutable_options() = options;
  built["register request"] = Own(request);
  options.set_pre_start_required(true);
  built["options"] = Own(options);
  built["empty"] = Own(deviceplugin::Empty());

  deviceplugin::PreStartContainerRequest pre_start;
  pre_start.add_devices_ids("gpu-0");
  pre_start.add_devices_ids("gpu-1");
  built["pre-start request"] = Own(pre_start);
  built["pre-start response"] = Own(deviceplugin::PreStartContainerResponse());

  deviceplugin::PreferredAllocationRequest ask;
  auto* container = ask.add_container_requests();
  for (const char* id : {"gpu-0", "gpu-1", "gpu-2"}) {
    container->add_available_device_ids(id);
  }
  container->add_must_include_device_ids("gpu-1");
  container->set_allocation_size(2);
  built["preferred request"] = Own(ask);
  deviceplugin::PreferredAllocationResponse advice;
  built["preferred response without advice"] = Own(advice);
  advice.add_container_responses()->add_device_ids("gpu-1");
  advice.mutable_container_responses(0)->add_device_ids("gpu-2");
  built["preferred response"] = Own(advice);

  AddDevices(&built);
  AddAllocateMessages(&built);
  return built;
}

health::DeviceHealth HealthOf(const char* device, health::HealthStatus status) {
  health::DeviceHealth wire;
  wire.mutable_device()->set_pool_name("node-1");
  wire.mutable_device()->set_device_name(device);
  wire.set_health(status);
  return wire;
}

/// Both versions of the service have the same messages.
Built HealthMessages() {
  Built built;
  built["watch request"] = Own(health::NodeWatchResourcesRequest());
  health::DeviceHealth full = HealthOf("gpu-0", health::UNHEALTHY);
  built["device identifier"] = Own(full.device());
  full.set_last_updated_time(1767225600);
  full.set_health_check_timeout_seconds(45);
  full.set_message(
      "too hot: 97 \xc2\xb0"
      "C");
  built["device health"] = Own(full);
  const health::DeviceHealth bare = HealthOf("gpu-1", health::HEALTHY);
  built["device health without text and lease"] = Own(bare);
  built["device health unknown"] = Own(HealthOf("gpu-0", health::UNKNOWN));
  health::DeviceHealth ended = HealthOf("gpu-0", health::HEALTHY);
  ended.set_last_updated_time(-1);
  ended.set_health_check_timeout_seconds(-1);
  built["lease that has ended"] = Own(ended);
  health::NodeWatchResourcesResponse report;
  built["watch response without devices"] = Own(report);
  *report.add_devices() = full;
  *report.add_devices() = bare;
  built["watch response"] = Own(report);
  return built;
}

struct Schema {
  const char* file;
  const char* upstream_package;
  const char* our_package;
  Built (*build)();
};

class WireBytesTest : public ::testing::TestWithParam<Schema> {
 protected:
  WireBytesTest()
      : samples_(ReadWireSamples(GetParam().file)),
        built_(GetParam().build()) {}

  /// Our message type of a sample, empty.
  std::unique_ptr<MessageLite> NewMessage(const WireSample& sample) const {
    return std::unique_ptr<MessageLite>(built_.at(sample.sample)->New());
  }

  std::vector<WireSample> samples_;
  Built built_;
};

TEST_P(WireBytesTest, EverySampleHasAMessageAndEveryMessageASample) {
  ASSERT_FALSE(samples_.empty());
  EXPECT_EQ(samples_.size(), built_.size());
  for (const WireSample& sample : samples_) {
    ASSERT_EQ(built_.count(sample.sample), 1u) << sample.sample;
    const std::string upstream = GetParam().upstream_package;
    const std::string ours = built_.at(sample.sample)->GetTypeName();
    EXPECT_EQ(sample.message.substr(upstream.size()),
              ours.substr(std::string(GetParam().our_package).size()));
    EXPECT_EQ(sample.message.substr(0, upstream.size()), upstream);
  }
}

TEST_P(WireBytesTest, MessagesBuiltByHandGiveTheBytes) {
  for (const WireSample& sample : samples_) {
    EXPECT_EQ(ToHex(Deterministic(*built_.at(sample.sample))),
              ToHex(sample.bytes))
        << sample.sample;
  }
}

TEST_P(WireBytesTest, BytesParseIntoTheMessagesBuiltByHand) {
  for (const WireSample& sample : samples_) {
    const auto message = NewMessage(sample);
    ASSERT_TRUE(message->ParseFromString(sample.bytes)) << sample.sample;
    EXPECT_EQ(Deterministic(*message), Deterministic(*built_.at(sample.sample)))
        << sample.sample;
  }
}

TEST_P(WireBytesTest, UnknownFieldsSurvive) {
  // Field 1000, length-delimited: "later"; field 1001, varint: 7.
  const std::string unknown = std::string("\xc2\x3e\x05later") + "\xc8\x3e\x07";
  for (const WireSample& sample : samples_) {
    const auto message = NewMessage(sample);
    ASSERT_TRUE(message->ParseFromString(sample.bytes + unknown))
        << sample.sample;
    EXPECT_EQ(ToHex(Deterministic(*message)), ToHex(sample.bytes + unknown))
        << sample.sample;
  }
}

TEST_P(WireBytesTest, TruncatedBytesAreRefused) {
  for (const WireSample& sample : samples_) {
    if (sample.bytes.empty()) continue;
    const auto message = NewMessage(sample);
    EXPECT_FALSE(message->ParseFromString(
        sample.bytes.substr(0, sample.bytes.size() - 1)))
        << sample.sample;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllSchemas, WireBytesTest,
    ::testing::Values(
        Schema{"pluginregistration-v1", "pluginregistration.",
               "devmgr.wire.pluginregistration.v1.", RegistrationMessages},
        Schema{"deviceplugin-v1beta1", "v1beta1.",
               "devmgr.wire.deviceplugin.v1beta1.", DevicePluginMessages},
        Schema{"dra-v1", "k8s.io.kubelet.pkg.apis.dra.v1.",
               "devmgr.wire.dra.v1.", DraV1Messages},
        Schema{"dra-v1beta1", "k8s.io.kubelet.pkg.apis.dra.v1beta1.",
               "devmgr.wire.dra.v1beta1.", DraV1beta1Messages},
        Schema{"dra-v1alpha4", "v1alpha3.", "devmgr.wire.dra.v1beta1.",
               DraV1beta1Messages},
        Schema{"dra-v1alpha3", "v1alpha3.", "devmgr.wire.dra.v1alpha3.",
               DraV1alpha3Messages},
        Schema{"dra-v1alpha2", "v1alpha2.", "devmgr.wire.dra.v1alpha2.",
               DraV1alpha2Messages},
        Schema{"dra-v1alpha1", "v1alpha1.", "devmgr.wire.dra.v1alpha1.",
               DraV1alpha1Messages},
        Schema{"dra-health-v1", "v1.", "devmgr.wire.dra.health.v1.",
               HealthMessages},
        Schema{"dra-health-v1alpha1", "v1alpha1.", "devmgr.wire.dra.health.v1.",
               HealthMessages},
        Schema{"podresources-v1", "v1.", "devmgr.wire.podresources.v1.",
               PodResourcesMessages},
        Schema{"podresources-v1alpha1", "v1alpha1.",
               "devmgr.wire.podresources.v1alpha1.", OldPodResourcesMessages}),
    [](const auto& schema) {
      std::string name = schema.param.file;
      std::erase(name, '-');
      return name;
    });

TEST(ShareIdTest, V1beta1KeepsAShareIdAsUnknownField) {
  const std::string bytes = SharedDevice().SerializeAsString();
  v1beta1::Device device;
  ASSERT_TRUE(device.ParseFromString(bytes));
  EXPECT_EQ(device.device_name(), "nic-0");
  EXPECT_EQ(ToHex(device.SerializeAsString()), ToHex(bytes));
}

TEST(DevicePluginTextTest, TextThatIsNotUtf8Survives) {
  deviceplugin::Device device;
  ASSERT_TRUE(device.ParseFromString(std::string("\x0a\x02\xff\xfe")));
  EXPECT_EQ(device.id(), "\xff\xfe");
  EXPECT_EQ(ToHex(device.SerializeAsString()), "0a02fffe");
}

}  // namespace
}  // namespace devmgr::conformance
