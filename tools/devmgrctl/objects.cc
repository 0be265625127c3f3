// SPDX-License-Identifier: Apache-2.0
#include "objects.h"

#include <utility>

#include "text.h"

namespace devmgr::ctl {
namespace {

Json Metadata(const ObjectName& name, const std::string& uid) {
  return Json{{"namespace", name.ns}, {"name", name.name}, {"uid", uid}};
}

Json Metadata(const std::string& name) { return Json{{"name", name}}; }

/// Always an array, also when it is empty.
template <typename T, typename Make>
Json Array(const std::vector<T>& values, Make make) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(make(value));
  return array;
}

/// Of texts or names.
template <typename Text>
Json Array(const std::vector<Text>& values) {
  return Array(values, [](const std::string& value) { return Json(value); });
}

void PutTime(Json& object, const char* name, WallTime time) {
  const std::string text = TimeText(time);
  if (!text.empty()) object[name] = text;
}

Json ContainerOf(const ContainerDevices& container) {
  const auto origin_of = [&](const std::string& resource) {
    return Json{{"resource", resource},
                {"devices", Array(DevicesOf(container, resource))}};
  };
  const auto named = [&](const NamedValue& value) {
    return Json{{"name", value.name},
                {"value", value.value},
                {"origin", origin_of(value.resource)}};
  };
  Json item;
  item["name"] = container.name;
  item["init"] = container.init;
  item["cdiDevices"] =
      Array(container.cdi_devices, [](const CdiDevice& device) {
        const DeviceOrigin& origin = device.origin;
        return Json{{"name", device.name},
                    {"origin",
                     {{"claim", origin.claim},
                      {"request", origin.request},
                      {"driver", origin.driver},
                      {"pool", origin.pool},
                      {"device", origin.device},
                      {"resource", origin.resource}}}};
      });
  item["env"] = Array(container.env, named);
  item["mounts"] = Array(container.mounts, [&](const DeviceMount& mount) {
    return Json{{"containerPath", mount.container_path},
                {"hostPath", mount.host_path},
                {"readOnly", mount.read_only},
                {"origin", origin_of(mount.resource)}};
  });
  item["devices"] = Array(container.devices, [&](const DeviceNode& node) {
    return Json{{"containerPath", node.container_path},
                {"hostPath", node.host_path},
                {"permissions", node.permissions},
                {"origin", origin_of(node.resource)}};
  });
  item["annotations"] = Array(container.annotations, named);
  item["resources"] = Array(container.resources, [](const HeldResource& held) {
    return Json{{"name", held.name}, {"devices", Array(held.devices)}};
  });
  if (container.devices_released) item["devicesReleased"] = true;
  return item;
}

Json RecoveryOf(const RecoveryInfo& recovery) {
  return Json{{"closedCleanly", recovery.closed_cleanly},
              {"damaged", recovery.damaged},
              {"lastSequence", recovery.last_sequence},
              {"dropped", Array(recovery.dropped)},
              {"skipped", recovery.skipped},
              {"skippedRecords", Array(recovery.skipped_records)},
              {"kept", recovery.kept},
              {"message", recovery.message}};
}

void PutHardware(const DeviceInfo& device, Json* status) {
  if (device.hardware.empty()) return;
  (*status)["hardware"] = Array(device.hardware);
  (*status)["sameHardware"] = Array(device.same_hardware);
}

/// Of a device plugin.
Json PluginDeviceOf(const DeviceInfo& device) {
  Json status;
  status["id"] = device.device;
  status["resource"] = device.resource;
  status["health"] = WordOf(device.health);
  status["healthReason"] = device.health_reason;
  PutTime(status, "since", device.since);
  status["numa"] = device.numa_nodes;
  status["holder"] = Join(device.used_by, ",");
  PutHardware(device, &status);
  return status;
}

Json DriverDeviceOf(const DeviceInfo& device) {
  Json status;
  status["driver"] = device.driver;
  status["pool"] = device.pool;
  status["device"] = device.device;
  status["usedBy"] = Array(device.used_by);
  status["cdiDevices"] = Array(device.cdi_devices);
  PutHardware(device, &status);
  return status;
}

/// As in `containerStatuses` of a pod's status.
Json AllocatedItemOf(const ContainerResourceStatus& container) {
  const auto device_of = [](const ResourceHealth& device) {
    Json item{{"resourceID", device.resource_id},
              {"health", device.health.name()},
              {"message", device.message}};
    PutTime(item, "since", device.since);
    return item;
  };
  const auto resource_of = [&](const ResourceStatus& resource) {
    return Json{{"name", resource.name},
                {"resources", Array(resource.resources, device_of)}};
  };
  return Json{
      {"name", container.container},
      {"allocatedResourcesStatus", Array(container.resources, resource_of)}};
}

}  // namespace

