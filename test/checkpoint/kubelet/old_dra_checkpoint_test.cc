// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/old_dra_checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/kubelet/kubelet_files.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using Layout = OldDraCheckpoint::Layout;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kCdiDevices =
    R"("CDIDevices":{"test-driver.cdi.k8s.io":)"
    R"(["example.com/example=cdi-example"]})";
constexpr std::string_view kHandles =
    R"("ResourceHandles":[{"driverName":"test-driver.cdi.k8s.io",)"
    R"("data":"{\"a\": \"b\"}"}],)";
constexpr std::string_view kDriverState =
    R"("DriverState":{"test-driver.cdi.k8s.io":{"Devices":[)"
    R"({"PoolName":"worker-1","DeviceName":"dev-1",)"
    R"("RequestNames":["test request"],)"
    R"("CDIDeviceIDs":["example.com/example=cdi-example"]}]}})";

std::string OldFile(std::string_view entries, std::uint64_t checksum) {
  return fmt::format(R"({{"version":"v1","entries":{},"checksum":{}}})",
                     entries, checksum);
}

std::string OldEntry(
    std::string_view rest, std::string_view claim = "example",
    std::string_view uid = "067798be-454e-4be4-9047-1aa06aea63f7") {
  return fmt::format(
      R"("ClaimUID":"{}","ClaimName":"{}","Namespace":"default",)"
      R"("PodUIDs":{{"139cdb46-f989-4f17-9561-ca10cfb509a6":{{}}}},{}}})",
      uid, claim, rest);
}

/// A file of before 1.31 with one claim that ends like this.
std::string FileBefore131(std::string_view handles, std::uint64_t checksum) {
  return OldFile(
      fmt::format(R"([{{"DriverName":"test-driver.cdi.k8s.io",)"
                  R"("ClassName":"class-name",{}])",
                  OldEntry(fmt::format("{}{}", handles, kCdiDevices))),
      checksum);
}

OldDraCheckpoint DecodedOld(std::string_view file) {
  const auto state = DecodeDraStateFile(file);
  EXPECT_THAT(state, IsOk());
  if (!state.ok()) return {};
  const auto* const old = std::get_if<OldDraCheckpoint>(&*state);
  EXPECT_NE(old, nullptr);
  return old == nullptr ? OldDraCheckpoint() : *old;
}

std::string EncodedOld(const OldDraCheckpoint& checkpoint) {
  auto file = EncodeOldDraCheckpoint(checkpoint);
  EXPECT_THAT(file, IsOk());
  return file.ok() ? *std::move(file) : std::string();
}

void ExpectComesBack(const std::string& file, Layout layout) {
  const OldDraCheckpoint checkpoint = DecodedOld(file);
  EXPECT_EQ(checkpoint.layout, layout) << file;
  EXPECT_TRUE(checkpoint.is_checksum_proven) << file;
  EXPECT_EQ(EncodedOld(checkpoint), file);
}

// The checksums of upstream's tests of these releases.
TEST(OldDraCheckpointTest, ReadsAndWritesEachLayoutByteByByte) {
  ExpectComesBack(FileBefore131("", 153446146U), Layout::kCdiDevices);
  ExpectComesBack(FileBefore131(R"("ResourceHandles":null,)", 453625682U),
                  Layout::kResourceHandles);
  ExpectComesBack(FileBefore131(kHandles, 113577689U),
                  Layout::kResourceHandles);
  ExpectComesBack(OldFile("[{" + OldEntry(kDriverState) + "]", 1925941526U),
                  Layout::kDriverState);
}

TEST(OldDraCheckpointTest, SeveralClaimsAndDrivers) {
  ExpectComesBack(
      OldFile(fmt::format(
                  R"([{{"DriverName":"meta-test-driver.cdi.k8s.io",)"
                  R"("ClassName":"class-name",{}])",
                  OldEntry(R"("ResourceHandles":[)"
                           R"({"driverName":"test-driver-1.cdi.k8s.io",)"
                           R"("data":"{\"a\": \"b\"}"},)"
                           R"({"driverName":"test-driver-2.cdi.k8s.io",)"
                           R"("data":"{\"c\": \"d\"}"}],"CDIDevices":)"
                           R"({"test-driver-1.cdi.k8s.io":)"
                           R"(["example-1.com/example-1=cdi-example-1"],)"
                           R"("test-driver-2.cdi.k8s.io":)"
                           R"(["example-2.com/example-2=cdi-example-2"]})")),
              1466990255U),
      Layout::kResourceHandles);
  ExpectComesBack(OldFile("[{" + OldEntry(kDriverState, "example-1") + ",{" +
                              OldEntry(kDriverState, "example-2",
                                       "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c") +
                              "]",
                          351581974U),
                  Layout::kDriverState);
  constexpr std::string_view kBareDevice =
      R"("DriverState":{"test-driver.cdi.k8s.io":{"Devices":[)"
      R"({"PoolName":"worker-1","DeviceName":"dev-2","RequestNames":null,)"
      R"("CDIDeviceIDs":null}]}})";
  ExpectComesBack(OldFile("[{" + OldEntry(kDriverState, "example-1") + ",{" +
                              OldEntry(kBareDevice, "example-2",
                                       "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c") +
                              "]",
                          1191151426U),
                  Layout::kDriverState);
}

