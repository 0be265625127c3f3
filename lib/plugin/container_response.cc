// SPDX-License-Identifier: Apache-2.0
#include "plugin/container_response.h"

#include <algorithm>
#include <vector>

#include "devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h"
#include "rpc/message.h"
#include "rpc/ordered_message.h"

namespace devmgr::plugin {
namespace {

namespace v1beta1 = wire::deviceplugin::v1beta1;

template <typename Map>
std::vector<NamedValue> NamedValuesOf(const Map& map) {
  std::vector<NamedValue> values;
  for (const auto& [name, value] : map) values.push_back({name, value});
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return values;
}

}  // namespace

absl::StatusOr<device::ContainerEdits> DecodeContainerResponse(
    std::string_view bytes) {
  device::ContainerEdits edits;
  edits.response = std::string(bytes);
  DEVMGR_ASSIGN_OR_RETURN(
      const auto wire,
      rpc::Decode<v1beta1::ContainerAllocateResponse>(*edits.response));
  edits.env = NamedValuesOf(wire.envs());
  for (const auto& mount : wire.mounts()) {
    edits.mounts.push_back(
        {mount.container_path(), mount.host_path(), mount.read_only()});
  }
  for (const auto& node : wire.devices()) {
    edits.devices.push_back(
        {node.container_path(), node.host_path(), node.permissions()});
  }
  edits.annotations = NamedValuesOf(wire.annotations());
  for (const auto& cdi : wire.cdi_devices()) {
    edits.cdi_devices.push_back(cdi.name());
  }
  return edits;
}

std::string EncodeContainerResponse(const device::ContainerEdits& edits) {
  if (edits.response.has_value()) return *edits.response;
  v1beta1::ContainerAllocateResponse wire;
  for (const NamedValue& env : edits.env) {
    (*wire.mutable_envs())[env.name] = env.value;
  }
  for (const DeviceMount& mount : edits.mounts) {
    v1beta1::Mount* out = wire.add_mounts();
    out->set_container_path(mount.container_path);
    out->set_host_path(mount.host_path);
    out->set_read_only(mount.read_only);
  }
  for (const DeviceNode& node : edits.devices) {
    v1beta1::DeviceSpec* out = wire.add_devices();
    out->set_container_path(node.container_path);
    out->set_host_path(node.host_path);
    out->set_permissions(node.permissions);
  }
  for (const NamedValue& annotation : edits.annotations) {
    (*wire.mutable_annotations())[annotation.name] = annotation.value;
  }
  for (const std::string& name : edits.cdi_devices) {
    wire.add_cdi_devices()->set_name(name);
  }
  return rpc::EncodeInOrder(wire);
}

}  // namespace devmgr::plugin
