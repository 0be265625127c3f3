// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/dra_checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/kubelet/checksum.h"
#include "checkpoint/kubelet/dra_state_file.h"
#include "checkpoint/kubelet/kubelet_files.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A file with this inner text, which needs no escapes but those of quotes and
/// backslashes.
std::string DraFile(std::string_view inner, std::uint64_t checksum) {
  std::string quoted;
  for (const char c : inner) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format(R"({{"Data":"{}","Checksum":{}}})", quoted, checksum);
}

std::string FileWithItsChecksum(std::string_view inner) {
  return DraFile(inner, Crc32(inner));
}

constexpr std::string_view kDraDevice =
    R"({"PoolName":"worker-1","DeviceName":"dev-1","ShareID":null,)"
    R"("RequestNames":["test request"],)"
    R"("CDIDeviceIDs":["example.com/example=cdi-example"]})";

/// The claim of the examples, with these `Devices`.
std::string InnerText(std::string_view devices,
                      std::string_view version = "v1") {
  return fmt::format(
      R"({{"kind":"DRACheckpoint",)"
      R"("apiVersion":"checkpoint.dra.kubelet.k8s.io/{}",)"
      R"("ClaimInfoStateList":[{{"ClaimUID":)"
      R"("067798be-454e-4be4-9047-1aa06aea63f7","ClaimName":"example",)"
      R"("Namespace":"default","PodUIDs":)"
      R"({{"139cdb46-f989-4f17-9561-ca10cfb509a6":{{}}}},"DriverState":)"
      R"({{"test-driver.cdi.k8s.io":{{"Devices":{}}}}}}}]}})",
      version, devices);
}

DraCheckpoint ExampleA() {
  DraCheckpoint checkpoint;
  checkpoint.claims = {
      {{.uid = ClaimUid{"067798be-454e-4be4-9047-1aa06aea63f7"},
        .name = {"default", "example"},
        .pods = {{PodUid{"139cdb46-f989-4f17-9561-ca10cfb509a6"}}},
        .drivers = {
            {{"test-driver.cdi.k8s.io",
              {.devices = {{{.pool = "worker-1",
                             .device = "dev-1",
                             .share_id = std::nullopt,
                             .request_names = {{"test request"}},
                             .cdi_device_ids = {
                                 {"example.com/example=cdi-example"}}}}}}}}}}}};
  return checkpoint;
}

DraDevice& DeviceOf(DraCheckpoint& checkpoint) {
  return checkpoint.claims->front()
      .drivers->at("test-driver.cdi.k8s.io")
      .devices->front();
}

DraCheckpoint DecodedDra(std::string_view file) {
  const auto state = DecodeDraStateFile(file);
  EXPECT_THAT(state, IsOk());
  if (!state.ok()) return {};
  const auto* const checkpoint = std::get_if<DraCheckpoint>(&*state);
  EXPECT_NE(checkpoint, nullptr);
  return checkpoint == nullptr ? DraCheckpoint() : *checkpoint;
}

std::string EncodedDra(const DraCheckpoint& checkpoint) {
  auto file = EncodeDraCheckpoint(checkpoint);
  EXPECT_THAT(file, IsOk());
  return file.ok() ? *std::move(file) : std::string();
}

// DRA-130: examples A and B.
TEST(DraCheckpointTest, WritesWhatTheKubeletWrites) {
  DraCheckpoint checkpoint = ExampleA();
  const std::string inner = InnerText(fmt::format("[{}]", kDraDevice));
  EXPECT_EQ(inner.size(), 443U);
  EXPECT_EQ(EncodedDra(checkpoint), DraFile(inner, 2570581864U));
  EXPECT_EQ(DecodedDra(EncodedDra(checkpoint)), checkpoint);

  DeviceOf(checkpoint).share_id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
  EXPECT_THAT(EncodedDra(checkpoint), HasSubstr("\"Checksum\":736302156}"));
  EXPECT_EQ(DecodedDra(EncodedDra(checkpoint)), checkpoint);
}

