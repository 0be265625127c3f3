// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_spec.h>

#include <string>

#include "api/names.h"
#include "api/parser.h"
#include "cdi/json_put.h"
#include "common/status.h"

namespace devmgr {
namespace cdi {
namespace {

Json JsonOf(const CdiDeviceNode& node) {
  Json json = {{"path", node.path}};
  Put(json, "hostPath", node.host_path);
  Put(json, "type", node.type);
  if (node.major != 0) json["major"] = node.major;
  if (node.minor != 0) json["minor"] = node.minor;
  Put(json, "fileMode", node.file_mode);
  Put(json, "permissions", node.permissions);
  Put(json, "uid", node.uid);
  Put(json, "gid", node.gid);
  return json;
}

Json JsonOf(const CdiNetDevice& device) {
  return {{"hostInterfaceName", device.host_interface_name},
          {"name", device.name}};
}

Json JsonOf(const CdiMount& mount) {
  Json json = {{"hostPath", mount.host_path},
               {"containerPath", mount.container_path}};
  Put(json, "options", mount.options);
  Put(json, "type", mount.type);
  return json;
}

Json JsonOf(const CdiHook& hook) {
  Json json = {{"hookName", hook.hook_name}, {"path", hook.path}};
  Put(json, "args", hook.args);
  Put(json, "env", hook.env);
  Put(json, "timeout", hook.timeout);
  return json;
}

Json JsonOf(const CdiIntelRdt& rdt) {
  Json json = Json::object();
  Put(json, "closID", rdt.clos_id);
  Put(json, "l3CacheSchema", rdt.l3_cache_schema);
  Put(json, "memBwSchema", rdt.mem_bw_schema);
  Put(json, "schemata", rdt.schemata);
  if (rdt.enable_monitoring) json["enableMonitoring"] = true;
  Put(json, "enableCMT", rdt.enable_cmt);
  Put(json, "enableMBM", rdt.enable_mbm);
  return json;
}

Json JsonOf(const CdiSpecDevice& device);

template <typename T>
void PutObjects(Json& object, const char* key, const std::vector<T>& list) {
  for (const T& item : list) object[key].push_back(JsonOf(item));
}

Json JsonOf(const CdiContainerEdits& edits) {
  Json json = Json::object();
  Put(json, "env", edits.env);
  PutObjects(json, "deviceNodes", edits.device_nodes);
  PutObjects(json, "netDevices", edits.net_devices);
  PutObjects(json, "mounts", edits.mounts);
  PutObjects(json, "hooks", edits.hooks);
  if (edits.intel_rdt) json["intelRdt"] = JsonOf(*edits.intel_rdt);
  Put(json, "additionalGids", edits.additional_gids);
  return json;
}

void PutAnnotations(Json& object,
                    const std::map<std::string, std::string>& annotations) {
  if (!annotations.empty()) object["annotations"] = annotations;
}

Json JsonOf(const CdiSpecDevice& device) {
  Json json = {{"name", device.name}};
  PutAnnotations(json, device.annotations);
  json["containerEdits"] = JsonOf(device.edits);
  return json;
}

Json JsonOf(const CdiSpec& spec) {
  Json json = {{"cdiVersion", spec.version}, {"kind", spec.kind}};
  PutAnnotations(json, spec.annotations);
  PutObjects(json, "devices", spec.devices);
  if (spec.edits.Count() > 0) json["containerEdits"] = JsonOf(spec.edits);
  return json;
}

/// JSON in the block style of YAML. Texts are quoted, in JSON's way, so that
/// none reads as something else; members of the format itself need no quotes.
class YamlWriter {
 public:
  std::string Write(const Json& object) {
    Members(object, 0, /*quoted=*/false);
    return std::move(out_);
  }

 private:
  void Members(const Json& object, std::size_t indent, bool quoted) {
    for (const auto& [key, value] : object.items()) {
      if (&value != &object.front()) out_.append(indent, ' ');
      out_ += quoted ? Json(key).dump() : key;
      out_ += ":";
      if (value.is_structured() && !value.empty()) {
        out_ += "\n";
        const bool is_list = value.is_array();
        if (!is_list) out_.append(indent + 2, ' ');
        is_list ? Items(value, indent)
                : Members(value, indent + 2, key == "annotations");
      } else {
        out_ += " " + value.dump() + "\n";
      }
    }
  }

  void Items(const Json& list, std::size_t indent) {
    for (const Json& item : list) {
      out_.append(indent, ' ');
      out_ += "- ";
      if (item.is_object() && !item.empty()) {
        Members(item, indent + 2, /*quoted=*/false);
      } else {
        out_ += item.dump() + "\n";
      }
    }
  }

  std::string out_;
};

absl::Status CheckAnnotations(
    const std::map<std::string, std::string>& annotations) {
  for (const auto& [key, value] : annotations) {
    const std::string problem = api::CheckQualifiedName(key);
    if (!problem.empty())
      return InvalidArgumentError("annotations: {}", problem);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace cdi

absl::StatusOr<std::string> EncodeCdiSpec(const CdiSpec& spec,
                                          CdiFormat format) {
  DEVMGR_RETURN_IF_ERROR(ValidateCdiSpec(spec));
  DEVMGR_RETURN_IF_ERROR(cdi::CheckAnnotations(spec.annotations));
  for (const CdiSpecDevice& device : spec.devices) {
    DEVMGR_RETURN_IF_ERROR(cdi::CheckAnnotations(device.annotations));
  }
  const cdi::Json json = cdi::JsonOf(spec);
  DEVMGR_ASSIGN_OR_RETURN(std::string text, cdi::TextOf(json, 2));
  // All texts are UTF-8, or there were no JSON.
  text = format == CdiFormat::kJson
             ? text + "\n"
             : cdi::WithoutDel(cdi::YamlWriter().Write(json));
  if (text.size() > api::kMaxTextBytes) {
    return ResourceExhaustedError(
        "the spec of '{}' is too large: {} bytes, readers take {}", spec.kind,
        text.size(), api::kMaxTextBytes);
  }
  return text;
}

}  // namespace devmgr
