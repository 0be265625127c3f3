// SPDX-License-Identifier: Apache-2.0
#include "testing/driver_journal.h"

#include <utility>

namespace devmgr::testing {
namespace {

Json DevicesOf(const ClaimAnswer& answer) {
  Json devices = Json::array();
  for (const PreparedDevice& device : answer.devices) {
    Json item = {{"requests", device.requests},
                 {"pool", device.pool},
                 {"device", device.device},
                 {"cdiDevices", device.cdi_ids}};
    if (!device.share_id.empty()) item["shareID"] = device.share_id;
    devices.push_back(std::move(item));
  }
  return devices;
}

void AddHandle(const ClaimReference& claim, Json* item) {
  if (!claim.handle.data.empty()) (*item)["handle"] = claim.handle.data;
  if (claim.handle.structured.has_value()) {
    Json names = Json::array();
    for (const auto& result : claim.handle.structured->results) {
      names.push_back(result.named_resource);
    }
    (*item)["structuredHandle"] = std::move(names);
  }
  if (!claim.cdi_devices.empty()) (*item)["cdiDevices"] = claim.cdi_devices;
}

}  // namespace

std::string_view NameOf(ClaimMethod method) {
  return method == ClaimMethod::kPrepare ? "prepare" : "unprepare";
}

void DriverJournal::Serving(const std::string& driver, const std::string& pool,
                            int devices, const std::string& service,
                            const std::string& registration) {
  Emit({{"event", "serving"},
        {"driver", driver},
        {"pool", pool},
        {"devices", devices},
        {"service", service},
        {"registration", registration}});
}

void DriverJournal::Published(const std::string& pool, std::int64_t generation,
                              std::size_t slices) {
  Emit({{"event", "published"},
        {"pool", pool},
        {"generation", generation},
        {"slices", slices}});
}

void DriverJournal::ClaimCall(const DraApi& api, ClaimMethod method,
                              const std::vector<ClaimReference>& claims) {
  FakeDraDriver::Call call;
  call.method = NameOf(method);
  call.api = api.name;
  Json items = Json::array();
  for (const ClaimReference& claim : claims) {
    call.claims.push_back(claim.name.name);
    call.claim_uids.push_back(claim.uid);
    Json item = {{"namespace", claim.name.ns},
                 {"name", claim.name.name},
                 {"uid", claim.uid}};
    if (api.by_handle) {
      call.handles.push_back(claim.handle);
      AddHandle(claim, &item);
      call.cdi_devices.insert(call.cdi_devices.end(), claim.cdi_devices.begin(),
                              claim.cdi_devices.end());
    }
    items.push_back(std::move(item));
  }
  Emit({{"event", "call"},
        {"method", call.method},
        {"api", call.api},
        {"claims", std::move(items)}});
  Record(std::move(call));
}

void DriverJournal::Answer(const DraApi& api, ClaimMethod method,
                           const std::vector<ClaimAnswer>& answers) {
  Json items = Json::array();
  for (const ClaimAnswer& answer : answers) {
    Json item = {{"uid", answer.uid}};
    if (!answer.error.empty()) {
      item["error"] = answer.error;
    } else if (method == ClaimMethod::kPrepare) {
      item["devices"] = DevicesOf(answer);
    }
    items.push_back(std::move(item));
  }
  Emit({{"event", "answer"},
        {"method", std::string(NameOf(method))},
        {"api", std::string(api.name)},
        {"claims", std::move(items)}});
}

}  // namespace devmgr::testing