// k/k#123552: a type that is dumped got a field, and the checksum changed.
TEST(OldDraCheckpointTest, AChecksumThatIsNotProvenIsSaid) {
  OldDraCheckpoint read = DecodedOld(FileBefore131("", 1988120168U));
  EXPECT_FALSE(read.is_checksum_proven);
  read.is_checksum_proven = true;
  EXPECT_EQ(read, DecodedOld(FileBefore131("", 153446146U)));
}

TEST(OldDraCheckpointTest, StructuredParametersAreNotKept) {
  const OldDraCheckpoint read = DecodedOld(FileBefore131(
      R"("ResourceHandles":[{"driverName":"d","structuredData":{"a":1}}],)",
      113577689U));
  EXPECT_FALSE(read.is_checksum_proven);
  EXPECT_TRUE(
      read.claims->front().resource_handles->front().has_structured_data);
  EXPECT_THAT(EncodeOldDraCheckpoint(read),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "dra_manager_state: claim 'default/example': structured "
                       "parameters are not kept"));
}

TEST(OldDraCheckpointTest, UpgradedClaimsHaveADevicePerDriver) {
  const DraCheckpoint upgraded =
      Upgraded(DecodedOld(FileBefore131(kHandles, 113577689U)));
  EXPECT_EQ(upgraded.kind, "DRACheckpoint");
  ASSERT_EQ(upgraded.claims->size(), 1U);
  const DraClaim& claim = upgraded.claims->front();
  EXPECT_EQ(claim.uid.value, "067798be-454e-4be4-9047-1aa06aea63f7");
  EXPECT_EQ(claim.name.ToString(), "default/example");
  EXPECT_EQ(claim.pods->count(PodUid{"139cdb46-f989-4f17-9561-ca10cfb509a6"}),
            1U);
  DraDevice device;
  device.cdi_device_ids = {{"example.com/example=cdi-example"}};
  EXPECT_EQ(claim.drivers,
            (std::map<std::string, DraDriverState>{
                {"test-driver.cdi.k8s.io",
                 {.devices = {{device}}, .skip_node_operations = {}}}}));
}

TEST(OldDraCheckpointTest, UpgradedClaimsKeepDriversWithoutDevices) {
  OldDraCheckpoint old;
  old.layout = Layout::kResourceHandles;
  old.claims.emplace(3);
  OldDraClaim& booked = (*old.claims)[0];
  booked.driver = "a.example.com";
  OldDraClaim& partly = (*old.claims)[1];
  partly.driver = "a.example.com";
  partly.resource_handles = {
      {{.driver = "b.example.com", .data = ""}, {.driver = "", .data = "x"}}};
  partly.cdi_devices = {
      {{"b.example.com", {{"v/c=1"}}}, {"c.example.com", std::nullopt}}};
  const DraCheckpoint upgraded = Upgraded(old);
  EXPECT_EQ((*upgraded.claims)[0].drivers,
            (std::map<std::string, DraDriverState>{{"a.example.com", {}}}));
  const auto& drivers = *(*upgraded.claims)[1].drivers;
  EXPECT_EQ(drivers.size(), 3U);
  EXPECT_FALSE(drivers.at("a.example.com").devices);
  EXPECT_EQ(drivers.at("b.example.com").devices->size(), 1U);
  EXPECT_FALSE(drivers.at("c.example.com").devices);
  EXPECT_TRUE((*upgraded.claims)[2].drivers->empty());
}

TEST(OldDraCheckpointTest, UpgradedClaimsOf131AreAsTheyWere) {
  const OldDraCheckpoint old =
      DecodedOld(OldFile("[{" + OldEntry(kDriverState) + "]", 1925941526U));
  EXPECT_EQ(Upgraded(old).claims->front(), old.claims->front().claim);
  EXPECT_FALSE(Upgraded(DecodedOld(OldFile("null", 1))).claims);
}

