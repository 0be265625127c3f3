// SPDX-License-Identifier: Apache-2.0
#include "cdi/oci_edits.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "common/status.h"

namespace devmgr::cdi {
namespace {

using Path = std::initializer_list<std::string_view>;

std::string Join(Path path, std::size_t count) {
  std::string text;
  for (const std::string_view step : std::vector(path.begin(), path.end())) {
    if (count-- == 0) break;
    if (!text.empty()) text += '.';
    text += step;
  }
  return text.empty() ? "the configuration" : text;
}

/// The object at `path`, made where it is not there.
absl::StatusOr<JsonNode*> ObjectAt(JsonNode& config, Path path) {
  JsonNode* node = &config;
  std::size_t depth = 0;
  for (const std::string_view step : path) {
    auto next = node->Object(step);
    if (!next.ok()) return WithContext(next.status(), "{}", Join(path, depth));
    node = *next;
    ++depth;
  }
  return node;
}

absl::StatusOr<JsonNode*> ListAt(JsonNode& config, Path path,
                                 std::string_view name) {
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * node, ObjectAt(config, path));
  auto list = node->List(name);
  if (list.ok()) return list;
  return WithContext(list.status(), "{}", Join(path, path.size()));
}

/// What stands at `path`, to be read; null where nothing does.
absl::StatusOr<Json> ReadAt(JsonNode& config, Path path) {
  JsonNode* node = &config;
  std::size_t depth = 0;
  for (const std::string_view step : path) {
    auto next = node->Find(step);
    if (!next.ok()) return WithContext(next.status(), "{}", Join(path, depth));
    if (*next == nullptr) return Json();
    node = *next;
    ++depth;
  }
  return node->Read();
}

absl::Status AppendJson(JsonNode& list, const Json& json) {
  DEVMGR_ASSIGN_OR_RETURN(JsonNode node, JsonNode::Make(json));
  list.Append(std::move(node));
  return absl::OkStatus();
}

/// A list of objects that are known by a text, as mounts by their destination.
class KeyedList {
 public:
  /// Borrows the list, which nobody else may change.
  static absl::StatusOr<KeyedList> Make(JsonNode& list, const char* key) {
    KeyedList keyed(list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Json item = list[i].Read();
      if (!item.is_object() || !item.contains(key) || !item[key].is_string()) {
        return InvalidArgumentError(
            "item {} must be an object with a text '{}'", i, key);
      }
      keyed.keys_.push_back(item[key]);
    }
    return keyed;
  }