// DRA-131: examples C and D, without what later releases brought.
TEST(DraCheckpointTest, ReadsFilesOfOlderReleases) {
  constexpr std::string_view kOldDevice =
      R"([{"PoolName":"worker-1","DeviceName":"dev-1",)"
      R"("CDIDeviceIDs":["example.com/example=cdi-example"]}])";
  DraCheckpoint wanted = ExampleA();
  DeviceOf(wanted).request_names.reset();
  EXPECT_EQ(DecodedDra(DraFile(InnerText(kOldDevice), 1137250765U)), wanted);
  wanted.api_version = "checkpoint.dra.kubelet.k8s.io/v0";
  EXPECT_EQ(DecodedDra(DraFile(InnerText(kOldDevice, "v0"), 1284376732U)),
            wanted);
}

// DRA-132.
TEST(DraCheckpointTest, UnknownKeysAreIgnored) {
  const std::string inner =
      R"({"more":1,"claiminfostatelist":[{"Extra":[],"ClaimUID":"u",)"
      R"("DriverState":{"d":{"extra":{},"Devices":[{"Extra":null,)"
      R"("PoolName":"p"}]}}}]})";
  const DraCheckpoint checkpoint = DecodedDra(FileWithItsChecksum(inner));
  ASSERT_EQ(checkpoint.claims->size(), 1U);
  const DraClaim& claim = checkpoint.claims->front();
  EXPECT_EQ(claim.uid.value, "u");
  EXPECT_FALSE(claim.pods);
  EXPECT_EQ(claim.drivers->at("d").devices->front().pool, "p");
  EXPECT_EQ(checkpoint.kind, "");
}

// DRA-133, as far as it is about the file: example E.
TEST(DraCheckpointTest, TheFirstFileHasNoList) {
  const std::string file = EncodedDra(DraCheckpoint());
  EXPECT_EQ(file.size(), 141U);
  EXPECT_THAT(file, HasSubstr("\"Checksum\":4010664294}"));
  EXPECT_EQ(file, KubeletFile("dra_null"));
  EXPECT_EQ(DecodedDra(file), DraCheckpoint());
}

// DRA-134, as far as it is about the file.
TEST(DraCheckpointTest, TheLastClaimLeavesAnEmptyList) {
  DraCheckpoint checkpoint;
  checkpoint.claims.emplace();
  const std::string file = EncodedDra(checkpoint);
  EXPECT_THAT(file, HasSubstr("\"Checksum\":2361995144}"));
  EXPECT_EQ(file, KubeletFile("dra_empty"));
  EXPECT_EQ(DecodedDra(file), checkpoint);
}

// DRA-135.
TEST(DraCheckpointTest, AChecksumThatDoesNotFitIsRefusedWithBoth) {
  const std::string inner =
      R"({"kind":"DRACheckpoint","Entries":[{"ClaimUID":"u"}]})";
  EXPECT_THAT(DecodeDraStateFile(DraFile(inner, 2930258365U)),
              StatusIs(absl::StatusCode::kDataLoss,
                       fmt::format("dra_manager_state: Checksum: checkpoint is "
                                   "corrupted: 2930258365 in the file, {} "
                                   "computed from its data",
                                   Crc32(inner))));
  // The kubelet goes on without claims if it fits.
  EXPECT_THAT(DecodeDraStateFile(FileWithItsChecksum(inner)),
              StatusIs(absl::StatusCode::kDataLoss,
                       "dra_manager_state: Data.ClaimInfoStateList: missing"));
}

// DRA-136.
TEST(DraCheckpointTest, WhatIsNoCheckpointIsRefused) {
  const auto is_lost = [](const char* error) {
    return StatusIs(absl::StatusCode::kDataLoss,
                    AllOf(StartsWith("dra_manager_state: "), HasSubstr(error)));
  };
  EXPECT_THAT(DecodeDraStateFile("{"), is_lost("unexpected end of input"));
  EXPECT_THAT(DecodeDraStateFile("{}"), is_lost("neither 'Data'"));
  EXPECT_THAT(DecodeDraStateFile(""), is_lost("one JSON object"));
  EXPECT_THAT(DecodeDraStateFile(R"({"Data":"","Checksum":0})"),
              is_lost("Data: one JSON object is expected in its 0 bytes"));
  EXPECT_THAT(DecodeDraStateFile(R"({"Data":{}})"),
              is_lost("Data: a string is expected, not an object"));
  EXPECT_THAT(DecodeDraStateFile(R"({"Data":null})"),
              is_lost("Data: a string is expected, not null"));
  EXPECT_THAT(DecodeDraStateFile(FileWithItsChecksum("[1")),
              is_lost("Data: not JSON: "));
}

