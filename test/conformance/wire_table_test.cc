// SPDX-License-Identifier: Apache-2.0
//
// The tables of both our ends, the manager's and the fake driver's, against
// names and bytes that are not ours: test/data/conformance.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "conformance/wire_samples.h"
#include "dra/api_version.h"
#include "dra/compat/old_versions.h"
#include "dra/driver_registry.h"
#include "plugin/api_version.h"
#include "plugin/plugin_registry.h"
#include "plugin/registry_socket.h"
#include "server/podresources/service.h"
#include "testing/fake_driver_wire.h"
#include "testing/registration_wire.h"

namespace devmgr::conformance {
namespace {

std::string BytesOf(const std::string& file, const std::string& name) {
  for (const WireSample& sample : ReadWireSamples(file)) {
    if (sample.sample == name) return sample.bytes;
  }
  ADD_FAILURE() << file << " has no sample '" << name << "'";
  return "";
}

TEST(WireTableTest, TheManagerUsesUpstreamsNames) {
  auto names = ReadWireNames();
  EXPECT_EQ(dra::DriverRegistry::kPluginType, names["plugin type"]);
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    const std::string key(version.name);
    // Before v1alpha4 services were not announced by a name.
    if (const auto service = names.find(key + " service");
        service != names.end()) {
      EXPECT_EQ(version.announced, service->second);
    } else {
      EXPECT_TRUE(version.is_old) << key;
    }
    EXPECT_EQ(version.PrepareMethod(), names[key + " prepare"]);
    EXPECT_EQ(version.UnprepareMethod(), names[key + " unprepare"]);
  }
}

TEST(WireTableTest, PodResourcesAreServedUnderUpstreamsNames) {
  auto names = ReadWireNames();
  EXPECT_EQ(podresources::kListPath, names["pod-resources list"]);
  EXPECT_EQ(podresources::kAllocatablePath, names["pod-resources allocatable"]);
  EXPECT_EQ(podresources::kGetPath, names["pod-resources get"]);
  EXPECT_EQ(podresources::kOldListPath, names["pod-resources v1alpha1 list"]);
}

TEST(WireTableTest, TheFakeDriverUsesUpstreamsNames) {
  auto names = ReadWireNames();
  EXPECT_EQ(testing::kGetInfoPath, names["get info"]);
  EXPECT_EQ(testing::kNotifyPath, names["notify registration"]);
  for (const testing::DraApi& api : testing::kDraApis) {
    const std::string key(api.name);
    const auto service = names.find(key + " service");
    EXPECT_EQ(api.announced,
              service != names.end() ? service->second : "1.0.0");
    EXPECT_EQ(api.prepare_path, names[key + " prepare"]);
    EXPECT_EQ(api.unprepare_path, names[key + " unprepare"]);
  }
}

TEST(WireTableTest, RequestsOfTheManagerAreUpstreamsBytes) {
  const std::vector<dra::ClaimReference> claims = {
      {{kUidA}, {"default", "claim-a"}}, {{kUidB}, {"team-b", "claim-b"}}};
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    if (!version.batched) continue;
    const std::string file = "dra-" + std::string(version.name);
    EXPECT_EQ(ToHex(version.encode_prepare(claims)),
              ToHex(BytesOf(file, "prepare request")));
    EXPECT_EQ(ToHex(version.encode_unprepare(claims)),
              ToHex(BytesOf(file, "unprepare request")));
  }
}

TEST(WireTableTest, TheManagerReadsUpstreamsAnswers) {
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    if (!version.batched) continue;
    const std::string file = "dra-" + std::string(version.name);
    const auto prepared =
        version.decode_prepare(BytesOf(file, "prepare response"), {});
    ASSERT_TRUE(prepared.ok());
    ASSERT_EQ(prepared->size(), 2u);
    EXPECT_EQ(prepared->at(kUidB).error, "not allocated");
    ASSERT_EQ(prepared->at(kUidA).devices.size(), 1u);
    const auto& device = prepared->at(kUidA).devices.front();
    const bool named = !prepared->at(kUidA).only_cdi_ids;
    EXPECT_EQ(named, version.name != "v1alpha3");
    EXPECT_EQ(device.pool, named ? "pool-0" : "");
    EXPECT_EQ(device.device, named ? "gpu-3" : "");
    EXPECT_EQ(device.cdi_device_ids,
              (std::vector<std::string>{"gpu.example.com/claim=a-0",
                                        "gpu.example.com/claim=a-1"}));
    const auto unprepared =
        version.decode_unprepare(BytesOf(file, "unprepare response"), {});
    ASSERT_TRUE(unprepared.ok());
    EXPECT_EQ(unprepared->at(kUidA).error, "");
    EXPECT_EQ(unprepared->at(kUidB).error, "device is busy");
  }
}

