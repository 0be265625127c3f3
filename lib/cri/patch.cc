// SPDX-License-Identifier: Apache-2.0
#include "cri/patch.h"

#include <functional>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"

namespace devmgr::cri {
namespace {

namespace config_field = field::container_config;

/// A scalar field: absent means empty.
void AppendText(std::string* to, std::uint32_t number, std::string_view text) {
  if (!text.empty()) AppendBytesField(to, number, text);
}

std::string Encode(const NamedValue& value) {
  namespace f = field::key_value;
  std::string bytes;
  AppendText(&bytes, f::kKey, value.name);
  AppendText(&bytes, f::kValue, value.value);
  return bytes;
}

std::string Encode(const CriMount& mount) {
  namespace f = field::mount;
  std::string bytes;
  AppendText(&bytes, f::kContainerPath, mount.container_path);
  AppendText(&bytes, f::kHostPath, mount.host_path);
  if (mount.read_only) AppendVarintField(&bytes, f::kReadonly, 1);
  if (mount.propagation != CriMount::Propagation::kPrivate) {
    AppendVarintField(&bytes, f::kPropagation,
                      static_cast<std::uint64_t>(mount.propagation));
  }
  for (const std::string& option : mount.options) {
    AppendBytesField(&bytes, f::kMountOptions, option);
  }
  return bytes;
}

std::string Encode(const DeviceNode& device) {
  namespace f = field::device;
  std::string bytes;
  AppendText(&bytes, f::kContainerPath, device.container_path);
  AppendText(&bytes, f::kHostPath, device.host_path);
  AppendText(&bytes, f::kPermissions, device.permissions);
  return bytes;
}

std::string Encode(const std::string& cdi_device) {
  std::string bytes;
  AppendText(&bytes, field::cdi_device::kName, cdi_device);
  return bytes;
}

/// One of the lists: its field, the field of an entry that is its key, and what
/// is to become of it.
template <typename Entry>
struct List {
  std::uint32_t number;
  std::uint32_t key;
  const ListEdit<Entry>& edit;

  static void Append(std::string* to, std::uint32_t number,
                     const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      AppendBytesField(to, number, Encode(entry));
    }
  }

  bool Drops(const WireField& field) const {
    if (field.number != number || field.type != WireType::kBytes) return false;
    if (edit.drop.empty()) return false;
    std::string name;
    WireReader reader(field.bytes);
    WireField inner;
    while (reader.Next(&inner)) {
      if (inner.number == key && inner.type == WireType::kBytes) {
        name = std::string(inner.bytes);
      }
    }
    return reader.ok() && edit.drop.contains(name);
  }
};

/// The message that carries nothing but these groups; a reader merges it with
/// the one that is there.
std::string EncodeGroups(const std::vector<std::uint32_t>& groups) {
  std::string packed, context, linux_config;
  for (const std::uint32_t group : groups) AppendVarint(&packed, group);
  AppendBytesField(&context,
                   field::linux_container_security_context::kSupplementalGroups,
                   packed);
  AppendBytesField(&linux_config,
                   field::linux_container_config::kSecurityContext, context);
  return linux_config;
}

/// The edits of one config as bytes.
class Editor {
 public:
  explicit Editor(const ConfigEdits& edits)
      : edits_(edits),
        env_{config_field::kEnvs, field::key_value::kKey, edits.env},
        mounts_{config_field::kMounts, field::mount::kContainerPath,
                edits.mounts},
        devices_{config_field::kDevices, field::device::kContainerPath,
                 edits.devices},
        annotations_{config_field::kAnnotations, field::key_value::kKey,
                     edits.annotations},
        cdi_devices_{config_field::kCdiDevices, field::cdi_device::kName,
                     edits.cdi_devices} {}

  std::string Before() const {
    std::string bytes;
    ForEachList([&](const auto& list) {
      list.Append(&bytes, list.number, list.edit.first);
    });
    return bytes;
  }

  std::string After() const {
    std::string bytes;
    ForEachList([&](const auto& list) {
      list.Append(&bytes, list.number, list.edit.last);
    });
    if (!edits_.supplemental_groups.empty()) {
      AppendBytesField(&bytes, config_field::kLinux,
                       EncodeGroups(edits_.supplemental_groups));
    }
    return bytes;
  }

  /// What stays of (a part of) a config.
  absl::StatusOr<std::string> Kept(std::string_view config) const {
    std::string bytes;
    bytes.reserve(config.size());
    DEVMGR_RETURN_IF_ERROR(
        ForEachField(config, "ContainerConfig", [&](const WireField& field) {
          bool dropped = false;
          ForEachList([&](const auto& list) { dropped |= list.Drops(field); });
          if (!dropped) bytes.append(field.raw);
        }));
    return bytes;
  }

 private:
  template <typename Use>
  void ForEachList(const Use& use) const {
    use(env_);
    use(mounts_);
    use(devices_);
    use(annotations_);
    use(cdi_devices_);
  }

