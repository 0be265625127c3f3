// SPDX-License-Identifier: Apache-2.0
//
// Objects that come from their owners, not from clients.
#include <fmt/core.h>

#include <utility>

#include "apistore/store.h"
#include "common/uuid.h"

namespace devmgr::apistore {
namespace {

/// What an owner that does not say otherwise leaves as it is.
constexpr const char* kKept[] = {"uid", "creationTimestamp", "generation",
                                 "resourceVersion"};

/// What is said of devices that the claim still has. Once it is there, drivers
/// say it, and not its owner.
void KeepDeviceStatus(const Json* old, Json& object) {
  static const Json::json_pointer kDevices("/status/devices");
  if (!object.contains("status") || !object["status"].is_object()) return;
  const Json& source = old != nullptr ? *old : object;
  const Json said =
      source.contains(kDevices) ? source.at(kDevices) : Json::array();
  object["status"].erase("devices");
  Json kept = Json::array();
  for (const Json& entry : said) {
    Json alone = object;
    alone["status"]["devices"] = Json::array({entry});
    if (CheckDeviceStatus(alone).empty()) kept.push_back(entry);
  }
  if (!kept.empty()) object["status"]["devices"] = std::move(kept);
}

bool DiffersBesideMetaAndStatus(Json left, Json right) {
  for (Json* object : {&left, &right}) {
    object->erase("metadata");
    object->erase("status");
  }
  return left != right;
}

}  // namespace

std::optional<ApiError> Store::ReadLoaded(Json& object, Target& target) {
  const std::string api_version = TextField(object, "apiVersion");
  const std::string kind = TextField(object, "kind");
  for (const ResourceType& type : types_) {
    for (std::size_t i = 0; i < type.versions.size(); ++i) {
      if (type.kind != kind || type.ApiVersion(i) != api_version) continue;
      target = {&type, i, "", ""};
      if (type.namespaced) {
        target.ns = MetaText(object, "namespace");
        if (target.ns.empty()) target.ns = "default";
      }
      if (auto error = CheckBody(target, object)) return error;
      if (auto error = CheckNewName(target, object)) return error;
      target.name = MetaText(object, "name");
      return std::nullopt;
    }
  }
  return BadRequest(
      fmt::format("no type of this store has apiVersion '{}' and kind '{}'",
                  api_version, kind));
}

void Store::SetSystemFields(const ResourceType& type, Json& object,
                            std::int64_t now) {
  Json& metadata = object["metadata"];
  if (MetaText(object, "uid").empty()) {
    metadata["uid"] = UuidText(options_.random(), options_.random());
  }
  if (MetaText(object, "creationTimestamp").empty()) {
    metadata["creationTimestamp"] = TimeText(now);
  }
  if (type.has_generation && !metadata.contains("generation")) {
    metadata["generation"] = 1;
  }
}

Answer Store::Load(Json object, std::int64_t now) {
  Target target;
  if (auto error = ReadLoaded(object, target)) return Refuse(*error);
  SetSystemFields(*target.type, object, now);
  const ObjectKey key = KeyOf(object);
  return ShowCommitted(target, Commit(*target.type, key, std::move(object), {}),
                       201);
}

Answer Store::Publish(Json object, std::int64_t now) {
  Target target;
  if (auto error = ReadLoaded(object, target)) return Refuse(*error);
  const ResourceType& type = *target.type;
  const ObjectKey key = KeyOf(object);
  ObjectPtr old = Find(type, key);
  const std::string uid = MetaText(object, "uid");
  if (old != nullptr && !uid.empty() && uid != MetaText(*old, "uid")) {
    const Committed gone = Commit(type, key, std::nullopt, {});
    if (gone.error.has_value()) return Refuse(*gone.error);
    old = nullptr;
  }
  DeviceOwners owners;
  if (type.has_device_status) KeepDeviceStatus(old.get(), object);
  if (old != nullptr) {
    Json& metadata = object["metadata"];
    for (const char* field : kKept) {
      const auto it = (*old)["metadata"].find(field);
      if (it != (*old)["metadata"].end()) metadata[field] = *it;
    }
    if (type.has_device_status) {
      owners = TableOf(type).at(key).owners;
      DropLostOwners(object, owners);
    }
    if (object == *old) return Shown(target, *old);
    if (type.has_generation && DiffersBesideMetaAndStatus(object, *old)) {
      metadata["generation"] = MetaNumber(*old, "generation") + 1;
    }
  }
  SetSystemFields(type, object, now);
  return ShowCommitted(target,
                       Commit(type, key, std::move(object), std::move(owners)));
}

bool Store::Restore(const StoreRecord& record) {
  const ResourceType* type = FindType(record.group, record.resource);
  if (type == nullptr || record.revision > revision_) return false;
  if (record.object == nullptr) {
    TableOf(*type).erase(record.key);
    return true;
  }
  if (!record.object->is_object() || KeyOf(*record.object) != record.key) {
    return false;
  }
  TableOf(*type)[record.key] = Entry{record.object, record.owners};
  return true;
}

bool Store::Remove(const ResourceType& type, const ObjectKey& key) {
  if (Find(type, key) == nullptr) return false;
  return !Commit(type, key, std::nullopt, {}).error.has_value();
}

ObjectPtr Store::Find(const ResourceType& type, const ObjectKey& key) const {
  const Table& table = TableOf(type);
  const auto it = table.find(key);
  return it == table.end() ? nullptr : it->second.object;
}

std::vector<ObjectPtr> Store::All(const ResourceType& type) const {
  std::vector<ObjectPtr> objects;
  for (const auto& [key, entry] : TableOf(type)) {
    objects.push_back(entry.object);
  }
  return objects;
}

}  // namespace devmgr::apistore
