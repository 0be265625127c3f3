// SPDX-License-Identifier: Apache-2.0
//
// Entries of the indexes of a state. They point into records which that state
// holds, so that an index copies nothing, and a copy of a state may copy them.
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "state/records.h"

namespace devmgr::state {

/// A record by its name, then by its UID. A set of these is searched by name.
template <typename Record>
struct ByName {
  const Record* record;

  friend bool operator<(const ByName& a, const ByName& b) {
    return std::tie(a.record->name, a.record->uid) <
           std::tie(b.record->name, b.record->uid);
  }
  friend bool operator<(const ByName& a, const ObjectName& b) {
    return a.record->name < b;
  }
  friend bool operator<(const ObjectName& a, const ByName& b) {
    return a < b.record->name;
  }
  friend bool operator==(const ByName& a, const ByName& b) {
    return a.record->name == b.record->name && a.record->uid == b.record->uid;
  }
};

/// A device that a driver has prepared, by its key, then by the UID of the
/// claim that has it. A set of these is searched by key.
struct ByDevice {
  const std::string* driver;
  const PreparedDevice* device;
  const ClaimRecord* claim;

  DeviceKey Key() const { return {*driver, device->pool, device->device}; }

  friend bool operator<(const ByDevice& a, const ByDevice& b) {
    return std::tie(*a.driver, a.device->pool, a.device->device, a.claim->uid) <
           std::tie(*b.driver, b.device->pool, b.device->device, b.claim->uid);
  }
  friend bool operator<(const ByDevice& a, const DeviceKey& b) {
    return std::tie(*a.driver, a.device->pool, a.device->device) < b;
  }
  friend bool operator<(const DeviceKey& a, const ByDevice& b) {
    return a < std::tie(*b.driver, b.device->pool, b.device->device);
  }
  friend bool operator==(const ByDevice& a, const ByDevice& b) {
    return a.claim->uid == b.claim->uid && a.Key() == b.Key();
  }
};

/// An identity of hardware, and a record that keeps it from others.
struct HardwareHolding {
  enum class Kind : std::uint8_t { kPod, kClaim, kLocalClaim, kContainer };
  const device::PhysicalIdentity* identity;
  Kind kind;
  const std::string* uid;    ///< Of the pod or claim; ID of a container.
  const std::string* owner;  ///< Resource or driver; empty of a container.
  bool part;                 ///< As in device::Hardware.

  friend bool operator<(const HardwareHolding& a, const HardwareHolding& b) {
    return std::tie(*a.identity, a.kind, *a.uid, *a.owner, a.part) <
           std::tie(*b.identity, b.kind, *b.uid, *b.owner, b.part);
  }
  friend bool operator<(const HardwareHolding& a,
                        const device::PhysicalIdentity& b) {
    return *a.identity < b;
  }
  friend bool operator<(const device::PhysicalIdentity& a,
                        const HardwareHolding& b) {
    return a < *b.identity;
  }
  friend bool operator==(const HardwareHolding& a, const HardwareHolding& b) {
    return std::tie(*a.identity, a.kind, *a.uid, *a.owner, a.part) ==
           std::tie(*b.identity, b.kind, *b.uid, *b.owner, b.part);
  }
};

}  // namespace devmgr::state
