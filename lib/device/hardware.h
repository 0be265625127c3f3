// SPDX-License-Identifier: Apache-2.0
//
// Which piece of hardware a device is: what drivers and device plugins call by
// names of their own may be one and the same card. Pure: what the host says of
// device nodes is given in.
#pragma once

#include <devmgr/device_objects.h>
#include <devmgr/options.h>
#include <devmgr/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::device {

/// One thing by which hardware is known. Two spellings of one thing are equal:
/// `3b:00.0` and `0000:3B:00.0`, a UUID in capitals and in small letters.
struct PhysicalIdentity {
  /// `pci:0000:3b:00.0`, `uuid:` and 36 characters, `node:c195:0`,
  /// `sysfs:/devices/...`. Stored.
  std::string text;
  friend auto operator<=>(const PhysicalIdentity&,
                          const PhysicalIdentity&) = default;
};

/// For people: `PCI address 0000:3b:00.0`.
std::string IdentityText(const PhysicalIdentity& identity);

/// `[domain:]bus:device.function`, in hexadecimal digits; without a domain it
/// is 0. Nothing for any other text.
std::optional<PhysicalIdentity> PciIdentity(std::string_view address);

/// The UUID at the end of `text`, which may have a prefix such as `GPU-`.
/// Nothing where there is none, or where all its digits are 0.
std::optional<PhysicalIdentity> UuidIdentity(std::string_view text);

/// The hardware of a device, as far as it is known.
struct Hardware {
  std::vector<PhysicalIdentity> identities;  ///< Ascending, once each.
  /// The device is a part of it: others may have other parts, and nothing may
  /// have all of it.
  bool part = false;

  bool empty() const { return identities.empty(); }
  void Add(std::optional<PhysicalIdentity> identity);
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

/// The identity for which not both may be in use; null when there is none.
/// Valid as long as `a`.
const PhysicalIdentity* FindClash(const Hardware& a, const Hardware& b);

/// By the attributes that `options` names: PCI addresses and UUIDs. A device
/// that consumes counters, or names a parent, is a part.
Hardware HardwareOf(const SliceDevice& device, const HardwareOptions& options);

/// A plugin offers one device several times: `<id>::<number>`. Such devices
/// are no hardware of their own.
bool IsReplica(const DeviceId& id);

/// By an ID that is a PCI address with its domain, or ends in a UUID. `MIG-`
/// and a UUID is a part; a replica has none.
Hardware HardwareOf(const DeviceId& id);

/// By what others who speak of a device know it: its UUID as it is spelled, and
/// its PCI address with the domain. Empty where it is not known.
struct HardwareNames {
  std::string uuid;
  std::string pci_address;
  friend bool operator==(const HardwareNames&, const HardwareNames&) = default;
};

/// By the attributes that `options` names; of several the first.
HardwareNames NamesOf(const SliceDevice& device,
                      const HardwareOptions& options);
/// By the ID, as HardwareOf has it; a replica has the names of its device.
HardwareNames NamesOf(const DeviceId& id);
/// Of identities; a UUID is in small letters and without a prefix there.
HardwareNames NamesOf(const Hardware& hardware);

/// A device node of the host, and what sysfs says of it.
struct NodeFacts {
  std::string path;  ///< On the host.
  std::string type;  ///< `c` or `b`.
  std::int64_t major = 0;
  std::int64_t minor = 0;
  /// Directory of the node's device, below /sys: `/devices/...`. Empty: none.
  std::string sysfs_device = {};
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// Many containers have this node, whatever devices they have.
bool IsControlNode(std::string_view path, const HardwareOptions& options);

/// By the nodes that a container gets, without control nodes: their numbers,
/// the PCI address of a character device that is itself a PCI function, and
/// for the nodes of a graphics card or accelerator (of which there are several)
/// the device in sysfs that they have in common.
Hardware HardwareOf(const std::vector<NodeFacts>& nodes,
                    const HardwareOptions& options);

/// What a container holds of a plugin's resource: by the IDs of the devices,
/// and by the nodes of the plugin's answer. Nothing when one is a replica; a
/// part when one is.
Hardware HardwareOf(const std::vector<DeviceId>& ids,
                    const std::vector<NodeFacts>& nodes,
                    const HardwareOptions& options);

/// The devices of this resource or driver are given to several holders by
/// intent, so that none of them counts.
bool IsSharedByIntent(std::string_view owner, const HardwareOptions& options);

}  // namespace devmgr::device