std::string AuthorityText(const NodeInfo& node) {
  return node.authority ? std::string(AuthorityName(*node.authority)) : "";
}

std::string ProfileText(const NodeInfo& node) {
  return node.profile ? std::string(ProfileName(*node.profile)) : "";
}

std::string NameOf(const DeviceInfo& device) {
  if (!device.resource.empty())
    return device.resource.value + "/" + device.device;
  return device.driver + "/" + device.pool + "/" + device.device;
}

bool HasFigures(const ResourceInfo& resource) {
  return resource.state.has_value();
}

std::vector<DeviceId> DevicesOf(const ContainerDevices& container,
                                const ResourceName& resource) {
  for (const HeldResource& held : container.resources) {
    if (held.name == resource) return held.devices;
  }
  return {};
}

Json ItemOf(const PodInfo& pod) {
  Json status;
  status["state"] = PodStateName(pod.state);
  status["reason"] = pod.reason;
  status["message"] = pod.message;
  status["waitingFor"] = Array(pod.waiting_for, [](const WaitingFor& waiting) {
    return Json{{"kind", WaitingForKindName(waiting.kind)},
                {"name", waiting.name}};
  });
  if (!pod.allocated_resources.empty()) {
    status["containers"] = Array(pod.allocated_resources, AllocatedItemOf);
  }
  return Json{{"metadata", Metadata(pod.name, pod.uid.value)},
              {"status", std::move(status)}};
}

Json ItemOf(const ClaimInfo& claim) {
  Json status;
  status["state"] = claim.state.name();
  status["pods"] = Array(claim.pods);
  status["drivers"] = Array(claim.drivers, [](const ClaimDriverInfo& driver) {
    return Json{{"name", driver.driver},
                {"state", driver.state.name()},
                {"devices", Array(driver.devices)},
                {"cdiDevices", Array(driver.cdi_devices)},
                {"lastError", driver.last_error}};
  });
  Json item{{"metadata", Metadata(claim.name, claim.uid.value)},
            {"status", std::move(status)}};
  Json object = Json::parse(claim.object, nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) item["object"] = std::move(object);
  return item;
}

Json ItemOf(const DebtInfo& debt) {
  Json status;
  status["claim"] = debt.claim.name;
  status["namespace"] = debt.claim.ns;
  status["uid"] = debt.uid.value;
  status["driver"] = debt.driver;
  status["pods"] = Array(debt.pods);
  PutTime(status, "since", debt.since);
  status["attempts"] = debt.attempts;
  status["lastError"] = debt.last_error;
  status["policy"] = debt.policy;
  return Json{{"metadata", Metadata(debt.claim, debt.uid.value)},
              {"status", std::move(status)}};
}

Json ItemOf(const PluginInfo& plugin) {
  Json status;
  status["kind"] = plugin.kind.name();
  status["endpoint"] = plugin.endpoint;
  status["version"] = plugin.version;
  status["state"] = plugin.state.name();
  PutTime(status, "registeredSince", plugin.registered_since);
  status["lastError"] = plugin.last_error;
  status["serves"] = plugin.serves;
  status["calls"] = plugin.calls;
  status["queued"] = plugin.queued;
  if (plugin.calling_since) {
    PutTime(status, "callingSince", *plugin.calling_since);
  }
  const bool of_devices = plugin.kind == PluginKind::kDevicePlugin;
  if (of_devices) status["via"] = WordOf(plugin.via);
  status["breaker"] = plugin.breaker.name();
  if (plugin.quarantined_until) {
    PutTime(status, "quarantinedUntil", *plugin.quarantined_until);
  }
  if (of_devices) status["devices"] = plugin.devices;
  return Json{{"metadata", Metadata(plugin.name)},
              {"status", std::move(status)}};
}

