// SPDX-License-Identifier: Apache-2.0
//
// What records say of themselves, and the names of what is in them.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "state/state.h"

namespace devmgr::state {

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

std::set<std::string> ResourcesByClaims(const PodRecord& pod) {
  std::set<std::string> resources;
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
  return anew;
}

std::string_view DriverPhaseName(DriverPhase phase) {
  switch (phase) {
    case DriverPhase::kPreparing:
      return "Preparing";
    case DriverPhase::kPrepared:
      return "Prepared";
    case DriverPhase::kUnpreparing:
      return "Unpreparing";
  }
  return "";
}

std::string_view BackingName(Backing backing) {
  switch (backing) {
    case Backing::kPlugin:
      return "DevicePlugin";
    case Backing::kClass:
      return "DeviceClass";
  }
  return "";
}

std::string_view PodPhaseName(PodPhase phase) {
  switch (phase) {
    case PodPhase::kWaiting:
      return "Waiting";
    case PodPhase::kPreparing:
      return "Preparing";
    case PodPhase::kReady:
      return "Ready";
    case PodPhase::kRejected:
      return "Rejected";
    case PodPhase::kReleasing:
      return "Releasing";
    case PodPhase::kAllocating:
      return "Allocating";
    case PodPhase::kAdmitted:
      return "Admitted";
  }
  return "";
}

std::string_view DecisionKindName(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kIdentity:
      return "Identity";
    case DecisionKind::kSeen:
      return "Seen";
    case DecisionKind::kReject:
      return "Reject";
    case DecisionKind::kPrepareIntent:
      return "PrepareIntent";
    case DecisionKind::kPrepareResult:
      return "PrepareResult";
    case DecisionKind::kUnprepareIntent:
      return "UnprepareIntent";
    case DecisionKind::kUnprepareResult:
      return "UnprepareResult";
    case DecisionKind::kRelease:
      return "Release";
    case DecisionKind::kRepair:
      return "Repair";
    case DecisionKind::kRecovered:
      return "Recovered";
    case DecisionKind::kReserve:
      return "Reserve";
    case DecisionKind::kAllocated:
      return "Allocated";
    case DecisionKind::kUnreserve:
      return "Unreserve";
    case DecisionKind::kBacking:
      return "Backing";
    case DecisionKind::kDebt:
      return "Debt";
    case DecisionKind::kForgiven:
      return "Forgiven";
    case DecisionKind::kInitEnded:
      return "InitEnded";
    case DecisionKind::kHealth:
      return "Health";
  }
  return "";
}

}  // namespace devmgr::state
