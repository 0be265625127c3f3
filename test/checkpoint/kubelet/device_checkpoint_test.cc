// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/device_checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/kubelet/json_field.h"
#include "checkpoint/kubelet/kubelet_files.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kTegra =
    R"({"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283185c3",)"
    R"("ContainerName":"check","ResourceName":"nvidia.com/gpu","DeviceIDs":)"
    R"({"-1":["tegra"]},"AllocResp":)"
    R"("Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],)"
    R"("RegisteredDevices":{"nvidia.com/gpu":["tegra"]}})";
constexpr std::uint32_t kTegraChecksum = 3660592824U;

constexpr std::string_view kFormat1Data =
    R"({"PodDeviceEntries":[{"PodUID":"13ac2284-0d19-44b7-b94f-055b032dba9b",)"
    R"("ContainerName":"centos","ResourceName":"example.com/deviceA","DeviceI)"
    R"(Ds":["DevA3"],"AllocResp":"CiIKHUVYQU1QTEVDT01ERVZJQ0VBX0RFVkEzX1RUWTE)"
    R"(wEgEwGhwKCi9kZXYvdHR5MTASCi9kZXYvdHR5MTAaAnJ3"},{"PodUID":"86b9a017-c9)"
    R"(ca-4069-815f-46ca3e53c1e4","ContainerName":"centos","ResourceName":"ex)"
    R"(ample.com/deviceA","DeviceIDs":["DevA4"],"AllocResp":"CiIKHUVYQU1QTEVD)"
    R"(T01ERVZJQ0VBX0RFVkE0X1RUWTExEgEwGhwKCi9kZXYvdHR5MTESCi9kZXYvdHR5MTEaAn)"
    R"(J3"}],"RegisteredDevices":{"example.com/deviceA":["DevA1","DevA2","Dev)"
    R"(A3","DevA4"]}})";

std::string DeviceFile(std::string_view data, std::uint64_t checksum) {
  return fmt::format(R"({{"Data":{},"Checksum":{}}})", data, checksum);
}

DeviceCheckpoint DecodedDevices(std::string_view file) {
  auto checkpoint = DecodeDeviceCheckpoint(file);
  EXPECT_THAT(checkpoint, IsOk());
  return checkpoint.ok() ? *std::move(checkpoint) : DeviceCheckpoint();
}

std::string EncodedDevices(const DeviceCheckpoint& checkpoint) {
  auto file = EncodeDeviceCheckpoint(checkpoint);
  EXPECT_THAT(file, IsOk());
  return file.ok() ? *std::move(file) : std::string();
}

// DP-107, and the reading half of DP-112.
TEST(DeviceCheckpointTest, ReadsDevicesWithoutATopology) {
  const std::string file = DeviceFile(kTegra, kTegraChecksum);
  const DeviceCheckpoint checkpoint = DecodedDevices(file);
  EXPECT_EQ(checkpoint.format, DeviceCheckpoint::Format::kIdsByNumaNode);
  ASSERT_TRUE(checkpoint.entries);
  ASSERT_EQ(checkpoint.entries->size(), 1U);
  const PodDevicesEntry& entry = checkpoint.entries->front();
  EXPECT_EQ(entry.pod.value, "bf52b2cd-b611-4e79-86b1-280b283185c3");
  EXPECT_EQ(entry.container.value, "check");
  EXPECT_EQ(entry.resource.value, "nvidia.com/gpu");
  const DeviceIdList tegra = std::vector<DeviceId>{"tegra"};
  EXPECT_EQ(entry.device_ids,
            (std::map<std::int64_t, DeviceIdList>{{-1, tegra}}));
  // The response as it came: env NVIDIA_VISIBLE_DEVICES=tegra.
  EXPECT_EQ(entry.alloc_resp,
            "\x0A\x1F\x0A\x16NVIDIA_VISIBLE_DEVICES\x12\x05tegra");
  EXPECT_EQ(checkpoint.registered,
            (std::map<ResourceName, DeviceIdList>{{"nvidia.com/gpu", tegra}}));
  EXPECT_EQ(EncodedDevices(checkpoint), file);
}

