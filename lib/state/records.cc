// SPDX-License-Identifier: Apache-2.0
//
// What records say of themselves, and the names of what is in them.
#include "state/records.h"

#include <devmgr/status_types.h>
#include <devmgr/topology.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/enum_names.h"

namespace devmgr::state {

namespace {

/// Both are null, or their values are equal.
template <typename Value>
bool SameValues(const std::shared_ptr<const Value>& a,
                const std::shared_ptr<const Value>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace

bool operator==(const PodRecord& a, const PodRecord& b) {
  return SameValues(a.answer, b.answer) &&
         SameValues(a.alignment, b.alignment) && a.uid == b.uid &&
         a.name == b.name && a.first_seen_ms == b.first_seen_ms &&
         a.first_seen_seq == b.first_seen_seq && a.phase == b.phase &&
         a.reason == b.reason && a.message == b.message &&
         a.claims == b.claims && a.needs == b.needs && a.holds == b.holds &&
         a.boot_id == b.boot_id && a.eviction == b.eviction &&
         a.imported == b.imported && a.local == b.local;
}

bool IsLive(const PodRecord& pod) {
  return pod.phase == PodPhase::kPreparing || pod.phase == PodPhase::kReady;
}

bool IsEvicting(const PodRecord& pod) {
  return pod.eviction.has_value() && pod.phase != PodPhase::kRejected;
}

bool IsUnpreparing(const ClaimRecord& claim) {
  return std::any_of(claim.drivers.begin(), claim.drivers.end(),
                     [](const auto& driver) {
                       return driver.second.phase == DriverPhase::kUnpreparing;
                     });
}

std::set<DeviceKey> OwnDevices(const ClaimRecord& claim) {
  std::set<DeviceKey> own;
  for (const auto& [driver, record] : claim.drivers) {
    for (const AllocatedDevice& device : record.allocated) {
      if (!device.shared) own.emplace(driver, device.pool, device.device);
    }
    if (!record.allocated.empty()) continue;
    for (const PreparedDevice& device : record.devices) {
      if (device.device.empty()) continue;  // Of an API without such names.
      own.emplace(driver, device.pool, device.device);
    }
  }
  return own;
}

std::vector<OwnedHardware> HardwareOf(const ClaimRecord& claim) {
  std::vector<OwnedHardware> all;
  for (const auto& [driver, record] : claim.drivers) {
    for (const AllocatedDevice& device : record.allocated) {
      if (!device.hardware.empty()) all.push_back({&driver, &device.hardware});
    }
    for (const PreparedDevice& device : record.devices) {
      if (!device.hardware.empty()) all.push_back({&driver, &device.hardware});
    }
  }
  return all;
}

std::vector<OwnedHardware> HardwareOf(const PodRecord& pod) {
  std::vector<OwnedHardware> all;
  for (const DeviceHold& hold : pod.holds) {
    if (!hold.Holds() || hold.hardware.empty()) continue;
    all.push_back({&hold.resource.value, &hold.hardware});
  }
  return all;
}

std::vector<OwnedHardware> HardwareOf(const ForeignHolderRecord& holder) {
  static const std::string kNoOwner;
  if (!holder.Holds() || holder.hardware.empty()) return {};
  return {{&kNoOwner, &holder.hardware}};
}

std::vector<OwnedHardware> HardwareOf(const LocalClaimRecord& claim) {
  std::vector<OwnedHardware> all;
  for (const DeviceHardware& device : claim.hardware) {
    all.push_back({&std::get<0>(device.device), &device.hardware});
  }
  return all;
}

std::vector<device::Reservation> ReservationsOf(const PodRecord& pod) {
  std::vector<device::Reservation> reservations;
  for (const DeviceHold& hold : pod.holds) {
    if (!hold.Holds()) continue;
    device::Reservation& reservation = reservations.emplace_back();
    reservation.pod = pod.uid;
    reservation.container = hold.container;
    reservation.kind = hold.kind;
    reservation.resource = hold.resource;
    reservation.phase = hold.phase;
    reservation.devices = hold.devices;
  }
  return reservations;
}

std::set<ResourceName> ResourcesByClaims(const PodRecord& pod) {
  std::set<ResourceName> resources;
  for (const ContainerNeed& need : pod.needs) {
    for (const Want& want : need.wants) {
      if (want.resource.empty()) continue;
      if (std::find(pod.claims.begin(), pod.claims.end(), want.claim) !=
          pod.claims.end()) {
        resources.insert(want.resource);
      }
    }
  }
  return resources;
}

std::vector<std::string> DriverRecord::LastCdiDeviceIds() const {
  if (devices.empty()) return void_cdi_device_ids;
  std::vector<std::string> ids;
  for (const PreparedDevice& device : devices) {
    ids.insert(ids.end(), device.cdi_device_ids.begin(),
               device.cdi_device_ids.end());
  }
  return ids;
}

DriverRecord DriverRecord::Anew() const {
  DriverRecord anew;
  anew.skipped = skipped;
  anew.handle = handle;
  anew.allocated = allocated;
  anew.void_cdi_device_ids = LastCdiDeviceIds();
  if (phase == DriverPhase::kPreparing) anew.spec_recovery = spec_recovery;
  return anew;
}

ClaimState PublicOf(DriverPhase phase) {
  switch (phase) {
    case DriverPhase::kPreparing:
      return ClaimState::kPreparing;
    case DriverPhase::kPrepared:
      return ClaimState::kPrepared;
    case DriverPhase::kUnpreparing:
      return ClaimState::kUnpreparing;
  }
  return ClaimState::kPreparing;
}

std::string_view DriverPhaseName(DriverPhase phase) {
  return ClaimStateName(PublicOf(phase));
}

ResourceOwner PublicOf(Backing backing) {
  switch (backing) {
    case Backing::kPlugin:
      return ResourceOwner::kDevicePlugin;
    case Backing::kClass:
      return ResourceOwner::kDeviceClass;
  }
  return ResourceOwner::kDevicePlugin;
}

devmgr::Authority PublicOf(Party party) {
  switch (party) {
    case Party::kNode:
      return devmgr::Authority::kNode;
    case Party::kScheduler:
      return devmgr::Authority::kScheduler;
    case Party::kSplit:
      return devmgr::Authority::kSplit;
  }
  return devmgr::Authority::kNode;
}

Party PartyOf(devmgr::Authority authority) {
  switch (authority) {
    case devmgr::Authority::kNode:
      return Party::kNode;
    case devmgr::Authority::kScheduler:
      return Party::kScheduler;
    case devmgr::Authority::kSplit:
      return Party::kSplit;
  }
  return Party::kNode;
}

std::string_view BackingName(Backing backing) {
  return ResourceOwnerName(PublicOf(backing));
}

std::string_view PodPhaseName(PodPhase phase) {
  using enum PodPhase;
  static constexpr auto kNames = EnumTable<PodPhase>({
      {kWaiting, "Waiting"},
      {kPreparing, "Preparing"},
      {kReady, "Ready"},
      {kRejected, "Rejected"},
      {kReleasing, "Releasing"},
      {kAllocating, "Allocating"},
      {kAdmitted, "Admitted"},
  });
  return kNames.Of(phase);
}

std::string_view ClaimOriginName(ClaimOrigin origin) {
  static constexpr auto kNames = EnumTable<ClaimOrigin>({
      {ClaimOrigin::kSource, "Source"},
      {ClaimOrigin::kTemplate, "Template"},
      {ClaimOrigin::kExtendedResources, "ExtendedResources"},
  });
  return kNames.Of(origin, "Unknown");
}

bool operator==(const LocalClaimRecord& a, const LocalClaimRecord& b) {
  const bool same_object =
      a.object == b.object ||
      (a.object != nullptr && b.object != nullptr && *a.object == *b.object);
  return same_object && a.uid == b.uid && a.origin == b.origin &&
         a.counters == b.counters && a.pod == b.pod &&
         a.pod_claim == b.pod_claim && a.mappings == b.mappings &&
         a.hardware == b.hardware;
}

std::string HolderText(const ForeignHolderRecord& holder) {
  constexpr std::size_t kShown = 13;
  std::string text = "foreign container " + holder.id.value.substr(0, kShown);
  if (!holder.pod.name.empty()) text += " (pod " + holder.pod.ToString() + ")";
  return text;
}

}  // namespace devmgr::state
