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
#include "dra/driver_registry.h"
#include "testing/fake_driver_wire.h"

namespace devmgr::conformance {
namespace {

constexpr char kUidA[] = "3f1c9e52-0b6d-4a87-9c57-5d2f6c1e8a10";
constexpr char kUidB[] = "b7a4d0c6-91e2-4f0b-8a3d-6e5f4c3b2a19";

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
    const std::string key(version.name.substr(0, version.name.find('.')));
    EXPECT_EQ(version.name, names[key + " service"]);
    EXPECT_EQ(version.PrepareMethod(), names[key + " prepare"]);
    EXPECT_EQ(version.UnprepareMethod(), names[key + " unprepare"]);
  }
}

TEST(WireTableTest, TheFakeDriverUsesUpstreamsNames) {
  auto names = ReadWireNames();
  EXPECT_EQ(testing::kPluginType, names["plugin type"]);
  EXPECT_EQ(testing::kGetInfoPath, names["get info"]);
  EXPECT_EQ(testing::kNotifyPath, names["notify registration"]);
  for (const testing::DraApi& api : testing::kDraApis) {
    const std::string key(api.name);
    EXPECT_EQ(api.announced, names[key + " service"]);
    EXPECT_EQ(api.prepare_path, names[key + " prepare"]);
    EXPECT_EQ(api.unprepare_path, names[key + " unprepare"]);
  }
}

TEST(WireTableTest, RequestsOfTheManagerAreUpstreamsBytes) {
  const std::vector<dra::ClaimReference> claims = {
      {{kUidA}, {"default", "claim-a"}}, {{kUidB}, {"team-b", "claim-b"}}};
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    const std::string file =
        "dra-" + std::string(version.name.substr(0, version.name.find('.')));
    EXPECT_EQ(ToHex(version.encode_prepare(claims)),
              ToHex(BytesOf(file, "prepare request")));
    EXPECT_EQ(ToHex(version.encode_unprepare(claims)),
              ToHex(BytesOf(file, "unprepare request")));
  }
}

TEST(WireTableTest, TheManagerReadsUpstreamsAnswers) {
  for (const dra::ApiVersion& version : dra::ApiVersions()) {
    const std::string file =
        "dra-" + std::string(version.name.substr(0, version.name.find('.')));
    const auto prepared =
        version.decode_prepare(BytesOf(file, "prepare response"));
    ASSERT_TRUE(prepared.ok());
    ASSERT_EQ(prepared->size(), 2u);
    EXPECT_EQ(prepared->at(kUidB).error, "not allocated");
    ASSERT_EQ(prepared->at(kUidA).devices.size(), 1u);
    const auto& device = prepared->at(kUidA).devices.front();
    EXPECT_EQ(device.pool, "pool-0");
    EXPECT_EQ(device.device, "gpu-3");
    EXPECT_EQ(device.cdi_device_ids,
              (std::vector<std::string>{"gpu.example.com/claim=a-0",
                                        "gpu.example.com/claim=a-1"}));
    const auto unprepared =
        version.decode_unprepare(BytesOf(file, "unprepare response"));
    ASSERT_TRUE(unprepared.ok());
    EXPECT_EQ(unprepared->at(kUidA).error, "");
    EXPECT_EQ(unprepared->at(kUidB).error, "device is busy");
  }
}

}  // namespace
}  // namespace devmgr::conformance
