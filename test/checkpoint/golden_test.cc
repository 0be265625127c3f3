// SPDX-License-Identifier: Apache-2.0
//
// Records of every format stay in test/data/checkpoint/vN for good, as bytes
// and as JSON: what once was written must always be read. To regenerate those
// of the current format, which only a format of its own may need, run with
// DEVMGR_REGENERATE_GOLDEN=1.
#include <devmgr/manifests.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "checkpoint/full_ledger.h"
#include "checkpoint/keys.h"
#include "checkpoint/store_support.h"
#include "checkpoint/test_data.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Older formats have no resources there.
Json WithResource(Json item, const std::string& resource) {
  if (!resource.empty()) item.push_back(resource);
  return item;
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
    json["env"].push_back(WithResource({item.name, item.value}, item.resource));
  }
  for (const auto& item : container.mounts) {
    json["mounts"].push_back(WithResource(
        {item.container_path, item.host_path, item.read_only}, item.resource));
  }
  for (const auto& item : container.devices) {
    json["devices"].push_back(
        WithResource({item.container_path, item.host_path, item.permissions},
                     item.resource));
  }
  for (const auto& item : container.annotations) {
    json["annotations"].push_back(
        WithResource({item.name, item.value}, item.resource));
  }
  for (const HeldResource& held : container.resources) {
    json["resources"].push_back({held.name, held.devices});
  }
  return json;
}

Json ToJson(const state::DeviceHold& hold) {
  ContainerDevices edits;
  edits.env = hold.edits.env;
  edits.mounts = hold.edits.mounts;
  edits.devices = hold.edits.devices;
  edits.annotations = hold.edits.annotations;
  Json devices = Json::array();
  for (const device::HeldDevice& device : hold.devices) {
    devices.push_back({device.id, device.numa_nodes});
  }
  return {
      {"container", hold.container}, {"kind", static_cast<int>(hold.kind)},
      {"resource", hold.resource},   {"phase", static_cast<int>(hold.phase)},
      {"devices", devices},          {"preStart", hold.pre_start},
      {"edits", ToJson(edits)},      {"cdiDevices", hold.edits.cdi_devices}};
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
  for (const state::DeviceHold& hold : pod.holds) {
    json["holds"].push_back(ToJson(hold));
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
  if (claim.network_attached) json["networkAttached"] = true;
  for (const auto& [name, driver] : claim.drivers) {
    Json part = {{"phase", std::string(DriverPhaseName(driver.phase))},
                 {"bootId", driver.boot_id}};
    for (const state::PreparedDevice& device : driver.devices) {
      part["devices"].push_back({device.request_names, device.pool,
                                 device.device, device.cdi_device_ids,
                                 device.share_id});
    }
    if (driver.debt.has_value()) {
      part["debt"] = {driver.debt->since_ms, driver.debt->attempts,
                      driver.debt->last_error, driver.debt->pods};
    }
    if (!driver.handle.data.empty()) part["handle"] = driver.handle.data;
    if (const auto& structured = driver.handle.structured) {
      part["structured"] = {structured->vendor_class_parameters,
                            structured->vendor_claim_parameters,
                            structured->node_name};
      for (const auto& result : structured->results) {
        part["structured"].push_back(
            {result.vendor_request_parameters, result.named_resource});
      }
    }
    for (const state::AllocatedDevice& device : driver.allocated) {
      part["allocated"].push_back({device.pool, device.device, device.shared});
    }
    for (const std::string& id : driver.void_cdi_device_ids) {
      part["voidCdiDeviceIds"].push_back(id);
    }
    if (driver.skipped.prepare) part["skipsPrepare"] = true;
    if (driver.skipped.unprepare) part["skipsUnprepare"] = true;
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
  for (const auto& [name, resource] : contents.state.resources) {
    json["resources"].push_back({name,
                                 std::string(BackingName(resource->backing)),
                                 resource->since_ms});
    if (!resource->by_operator.empty()) {
      json["resources"].back().push_back(resource->by_operator);
    }
  }
  for (const auto& [key, health] : contents.state.healths) {
    json["healths"].push_back(
        {health->driver, health->pool, health->device,
         std::string(DeviceHealthName(PublicOf(health->health))),
         health->message, health->lease_ms, health->since_ms});
  }
  for (const auto& [key, source] : contents.state.sources) {
    json["sources"].push_back({source->name, source->marker, source->since_ms});
  }
  for (const auto& [id, holder] : contents.state.foreign_holders) {
    json["holders"].push_back({{"id", id.value},
                               {"endpoint", holder->endpoint},
                               {"podUid", holder->pod_uid.value},
                               {"pod", holder->pod.ToString()},
                               {"container", holder->container},
                               {"devices", holder->devices},
                               {"cdiDevices", holder->cdi_devices},
                               {"sinceMs", holder->since_ms},
                               {"why", holder->why},
                               {"freed", holder->freed}});
  }
  for (const auto& [uid, claim] : contents.state.local_claims) {
    json["localClaims"].push_back(
        {{"uid", uid.value},
         {"origin", std::string(ClaimOriginName(claim->origin))},
         {"object", Json::parse(EncodeResourceClaim(*claim->object))},
         {"counters", claim->counters.size()},
         {"pod", claim->pod.value},
         {"podClaim", claim->pod_claim},
         {"mappings", claim->mappings.size()}});
  }
  for (const state::Batch& batch : contents.history) {
    const state::Decision& decision = batch.decision;
    Json entry = {
        {"seq", batch.seq},
        {"timeMs", batch.time_ms},
        {"kind", std::string(DecisionKindName(PublicOf(decision.kind)))},
        {"message", decision.message},
        {"changes", decision.changes.size()}};
    if (!batch.undo.empty()) entry["undo"] = batch.undo.size();
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

fs::path GoldenFolder(int format) {
  return fs::path(DEVMGR_CHECKPOINT_DATA) / fmt::format("v{}", format);
}

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
  const fs::path golden = GoldenFolder(kFormatVersion);
  if (::getenv("DEVMGR_REGENERATE_GOLDEN") != nullptr) {
    WriteFile(golden / "records.hex", lines);
    WriteFile(golden / "records.json", json);
  }
  EXPECT_EQ(lines, ReadFile(golden / "records.hex"));
  EXPECT_EQ(json, ReadFile(golden / "records.json"));
}

class GoldenRecordsOfFormatTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Formats, GoldenRecordsOfFormatTest,
                         ::testing::Values(1, 2, 3));

TEST_P(GoldenRecordsOfFormatTest, AreReadAsWhatTheyWere) {
  const auto batches = FullLedgerOfFormat(GetParam());
  const TempFolder folder;
  MakeStore(folder.path(), GetParam(), GoldenRecords(GetParam()));
  const auto stopped = ReadStoppedStore(folder.path());
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  for (const StoreContents& contents :
       {*stopped, ContentsOf(*MustOpen(folder.path()))}) {
    EXPECT_EQ(ToJsonText(contents),
              ReadFile(GoldenFolder(GetParam()) / "records.json"));
    EXPECT_TRUE(contents.state == Project(batches));
    EXPECT_EQ(Encoded(contents.history), Encoded(batches));
  }
}

}  // namespace
}  // namespace devmgr::checkpoint
