// SPDX-License-Identifier: Apache-2.0
//
// All that a container gets, laid over its OCI runtime configuration. The
// configuration is edited as a copy, which is handed out when all went well.
#include <absl/strings/str_join.h>
#include <devmgr/cdi.h>

#include <set>
#include <string>
#include <string_view>

#include "cdi/device_node.h"
#include "cdi/host_devices.h"
#include "cdi/json_node.h"
#include "cdi/oci_edits.h"
#include "common/status.h"

namespace devmgr {
namespace cdi {
namespace {

/// One kind of edits of all parts, in order.
template <typename T>
std::vector<T> AllOf(const CdiEdits& parts,
                     std::vector<T> CdiContainerEdits::*member) {
  std::vector<T> all;
  for (const CdiEditsPart& part : parts) {
    const std::vector<T>& edits = (*part.edits).*member;
    all.insert(all.end(), edits.begin(), edits.end());
  }
  return all;
}

std::vector<NamedValue> EnvOf(const CdiEdits& parts) {
  std::vector<NamedValue> env;
  for (const std::string& entry : AllOf(parts, &CdiContainerEdits::env)) {
    const std::size_t equals = entry.find('=');
    env.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
  }
  return env;
}

absl::StatusOr<std::vector<CdiDeviceNode>> NodesOf(const CdiEdits& parts,
                                                   const CdiHost& host) {
  std::vector<CdiDeviceNode> nodes;
  for (const CdiEditsPart& part : parts) {
    for (const CdiDeviceNode& node : part.edits->device_nodes) {
      auto filled = FilledFromHost(node, host);
      if (!filled.ok()) {
        return WithContext(filled.status(), "CDI device '{}' of '{}'",
                           part.device, part.path);
      }
      nodes.push_back(*std::move(filled));
    }
  }
  return nodes;
}

/// One kind after the other, as CDI libraries do.
absl::Status Apply(const CdiEdits& parts, const CdiHost& host,
                   JsonNode& config) {
  using Edits = CdiContainerEdits;
  DEVMGR_RETURN_IF_ERROR(SetOciEnv(config, EnvOf(parts), Existing::kReplaced));
  DEVMGR_ASSIGN_OR_RETURN(const std::vector<CdiDeviceNode> nodes,
                          NodesOf(parts, host));
  DEVMGR_RETURN_IF_ERROR(AddOciDevices(config, nodes));
  DEVMGR_RETURN_IF_ERROR(
      SetOciNetDevices(config, AllOf(parts, &Edits::net_devices)));
  DEVMGR_RETURN_IF_ERROR(AddOciMounts(config, AllOf(parts, &Edits::mounts)));
  DEVMGR_RETURN_IF_ERROR(AddOciHooks(config, AllOf(parts, &Edits::hooks)));
  for (const CdiEditsPart& part : parts) {
    if (!part.edits->intel_rdt) continue;
    DEVMGR_RETURN_IF_ERROR(SetOciIntelRdt(config, *part.edits->intel_rdt));
  }
  return AddOciGroups(config, AllOf(parts, &Edits::additional_gids));
}

/// What plugins ask for, as the kubelet passes it on and runtimes write it.
absl::Status Apply(const ContainerDevices& devices, const CdiHost& host,
                   JsonNode& config) {
  DEVMGR_RETURN_IF_ERROR(SetOciEnv(config, devices.env, Existing::kKept));
  std::vector<CdiDeviceNode> nodes;
  for (const DeviceNode& device : devices.devices) {
    DEVMGR_RETURN_IF_ERROR(WithContext(AddHostNodes(device, host, &nodes),
                                       "resource '{}'", device.resource));
  }
  DEVMGR_RETURN_IF_ERROR(AddOciDevices(config, nodes));
  std::vector<CdiMount> mounts;
  for (const DeviceMount& mount : devices.mounts) {
    mounts.push_back({mount.host_path,
                      mount.container_path,
                      {"rbind", "rprivate", mount.read_only ? "ro" : "rw"},
                      "bind"});
  }
  DEVMGR_RETURN_IF_ERROR(AddOciMounts(config, std::move(mounts)));
  std::vector<NamedValue> annotations = devices.annotations;
  std::erase_if(annotations, [](const NamedValue& annotation) {
    return IsCdiAnnotation(annotation.name);
  });
  return AddOciAnnotations(config, annotations);
}

absl::StatusOr<JsonNode> ParseConfig(std::string_view text) {
  if (text.size() > kMaxOciConfigBytes) {
    return ResourceExhaustedError("{} bytes, at most {} are edited",
                                  text.size(), kMaxOciConfigBytes);
  }
  DEVMGR_ASSIGN_OR_RETURN(JsonNode config, JsonNode::Parse(text));
  if (!config.IsObject()) return InvalidArgumentError("not a JSON object");
  return config;
}

/// What stands before and after the object stays, too.
std::string TextAround(std::string_view original, const JsonNode& config) {
  const std::size_t begin = original.find('{');
  const std::size_t end = original.rfind('}') + 1;
  std::string text(original.substr(0, begin));
  config.AppendTo(&text);
  text += original.substr(end);
  return text;
}

/// Edits `text` with plugins' devices, if there are any, then with CDI's.
absl::StatusOr<std::string> Inject(std::string_view text,
                                   const ContainerDevices* devices,
                                   const CdiEdits& parts, const CdiHost& host) {
  DEVMGR_ASSIGN_OR_RETURN(JsonNode config, ParseConfig(text));
  if (devices != nullptr) {
    DEVMGR_RETURN_IF_ERROR(Apply(*devices, host, config));
  }
  DEVMGR_RETURN_IF_ERROR(Apply(parts, host, config));
  return TextAround(text, config);
}

/// Which devices did not get in.
std::string NotInjected(const CdiEdits& parts) {
  std::vector<std::string> names;
  for (const CdiEditsPart& part : parts) {
    if (names.empty() || names.back() != part.device) {
      names.push_back(part.device);
    }
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace
}  // namespace cdi

absl::StatusOr<std::string> InjectCdiIntoOciConfig(std::string_view config,
                                                   const CdiEdits& edits,
                                                   const CdiHost& host) {
  auto text = cdi::Inject(config, nullptr, edits, host);
  if (text.ok()) return text;
  return WithContext(text.status(), "OCI configuration, nothing injected of {}",
                     cdi::NotInjected(edits));
}

absl::StatusOr<std::string> InjectIntoOciConfig(std::string_view config,
                                                const ContainerDevices& devices,
                                                const CdiRegistry& registry,
                                                const CdiHost& host) {
  const auto names = CdiNamesOf(devices);
  if (!names.ok()) {
    return WithContext(names.status(), "container '{}'", devices.name);
  }
  DEVMGR_ASSIGN_OR_RETURN(const CdiEdits edits, CdiEditsOf(registry, *names));
  auto text = cdi::Inject(config, &devices, edits, host);
  if (text.ok()) return text;
  return WithContext(text.status(),
                     "OCI configuration, nothing injected of container '{}'",
                     devices.name);
}

}  // namespace devmgr
