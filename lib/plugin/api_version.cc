// SPDX-License-Identifier: Apache-2.0
#include "plugin/api_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/quote.h"
#include "common/status.h"
#include "devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h"
#include "plugin/allocate_answer.h"
#include "plugin/container_response.h"
#include "rpc/message.h"

namespace devmgr::plugin {
namespace {

namespace v1beta1 = wire::deviceplugin::v1beta1;

/// The field of all messages here that hold a list of something.
constexpr int kListField = 1;

std::string EncodeEmpty() { return rpc::Encode(v1beta1::Empty()); }

std::string EncodeAllocate(const std::vector<DeviceId>& ids) {
  v1beta1::AllocateRequest request;
  auto* container = request.add_container_requests();
  for (const DeviceId& id : ids) container->add_devices_ids(id);
  return rpc::Encode(request);
}

std::string EncodePreferred(const PreferredRequest& request) {
  v1beta1::PreferredAllocationRequest wire;
  auto* container = wire.add_container_requests();
  for (const DeviceId& id : request.available) {
    container->add_available_device_ids(id);
  }
  for (const DeviceId& id : request.must_include) {
    container->add_must_include_device_ids(id);
  }
  container->set_allocation_size(request.size);
  return rpc::Encode(wire);
}

std::string EncodePreStart(const std::vector<DeviceId>& ids) {
  v1beta1::PreStartContainerRequest request;
  for (const DeviceId& id : ids) request.add_devices_ids(id);
  return rpc::Encode(request);
}

absl::StatusOr<PluginOptions> DecodeOptions(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto wire,
                          rpc::Decode<v1beta1::DevicePluginOptions>(bytes));
  return PluginOptions{wire.pre_start_required(),
                       wire.get_preferred_allocation_available()};
}

/// Moves the device out of `wire`.
device::Device DeviceOf(v1beta1::Device& wire) {
  device::Device device;
  device.id = std::move(*wire.mutable_id());
  device.health = wire.health() == "Healthy" ? device::Health::kHealthy
                                             : device::Health::kUnhealthy;
  auto& nodes = device.numa_nodes;
  for (const auto& node : wire.topology().nodes()) nodes.push_back(node.id());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return device;
}

/// One device after the other: a message that is made to fill our memory when
/// parsed as a whole does not.
absl::StatusOr<DeviceList> DecodeList(const std::string& bytes) {
  DeviceList list;
  std::size_t told = 0;
  v1beta1::Device wire;
  const auto take = [&](std::string_view device) {
    if (++told > kMaxDevices) return false;
    if (device.size() > kMaxDeviceBytes) {
      list.problems.Add(
          "device {} of the list has {} bytes, at most {} are read", told,
          device.size(), kMaxDeviceBytes);
    } else if (!wire.ParseFromArray(device.data(),
                                    static_cast<int>(device.size()))) {
      list.problems.Add("device {} of the list is garbled", told);
    } else if (const std::string problem = device::CheckDeviceId(wire.id());
               !problem.empty()) {
      list.problems.Add("{}", problem);
    } else {
      list.devices.push_back(DeviceOf(wire));
    }
    return true;
  };
  if (!rpc::ForEachField(bytes, kListField, take)) {
    return InvalidArgumentError("{} bytes are not a ListAndWatchResponse",
                                bytes.size());
  }
  if (told > kMaxDevices) {
    return InvalidArgumentError("more than {} devices in one list",
                                kMaxDevices);
  }
  return list;
}

absl::Status CheckAnswerSize(const std::string& bytes) {
  if (bytes.size() <= kMaxAnswerBytes) return absl::OkStatus();
  return InvalidArgumentError("answer of {} bytes, at most {} are read",
                              bytes.size(), kMaxAnswerBytes);
}

/// The first of the container responses; we ask for one.
absl::StatusOr<std::optional<std::string_view>> FirstContainer(
    const std::string& bytes) {
  std::optional<std::string_view> first;
  const bool parsed =
      rpc::ForEachField(bytes, kListField, [&](std::string_view container) {
        first = container;
        return false;
      });
  if (!parsed) {
    return InvalidArgumentError("{} bytes are not an answer", bytes.size());
  }
  return first;
}

absl::StatusOr<device::ContainerEdits> DecodeAllocate(
    const std::string& bytes) {
  DEVMGR_RETURN_IF_ERROR(CheckAnswerSize(bytes));
  DEVMGR_ASSIGN_OR_RETURN(const auto container, FirstContainer(bytes));
  if (!container.has_value()) {
    return InvalidArgumentError("no containers return in allocation response");
  }
  return DecodeContainerResponse(*container);
}

absl::StatusOr<std::vector<DeviceId>> DecodePreferred(
    const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto container, FirstContainer(bytes));
  std::vector<DeviceId> ids;
  if (!container.has_value()) return ids;  // No advice is fine.
  const bool parsed =
      rpc::ForEachField(*container, kListField, [&](std::string_view id) {
        // Advice that cannot be an ID is none.
        if (id.size() <= device::kMaxIdLength) ids.emplace_back(id);
        return ids.size() < kMaxDevices;
      });
  if (!parsed) {
    return InvalidArgumentError("{} bytes are not an answer", bytes.size());
  }
  return ids;
}

constexpr std::array kVersions = {
    ApiVersion{"v1beta1", "v1beta1.DevicePlugin", &EncodeEmpty, &EncodeAllocate,
               &EncodePreferred, &EncodePreStart, &DecodeOptions, &DecodeList,
               &DecodeAllocate, &DecodePreferred},
};

std::vector<std::string_view> OurVersions() {
  std::vector<std::string_view> names;
  for (const ApiVersion& version : kVersions) names.push_back(version.name);
  return names;
}

const ApiVersion* FindVersion(std::string_view name) {
  const auto found = std::find_if(
      kVersions.begin(), kVersions.end(),
      [&](const ApiVersion& version) { return version.name == name; });
  return found == kVersions.end() ? nullptr : &*found;
}

}  // namespace

std::string ApiVersion::Method(std::string_view method) const {
  return fmt::format("/{}/{}", service, method);
}

std::span<const ApiVersion> ApiVersions() { return kVersions; }

absl::StatusOr<const ApiVersion*> FindApiVersion(const std::string& version) {
  if (const ApiVersion* found = FindVersion(version)) return found;
  return InvalidArgumentError(
      "requested API version \"{}\" is not supported by kubelet. Supported "
      "version is [\"{}\"]",
      api::Readable(version, kMaxQuotedBytes),
      fmt::join(OurVersions(), "\" \""));
}

absl::StatusOr<const ApiVersion*> ChooseApiVersion(
    const std::vector<std::string>& versions) {
  for (const ApiVersion& version : kVersions) {
    if (std::find(versions.begin(), versions.end(), version.name) !=
        versions.end()) {
      return &version;
    }
  }
  return InvalidArgumentError(
      "manager version, {}, is not among plugin supported versions [{}]",
      fmt::join(OurVersions(), ", "),
      api::Readable(fmt::format("{}", fmt::join(versions, " ")),
                    kMaxQuotedBytes));
}

absl::StatusOr<RegisterRequest> DecodeRegister(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto wire,
                          rpc::Decode<v1beta1::RegisterRequest>(bytes));
  return RegisterRequest{wire.version(), wire.endpoint(), wire.resource_name()};
}

std::string EncodeRegistered() { return rpc::Encode(v1beta1::Empty()); }

}  // namespace devmgr::plugin
