// SPDX-License-Identifier: Apache-2.0
#include "source/api/pod_status_patch.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "api/json_text.h"
#include "api/meta.h"
#include "api/parser.h"
#include "source/api/json_tree.h"

namespace devmgr::apiserver {
namespace {

using StateKind = ReportedContainerState::Kind;

std::string TextOf(const api::Value* map, std::string_view key) {
  const api::Value* value = map == nullptr ? nullptr : map->Find(key);
  return value == nullptr || value->kind == api::Value::Kind::kNull
             ? std::string()
             : value->text;
}

api::ValuePtr TimeValue(WallTime time) {
  return JsonString(
      api::TimestampOf(std::chrono::duration_cast<std::chrono::milliseconds>(
                           time.time_since_epoch())
                           .count()));
}

void PutTime(const char* key, const std::optional<WallTime>& time,
             JsonMap* map) {
  if (time) map->Put(key, TimeValue(*time));
}

void PutText(const char* key, const std::string& text, JsonMap* map) {
  if (!text.empty()) map->Put(key, text);
}

api::ValuePtr StateValue(const ReportedContainerState& state) {
  JsonMap all;
  JsonMap members;
  PutText("reason", state.reason, &members);
  PutText("message", state.message, &members);
  switch (state.kind) {
    case StateKind::kNone:
      break;
    case StateKind::kWaiting:
      all.Put("waiting", members.value());
      break;
    case StateKind::kRunning: {
      JsonMap running;
      PutTime("startedAt", state.started_at, &running);
      all.Put("running", running.value());
      break;
    }
    case StateKind::kTerminated:
      members.Put("exitCode", JsonSigned(state.exit_code));
      PutTime("startedAt", state.started_at, &members);
      PutTime("finishedAt", state.finished_at, &members);
      PutText("containerID", state.container_id, &members);
      all.Put("terminated", members.value());
      break;
  }
  return all.value();
}

api::ValuePtr ResourcesValue(const std::vector<ResourceStatus>& resources) {
  std::vector<api::ValuePtr> all;
  for (const ResourceStatus& resource : resources) {
    std::vector<api::ValuePtr> devices;
    for (const ResourceHealth& health : resource.resources) {
      JsonMap device;
      device.Put("resourceID", health.resource_id)
          .Put("health", health.health.name());
      PutText("message", health.message, &device);
      devices.push_back(device.value());
    }
    JsonMap one;
    one.Put("name", resource.name)
        .Put("resources", JsonList(std::move(devices)));
    all.push_back(one.value());
  }
  return JsonList(std::move(all));
}

api::ValuePtr ContainersValue(
    const std::vector<ReportedContainerStatus>& containers) {
  std::vector<api::ValuePtr> all;
  for (const ReportedContainerStatus& container : containers) {
    JsonMap one;
    one.Put("name", container.name)
        .Put("state", StateValue(container.state))
        .Put("lastState", StateValue(container.last_state))
        .Put("ready", JsonBool(container.ready))
        .Put("started", JsonBool(container.started))
        .Put("restartCount", JsonInteger(container.restart_count))
        .Put("image", container.image)
        .Put("imageID", container.image_id);
    PutText("containerID", container.container_id, &one);
    if (!container.allocated_resources.empty()) {
      one.Put("allocatedResourcesStatus",
              ResourcesValue(container.allocated_resources));
    }
    all.push_back(one.value());
  }
  return JsonList(std::move(all));
}

/// Without members that are null: a server may write these out.
/// NOLINTNEXTLINE(misc-no-recursion): the parser bounds the depth.
api::ValuePtr WithoutNulls(const api::Value& value) {
  auto copy = std::make_shared<api::Value>(value);
  for (api::ValuePtr& item : copy->items) item = WithoutNulls(*item);
  std::erase_if(copy->members, [](const auto& member) {
    return member.second.value->kind == api::Value::Kind::kNull;
  });
  for (auto& [key, member] : copy->members) {
    member.value = WithoutNulls(*member.value);
  }
  return copy;
}

bool IsSame(const api::Value* stored, const api::Value& wanted) {
  return stored != nullptr &&
         api::JsonText(*WithoutNulls(*stored)) == api::JsonText(wanted);
}

void PutContainers(const char* key, const api::Value* stored,
                   const std::vector<ReportedContainerStatus>& containers,
                   JsonMap* patch) {
  if (containers.empty()) return;
  // The server replaces the list as a whole.
  api::ValuePtr wanted = ContainersValue(containers);
  const api::Value* found = stored == nullptr ? nullptr : stored->Find(key);
  if (!IsSame(found, *wanted)) patch->Put(key, std::move(wanted));
}

/// What is empty is taken away.
void PutChange(const char* key, const api::Value* stored,
               const std::string& wanted, JsonMap* patch) {
  if (TextOf(stored, key) == wanted) return;
  patch->Put(key, wanted.empty() ? JsonNull() : JsonString(wanted));
}

const api::Value* FindStored(const api::Value* conditions,
                             const std::string& type) {
  if (conditions == nullptr) return nullptr;
  for (const api::ValuePtr& item : conditions->items) {
    if (TextOf(item.get(), "type") == type) return item.get();
  }
  return nullptr;
}

/// Null: it is there as it should be.
api::ValuePtr ConditionChange(const api::Value* stored,
                              const Condition& wanted) {
  JsonMap change;
  PutChange("status", stored, wanted.status, &change);
  if (!change.IsEmpty() || TextOf(stored, "lastTransitionTime").empty()) {
    change.Put("lastTransitionTime", wanted.last_transition_time);
  }
  PutChange("reason", stored, wanted.reason, &change);
  PutChange("message", stored, wanted.message, &change);
  if (wanted.observed_generation != 0) {
    const std::string number = std::to_string(wanted.observed_generation);
    if (TextOf(stored, "observedGeneration") != number) {
      change.Put("observedGeneration", JsonSigned(wanted.observed_generation));
    }
  }
  if (change.IsEmpty()) return nullptr;
  // A condition without a status is refused where it is new.
  change.Put("type", wanted.type).Put("status", wanted.status);
  return change.value();
}

void PutConditions(const api::Value* stored,
                   const std::vector<Condition>& conditions, JsonMap* patch) {
  const api::Value* list =
      stored == nullptr ? nullptr : stored->Find("conditions");
  std::vector<api::ValuePtr> changes;
  for (const Condition& condition : conditions) {
    api::ValuePtr change =
        ConditionChange(FindStored(list, condition.type), condition);
    if (change != nullptr) changes.push_back(std::move(change));
  }
  if (changes.empty()) return;
  patch->Put("conditions", JsonList(std::move(changes)));
}

std::vector<std::string> StoredIps(const api::Value* stored) {
  std::vector<std::string> ips;
  const api::Value* list = stored == nullptr ? nullptr : stored->Find("podIPs");
  if (list == nullptr) return ips;
  for (const api::ValuePtr& item : list->items) {
    ips.push_back(TextOf(item.get(), "ip"));
  }
  return ips;
}

/// The server has both in step.
void PutIps(const api::Value* stored, const std::vector<std::string>& wanted,
            JsonMap* patch) {
  if (wanted.empty()) return;
  PutChange("podIP", stored, wanted.front(), patch);
  if (StoredIps(stored) == wanted) return;
  std::vector<api::ValuePtr> items;
  // Else it adds to those of a sandbox before.
  items.push_back(JsonMap().Put("$patch", "replace").value());
  for (const std::string& ip : wanted) {
    items.push_back(JsonMap().Put("ip", ip).value());
  }
  patch->Put("podIPs", JsonList(std::move(items)));
}

bool HasEnded(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

std::optional<PodStatusView> ParsePodStatus(std::string_view text) {
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/true);
  if (parsed.documents.size() != 1) return std::nullopt;
  const api::Value& root = *parsed.documents.front();
  const api::Value* metadata = root.Find("metadata");
  if (TextOf(&root, "kind") != "Pod" || metadata == nullptr) {
    return std::nullopt;
  }
  PodStatusView pod;
  pod.uid = TextOf(metadata, "uid");
  if (pod.uid.empty()) return std::nullopt;
  pod.is_deleted = !TextOf(metadata, "deletionTimestamp").empty();
  const auto status = root.members.find("status");
  if (status != root.members.end()) pod.status = status->second.value;
  return pod;
}

std::string PodStatusPatch(const PodStatusView& pod,
                           const ReportedPodStatus& wanted) {
  const api::Value* stored = pod.status.get();
  const std::string phase = TextOf(stored, "phase");
  if (HasEnded(phase) && phase != wanted.phase) return "";
  JsonMap status;
  PutChange("phase", stored, wanted.phase, &status);
  PutChange("reason", stored, wanted.reason, &status);
  PutChange("message", stored, wanted.message, &status);
  if (TextOf(stored, "startTime").empty()) {
    PutTime("startTime", wanted.start_time, &status);
  }
  PutIps(stored, wanted.pod_ips, &status);
  PutConditions(stored, wanted.conditions, &status);
  PutContainers("initContainerStatuses", stored, wanted.init_containers,
                &status);
  PutContainers("containerStatuses", stored, wanted.containers, &status);
  if (wanted.observed_generation != 0 &&
      TextOf(stored, "observedGeneration") !=
          std::to_string(wanted.observed_generation)) {
    status.Put("observedGeneration", JsonSigned(wanted.observed_generation));
  }
  if (status.IsEmpty()) return "";
  JsonMap metadata;
  metadata.Put("uid", pod.uid);
  JsonMap patch;
  patch.Put("metadata", metadata.value()).Put("status", status.value());
  return patch.Text();
}

}  // namespace devmgr::apiserver
