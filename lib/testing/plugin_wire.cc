// SPDX-License-Identifier: Apache-2.0
#include "testing/plugin_wire.h"

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {

namespace deviceplugin = wire::deviceplugin::v1beta1;

namespace {

void SetOptions(const PluginCapabilities& capabilities,
                deviceplugin::DevicePluginOptions* options) {
  options->set_pre_start_required(capabilities.pre_start);
  options->set_get_preferred_allocation_available(capabilities.preferred);
}

}  // namespace

std::string EncodeOptions(const PluginCapabilities& capabilities) {
  deviceplugin::DevicePluginOptions message;
  SetOptions(capabilities, &message);
  return rpc::Encode(message);
}

std::string EncodeRegister(const RegisterRequest& request) {
  deviceplugin::RegisterRequest message;
  message.set_version(request.version);
  message.set_endpoint(request.endpoint);
  message.set_resource_name(request.resource);
  SetOptions(request.capabilities, message.mutable_options());
  return rpc::Encode(message);
}

std::string EncodeList(const std::vector<FakeDevicePlugin::Device>& devices) {
  deviceplugin::ListAndWatchResponse message;
  for (const FakeDevicePlugin::Device& device : devices) {
    auto* entry = message.add_devices();
    entry->set_id(device.id);
    entry->set_health(device.health);
    for (const std::int64_t node : device.numa) {
      entry->mutable_topology()->add_nodes()->set_id(node);
    }
  }
  return rpc::Encode(message);
}

absl::StatusOr<std::vector<PreferenceRequest>> DecodePreferred(
    const std::string& request) {
  DEVMGR_ASSIGN_OR_RETURN(
      const deviceplugin::PreferredAllocationRequest message,
      rpc::Decode<deviceplugin::PreferredAllocationRequest>(request));
  std::vector<PreferenceRequest> requests;
  for (const auto& container : message.container_requests()) {
    const auto& available = container.available_device_ids();
    const auto& must_include = container.must_include_device_ids();
    requests.push_back({{available.begin(), available.end()},
                        {must_include.begin(), must_include.end()},
                        container.allocation_size()});
  }
  return requests;
}

std::string EncodePreferred(const std::vector<DeviceIds>& answers) {
  deviceplugin::PreferredAllocationResponse message;
  for (const DeviceIds& ids : answers) {
    auto* container = message.add_container_responses();
    for (const std::string& id : ids) container->add_device_ids(id);
  }
  return rpc::Encode(message);
}

absl::StatusOr<std::vector<DeviceIds>> DecodeAllocate(
    const std::string& request) {
  DEVMGR_ASSIGN_OR_RETURN(const deviceplugin::AllocateRequest message,
                          rpc::Decode<deviceplugin::AllocateRequest>(request));
  std::vector<DeviceIds> requests;
  for (const auto& container : message.container_requests()) {
    const auto& ids = container.devices_ids();
    requests.emplace_back(ids.begin(), ids.end());
  }
  return requests;
}

std::string EncodeAllocate(const std::vector<Edits>& answers) {
  deviceplugin::AllocateResponse message;
  for (const Edits& edits : answers) {
    auto* container = message.add_container_responses();
    for (const NamedValue& variable : edits.env) {
      (*container->mutable_envs())[variable.name] = variable.value;
    }
    for (const DeviceMount& each : edits.mounts) {
      auto* mount = container->add_mounts();
      mount->set_container_path(each.container_path);
      mount->set_host_path(each.host_path);
      mount->set_read_only(each.read_only);
    }
    for (const DeviceNode& each : edits.devices) {
      auto* device = container->add_devices();
      device->set_container_path(each.container_path);
      device->set_host_path(each.host_path);
      device->set_permissions(each.permissions);
    }
    for (const std::string& name : edits.cdi_devices) {
      container->add_cdi_devices()->set_name(name);
    }
  }
  return rpc::Encode(message);
}

absl::StatusOr<DeviceIds> DecodePreStart(const std::string& request) {
  DEVMGR_ASSIGN_OR_RETURN(
      const deviceplugin::PreStartContainerRequest message,
      rpc::Decode<deviceplugin::PreStartContainerRequest>(request));
  return DeviceIds(message.devices_ids().begin(), message.devices_ids().end());
}

std::string EncodePreStart() {
  return rpc::Encode(deviceplugin::PreStartContainerResponse());
}

}  // namespace devmgr::testing
