// SPDX-License-Identifier: Apache-2.0
#include "cri/messages.h"

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"

namespace devmgr::cri {
namespace {

constexpr std::string_view kLabelPodName = "io.kubernetes.pod.name";
constexpr std::string_view kLabelPodNamespace = "io.kubernetes.pod.namespace";
constexpr std::string_view kLabelPodUid = "io.kubernetes.pod.uid";

/// Reads one message. An embedded message that occurs twice is read twice into
/// the same place, so that the two are merged. Only the first error is kept.
class Walk {
 public:
  template <typename Use>
  void Over(std::string_view message, std::string_view what, const Use& use) {
    absl::Status status = ForEachField(message, what, use);
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

/// Takes a text, when the field is one.
void Take(const WireField& field, std::string* to) {
  if (field.type == WireType::kBytes) *to = std::string(field.bytes);
}

template <typename Number>
void Take(const WireField& field, Number* to) {
  if (field.type == WireType::kVarint) *to = static_cast<Number>(field.varint);
}

NamedValue ReadKeyValue(Walk& walk, std::string_view bytes) {
  namespace f = field::key_value;
  NamedValue value;
  walk.Over(bytes, "KeyValue", [&](const WireField& field) {
    if (field.number == f::kKey) Take(field, &value.name);
    if (field.number == f::kValue) Take(field, &value.value);
  });
  return value;
}

void ReadEntry(Walk& walk, std::string_view bytes, TextMap* map) {
  NamedValue entry = ReadKeyValue(walk, bytes);
  (*map)[std::move(entry.name)] = std::move(entry.value);
}

DeviceMount ReadMount(Walk& walk, std::string_view bytes) {
  namespace f = field::mount;
  DeviceMount mount;
  walk.Over(bytes, "Mount", [&](const WireField& field) {
    if (field.number == f::kContainerPath) Take(field, &mount.container_path);
    if (field.number == f::kHostPath) Take(field, &mount.host_path);
    if (field.number == f::kReadonly) Take(field, &mount.read_only);
  });
  return mount;
}

DeviceNode ReadDevice(Walk& walk, std::string_view bytes) {
  namespace f = field::device;
  DeviceNode device;
  walk.Over(bytes, "Device", [&](const WireField& field) {
    if (field.number == f::kContainerPath) Take(field, &device.container_path);
    if (field.number == f::kHostPath) Take(field, &device.host_path);
    if (field.number == f::kPermissions) Take(field, &device.permissions);
  });
  return device;
}

/// `repeated int64`: packed, one by one, or both.
void ReadGroups(Walk& walk, const WireField& field,
                std::vector<std::uint64_t>* groups) {
  if (field.type == WireType::kVarint) groups->push_back(field.varint);
  if (field.type != WireType::kBytes) return;
  // As values of a made-up field each, so that one reader does for all.
  std::string fields;
  std::string_view rest = field.bytes;
  while (!rest.empty()) {
    fields.push_back('\x08');
    bool more = true;
    while (more && !rest.empty()) {
      more = (static_cast<std::uint8_t>(rest.front()) & 0x80) != 0;
      fields.push_back(rest.front());
      rest.remove_prefix(1);
    }
  }
  walk.Over(fields, "packed int64",
            [&](const WireField& value) { groups->push_back(value.varint); });
}

void ReadLinux(Walk& walk, std::string_view bytes, ContainerConfig* config) {
  namespace l = field::linux_container_config;
  namespace s = field::linux_container_security_context;
  walk.Over(bytes, "LinuxContainerConfig", [&](const WireField& outer) {
    if (outer.number != l::kSecurityContext) return;
    walk.Over(outer.bytes, "LinuxContainerSecurityContext",
              [&](const WireField& field) {
                if (field.number == s::kSupplementalGroups) {
                  ReadGroups(walk, field, &config->supplemental_groups);
                }
              });
  });
}

void ReadContainerMetadata(Walk& walk, std::string_view bytes,
                           std::string* name, std::uint32_t* attempt) {
  namespace f = field::container_metadata;
  walk.Over(bytes, "ContainerMetadata", [&](const WireField& field) {
    if (field.number == f::kName) Take(field, name);
    if (field.number == f::kAttempt) Take(field, attempt);
  });
}

void ReadConfig(Walk& walk, std::string_view bytes, ContainerConfig* config) {
  namespace f = field::container_config;
  walk.Over(bytes, "ContainerConfig", [&](const WireField& field) {
    if (field.type != WireType::kBytes) return;
    switch (field.number) {
      case f::kMetadata:
        ReadContainerMetadata(walk, field.bytes, &config->name,
                              &config->attempt);
        break;
      case f::kEnvs:
        config->env.push_back(ReadKeyValue(walk, field.bytes));
        break;
      case f::kMounts:
        config->mounts.push_back(ReadMount(walk, field.bytes));
        break;
      case f::kDevices:
        config->devices.push_back(ReadDevice(walk, field.bytes));
        break;
      case f::kAnnotations:
        ReadEntry(walk, field.bytes, &config->annotations);
        break;
      case f::kLinux:
        ReadLinux(walk, field.bytes, config);
        break;
      case f::kCdiDevices: {
        std::string& name = config->cdi_devices.emplace_back();
        walk.Over(field.bytes, "CDIDevice", [&](const WireField& device) {
          if (device.number == field::cdi_device::kName) Take(device, &name);
        });
        break;
      }
      default:
        break;
    }
  });
}

void ReadSandboxMetadata(Walk& walk, std::string_view bytes,
                         SandboxIdentity* identity) {
  namespace f = field::pod_sandbox_metadata;
  walk.Over(bytes, "PodSandboxMetadata", [&](const WireField& field) {
    if (field.number == f::kName) Take(field, &identity->pod.name);
    if (field.number == f::kUid) Take(field, &identity->uid.value);
    if (field.number == f::kNamespace) Take(field, &identity->pod.ns);
    if (field.number == f::kAttempt) Take(field, &identity->attempt);
  });
}

void FillFromLabels(const TextMap& labels, SandboxIdentity* identity) {
  const auto fill = [&](std::string_view key, std::string* to) {
    const auto label = labels.find(std::string(key));
    if (to->empty() && label != labels.end()) *to = label->second;
  };
  fill(kLabelPodUid, &identity->uid.value);
  fill(kLabelPodName, &identity->pod.name);
  fill(kLabelPodNamespace, &identity->pod.ns);
}

/// The merged bytes of an embedded message, however often it occurs: to put
/// them one after the other is what merging means on the wire. Each part has to
/// be whole.
struct Merged {
  std::string bytes;
  void Add(Walk& walk, const WireField& field, std::string_view what) {
    if (field.type != WireType::kBytes) return;
    walk.Over(field.bytes, what, [](const WireField&) {});
    bytes.append(field.bytes);
  }
};

SandboxConfig ReadSandbox(Walk& walk, std::string_view bytes) {
  namespace f = field::pod_sandbox_config;
  SandboxConfig sandbox;
  TextMap labels;
  walk.Over(bytes, "PodSandboxConfig", [&](const WireField& field) {
    if (field.type != WireType::kBytes) return;
    if (field.number == f::kMetadata) {
      ReadSandboxMetadata(walk, field.bytes, &sandbox.identity);
    }
    if (field.number == f::kLabels) ReadEntry(walk, field.bytes, &labels);
    if (field.number == f::kAnnotations) {
      ReadEntry(walk, field.bytes, &sandbox.annotations);
    }
  });
  FillFromLabels(labels, &sandbox.identity);
  return sandbox;
}

Sandbox ReadSandboxItem(Walk& walk, std::string_view bytes) {
  namespace f = field::pod_sandbox;
  Sandbox sandbox;
  // Ready is 0, which is not written.
  std::uint64_t state = 0;
  TextMap labels;
  walk.Over(bytes, "PodSandbox", [&](const WireField& field) {
    if (field.number == f::kId) Take(field, &sandbox.id);
    if (field.number == f::kState) Take(field, &state);
    if (field.number == f::kCreatedAt) Take(field, &sandbox.created_at);
    if (field.type != WireType::kBytes) return;
    if (field.number == f::kMetadata) {
      ReadSandboxMetadata(walk, field.bytes, &sandbox.identity);
    }
    if (field.number == f::kLabels) ReadEntry(walk, field.bytes, &labels);
  });
  FillFromLabels(labels, &sandbox.identity);
  sandbox.ready = state == 0;
  return sandbox;
}

/// An enum that this version does not know means that it is not known.
ContainerState StateOf(std::uint64_t state) {
  return state < 3 ? static_cast<ContainerState>(state)
                   : ContainerState::kUnknown;
}

/// The image as it was asked for, where a runtime keeps that apart.
std::string ReadImageSpec(Walk& walk, std::string_view bytes) {
  namespace f = field::image_spec;
  std::string image;
  std::string user_specified;
  walk.Over(bytes, "ImageSpec", [&](const WireField& field) {
    if (field.number == f::kImage) Take(field, &image);
    if (field.number == f::kUserSpecifiedImage) Take(field, &user_specified);
  });
  return user_specified.empty() ? image : user_specified;
}

Container ReadContainerItem(Walk& walk, std::string_view bytes) {
  namespace f = field::container;
  Container container;
  std::uint64_t state = 0;
  walk.Over(bytes, "Container", [&](const WireField& field) {
    if (field.number == f::kId) Take(field, &container.id);
    if (field.number == f::kPodSandboxId) Take(field, &container.sandbox_id);
    if (field.number == f::kState) Take(field, &state);
    if (field.number == f::kImageRef) Take(field, &container.image_ref);
    if (field.number == f::kCreatedAt) Take(field, &container.created_at);
    if (field.type != WireType::kBytes) return;
    if (field.number == f::kImage) {
      container.image = ReadImageSpec(walk, field.bytes);
    }
    if (field.number == f::kMetadata) {
      ReadContainerMetadata(walk, field.bytes, &container.name,
                            &container.attempt);
    }
    if (field.number == f::kAnnotations) {
      ReadEntry(walk, field.bytes, &container.annotations);
    }
  });
  container.state = StateOf(state);
  return container;
}

/// The embedded messages in field `number` of `response`, which is a `what`.
template <typename Item>
absl::StatusOr<std::vector<Item>> ReadItems(
    std::string_view response, std::string_view what, std::uint32_t number,
    Item (*read)(Walk&, std::string_view)) {
  std::vector<Item> items;
  Walk walk;
  walk.Over(response, what, [&](const WireField& field) {
    if (field.number != number || field.type != WireType::kBytes) return;
    items.push_back(read(walk, field.bytes));
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return items;
}

}  // namespace

absl::StatusOr<CreateContainerRequest> ReadCreateContainer(
    std::string_view request) {
  namespace f = field::create_container_request;
  CreateContainerRequest result;
  Walk walk;
  Merged config, sandbox;
  walk.Over(request, "CreateContainerRequest", [&](const WireField& field) {
    if (field.number == f::kPodSandboxId) Take(field, &result.sandbox_id);
    if (field.number == f::kConfig) config.Add(walk, field, "ContainerConfig");
    if (field.number == f::kSandboxConfig) {
      sandbox.Add(walk, field, "PodSandboxConfig");
    }
  });
  ReadConfig(walk, config.bytes, &result.config);
  result.sandbox = ReadSandbox(walk, sandbox.bytes);
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return result;
}

absl::StatusOr<RunPodSandboxRequest> ReadRunPodSandbox(
    std::string_view request) {
  namespace f = field::run_pod_sandbox_request;
  RunPodSandboxRequest result;
  Walk walk;
  Merged sandbox;
  walk.Over(request, "RunPodSandboxRequest", [&](const WireField& field) {
    if (field.number == f::kConfig) {
      sandbox.Add(walk, field, "PodSandboxConfig");
    }
    if (field.number == f::kRuntimeHandler) {
      Take(field, &result.runtime_handler);
    }
  });
  result.sandbox = ReadSandbox(walk, sandbox.bytes);
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return result;
}

absl::StatusOr<RestorePodRequest> ReadRestorePod(std::string_view request) {
  namespace f = field::restore_pod_request;
  RestorePodRequest result;
  Walk walk;
  Merged sandbox;
  walk.Over(request, "RestorePodRequest", [&](const WireField& field) {
    if (field.number == f::kConfig) {
      sandbox.Add(walk, field, "PodSandboxConfig");
    }
    if (field.number == f::kContainerConfigs &&
        field.type == WireType::kBytes) {
      ReadConfig(walk, field.bytes, &result.containers.emplace_back());
    }
  });
  result.sandbox = ReadSandbox(walk, sandbox.bytes);
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return result;
}

absl::StatusOr<RestorePodResponse> ReadRestorePodResponse(
    std::string_view response) {
  namespace f = field::restore_pod_response;
  namespace r = field::restored_container;
  RestorePodResponse result;
  Walk walk;
  walk.Over(response, "RestorePodResponse", [&](const WireField& field) {
    if (field.number == f::kPodSandboxId) Take(field, &result.sandbox_id);
    if (field.number != f::kRestoredContainers ||
        field.type != WireType::kBytes) {
      return;
    }
    auto& restored = result.containers.emplace_back();
    walk.Over(field.bytes, "RestoredContainer", [&](const WireField& inner) {
      if (inner.number == r::kName) Take(inner, &restored.name);
      if (inner.number == r::kContainerId) Take(inner, &restored.container_id);
    });
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return result;
}

absl::StatusOr<std::vector<Sandbox>> ReadListPodSandbox(
    std::string_view response) {
  return ReadItems(response, "ListPodSandboxResponse",
                   field::list_pod_sandbox_response::kItems, ReadSandboxItem);
}

absl::StatusOr<std::vector<Container>> ReadListContainers(
    std::string_view response) {
  return ReadItems(response, "ListContainersResponse",
                   field::list_containers_response::kContainers,
                   ReadContainerItem);
}

absl::StatusOr<ContainerStatus> ReadContainerStatus(std::string_view response) {
  namespace f = field::container_status_response;
  namespace s = field::container_status;
  ContainerStatus result;
  std::uint64_t state = 0;
  Walk walk;
  walk.Over(response, "ContainerStatusResponse", [&](const WireField& field) {
    if (field.type != WireType::kBytes) return;
    if (field.number == f::kInfo) ReadEntry(walk, field.bytes, &result.info);
    if (field.number != f::kStatus) return;
    walk.Over(field.bytes, "ContainerStatus", [&](const WireField& inner) {
      if (inner.number == s::kId) Take(inner, &result.id);
      if (inner.number == s::kState) Take(inner, &state);
      if (inner.number == s::kStartedAt) Take(inner, &result.started_at);
      if (inner.number == s::kFinishedAt) Take(inner, &result.finished_at);
      if (inner.number == s::kExitCode) Take(inner, &result.exit_code);
      if (inner.number == s::kReason) Take(inner, &result.reason);
      if (inner.number == s::kMessage) Take(inner, &result.message);
      if (inner.number == s::kAnnotations && inner.type == WireType::kBytes) {
        ReadEntry(walk, inner.bytes, &result.annotations);
      }
    });
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  result.state = StateOf(state);
  return result;
}

absl::StatusOr<SandboxStatus> ReadPodSandboxStatus(std::string_view response) {
  namespace s = field::pod_sandbox_status;
  namespace n = field::pod_sandbox_network_status;
  SandboxStatus result;
  Walk walk;
  const auto add_ip = [&](const WireField& field) {
    std::string ip;
    Take(field, &ip);
    if (!ip.empty()) result.ips.push_back(std::move(ip));
  };
  const auto read_network = [&](const WireField& field) {
    if (field.number == n::kIp) add_ip(field);
    if (field.number != n::kAdditionalIps || field.type != WireType::kBytes) {
      return;
    }
    walk.Over(field.bytes, "PodIP", [&](const WireField& inner) {
      if (inner.number == field::pod_ip::kIp) add_ip(inner);
    });
  };
  walk.Over(response, "PodSandboxStatusResponse", [&](const WireField& field) {
    if (field.number != field::pod_sandbox_status_response::kStatus ||
        field.type != WireType::kBytes) {
      return;
    }
    walk.Over(field.bytes, "PodSandboxStatus", [&](const WireField& inner) {
      if (inner.number == s::kId) Take(inner, &result.id);
      if (inner.number != s::kNetwork || inner.type != WireType::kBytes) return;
      walk.Over(inner.bytes, "PodSandboxNetworkStatus", read_network);
    });
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return result;
}

absl::StatusOr<VersionResponse> ReadVersion(std::string_view response) {
  namespace f = field::version_response;
  VersionResponse version;
  Walk walk;
  walk.Over(response, "VersionResponse", [&](const WireField& field) {
    if (field.number == f::kRuntimeName) Take(field, &version.runtime_name);
    if (field.number == f::kRuntimeVersion) {
      Take(field, &version.runtime_version);
    }
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return version;
}

absl::StatusOr<TextMap> ReadStatusInfo(std::string_view response) {
  TextMap info;
  Walk walk;
  walk.Over(response, "StatusResponse", [&](const WireField& field) {
    if (field.number == field::status_response::kInfo &&
        field.type == WireType::kBytes) {
      ReadEntry(walk, field.bytes, &info);
    }
  });
  DEVMGR_RETURN_IF_ERROR(walk.status());
  return info;
}

absl::StatusOr<std::string> ReadText(std::string_view message,
                                     std::uint32_t number,
                                     std::string_view what) {
  std::string text;
  DEVMGR_RETURN_IF_ERROR(
      ForEachField(message, what, [&](const WireField& field) {
        if (field.number == number) Take(field, &text);
      }));
  return text;
}

}  // namespace devmgr::cri