/// Claim A of the samples, as it was allocated: by text, or structured.
dra::ClaimReference ClaimA(bool structured) {
  dra::ClaimReference claim{{kUidA}, {"default", "claim-a"}};
  if (structured) {
    claim.handle.structured = StructuredResourceHandle{
        R"({"share":true})",
        "",
        "node-1",
        {{R"({"memory":"4Gi"})", "gpu-3"}, {"", "gpu-4"}}};
  } else {
    claim.handle.data = "handle-a";
  }
  return claim;
}

TEST(WireTableTest, RequestsWithHandlesAreUpstreamsBytes) {
  const dra::ApiVersion& v1alpha3 = *dra::FindApiVersion("v1alpha3");
  EXPECT_EQ(ToHex(v1alpha3.encode_prepare({ClaimA(false), ClaimA(true)})),
            ToHex(BytesOf("dra-v1alpha3", "prepare request with handles")));
  const dra::ApiVersion& v1alpha2 = *dra::FindApiVersion("v1alpha2");
  for (const bool structured : {false, true}) {
    const std::string with = structured ? " with structured handle" : "";
    EXPECT_EQ(ToHex(v1alpha2.encode_prepare({ClaimA(structured)})),
              ToHex(BytesOf("dra-v1alpha2", "prepare request" + with)));
    EXPECT_EQ(ToHex(v1alpha2.encode_unprepare({ClaimA(structured)})),
              ToHex(BytesOf("dra-v1alpha2", "unprepare request" + with)));
  }
  const dra::ApiVersion& v1alpha1 = *dra::FindApiVersion("v1alpha1");
  dra::ClaimReference claim = ClaimA(false);
  EXPECT_EQ(ToHex(v1alpha1.encode_prepare({claim})),
            ToHex(BytesOf("dra-v1alpha1", "prepare request")));
  claim.cdi_device_ids = {"gpu.example.com/claim=a-0",
                          "gpu.example.com/claim=a-1"};
  EXPECT_EQ(ToHex(v1alpha1.encode_unprepare({claim})),
            ToHex(BytesOf("dra-v1alpha1", "unprepare request")));
}

TEST(WireTableTest, TheManagerReadsUpstreamsAnswersForOneClaim) {
  for (const char* name : {"v1alpha2", "v1alpha1"}) {
    const dra::ApiVersion& version = *dra::FindApiVersion(name);
    const std::string file = std::string("dra-") + name;
    const auto prepared = version.decode_prepare(
        BytesOf(file, "prepare response"), {ClaimA(false)});
    ASSERT_TRUE(prepared.ok());
    ASSERT_EQ(prepared->at(kUidA).devices.size(), 1u);
    EXPECT_EQ(prepared->at(kUidA).devices.front().cdi_device_ids,
              (std::vector<std::string>{"gpu.example.com/claim=a-0",
                                        "gpu.example.com/claim=a-1"}));
    EXPECT_TRUE(version
                    .decode_unprepare(BytesOf(file, "unprepare response"),
                                      {ClaimA(false)})
                    .ok());
  }
}

TEST(WireTableTest, UpstreamsAnswersOfV1alpha3AndV1alpha4AreToldApart) {
  for (const char* name : {"v1alpha3", "v1alpha4"}) {
    const std::string file = std::string("dra-") + name;
    const dra::ApiVersion* told =
        dra::TellApart(BytesOf(file, "prepare response"));
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->name, name);
    EXPECT_EQ(dra::TellApart(BytesOf(file, "prepare response without devices")),
              nullptr);
  }
}

