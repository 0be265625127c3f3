// SPDX-License-Identifier: Apache-2.0
#include "apistore/device_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace devmgr::apistore {
namespace {

const Json& ListOf(const Json& object, const char* pointer) {
  static const Json kNothing = Json::array();
  const Json::json_pointer path(pointer);
  if (!object.contains(path)) return kNothing;
  const Json& value = object.at(path);
  return value.is_array() ? value : kNothing;
}

std::string TextOf(const Json& object, const char* field) {
  if (!object.is_object()) return "";
  const auto it = object.find(field);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

DeviceKey DeviceKeyOf(const Json& entry) {
  // None of the four may have a line break in it.
  std::string key;
  for (const char* field : {"driver", "pool", "device", "shareID"}) {
    key += TextOf(entry, field);
    key += '\n';
  }
  return key;
}

std::string DeviceNameOf(const Json& entry) {
  return fmt::format("{}/{}/{}", TextOf(entry, "driver"), TextOf(entry, "pool"),
                     TextOf(entry, "device"));
}

void MergeConditions(Json& stored, const Json& applied) {
  if (!stored.is_array()) stored = Json::array();
  for (const Json& condition : applied) {
    const std::string type = TextOf(condition, "type");
    const auto found = std::find_if(
        stored.begin(), stored.end(),
        [&](const Json& other) { return TextOf(other, "type") == type; });
    if (found != stored.end()) {
      *found = condition;
    } else {
      stored.push_back(condition);
    }
  }
}

/// `applied` over what was stored, conditions merged.
void MergeEntry(Json& stored, const Json& applied) {
  for (const auto& [key, value] : applied.items()) {
    if (key == "conditions" && value.is_array()) {
      MergeConditions(stored[key], value);
    } else {
      stored[key] = value;
    }
  }
}

/// What is wrong with the form of the body.
std::vector<Cause> CheckApplied(const Json& body) {
  std::vector<Cause> causes;
  for (const auto& [key, value] : body.items()) {
    if (key != "apiVersion" && key != "kind" && key != "metadata" &&
        key != "status") {
      causes.push_back(ForbiddenField(key, "only status.devices is applied"));
    }
  }
  const auto status = body.find("status");
  if (status == body.end()) return causes;
  if (!status->is_object()) {
    causes.push_back(InvalidField("status", *status, "must be an object"));
    return causes;
  }
  for (const auto& [key, value] : status->items()) {
    if (key != "devices") {
      causes.push_back(
          ForbiddenField("status." + key, "only status.devices is applied"));
    } else if (!value.is_array()) {
      causes.push_back(InvalidField("status.devices", value, "must be a list"));
    }
  }
  return causes;
}

Json* FindEntry(Json& devices, const DeviceKey& key) {
  for (Json& entry : devices) {
    if (DeviceKeyOf(entry) == key) return &entry;
  }
  return nullptr;
}

/// Entries that `manager` applied before and leaves out now go.
void RemoveLeftOut(Json& devices, const std::set<DeviceKey>& applied,
                   const std::string& manager, DeviceOwners& owners) {
  Json kept = Json::array();
  for (Json& entry : devices) {
    const DeviceKey key = DeviceKeyOf(entry);
    const auto owner = owners.find(key);
    const bool mine = owner != owners.end() && owner->second == manager;
    if (mine && applied.count(key) == 0) {
      owners.erase(owner);
    } else {
      kept.push_back(std::move(entry));
    }
  }
  devices = std::move(kept);
}

std::vector<Cause> Conflicts(const Json& applied, const DeviceApply& apply,
                             const DeviceOwners& owners) {
  std::vector<Cause> causes;
  for (const Json& entry : applied) {
    const auto owner = owners.find(DeviceKeyOf(entry));
    if (owner == owners.end() || owner->second == apply.manager) continue;
    causes.push_back({"FieldManagerConflict",
                      fmt::format("conflict with \"{}\": device {}",
                                  owner->second, DeviceNameOf(entry)),
                      ".status.devices"});
  }
  return causes;
}

}  // namespace

std::vector<Cause> CheckDeviceStatus(const Json& claim) {
  static const Json::json_pointer kDevices("/status/devices");
  if (claim.contains(kDevices)) {
    const Json& devices = claim.at(kDevices);
    if (!devices.is_array() && !devices.is_null()) {
      return {InvalidField("status.devices", devices, "must be a list")};
    }
  }
  std::set<DeviceKey> allocated;
  for (const Json& result :
       ListOf(claim, "/status/allocation/devices/results")) {
    allocated.insert(DeviceKeyOf(result));
  }
  std::vector<Cause> causes;
  std::set<DeviceKey> seen;
  std::size_t index = 0;
  for (const Json& entry : ListOf(claim, "/status/devices")) {
    const std::string field = fmt::format("status.devices[{}]", index++);
    const DeviceKey key = DeviceKeyOf(entry);
    if (!seen.insert(key).second) {
      causes.push_back(
          {"FieldValueDuplicate",
           fmt::format("Duplicate value: \"{}\"", DeviceNameOf(entry)), field});
    }
    if (allocated.count(key) == 0) {
      causes.push_back(
          InvalidField(field, DeviceNameOf(entry),
                       "must be an allocated device in the claim"));
    }
  }
  return causes;
}

ApplyResult ApplyDeviceStatus(Json& claim, const Json& body,
                              const DeviceApply& apply, DeviceOwners& owners) {
  std::vector<Cause> causes = CheckApplied(body);
  if (!causes.empty()) return ApplyRefusal{false, std::move(causes)};
  const Json applied = ListOf(body, "/status/devices");
  if (!apply.force) {
    causes = Conflicts(applied, apply, owners);
    if (!causes.empty()) return ApplyRefusal{true, std::move(causes)};
  }
  std::set<DeviceKey> keys;
  for (const Json& entry : applied) {
    if (!entry.is_object()) {
      return ApplyRefusal{
          false, {InvalidField("status.devices", entry, "must be an object")}};
    }
    keys.insert(DeviceKeyOf(entry));
  }
  Json& status = claim["status"];
  if (!status.is_object()) status = Json::object();
  Json devices = ListOf(claim, "/status/devices");
  RemoveLeftOut(devices, keys, apply.manager, owners);
  for (const Json& entry : applied) {
    const DeviceKey key = DeviceKeyOf(entry);
    owners[key] = apply.manager;
    if (Json* stored = FindEntry(devices, key)) {
      MergeEntry(*stored, entry);
    } else {
      devices.push_back(entry);
    }
  }
  if (devices.empty()) {
    status.erase("devices");
  } else {
    status["devices"] = std::move(devices);
  }
  return std::monostate();
}

void DropLostOwners(const Json& claim, DeviceOwners& owners) {
  std::set<DeviceKey> present;
  for (const Json& entry : ListOf(claim, "/status/devices")) {
    present.insert(DeviceKeyOf(entry));
  }
  for (auto it = owners.begin(); it != owners.end();) {
    it = present.count(it->first) != 0 ? std::next(it) : owners.erase(it);
  }
}

}  // namespace devmgr::apistore