TEST(DraCheckpointTest, ErrorsNameThePlace) {
  constexpr std::array<std::array<const char*, 2>, 7> kBadClaims = {{
      {"1", "ClaimInfoStateList[0]: an object is expected, not '1'"},
      {R"({"ClaimUID":null})",
       "ClaimInfoStateList[0].ClaimUID: a string is expected, not null"},
      {R"({"PodUIDs":["a"]})",
       "ClaimInfoStateList[0].PodUIDs: an object is expected, not a list"},
      {R"({"PodUIDs":{"a":1}})",
       "ClaimInfoStateList[0].PodUIDs['a']: an object is expected, not '1'"},
      {R"({"DriverState":{"d":[]}})",
       "ClaimInfoStateList[0].DriverState['d']: an object is expected, not a "
       "list"},
      {R"({"DriverState":{"d":{"skipNodeOperations":"x"}}})",
       "ClaimInfoStateList[0].DriverState['d'].skipNodeOperations: a list is "
       "expected, not a string"},
      {R"({"DriverState":{"d":{"Devices":[{},{"RequestNames":[1.5]}]}}})",
       "ClaimInfoStateList[0].DriverState['d'].Devices[1].RequestNames[0]: a "
       "string is expected, not '1.5'"},
  }};
  for (const auto& [claim, error] : kBadClaims) {
    const std::string inner =
        fmt::format(R"({{"ClaimInfoStateList":[{}]}})", claim);
    EXPECT_THAT(DecodeDraStateFile(FileWithItsChecksum(inner)),
                StatusIs(absl::StatusCode::kDataLoss,
                         fmt::format("dra_manager_state: Data.{}", error)))
        << claim;
  }
}

// DRA-138: example G. Example F has no devices.
TEST(DraCheckpointTest, EscapesAndNullAreThoseOfGo) {
  DraCheckpoint checkpoint = ExampleA();
  DeviceOf(checkpoint) = {.pool = "p",
                          .device = "d",
                          .share_id = std::nullopt,
                          .request_names = std::nullopt,
                          .cdi_device_ids = {{"example.com/x=a<b&c>d"}}};
  EXPECT_THAT(EncodedDra(checkpoint), HasSubstr("\"Checksum\":3791105150}"));
  EXPECT_EQ(DecodedDra(EncodedDra(checkpoint)), checkpoint);

  checkpoint.claims->front()
      .drivers->at("test-driver.cdi.k8s.io")
      .devices.reset();
  EXPECT_THAT(EncodedDra(checkpoint), HasSubstr("\"Checksum\":1238733472}"));
  EXPECT_EQ(DecodedDra(EncodedDra(checkpoint)), checkpoint);
}

// Upstream's tests have these, with two devices and with two claims.
TEST(DraCheckpointTest, SeveralDevicesAndClaims) {
  DraCheckpoint checkpoint = ExampleA();
  DraDriverState& driver =
      checkpoint.claims->front().drivers->at("test-driver.cdi.k8s.io");
  driver.devices->push_back(driver.devices->front());
  driver.devices->back().device = "dev-2";
  EXPECT_THAT(EncodedDra(checkpoint), HasSubstr("\"Checksum\":1223221469}"));

  checkpoint = ExampleA();
  checkpoint.claims->push_back(checkpoint.claims->front());
  checkpoint.claims->front().name.name = "example-1";
  DraClaim& second = checkpoint.claims->back();
  second.uid.value = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";
  second.name.name = "example-2";
  DraDevice& device =
      second.drivers->at("test-driver.cdi.k8s.io").devices->front();
  device.device = "dev-2";
  device.request_names.reset();
  device.cdi_device_ids.reset();
  EXPECT_THAT(EncodedDra(checkpoint), HasSubstr("\"Checksum\":2820117767}"));
}