Json ItemOf(const ResourceInfo& resource) {
  Json status;
  status["owner"] = WordOf(resource.owner);
  status["state"] = WordOf(resource.state);
  PutTime(status, "since", resource.since);
  if (HasFigures(resource)) {
    status["capacity"] = resource.capacity;
    status["allocatable"] = resource.allocatable;
    if (resource.local > 0) status["local"] = resource.local;
  }
  status["held"] = resource.held;
  if (!resource.by_operator.empty()) {
    status["byOperator"] = resource.by_operator;
  }
  if (!resource.device_class.empty()) {
    status["deviceClass"] = resource.device_class;
  }
  if (!resource.drivers.empty()) status["drivers"] = Array(resource.drivers);
  return Json{{"metadata", Metadata(resource.name)},
              {"status", std::move(status)}};
}

Json ItemOf(const DeviceInfo& device) {
  return Json{{"metadata", Metadata(NameOf(device))},
              {"status", device.resource.empty() ? DriverDeviceOf(device)
                                                 : PluginDeviceOf(device)}};
}

Json ItemOf(const DeviceClassInfo& device_class) {
  Json status;
  status["extendedResourceName"] = device_class.extended_resource_name;
  if (!device_class.shadowed_by.empty()) {
    status["shadowedBy"] = device_class.shadowed_by;
  }
  status["implicitResourceName"] = device_class.implicit_resource_name;
  status["note"] = device_class.note;
  return Json{{"metadata", Metadata(device_class.name)},
              {"status", std::move(status)}};
}

Json ItemOf(const SliceInfo& slice) {
  Json status;
  status["driver"] = slice.driver;
  status["pool"] = Json{{"name", slice.pool},
                        {"generation", slice.generation},
                        {"slices", slice.pool_slices},
                        {"knownSlices", slice.known_slices},
                        {"complete", slice.complete}};
  if (!slice.node.empty()) status["node"] = slice.node;
  if (!slice.origin.empty()) status["source"] = slice.origin;
  status["state"] = SliceStateOf(slice);
  if (const std::string why = WhyOf(slice); !why.empty()) status["why"] = why;
  status["hidden"] = slice.hidden;
  status["devices"] = Array(slice.devices);
  return Json{{"metadata", Metadata(slice.name)},
              {"status", std::move(status)}};
}

std::string DevicesText(const ForeignHolder& holder) {
  std::vector<std::string> texts;
  for (const HeldResource& resource : holder.resources) {
    for (const DeviceId& id : resource.devices) {
      texts.push_back(resource.name.value + "/" + id.value);
    }
  }
  texts.insert(texts.end(), holder.cdi_devices.begin(),
               holder.cdi_devices.end());
  return Join(texts, ",");
}

Json ItemOf(const ForeignHolderInfo& info) {
  const ForeignHolder& holder = info.holder;
  Json status;
  status["foreign"] = true;
  status["container"] = holder.container;
  if (!holder.pod.name.empty()) {
    status["pod"] = Json{{"namespace", holder.pod.ns},
                         {"name", holder.pod.name},
                         {"uid", holder.pod_uid.value}};
  }
  status["endpoint"] = info.endpoint;
  Json resources = Json::array();
  for (const HeldResource& resource : holder.resources) {
    resources.push_back(
        Json{{"name", resource.name}, {"devices", Array(resource.devices)}});
  }
  status["resources"] = std::move(resources);
  status["cdiDevices"] = Array(holder.cdi_devices);
  PutTime(status, "since", info.since);
  status["why"] = holder.why;
  if (!info.freed.empty()) status["freed"] = info.freed;
  return Json{{"metadata", Metadata(holder.container_id)},
              {"status", std::move(status)}};
}

std::string DevicesText(const DeviceHolderInfo& holder) {
  std::vector<std::string> texts;
  for (const ContainerDevice& device : holder.devices) {
    texts.push_back(device.driver.empty()
                        ? device.resource.value + "/" + device.device
                        : device.driver + "/" + device.pool + "/" +
                              device.device);
  }
  return Join(texts, ",");
}

