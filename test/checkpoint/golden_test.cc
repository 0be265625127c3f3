// SPDX-License-Identifier: Apache-2.0
//
// Records of every format stay in test/data/checkpoint/vN for good, as bytes
// and as JSON: what once was written must always be read. To regenerate those
// of the current format, which only a format of its own may need, run with
// DEVMGR_REGENERATE_GOLDEN=1.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint/full_ledger.h"
#include "checkpoint/store_support.h"
#include "checkpoint/test_data.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string ToHex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return hex;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// One line per record: key and value.
std::string ToLines(const std::map<std::string, std::string>& records) {
  std::string lines;
  for (const auto& [key, value] : records) {
    lines += ToHex(key) + " " + ToHex(value) + "\n";
  }
  return lines;
}

std::map<std::string, std::string> FromLines(const std::string& lines) {
  std::map<std::string, std::string> records;
  std::istringstream in(lines);
  for (std::string key, value; in >> key >> value;) {
    records[FromHex(key)] = FromHex(value);
  }
  return records;
}

Json ToJson(const ContainerDevices& container) {
  Json json = {{"name", container.name}, {"init", container.init}};
  for (const CdiDevice& item : container.cdi_devices) {
    const DeviceOrigin& from = item.origin;
    json["cdiDevices"].push_back({item.name, from.claim, from.request,
                                  from.driver, from.pool, from.device,
                                  from.resource});
  }
  for (const auto& item : container.env) {
    json["env"].push_back({item.name, item.value});
  }
  for (const auto& item : container.mounts) {
    json["mounts"].push_back(
        {item.container_path, item.host_path, item.read_only});
  }
  for (const auto& item : container.devices) {
    json["devices"].push_back(
        {item.container_path, item.host_path, item.permissions});
  }
  for (const auto& item : container.annotations) {
    json["annotations"].push_back({item.name, item.value});
  }
  return json;
}

Json ToJson(const state::PodRecord& pod) {
  Json json = {{"uid", pod.uid.value},
               {"name", pod.name.ToString()},
               {"firstSeenMs", pod.first_seen_ms},
               {"firstSeenSeq", pod.first_seen_seq},
               {"phase", std::string(PodPhaseName(pod.phase))},
               {"reason", pod.reason},
               {"message", pod.message},
               {"bootId", pod.boot_id}};
  for (const ClaimUid& uid : pod.claims) json["claims"].push_back(uid.value);
  for (const state::ContainerNeed& need : pod.needs) {
    Json wants = Json::array();
    for (const state::Want& want : need.wants) {
      wants.push_back({want.claim.value, want.request, want.resource});
    }
    json["needs"].push_back({need.name, need.init, wants});
  }
  if (pod.answer != nullptr) {
    json["answer"] = {{"name", pod.answer->name.ToString()},
                      {"uid", pod.answer->uid.value}};
    for (const ContainerDevices& container : pod.answer->containers) {
      json["answer"]["containers"].push_back(ToJson(container));
    }
  }
  return json;
}

Json ToJson(const state::ClaimRecord& claim) {
  Json json = {{"uid", claim.uid.value}, {"name", claim.name.ToString()}};
  for (const PodUid& uid : claim.pods) json["pods"].push_back(uid.value);
  for (const auto& [name, driver] : claim.drivers) {
    Json part = {{"phase", std::string(DriverPhaseName(driver.phase))},
                 {"bootId", driver.boot_id}};
    for (const state::PreparedDevice& device : driver.devices) {
      part["devices"].push_back({device.request_names, device.pool,
                                 device.device, device.cdi_device_ids,
                                 device.share_id});
    }
    json["drivers"][name] = part;
  }
  return json;
}

std::string ToJsonText(const StoreContents& contents) {
  Json json = {{"seq", contents.state.seq}};
  for (const auto& [uid, pod] : contents.state.pods) {
    json["pods"].push_back(ToJson(*pod));
  }
  for (const auto& [uid, claim] : contents.state.claims) {
    json["claims"].push_back(ToJson(*claim));
  }
  for (const auto& [key, identity] : contents.state.identities) {
    json["identities"].push_back({identity->kind, identity->name.ToString(),
                                  identity->uid, identity->first_seen_ms});
  }
  for (const state::Batch& batch : contents.history) {
    const state::Decision& decision = batch.decision;
    Json entry = {{"seq", batch.seq},
                  {"timeMs", batch.time_ms},
                  {"kind", std::string(DecisionKindName(decision.kind))},
                  {"message", decision.message},
                  {"changes", decision.changes.size()}};
    for (const auto& name : decision.pods) {
      entry["pods"].push_back(name.ToString());
    }
    for (const auto& name : decision.claims) {
      entry["claims"].push_back(name.ToString());
    }
    json["history"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

StoreContents ContentsOf(LedgerStore& store) {
  auto state = store.Load();
  auto history = store.History(0);
  EXPECT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(history.ok()) << history.status();
  if (!state.ok() || !history.ok()) return {};
  return {*state, *history};
}

const fs::path kGolden = fs::path(DEVMGR_CHECKPOINT_DATA) / "v1";

TEST(GoldenRecordsTest, AreWhatWeWriteToday) {
  const TempFolder folder;
  const auto batches = FullLedger();
  StoreContents contents;
  {
    const auto store = MustOpen(folder.path());
    ASSERT_TRUE(store->Append(batches).ok());
    contents = ContentsOf(*store);
  }
  const std::string lines = ToLines(RawRecords(folder.path()));
  const std::string json = ToJsonText(contents);
  if (::getenv("DEVMGR_REGENERATE_GOLDEN") != nullptr) {
    WriteFile(kGolden / "records.hex", lines);
    WriteFile(kGolden / "records.json", json);
  }
  EXPECT_EQ(lines, ReadFile(kGolden / "records.hex"));
  EXPECT_EQ(json, ReadFile(kGolden / "records.json"));
}

TEST(GoldenRecordsTest, AreReadAsWhatTheyWere) {
  const auto records = FromLines(ReadFile(kGolden / "records.hex"));
  ASSERT_FALSE(records.empty());
  const TempFolder folder;
  MustOpen(folder.path()).reset();
  PutRaw(folder.path(), records);
  const auto store = MustOpen(folder.path());
  const StoreContents contents = ContentsOf(*store);
  EXPECT_EQ(ToJsonText(contents), ReadFile(kGolden / "records.json"));
  EXPECT_TRUE(contents.state == Project(FullLedger()));
  EXPECT_EQ(Encoded(contents.history), Encoded(FullLedger()));
}

}  // namespace
}  // namespace devmgr::checkpoint
