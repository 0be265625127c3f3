// SPDX-License-Identifier: Apache-2.0
#include "shim/allocation_stamp.h"

#include <fmt/core.h>

#include <cstdint>

namespace devmgr::shim {
namespace {

/// FNV-1a, 64 bits, over texts with their lengths.
class Digest {
 public:
  void Add(std::string_view text) {
    for (std::size_t size = text.size(); size > 0; size >>= 8) Add(size & 0xFF);
    Add(std::uint64_t{0x100});
    for (const char c : text) Add(static_cast<std::uint8_t>(c));
  }
  std::string ToString() const { return fmt::format("{:016x}", state_); }

 private:
  void Add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x100000001B3ULL;
  }
  std::uint64_t state_ = 0xCBF29CE484222325ULL;
};

}  // namespace

std::string AllocationDigest(const ContainerDevices* devices) {
  static const ContainerDevices none;
  if (devices == nullptr) devices = &none;
  Digest digest;
  for (const CdiDevice& device : devices->cdi_devices) digest.Add(device.name);
  for (const auto* values : {&devices->env, &devices->annotations}) {
    digest.Add("values");
    for (const NamedValue& value : *values) {
      digest.Add(value.name);
      digest.Add(value.value);
    }
  }
  digest.Add("mounts");
  for (const DeviceMount& mount : devices->mounts) {
    digest.Add(mount.container_path);
    digest.Add(mount.host_path);
    digest.Add(mount.read_only ? "ro" : "rw");
  }
  digest.Add("devices");
  for (const DeviceNode& node : devices->devices) {
    digest.Add(node.container_path);
    digest.Add(node.host_path);
    digest.Add(node.permissions);
  }
  digest.Add("resources");
  for (const HeldResource& resource : devices->resources) {
    digest.Add(resource.name);
    for (const std::string& id : resource.devices) digest.Add(id);
  }
  return digest.ToString();
}

std::string NamesDigest(const std::vector<std::string>& names) {
  Digest digest;
  for (const std::string& name : names) digest.Add(name);
  return digest.ToString();
}

std::string WriteStamp(const Stamp& stamp) {
  return stamp.client.empty() ? stamp.ledger
                              : stamp.ledger + "." + stamp.client;
}

Stamp ReadStamp(std::string_view text) {
  const std::size_t dot = text.find('.');
  Stamp stamp{std::string(text.substr(0, dot)), ""};
  if (dot != std::string_view::npos) stamp.client = text.substr(dot + 1);
  return stamp;
}

}  // namespace devmgr::shim