Json ItemOf(const DeviceHolderInfo& info) {
  const auto put = [](Json& to, const char* name, const std::string& text) {
    if (!text.empty()) to[name] = text;
  };
  Json status;
  status["foreign"] = false;
  status["container"] = info.container;
  put(status, "containerID", info.container_id);
  put(status, "state", info.state);
  status["pod"] = Json{{"namespace", info.pod.ns},
                       {"name", info.pod.name},
                       {"uid", info.pod_uid.value}};
  if (info.created_at) PutTime(status, "createdAt", *info.created_at);
  status["devices"] = Array(info.devices, [&](const ContainerDevice& device) {
    Json item;
    put(item, "resource", device.resource);
    if (!device.claim.name.empty()) {
      item["claim"] =
          Json{{"namespace", device.claim.ns}, {"name", device.claim.name}};
    }
    put(item, "driver", device.driver);
    put(item, "pool", device.pool);
    item["device"] = device.device;
    item["cdiDevices"] = Array(device.cdi_devices);
    put(item, "uuid", device.uuid);
    put(item, "pciAddress", device.pci_address);
    return item;
  });
  if (!info.cdi_devices.empty()) status["cdiDevices"] = Array(info.cdi_devices);
  const std::string name =
      info.container_id.empty()
          ? info.pod.ToString() + "/" + info.container.value
          : info.container_id;
  return Json{{"metadata", Metadata(name)}, {"status", std::move(status)}};
}

Json ItemOf(const SourceInfo& info) {
  Json status{{"state", info.state},
              {"complete", info.complete},
              {"queued", info.queued},
              {"watchRestarts", info.watch_restarts}};
  const auto put = [&](const char* name, const std::string& text) {
    if (!text.empty()) status[name] = text;
  };
  put("server", info.server);
  put("apiVersion", info.api_version);
  put("resourceVersion", info.resource_version);
  put("lastError", info.last_error);
  PutTime(status, "lastList", info.last_list);
  PutTime(status, "lastEvent", info.last_event);
  PutTime(status, "knownAt", info.known_at);
  status["requests"] = Array(info.requests, [](const SourceRequests& requests) {
    return Json{{"verb", requests.verb},
                {"resource", requests.resource},
                {"code", requests.code},
                {"count", requests.count}};
  });
  return Json{{"metadata", Metadata(info.name)}, {"status", std::move(status)}};
}

Json ItemOf(const EventInfo& event) {
  Json item;
  item["sequence"] = event.sequence;
  PutTime(item, "time", event.time);
  item["type"] = event.warning ? "Warning" : "Normal";
  item["reason"] = event.reason;
  item["object"] = Json{{"kind", event.object_kind},
                        {"namespace", event.object.ns},
                        {"name", event.object.name}};
  item["message"] = event.message;
  item["count"] = event.count;
  PutTime(item, "firstTime", event.first_time);
  return item;
}

Json ItemOf(const DecisionInfo& decision) {
  Json item;
  item["sequence"] = decision.sequence;
  PutTime(item, "time", decision.time);
  item["kind"] = decision.kind.name();
  item["pods"] = Array(decision.pods);
  item["claims"] = Array(decision.claims);
  item["message"] = decision.message;
  item["uids"] = Array(decision.uids);
  return item;
}

Json ItemOf(const DeviceChange& change) {
  Json item;
  const auto put = [&](const char* name, const std::string& value) {
    if (!value.empty()) item[name] = value;
  };
  const auto put_object = [&](const char* name, const ObjectName& object,
                              const std::string& uid) {
    if (object.name.empty() && uid.empty()) return;
    item[name] =
        Json{{"namespace", object.ns}, {"name", object.name}, {"uid", uid}};
  };
  item["token"] = change.token.ToString();
  item["sequence"] = change.token.sequence;
  PutTime(item, "time", change.time);
  item["change"] = change.kind.name();
  put_object("pod", change.pod, change.pod_uid.value);
  put("container", change.container);
  put("resource", change.resource);
  put_object("claim", change.claim, change.claim_uid.value);
  put("driver", change.driver);
  put("pool", change.pool);
  if (!change.devices.empty()) item["devices"] = Array(change.devices);
  put("shareID", change.share_id);
  if (!change.cdi_devices.empty()) {
    item["cdiDevices"] = Array(change.cdi_devices);
  }
  put("health", WordOf(change.health));
  put("owner", WordOf(change.owner));
  put("formerOwner", WordOf(change.former_owner));
  put("reason", change.reason);
  put("message", change.message);
  return item;
}