// DP-108.
TEST(DeviceCheckpointTest, ReadsAFileWithoutEntries) {
  const std::string file = DeviceFile(
      R"({"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":)"
      R"(["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}})",
      3952659280U);
  const DeviceCheckpoint checkpoint = DecodedDevices(file);
  EXPECT_FALSE(checkpoint.entries);
  EXPECT_EQ(checkpoint.registered->size(), 1U);
  EXPECT_EQ(EncodedDevices(checkpoint), file);
}

// DP-109.
TEST(DeviceCheckpointTest, AWrongChecksumIsRefusedWithBoth) {
  EXPECT_THAT(DecodeDeviceCheckpoint(DeviceFile(kTegra, kTegraChecksum + 1)),
              StatusIs(absl::StatusCode::kDataLoss,
                       "kubelet_internal_checkpoint: Checksum: checkpoint is "
                       "corrupted: 3660592825 in the file, 3660592824 computed "
                       "from its data"));
  // More than 32 bits.
  EXPECT_THAT(
      DecodeDeviceCheckpoint(DeviceFile(kTegra, (1ULL << 32) + kTegraChecksum)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("corrupted")));
}

TEST(DeviceCheckpointTest, NullAndEmptyHaveChecksumsOfTheirOwn) {
  DeviceCheckpoint checkpoint;
  checkpoint.registered.emplace();
  EXPECT_EQ(ChecksumOf(checkpoint), 3467439661U);
  EXPECT_EQ(EncodedDevices(checkpoint),
            DeviceFile(R"({"PodDeviceEntries":null,"RegisteredDevices":{}})",
                       3467439661U));
  checkpoint.entries.emplace();
  EXPECT_EQ(ChecksumOf(checkpoint), 2932075448U);
}

// DP-114: nodes sorted as texts in the file, as numbers in the dump.
TEST(DeviceCheckpointTest, NodesAreSortedAsTextsInTheFile) {
  DeviceCheckpoint checkpoint;
  checkpoint.entries = {{PodDevicesEntry{
      .pod = PodUid{"pod-a"},
      .container = "main",
      .resource = "example.com/dev",
      .device_ids = {{{0, {{"d0"}}}, {2, {{"d2", "d3"}}}, {10, {{"d10"}}}}},
      .alloc_resp = ""}}};
  checkpoint.registered = {{{"example.com/dev", {{"d0", "d10", "d2", "d3"}}},
                            {"example.com/none", std::vector<DeviceId>()}}};
  const std::string file = DeviceFile(
      R"({"PodDeviceEntries":[{"PodUID":"pod-a","ContainerName":"main",)"
      R"("ResourceName":"example.com/dev","DeviceIDs":{"0":["d0"],)"
      R"("10":["d10"],"2":["d2","d3"]},"AllocResp":""}],)"
      R"("RegisteredDevices":{"example.com/dev":["d0","d10","d2","d3"],)"
      R"("example.com/none":[]}})",
      656687423U);
  EXPECT_EQ(EncodedDevices(checkpoint), file);
  EXPECT_EQ(DecodedDevices(file), checkpoint);
}

TEST(DeviceCheckpointTest, Format1HasAllDevicesOnNodeZero) {
  const std::string file = DeviceFile(kFormat1Data, 405612085U);
  const DeviceCheckpoint checkpoint = DecodedDevices(file);
  EXPECT_EQ(checkpoint.format, DeviceCheckpoint::Format::kIdLists);
  EXPECT_EQ(checkpoint.entries->front().device_ids,
            (std::map<std::int64_t, DeviceIdList>{
                {0, std::vector<DeviceId>{"DevA3"}}}));
  EXPECT_EQ(EncodedDevices(checkpoint), file);
}

TEST(DeviceCheckpointTest, Format1CannotSayOtherNodes) {
  DeviceCheckpoint checkpoint;
  checkpoint.format = DeviceCheckpoint::Format::kIdLists;
  checkpoint.entries.emplace(1);
  PodDevicesEntry& entry = checkpoint.entries->front();
  entry.pod = PodUid{"pod-a"};
  entry.container = "main";
  const auto is_refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      AllOf(HasSubstr("format 1"), HasSubstr("'main'"), HasSubstr("'pod-a'")));
  entry.device_ids = {{{1, {{"d"}}}}};
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint), is_refused);
  entry.device_ids = {{{0, {{"d"}}}, {1, {{"e"}}}}};
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint), is_refused);
  entry.device_ids = {{{0, std::nullopt}}};
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint), is_refused);
  entry.device_ids.emplace();
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint), is_refused);
  entry.device_ids.reset();
  EXPECT_EQ(DecodedDevices(EncodedDevices(checkpoint)), checkpoint);
}