TEST(OldDraCheckpointTest, ErrorsNameThePlace) {
  constexpr std::array<std::array<const char*, 2>, 6> kBadEntries = {{
      {"{}", "entries: a list is expected, not an object"},
      {"[null]", "entries[0]: an object is expected, not null"},
      {R"([{"ResourceHandles":[{"data":1}]}])",
       "entries[0].ResourceHandles[0].data: a string is expected, not '1'"},
      {R"([{"CDIDevices":{"d":{}}}])",
       "entries[0].CDIDevices['d']: a list is expected, not an object"},
      {R"([{"CDIDevices":null},{"DriverState":null}])",
       "entries[1]: another layout than that of the entries before it"},
      {R"([{"CDIDevices":null,"DriverState":{}}])",
       "entries[0]: devices by driver and CDI devices in one entry"},
  }};
  for (const auto& [entries, error] : kBadEntries) {
    EXPECT_THAT(DecodeDraStateFile(OldFile(entries, 0)),
                StatusIs(absl::StatusCode::kDataLoss,
                         fmt::format("dra_manager_state: {}", error)))
        << entries;
  }
}

TEST(OldDraCheckpointTest, WhatALayoutDoesNotHaveIsNotWritten) {
  const auto is_refused = [](const char* error) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("claim 'ns/c'"), HasSubstr(error)));
  };
  OldDraCheckpoint checkpoint;
  checkpoint.claims.emplace(1);
  OldDraClaim& claim = checkpoint.claims->front();
  claim.claim.name = {"ns", "c"};
  claim.cdi_devices.emplace();
  EXPECT_THAT(EncodeOldDraCheckpoint(checkpoint),
              is_refused("devices by driver only"));
  claim.cdi_devices.reset();
  claim.claim.drivers = {{{"d", {}}}};
  DraDriverState& driver = claim.claim.drivers->at("d");
  driver.skip_node_operations = {"*"};
  EXPECT_THAT(EncodeOldDraCheckpoint(checkpoint), is_refused("skipped calls"));
  driver.skip_node_operations.clear();
  driver.devices.emplace(1).front().share_id = "s";
  EXPECT_THAT(EncodeOldDraCheckpoint(checkpoint), is_refused("no share IDs"));
  checkpoint.layout = Layout::kCdiDevices;
  EXPECT_THAT(EncodeOldDraCheckpoint(checkpoint),
              is_refused("no devices by driver"));
  claim.claim.drivers.reset();
  claim.resource_handles.emplace();
  EXPECT_THAT(EncodeOldDraCheckpoint(checkpoint),
              is_refused("no resource handles"));
}

TEST(OldDraCheckpointTest, AFileThatIsCutIsRefusedAtEachByte) {
  for (const std::string& file :
       {FileBefore131(kHandles, 113577689U),
        OldFile("[{" + OldEntry(kDriverState) + "]", 1925941526U)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_THAT(DecodeDraStateFile(std::string_view(file).substr(0, size)),
                  StatusIs(absl::StatusCode::kDataLoss))
          << size;
    }
  }
}

OldDraClaim RandomOldClaim(Luck& luck, Layout layout) {
  OldDraClaim old;
  old.claim.uid.value = RandomText(luck);
  old.claim.name = {RandomText(luck), RandomText(luck)};
  if (luck.Chance(80)) old.claim.pods = {{PodUid{RandomText(luck)}}};
  if (layout == Layout::kDriverState) {
    if (luck.Chance(20)) return old;
    DraDriverState& state = old.claim.drivers.emplace()[RandomText(luck)];
    if (luck.Chance(20)) return old;
    DraDevice& device = state.devices.emplace(1).front();
    device.pool = RandomText(luck);
    device.cdi_device_ids = RandomTexts(luck);
    return old;
  }
  old.driver = RandomText(luck);
  old.class_name = RandomText(luck);
  if (luck.Chance(80)) {
    old.cdi_devices.emplace()[RandomText(luck)] = RandomTexts(luck);
  }
  if (layout == Layout::kResourceHandles && luck.Chance(80)) {
    old.resource_handles = {
        {{.driver = RandomText(luck), .data = RandomText(luck)}}};
  }
  return old;
}

TEST(OldDraCheckpointTest, WhatIsWrittenIsRead) {
  constexpr std::array kLayouts = {
      Layout::kCdiDevices, Layout::kResourceHandles, Layout::kDriverState};
  LiveEach({.seed = 1, .lives = 1000}, [&](Luck& luck) {
    OldDraCheckpoint checkpoint;
    checkpoint.version = RandomText(luck);
    checkpoint.layout = luck.Pick(kLayouts);
    if (luck.Chance(90)) checkpoint.claims.emplace();
    for (int left = luck.Below(4); left > 0 && checkpoint.claims; --left) {
      checkpoint.claims->push_back(RandomOldClaim(luck, checkpoint.layout));
    }
    // A file without entries is of each layout.
    if (!checkpoint.claims || checkpoint.claims->empty()) {
      checkpoint.layout = Layout::kDriverState;
    }
    const std::string file = EncodedOld(checkpoint);
    EXPECT_EQ(DecodedOld(file), checkpoint) << file;
    EXPECT_EQ(EncodedOld(DecodedOld(file)), file);
  });
}

}  // namespace
}  // namespace devmgr::kubelet_checkpoint