  /// Takes all objects of the same key out, and adds this one at the end.
  /// Upstream takes out the first one only; of two device nodes of one path
  /// runc makes the one that it comes to first.
  absl::Status Replace(const std::string& key, const Json& object) {
    for (std::size_t i = keys_.size(); i-- > 0;) {
      if (keys_[i] != key) continue;
      list_->Erase(i);
      keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    keys_.push_back(key);
    return AppendJson(*list_, object);
  }

  /// Sorts by what `rank` makes of the keys; equals stay in order.
  void SortBy(std::size_t (*rank)(const std::string& key)) {
    std::vector<std::size_t> ranks;
    for (const std::string& key : keys_) ranks.push_back(rank(key));
    std::vector<std::size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(
        order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
    list_->Permute(order);
  }

 private:
  explicit KeyedList(JsonNode& list) : list_(&list) {}

  JsonNode* list_;
  std::vector<std::string> keys_;
};

/// How many `/` the cleaned path has.
std::size_t Depth(const std::string& path) {
  std::string clean = std::filesystem::path(path).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return static_cast<std::size_t>(std::count(clean.begin(), clean.end(), '/'));
}

bool HasRule(const CdiDeviceNode& node) {
  return (node.type == "b" || node.type == "c") && node.permissions != "none";
}

Json RuleOf(const CdiDeviceNode& node) {
  return {{"allow", true},
          {"type", node.type},
          {"major", node.major},
          {"minor", node.minor},
          {"access", node.permissions.empty() ? "rwm" : node.permissions}};
}

/// Who owns nodes that do not say.
struct Owner {
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
};

absl::StatusOr<Owner> OwnerOfProcess(JsonNode& config) {
  Owner owner;
  for (const auto& [name, target] :
       {std::pair("uid", &owner.uid), std::pair("gid", &owner.gid)}) {
    DEVMGR_ASSIGN_OR_RETURN(const Json id,
                            ReadAt(config, {"process", "user", name}));
    if (id.is_null()) continue;
    if (!id.is_number_unsigned() || id > UINT32_MAX) {
      return InvalidArgumentError("process.user.{} is no ID", name);
    }
    if (id > 0) *target = id.get<std::uint32_t>();
  }
  return owner;
}

Json DeviceOf(const CdiDeviceNode& node, const Owner& owner) {
  Json json = {{"path", node.path}, {"type", node.type}};
  if (node.type != "p" || node.major != 0 || node.minor != 0) {
    json["major"] = node.major;
    json["minor"] = node.minor;
  }
  Put(json, "fileMode", node.file_mode);
  Put(json, "uid", node.uid ? node.uid : owner.uid);
  Put(json, "gid", node.gid ? node.gid : owner.gid);
  return json;
}

absl::StatusOr<bool> HasUserNamespace(JsonNode& config) {
  DEVMGR_ASSIGN_OR_RETURN(const Json namespaces,
                          ReadAt(config, {"linux", "namespaces"}));
  return namespaces.is_array() &&
         std::any_of(namespaces.begin(), namespaces.end(), [](const Json& ns) {
           return ns.is_object() && ns.contains("type") && ns["type"] == "user";
         });
}

void MapIds(CdiMount& mount) {
  const auto has = [&](std::string_view option) {
    return std::find(mount.options.begin(), mount.options.end(), option) !=
           mount.options.end();
  };
  if (has("idmap") || has("ridmap")) return;
  if (has("rbind")) {
    mount.options.emplace_back("ridmap");
  } else if (has("bind") || mount.type == "bind") {
    mount.options.emplace_back("idmap");
  }
}

}  // namespace

absl::Status SetOciEnv(JsonNode& config, const std::vector<NamedValue>& env,
                       Existing existing) {
  if (env.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * list, ListAt(config, {"process"}, "env"));
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json entry = (*list)[i].Read();
    if (!entry.is_string()) {
      return InvalidArgumentError("process.env[{}] must be a text", i);
    }
    const auto text = entry.get<std::string>();
    places[text.substr(0, text.find('='))] = i;  // The last one counts.
  }
  for (const NamedValue& variable : env) {
    const auto [place, is_new] =
        places.try_emplace(variable.name, list->size());
    if (!is_new && existing == Existing::kKept) continue;
    DEVMGR_ASSIGN_OR_RETURN(
        JsonNode entry,
        JsonNode::Make(Json(variable.name + "=" + variable.value)));
    if (is_new) {
      list->Append(std::move(entry));
    } else {
      (*list)[place->second] = std::move(entry);
    }
  }
  return absl::OkStatus();
}

absl::Status AddOciDevices(JsonNode& config,
                           const std::vector<CdiDeviceNode>& nodes) {
  if (nodes.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const Owner owner, OwnerOfProcess(config));
  {
    DEVMGR_ASSIGN_OR_RETURN(JsonNode * list,
                            ListAt(config, {"linux"}, "devices"));
    auto devices = KeyedList::Make(*list, "path");
    if (!devices.ok()) return WithContext(devices.status(), "linux.devices");
    for (const CdiDeviceNode& node : nodes) {
      DEVMGR_RETURN_IF_ERROR(
          devices->Replace(node.path, DeviceOf(node, owner)));
    }
  }
  if (std::none_of(nodes.begin(), nodes.end(), HasRule)) {
    return absl::OkStatus();
  }
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * rules,
                          ListAt(config, {"linux", "resources"}, "devices"));
  for (const CdiDeviceNode& node : nodes) {
    if (!HasRule(node)) continue;
    DEVMGR_RETURN_IF_ERROR(AppendJson(*rules, RuleOf(node)));
  }
  return absl::OkStatus();
}