  const ConfigEdits& edits_;
  const List<NamedValue> env_;
  const List<CriMount> mounts_;
  const List<DeviceNode> devices_;
  const List<NamedValue> annotations_;
  const List<std::string> cdi_devices_;
};

/// The same of a PodSandboxConfig, of which only annotations change.
class SandboxEditor {
 public:
  explicit SandboxEditor(const ListEdit<NamedValue>& annotations)
      : annotations_{field::pod_sandbox_config::kAnnotations,
                     field::key_value::kKey, annotations} {}

  std::string Before() const { return Of(annotations_.edit.first); }
  std::string After() const { return Of(annotations_.edit.last); }

  absl::StatusOr<std::string> Kept(std::string_view config) const {
    std::string bytes;
    bytes.reserve(config.size());
    DEVMGR_RETURN_IF_ERROR(
        ForEachField(config, "PodSandboxConfig", [&](const WireField& field) {
          if (!annotations_.Drops(field)) bytes.append(field.raw);
        }));
    return bytes;
  }

 private:
  std::string Of(const std::vector<NamedValue>& entries) const {
    std::string bytes;
    annotations_.Append(&bytes, annotations_.number, entries);
    return bytes;
  }

  const List<NamedValue> annotations_;
};

/// `request` with each embedded message of that field replaced by what
/// `replace(index, bytes)` makes of it.
absl::StatusOr<std::string> ReplaceField(
    std::string_view request, std::string_view what, std::uint32_t number,
    const std::function<
        absl::StatusOr<std::string>(std::size_t, std::string_view)>& replace) {
  std::string result;
  result.reserve(request.size() + 1024);
  absl::Status status;
  std::size_t index = 0;
  DEVMGR_RETURN_IF_ERROR(
      ForEachField(request, what, [&](const WireField& field) {
        if (field.number != number || field.type != WireType::kBytes) {
          result.append(field.raw);
          return;
        }
        const auto bytes = replace(index++, field.bytes);
        if (!bytes.ok()) {
          if (status.ok()) status = bytes.status();
          return;
        }
        if (*bytes == field.bytes) {
          result.append(field.raw);
        } else {
          AppendBytesField(&result, number, *bytes);
        }
      }));
  DEVMGR_RETURN_IF_ERROR(status);
  return result;
}

/// The one message of that field edited. In parts it is one to its reader, in
/// this order; where it is missing it is added.
template <typename AnEditor>
absl::StatusOr<std::string> EditConfig(std::string_view request,
                                       std::string_view what,
                                       std::uint32_t number,
                                       const AnEditor& editor) {
  std::size_t parts = 0;
  DEVMGR_RETURN_IF_ERROR(
      ForEachField(request, what, [&](const WireField& field) {
        const bool config =
            field.number == number && field.type == WireType::kBytes;
        parts += config ? 1 : 0;
      }));
  if (parts == 0) {
    std::string result(request);
    AppendBytesField(&result, number, editor.Before() + editor.After());
    return result;
  }
  return ReplaceField(
      request, what, number,
      [&](std::size_t index,
          std::string_view config) -> absl::StatusOr<std::string> {
        DEVMGR_ASSIGN_OR_RETURN(std::string kept, editor.Kept(config));
        if (index == 0) kept.insert(0, editor.Before());
        if (index + 1 == parts) kept += editor.After();
        return kept;
      });
}

}  // namespace

bool ConfigEdits::empty() const {
  return env.empty() && mounts.empty() && devices.empty() &&
         annotations.empty() && cdi_devices.empty() &&
         supplemental_groups.empty();
}

absl::StatusOr<std::string> PatchCreateContainer(std::string_view request,
                                                 const ConfigEdits& edits) {
  if (edits.empty()) return std::string(request);
  return EditConfig(request, "CreateContainerRequest",
                    field::create_container_request::kConfig, Editor(edits));
}

absl::StatusOr<std::string> PatchRunPodSandbox(
    std::string_view request, const ListEdit<NamedValue>& annotations) {
  if (annotations.empty()) return std::string(request);
  return EditConfig(request, "RunPodSandboxRequest",
                    field::run_pod_sandbox_request::kConfig,
                    SandboxEditor(annotations));
}

absl::StatusOr<std::string> PatchRestorePod(
    std::string_view request, const std::vector<ConfigEdits>& edits,
    const ListEdit<NamedValue>& sandbox_annotations) {
  std::string with_sandbox(request);
  if (!sandbox_annotations.empty()) {
    DEVMGR_ASSIGN_OR_RETURN(with_sandbox,
                            EditConfig(request, "RestorePodRequest",
                                       field::restore_pod_request::kConfig,
                                       SandboxEditor(sandbox_annotations)));
  }
  return ReplaceField(
      with_sandbox, "RestorePodRequest",
      field::restore_pod_request::kContainerConfigs,
      [&](std::size_t index,
          std::string_view config) -> absl::StatusOr<std::string> {
        if (index >= edits.size() || edits[index].empty()) {
          return std::string(config);
        }
        const Editor editor(edits[index]);
        DEVMGR_ASSIGN_OR_RETURN(const std::string kept, editor.Kept(config));
        return editor.Before() + kept + editor.After();
      });
}

}  // namespace devmgr::cri