TEST(DeviceCheckpointTest, FilesOfTheKubeletComeBackByteByByte) {
  for (const char* name : {"devices_null", "devices_empty", "devices_odd"}) {
    SCOPED_TRACE(name);
    const std::string file = KubeletFile(name);
    EXPECT_EQ(EncodedDevices(DecodedDevices(file)), file);
  }
}

// As the kubelet's package wrote it: all bytes in a response, the ends of the
// numbers of nodes, null and empty lists, texts with all that Go escapes.
TEST(DeviceCheckpointTest, ReadsWhateverTheKubeletCanWrite) {
  const DeviceCheckpoint checkpoint =
      DecodedDevices(KubeletFile("devices_odd"));
  ASSERT_EQ(checkpoint.entries->size(), 3U);
  const PodDevicesEntry& first = (*checkpoint.entries)[0];
  EXPECT_EQ(first.container.value, OddText());
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    all_bytes += static_cast<char>(byte);
  }
  EXPECT_EQ(first.alloc_resp, all_bytes);
  const auto& ids = *first.device_ids;
  EXPECT_EQ(ids.begin()->first, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ids.rbegin()->first, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(ids.at(2), std::nullopt);
  EXPECT_EQ(ids.at(10), std::vector<DeviceId>());
  EXPECT_EQ(ids.at(63), std::vector<DeviceId>{""});
  EXPECT_EQ((*checkpoint.entries)[1], PodDevicesEntry());
  EXPECT_TRUE((*checkpoint.entries)[2].device_ids->empty());
  EXPECT_EQ((*checkpoint.entries)[2].alloc_resp, "");
  EXPECT_EQ(checkpoint.registered->at("A"), std::nullopt);
  EXPECT_EQ(checkpoint.registered->count(OddText()), 1U);
}

// What reads the file with a struct of Go takes these, too.
TEST(DeviceCheckpointTest, OrderAndCaseOfKeysDoNotMatter) {
  const std::string file =
      fmt::format(R"( {{"checksum" : {}, "More": [1.5, true], "DATA": {{)"
                  R"("registereddevices": {{"nvidia.com/gpu": ["tegra"]}},)"
                  R"("poddeviceentries": [{{"Extra": {{}}, "AllocResp": )"
                  R"("Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh", )"
                  R"("resourcename": "nvidia.com\/gpu", "deviceids": {{"-1":)"
                  R"(["t\u0065gra"]}}, "containername": "check", )"
                  R"("poduid": "bf52b2cd-b611-4e79-86b1-280b283185c3"}}]}}}})"
                  "\n",
                  kTegraChecksum);
  EXPECT_EQ(DecodedDevices(file),
            DecodedDevices(DeviceFile(kTegra, kTegraChecksum)));
}

TEST(DeviceCheckpointTest, WhatIsMissingIsEmptyOrZero) {
  const DeviceCheckpoint empty = DecodedDevices(DeviceFile("{}", 2932075448U));
  EXPECT_TRUE(empty.entries && empty.entries->empty());
  EXPECT_TRUE(empty.registered && empty.registered->empty());
  EXPECT_EQ(DecodedDevices(R"({"Checksum":2932075448})"), empty);

  DeviceCheckpoint with_entry;
  with_entry.entries.emplace(1);
  with_entry.registered.emplace();
  EXPECT_EQ(DecodedDevices(DeviceFile(R"({"PodDeviceEntries":[{}]})",
                                      ChecksumOf(with_entry))),
            with_entry);
}

struct BadFile {
  const char* data;
  const char* error;  ///< Behind the name of the file.
};