// As the kubelet's package wrote it, with skipped calls.
TEST(DraCheckpointTest, ReadsWhateverTheKubeletCanWrite) {
  const std::string file = KubeletFile("dra_odd");
  const DraCheckpoint checkpoint = DecodedDra(file);
  ASSERT_EQ(checkpoint.claims->size(), 3U);
  const DraClaim& first = checkpoint.claims->front();
  EXPECT_EQ(first.name.name, OddText());
  EXPECT_EQ(first.pods->count(PodUid{OddText()}), 1U);
  const DraDriverState& z = first.drivers->at("z.example.com");
  EXPECT_EQ(z.skip_node_operations, std::vector<std::string>{"*"});
  EXPECT_EQ((*z.devices)[0].share_id, "share-1");
  EXPECT_EQ((*z.devices)[1].share_id, "");
  EXPECT_TRUE(first.drivers->at("a.example.com").devices->empty());
  EXPECT_FALSE(first.drivers->at("m.example.com").devices);
  EXPECT_EQ(first.drivers->at("m.example.com").skip_node_operations.size(), 2U);
  EXPECT_EQ((*checkpoint.claims)[1], DraClaim());
  EXPECT_TRUE((*checkpoint.claims)[2].pods->empty());
  EXPECT_EQ(EncodedDra(checkpoint), file);
}

// DRA-140, as far as it is about reading: a torn file is never read.
TEST(DraCheckpointTest, AFileThatIsCutIsRefusedAtEachByte) {
  const std::string file = KubeletFile("dra_odd");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(DecodeDraStateFile(std::string_view(file).substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss))
        << size;
  }
}

TEST(DraCheckpointTest, AChangedByteGivesNoOtherValue) {
  const std::string file = EncodedDra(ExampleA());
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const char c : {'"', '0', 'A', ' ', '{', '\\'}) {
      std::string changed = file;
      changed[i] = c;
      const auto read = DecodeDraStateFile(changed);
      EXPECT_TRUE(!read.ok() || *read == DraStateFile(ExampleA())) << changed;
    }
  }
}

TEST(DraCheckpointTest, TextsThatAreNotUtf8AreNotWritten) {
  DraCheckpoint checkpoint = ExampleA();
  DeviceOf(checkpoint).pool = "a\xFF";
  EXPECT_THAT(EncodeDraCheckpoint(checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "dra_manager_state: 'a\\xff' is not UTF-8"));
}

DraDriverState RandomState(Luck& luck) {
  DraDriverState state;
  if (luck.Chance(80)) state.devices.emplace();
  for (int left = luck.Below(3); left > 0 && state.devices; --left) {
    DraDevice device;
    device.pool = RandomText(luck);
    device.device = RandomText(luck);
    if (luck.Chance(30)) device.share_id = RandomText(luck);
    device.request_names = RandomTexts(luck);
    device.cdi_device_ids = RandomTexts(luck);
    state.devices->push_back(std::move(device));
  }
  if (luck.Chance(30)) {
    state.skip_node_operations =
        RandomTexts(luck).value_or(std::vector<std::string>());
  }
  return state;
}

DraClaim RandomClaim(Luck& luck) {
  DraClaim claim;
  claim.uid.value = RandomText(luck);
  claim.name = {RandomText(luck), RandomText(luck)};
  if (luck.Chance(90)) claim.pods.emplace();
  for (int left = luck.Below(3); left > 0 && claim.pods; --left) {
    claim.pods->insert(PodUid{RandomText(luck)});
  }
  if (luck.Chance(90)) claim.drivers.emplace();
  for (int left = luck.Below(3); left > 0 && claim.drivers; --left) {
    (*claim.drivers)[RandomText(luck)] = RandomState(luck);
  }
  return claim;
}

// DRA-139, as far as it is about the file.
TEST(DraCheckpointTest, WhatIsWrittenIsRead) {
  LiveEach({.seed = 1, .lives = 1000}, [](Luck& luck) {
    DraCheckpoint checkpoint;
    if (luck.Chance(10)) checkpoint.kind = RandomText(luck);
    if (luck.Chance(10)) checkpoint.api_version = RandomText(luck);
    if (luck.Chance(90)) checkpoint.claims.emplace();
    for (int left = luck.Below(4); left > 0 && checkpoint.claims; --left) {
      checkpoint.claims->push_back(RandomClaim(luck));
    }
    const std::string file = EncodedDra(checkpoint);
    EXPECT_EQ(DecodedDra(file), checkpoint) << file;
    EXPECT_EQ(EncodedDra(DecodedDra(file)), file);
  });
}

}  // namespace
}  // namespace devmgr::kubelet_checkpoint