Json MomentItemOf(const LedgerView& view) {
  Json item;
  item["sequence"] = view.sequence;
  PutTime(item, "time", view.time);
  return item;
}

Json ItemOf(const LedgerView& view) {
  const auto item_of = [](const auto& info) { return ItemOf(info); };
  Json item = MomentItemOf(view);
  item["pods"] = Array(view.pods, item_of);
  item["claims"] = Array(view.claims, item_of);
  item["devices"] = Array(view.devices, item_of);
  return item;
}

Json ItemOf(const LedgerChange& change) {
  Json item;
  item["change"] = LedgerChangeKindName(change.kind);
  item["kind"] = change.object_kind;
  item["metadata"] = Metadata(change.name, change.uid);
  item["fields"] = Array(change.fields, [](const LedgerChange::Field& field) {
    return Json{
        {"name", field.name}, {"before", field.before}, {"after", field.after}};
  });
  return item;
}

Json ItemOf(const RuntimeSourceInfo& runtime) {
  Json item{{"description", runtime.source},
            {"known", runtime.known},
            {"reason", runtime.reason},
            {"runtime", runtime.runtime},
            {"pods", runtime.pods}};
  PutTime(item, "since", runtime.since);
  return item;
}

Json ItemOf(const NodeInfo& node) {
  Json status;
  status["version"] = node.version;
  status["bootID"] = node.boot_id;
  status["authority"] = AuthorityText(node);
  if (node.authority_since.has_value()) {
    PutTime(status, "authoritySince", *node.authority_since);
  }
  if (node.authority_to.has_value()) {
    status["authorityChanging"] =
        Json{{"to", AuthorityName(*node.authority_to)},
             {"waitsFor", node.authority_wait}};
  }
  if (!node.authority_by_operator.empty()) {
    status["authorityByOperator"] = node.authority_by_operator;
  }
  status["profile"] = ProfileText(node);
  status["actuate"] = ActuateName(node.actuate);
  status["stateDir"] = node.state_dir;
  status["ledger"] = Json{{"sequence", node.ledger_sequence},
                          {"error", node.ledger_error},
                          {"recovery", RecoveryOf(node.recovery)}};
  PutTime(status, "started", node.started);
  status["source"] = Json{{"description", node.source},
                          {"complete", node.source_complete},
                          {"problems", Array(node.source_problems)}};
  if (!node.object_problems.empty()) {
    status["source"]["objects"] =
        Array(node.object_problems, [](const ObjectProblem& problem) {
          return Json{{"kind", problem.object_kind},
                      {"namespace", problem.object.ns},
                      {"name", problem.object.name},
                      {"problem", problem.problem}};
        });
  }
  if (node.runtime.has_value()) {
    status["runtime"] = ItemOf(*node.runtime);
  }
  status["pods"] = Json{{"total", node.pods},
                        {"ready", node.pods_ready},
                        {"waiting", node.pods_waiting},
                        {"rejected", node.pods_rejected}};
  status["claims"] = node.claims;
  status["plugins"] = node.plugins;
  return Json{{"metadata", Metadata(node.node_name)},
              {"status", std::move(status)}};
}

Json ItemOf(const FsckReport& report) {
  const auto finding_of = [](const FsckFinding& finding) {
    return Json{{"severity", finding.error ? "error" : "warning"},
                {"check", finding.check},
                {"object", finding.object},
                {"message", finding.message},
                {"repair", finding.repair},
                {"hint", finding.hint}};
  };
  const auto repair_of = [](const FsckRepair& repair) {
    return Json{{"object", repair.object},
                {"action", repair.action},
                {"error", repair.error}};
  };
  return Json{{"ledgerSequence", report.ledger_sequence},
              {"findings", Array(report.findings, finding_of)},
              {"repairs", Array(report.repairs, repair_of)}};
}

Json ItemOf(const PodDevices& devices) {
  return Json{{"metadata", Metadata(devices.name, devices.uid.value)},
              {"containers", Array(devices.containers, ContainerOf)}};
}

}  // namespace devmgr::ctl