TEST(DeviceCheckpointTest, ErrorsNameThePlace) {
  constexpr std::array<BadFile, 13> kBadFiles = {{
      {R"([])", "Data: an object is expected, not a list"},
      {R"({"PodDeviceEntries":{}})",
       "Data.PodDeviceEntries: a list is expected, not an object"},
      {R"({"PodDeviceEntries":[{},null]})",
       "Data.PodDeviceEntries[1]: an object is expected, not null"},
      {R"({"PodDeviceEntries":[{"PodUID":7}]})",
       "Data.PodDeviceEntries[0].PodUID: a string is expected, not '7'"},
      {R"({"PodDeviceEntries":[{"ContainerName":null}]})",
       "Data.PodDeviceEntries[0].ContainerName: a string is expected, not "
       "null"},
      {R"({"PodDeviceEntries":[{"DeviceIDs":"a"}]})",
       "Data.PodDeviceEntries[0].DeviceIDs: an object is expected, not a "
       "string"},
      {R"({"PodDeviceEntries":[{"DeviceIDs":{"0":["a",true]}}]})",
       "Data.PodDeviceEntries[0].DeviceIDs['0'][1]: a string is expected, not "
       "a boolean"},
      {R"({"PodDeviceEntries":[{"DeviceIDs":{"07":[]}}]})",
       "Data.PodDeviceEntries[0].DeviceIDs: '07' is no NUMA node"},
      {R"({"PodDeviceEntries":[{"DeviceIDs":{"9223372036854775808":[]}}]})",
       "Data.PodDeviceEntries[0].DeviceIDs: '9223372036854775808' is no NUMA "
       "node"},
      {R"({"PodDeviceEntries":[{"DeviceIDs":["a"]},{"DeviceIDs":{}}]})",
       "Data.PodDeviceEntries[1].DeviceIDs: lists and objects of IDs in one "
       "file"},
      {R"({"PodDeviceEntries":[{"AllocResp":"YQ"}]})",
       "Data.PodDeviceEntries[0].AllocResp: not base64 with padding"},
      {R"({"RegisteredDevices":{"example.com/gpu":{}}})",
       "Data.RegisteredDevices['example.com/gpu']: a list is expected, not an "
       "object"},
      {R"({"RegisteredDevices":{},"registereddevices":{}})",
       "Data.RegisteredDevices: two keys differ in case only"},
  }};
  for (const auto& [data, error] : kBadFiles) {
    EXPECT_THAT(DecodeDeviceCheckpoint(DeviceFile(data, 0)),
                StatusIs(absl::StatusCode::kDataLoss,
                         fmt::format("kubelet_internal_checkpoint: {}", error)))
        << data;
  }
}

TEST(DeviceCheckpointTest, WhatIsNoCheckpointIsRefused) {
  const auto is_lost = [](const char* error) {
    return StatusIs(
        absl::StatusCode::kDataLoss,
        AllOf(StartsWith("kubelet_internal_checkpoint: "), HasSubstr(error)));
  };
  EXPECT_THAT(DecodeDeviceCheckpoint(""), is_lost("one JSON object"));
  EXPECT_THAT(DecodeDeviceCheckpoint("null"), is_lost("one JSON object"));
  EXPECT_THAT(DecodeDeviceCheckpoint("[]"), is_lost("one JSON object"));
  EXPECT_THAT(DecodeDeviceCheckpoint("{}"), is_lost("corrupted: 0 in the"));
  EXPECT_THAT(DecodeDeviceCheckpoint("{} {}"), is_lost("one JSON object"));
  EXPECT_THAT(DecodeDeviceCheckpoint("{"), is_lost("unexpected end of input"));
  EXPECT_THAT(DecodeDeviceCheckpoint("{\"\xFF\":1}"),
              is_lost("not UTF-8 from byte 2 of 7 on"));
  EXPECT_THAT(DecodeDeviceCheckpoint(std::string_view("{}\0{}", 5)),
              is_lost("a NUL byte at byte 2 of 5"));
  EXPECT_THAT(DecodeDeviceCheckpoint(R"({"Checksum":1.5})"),
              is_lost("Checksum: a number from 0"));
  EXPECT_THAT(DecodeDeviceCheckpoint(R"({"Checksum":-1})"),
              is_lost("not '-1'"));
  EXPECT_THAT(DecodeDeviceCheckpoint(R"({"a":1,"a":2})"),
              is_lost("key 'a' is already there"));
  EXPECT_THAT(DecodeDeviceCheckpoint(std::string(kMaxFileBytes + 1, ' ')),
              is_lost("33554433 bytes, at most 33554432 are read"));
  EXPECT_THAT(DecodeDeviceCheckpoint(R"({"a":)" + std::string(200, '[')),
              is_lost("nested deeper than 100 levels"));
}

