// SPDX-License-Identifier: Apache-2.0
#include "plugin/allocate_answer.h"

#include <algorithm>
#include <string_view>

#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "common/status.h"

namespace devmgr::plugin {
namespace {

/// Such as `env 'A': value`, quoted for a message.
std::string Of(std::string_view kind, const std::string& name,
               std::string_view part) {
  return fmt::format("{} {}: {}", kind, api::Quoted(name), part);
}

absl::Status CheckText(const std::string& what, const std::string& text,
                       std::size_t limit) {
  if (text.size() > limit) {
    return InvalidArgumentError("{} has {} bytes, at most {} are allowed", what,
                                text.size(), limit);
  }
  if (api::FindInvalidUtf8(text) != std::string::npos) {
    return InvalidArgumentError("{} {} is not UTF-8", what, api::Quoted(text));
  }
  if (text.find('\0') != std::string::npos) {
    return InvalidArgumentError("{} {} has a NUL in it", what,
                                api::Quoted(text));
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& what, const std::string& name) {
  if (name.empty()) return InvalidArgumentError("{} is empty", what);
  DEVMGR_RETURN_IF_ERROR(CheckText(what, name, kMaxNameBytes));
  if (api::HasControlCharacters(name)) {
    return InvalidArgumentError("{} {} has control characters in it", what,
                                api::Quoted(name));
  }
  return absl::OkStatus();
}

absl::Status CheckPath(const std::string& what, const std::string& path) {
  DEVMGR_RETURN_IF_ERROR(CheckText(what, path, kMaxPathBytes));
  if (!path.starts_with('/')) {
    return InvalidArgumentError("{} {} is not an absolute path", what,
                                api::Quoted(path));
  }
  return absl::OkStatus();
}

absl::Status CheckEnv(const NamedValue& env) {
  DEVMGR_RETURN_IF_ERROR(CheckName("env name", env.name));
  if (env.name.find('=') != std::string::npos) {
    return InvalidArgumentError("env name {} has a '=' in it",
                                api::Quoted(env.name));
  }
  return CheckText(Of("env", env.name, "value"), env.value, kMaxValueBytes);
}

absl::Status CheckMount(const DeviceMount& mount) {
  DEVMGR_RETURN_IF_ERROR(
      CheckPath("mount: container path", mount.container_path));
  return CheckPath(Of("mount", mount.container_path, "host path"),
                   mount.host_path);
}

absl::Status CheckNode(const DeviceNode& node) {
  DEVMGR_RETURN_IF_ERROR(
      CheckPath("device node: container path", node.container_path));
  DEVMGR_RETURN_IF_ERROR(CheckPath(
      Of("device node", node.container_path, "host path"), node.host_path));
  if (node.permissions.find_first_not_of("rwm") != std::string::npos ||
      node.permissions.size() > 3) {
    return InvalidArgumentError(
        "{} {} are not among 'r', 'w' and 'm'",
        Of("device node", node.container_path, "permissions"),
        api::Quoted(node.permissions));
  }
  return absl::OkStatus();
}

absl::Status CheckAnnotation(const NamedValue& annotation) {
  DEVMGR_RETURN_IF_ERROR(CheckName("annotation name", annotation.name));
  return CheckText(Of("annotation", annotation.name, "value"), annotation.value,
                   kMaxValueBytes);
}

absl::Status CheckCdiDevice(const std::string& name) {
  if (name.size() > kMaxNameBytes) {
    return InvalidArgumentError(
        "CDI device of {} bytes, at most {} are allowed", name.size(),
        kMaxNameBytes);
  }
  return WithContext(cdi::CheckQualifiedName(name), "CDI device");
}

template <typename Edit>
absl::Status CheckEach(std::string_view kind, const std::vector<Edit>& edits,
                       absl::Status (*check)(const Edit&)) {
  if (edits.size() > kMaxEdits) {
    return InvalidArgumentError("{} {}, at most {} are allowed", edits.size(),
                                kind, kMaxEdits);
  }
  for (const Edit& edit : edits) DEVMGR_RETURN_IF_ERROR(check(edit));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEdits(const device::ContainerEdits& edits) {
  DEVMGR_RETURN_IF_ERROR(CheckEach("env variables", edits.env, CheckEnv));
  DEVMGR_RETURN_IF_ERROR(CheckEach("mounts", edits.mounts, CheckMount));
  DEVMGR_RETURN_IF_ERROR(CheckEach("device nodes", edits.devices, CheckNode));
  DEVMGR_RETURN_IF_ERROR(
      CheckEach("annotations", edits.annotations, CheckAnnotation));
  return CheckEach("CDI devices", edits.cdi_devices, CheckCdiDevice);
}

}  // namespace devmgr::plugin