TEST(PluginWireTableTest, TheManagerUsesUpstreamsNames) {
  auto names = ReadWireNames();
  EXPECT_EQ(plugin::PluginRegistry::kPluginType, names["device plugin type"]);
  EXPECT_EQ(plugin::kRegisterMethod, names["register"]);
  const plugin::ApiVersion& version = plugin::ApiVersions().front();
  EXPECT_EQ(version.name, names["device plugin version"]);
  EXPECT_EQ(version.Method(plugin::kOptionsMethod), names["options"]);
  EXPECT_EQ(version.Method(plugin::kListMethod), names["list and watch"]);
  EXPECT_EQ(version.Method(plugin::kPreferredMethod),
            names["preferred allocation"]);
  EXPECT_EQ(version.Method(plugin::kAllocateMethod), names["allocate"]);
  EXPECT_EQ(version.Method(plugin::kPreStartMethod),
            names["pre-start container"]);
  const std::string socket = names["registry socket"];
  EXPECT_EQ(socket.substr(socket.rfind('/') + 1),
            plugin::RegistrySocketOptions().name);
}

constexpr char kPluginFile[] = "deviceplugin-v1beta1";

TEST(PluginWireTableTest, RequestsOfTheManagerAreUpstreamsBytes) {
  const plugin::ApiVersion& version = plugin::ApiVersions().front();
  EXPECT_EQ(version.encode_empty(), BytesOf(kPluginFile, "empty"));
  EXPECT_EQ(plugin::EncodeRegistered(), BytesOf(kPluginFile, "empty"));
  EXPECT_EQ(ToHex(version.encode_allocate({"gpu-0", "gpu-1"})),
            ToHex(BytesOf(kPluginFile, "allocate request")));
  EXPECT_EQ(ToHex(version.encode_pre_start({"gpu-0", "gpu-1"})),
            ToHex(BytesOf(kPluginFile, "pre-start request")));
  EXPECT_EQ(ToHex(version.encode_preferred(
                {{"gpu-0", "gpu-1", "gpu-2"}, {"gpu-1"}, 2})),
            ToHex(BytesOf(kPluginFile, "preferred request")));
}

TEST(PluginWireTableTest, TheManagerReadsUpstreamsWords) {
  const plugin::ApiVersion& version = plugin::ApiVersions().front();
  const auto request =
      plugin::DecodeRegister(BytesOf(kPluginFile, "register request"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->version, "v1beta1");
  EXPECT_EQ(request->endpoint, "gpu.sock");
  EXPECT_EQ(request->resource, "example.com/gpu");
  const auto options = version.decode_options(BytesOf(kPluginFile, "options"));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(*options, (plugin::PluginOptions{true, true}));

  const auto list = version.decode_list(BytesOf(kPluginFile, "list"));
  ASSERT_TRUE(list.ok());
  using device::Health;
  EXPECT_EQ(list->devices,
            (std::vector<device::Device>{{"gpu-0", Health::kHealthy, {0, 1}},
                                         {"gpu-1", Health::kUnhealthy, {}},
                                         {"gpu-2", Health::kHealthy, {}}}));
  const auto ids =
      version.decode_preferred(BytesOf(kPluginFile, "preferred response"));
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<DeviceId>{"gpu-1", "gpu-2"}));
}

TEST(PluginWireTableTest, TheManagerReadsUpstreamsAllocateResponse) {
  const std::string bytes = BytesOf(kPluginFile, "allocate response");
  const auto edits = plugin::ApiVersions().front().decode_allocate(bytes);
  ASSERT_TRUE(edits.ok());
  // As it came: all that follows the field's number and length.
  ASSERT_TRUE(edits->response.has_value());
  EXPECT_EQ(*edits->response,
            bytes.substr(bytes.size() - edits->response->size()));
  EXPECT_GT(edits->response->size() + 5, bytes.size());
  device::ContainerEdits expected;
  expected.env = {{"GPU_EMPTY", ""}, {"GPU_VISIBLE", "gpu-0,gpu-1"}};
  expected.mounts = {{"/usr/lib/gpu", "/opt/gpu/lib", true},
                     {"/var/run/gpu", "/run/gpu", false}};
  expected.devices = {{"/dev/gpu0", "/dev/gpu7", "rw"}};
  expected.annotations = {{"cdi.k8s.io/gpu", "example.com/gpu=0"}};
  expected.cdi_devices = {"example.com/gpu=0", "example.com/gpu=1"};
  expected.response = edits->response;
  EXPECT_EQ(*edits, expected);
}

}  // namespace
}  // namespace devmgr::conformance