TEST(DeviceCheckpointTest, TextsThatAreNotUtf8AreNotWritten) {
  DeviceCheckpoint checkpoint;
  checkpoint.registered = {{{"example.com/gpu", {{"a\xFF"}}}}};
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "kubelet_internal_checkpoint: 'a\\xff' is not UTF-8"));
}

TEST(DeviceCheckpointTest, WhatCouldNotBeReadIsNotWritten) {
  DeviceCheckpoint checkpoint;
  checkpoint.entries.emplace(1);
  checkpoint.entries->front().alloc_resp.emplace(kMaxFileBytes, 'x');
  EXPECT_THAT(EncodeDeviceCheckpoint(checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 33554432 can be read")));
}

TEST(DeviceCheckpointTest, AFileThatIsCutIsRefusedAtEachByte) {
  for (const std::string& file :
       {KubeletFile("devices_odd"), DeviceFile(kTegra, kTegraChecksum),
        DeviceFile(kFormat1Data, 405612085U)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_THAT(
          DecodeDeviceCheckpoint(std::string_view(file).substr(0, size)),
          StatusIs(absl::StatusCode::kDataLoss))
          << size;
    }
  }
}

// A byte that changed either does not change what is said, or is noticed.
TEST(DeviceCheckpointTest, AChangedByteGivesNoOtherValue) {
  const std::string file = DeviceFile(kTegra, kTegraChecksum);
  const DeviceCheckpoint whole = DecodedDevices(file);
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const char c : {'"', '0', '1', 'A', ' ', '{', '\\'}) {
      std::string changed = file;
      changed[i] = c;
      const auto read = DecodeDeviceCheckpoint(changed);
      EXPECT_TRUE(!read.ok() || *read == whole) << changed;
    }
  }
}

std::optional<std::map<std::int64_t, DeviceIdList>> RandomDeviceIds(
    Luck& luck, DeviceCheckpoint::Format format) {
  std::optional<std::map<std::int64_t, DeviceIdList>> ids;
  if (luck.Chance(20)) return ids;
  ids.emplace();
  if (format == DeviceCheckpoint::Format::kIdLists) {
    (*ids)[0] = RandomTexts<DeviceId>(luck).value_or(std::vector<DeviceId>());
    return ids;
  }
  for (int left = luck.Below(4); left > 0; --left) {
    (*ids)[luck.Below(66) - 1] = RandomTexts<DeviceId>(luck);
  }
  return ids;
}

DeviceCheckpoint RandomCheckpoint(Luck& luck) {
  DeviceCheckpoint checkpoint;
  if (luck.Chance(30)) checkpoint.format = DeviceCheckpoint::Format::kIdLists;
  if (luck.Chance(90)) checkpoint.entries.emplace();
  for (int left = luck.Below(5); left > 0 && checkpoint.entries; --left) {
    PodDevicesEntry entry;
    entry.pod.value = RandomText(luck);
    entry.container = RandomText(luck);
    entry.resource = RandomText(luck);
    entry.device_ids = RandomDeviceIds(luck, checkpoint.format);
    if (luck.Chance(80)) entry.alloc_resp = RandomText(luck) + '\xFF' + '\0';
    checkpoint.entries->push_back(std::move(entry));
  }
  // A file without entries is of both formats.
  if (!checkpoint.entries || checkpoint.entries->empty()) {
    checkpoint.format = DeviceCheckpoint::Format::kIdsByNumaNode;
  }
  if (luck.Chance(90)) checkpoint.registered.emplace();
  for (int left = luck.Below(4); left > 0 && checkpoint.registered; --left) {
    checkpoint.registered->emplace(RandomText(luck),
                                   RandomTexts<DeviceId>(luck));
  }
  return checkpoint;
}

// DP-106, as far as it is about the file.
TEST(DeviceCheckpointTest, WhatIsWrittenIsRead) {
  LiveEach({.seed = 1, .lives = 1000}, [](Luck& luck) {
    const DeviceCheckpoint checkpoint = RandomCheckpoint(luck);
    const std::string file = EncodedDevices(checkpoint);
    EXPECT_EQ(DecodedDevices(file), checkpoint) << file;
    EXPECT_EQ(EncodedDevices(DecodedDevices(file)), file);
  });
}

}  // namespace
}  // namespace devmgr::kubelet_checkpoint