absl::Status SetOciNetDevices(JsonNode& config,
                              const std::vector<CdiNetDevice>& devices) {
  if (devices.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * map,
                          ObjectAt(config, {"linux", "netDevices"}));
  for (const CdiNetDevice& device : devices) {
    DEVMGR_ASSIGN_OR_RETURN(JsonNode target,
                            JsonNode::Make(Json{{"name", device.name}}));
    DEVMGR_RETURN_IF_ERROR(
        WithContext(map->Set(device.host_interface_name, std::move(target)),
                    "linux.netDevices"));
  }
  return absl::OkStatus();
}

absl::Status AddOciMounts(JsonNode& config, std::vector<CdiMount> mounts) {
  if (mounts.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const bool maps_ids, HasUserNamespace(config));
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * list, ListAt(config, {}, "mounts"));
  auto keyed = KeyedList::Make(*list, "destination");
  if (!keyed.ok()) return WithContext(keyed.status(), "mounts");
  for (CdiMount& mount : mounts) {
    if (maps_ids) MapIds(mount);
    Json json = {{"destination", mount.container_path}};
    Put(json, "type", mount.type);
    json["source"] = mount.host_path;
    Put(json, "options", mount.options);
    DEVMGR_RETURN_IF_ERROR(keyed->Replace(mount.container_path, json));
  }
  keyed->SortBy(Depth);
  return absl::OkStatus();
}

absl::Status AddOciHooks(JsonNode& config, const std::vector<CdiHook>& hooks) {
  for (const CdiHook& hook : hooks) {
    DEVMGR_ASSIGN_OR_RETURN(JsonNode * list,
                            ListAt(config, {"hooks"}, hook.hook_name));
    Json json = {{"path", hook.path}};
    Put(json, "args", hook.args);
    Put(json, "env", hook.env);
    Put(json, "timeout", hook.timeout);
    DEVMGR_RETURN_IF_ERROR(AppendJson(*list, json));
  }
  return absl::OkStatus();
}

absl::Status SetOciIntelRdt(JsonNode& config, const CdiIntelRdt& rdt) {
  Json json = Json::object();
  Put(json, "closID", rdt.clos_id);
  Put(json, "schemata", rdt.schemata);
  Put(json, "l3CacheSchema", rdt.l3_cache_schema);
  Put(json, "memBwSchema", rdt.mem_bw_schema);
  if (rdt.enable_monitoring || rdt.enable_cmt.value_or(false) ||
      rdt.enable_mbm.value_or(false)) {
    json["enableMonitoring"] = true;
  }
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * parent, ObjectAt(config, {"linux"}));
  DEVMGR_ASSIGN_OR_RETURN(JsonNode node, JsonNode::Make(json));
  return WithContext(parent->Set("intelRdt", std::move(node)), "linux");
}

absl::Status AddOciGroups(JsonNode& config,
                          const std::vector<std::uint32_t>& groups) {
  if (groups.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(
      const Json there, ReadAt(config, {"process", "user", "additionalGids"}));
  std::set<Json> seen = {Json(0U)};
  if (there.is_array()) seen.insert(there.begin(), there.end());
  for (const std::uint32_t group : groups) {
    if (!seen.insert(Json(group)).second) continue;
    DEVMGR_ASSIGN_OR_RETURN(
        JsonNode * list, ListAt(config, {"process", "user"}, "additionalGids"));
    DEVMGR_RETURN_IF_ERROR(AppendJson(*list, group));
  }
  return absl::OkStatus();
}

absl::Status AddOciAnnotations(JsonNode& config,
                               const std::vector<NamedValue>& annotations) {
  if (annotations.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(JsonNode * map, ObjectAt(config, {"annotations"}));
  for (const NamedValue& annotation : annotations) {
    auto there = map->Find(annotation.name);
    if (!there.ok()) return WithContext(there.status(), "annotations");
    if (*there != nullptr) continue;
    DEVMGR_ASSIGN_OR_RETURN(JsonNode value, JsonNode::Make(annotation.value));
    DEVMGR_RETURN_IF_ERROR(map->Set(annotation.name, std::move(value)));
  }
  return absl::OkStatus();
}

}  // namespace devmgr::cdi
