// SPDX-License-Identifier: Apache-2.0
#include "server/pod_lookup.h"

#include <algorithm>
#include <string>

#include "common/status.h"

namespace devmgr::server {
namespace {

/// A pod that the ledger does not know; the source may.
absl::Status WhyUnknown(const ObjectSnapshot& objects, const PodUid& uid,
                        const ObjectName& name) {
  if (const auto pod = objects.pods.find(name);
      pod != objects.pods.end() && pod->second->metadata.uid == uid.value) {
    return UnavailableError("pod '{}' is not admitted yet", name.ToString());
  }
  if (const auto malformed = objects.malformed_pods.find(name);
      malformed != objects.malformed_pods.end() &&
      malformed->second->pod.metadata.uid == uid.value) {
    return FailedPreconditionError("pod '{}' is malformed: {}", name.ToString(),
                                   malformed->second->problem.ToString());
  }
  return NotFoundError("pod '{}' with UID '{}' is not known", name.ToString(),
                       uid.value);
}

/// Which claims of a pod which drivers have not prepared yet; empty: none.
std::string AwaitedDrivers(const NodeView& view, const ObjectName& pod) {
  std::string all;
  for (const ClaimInfo& claim : view.Claims()) {
    const auto& pods = claim.pods;
    if (std::find(pods.begin(), pods.end(), pod.ToString()) == pods.end()) {
      continue;
    }
    for (const ClaimDriverInfo& driver : claim.drivers) {
      if (driver.state == ClaimState::kPrepared) continue;
      all += fmt::format("; claim '{}' waits for driver '{}'",
                         claim.name.ToString(), driver.driver);
      if (!driver.last_error.empty()) all += ": " + driver.last_error;
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PodDevices>> LookUpPod(
    const DeviceManager& manager, const PodUid& uid, const ObjectName& name) {
  auto devices = manager.PodDevicesOf(uid);
  if (devices.ok()) return devices;
  const std::shared_ptr<const NodeView> view = manager.View();
  const auto pod = view->PodInfoOf(uid);
  if (!pod.ok()) return WhyUnknown(*manager.Objects(), uid, name);
  if (pod->state == PodState::kRejected) {
    return FailedPreconditionError("pod '{}' is rejected: {}: {}",
                                   pod->name.ToString(), pod->reason,
                                   pod->message);
  }
  if (devices.status().code() == absl::StatusCode::kFailedPrecondition) {
    return devices.status();
  }
  std::string why = MessageOf(devices.status());
  if (!pod->message.empty() && why.find(pod->message) == std::string::npos) {
    why += ": " + pod->message;
  }
  return UnavailableError("{}{}", why, AwaitedDrivers(*view, pod->name));
}

}  // namespace devmgr::server
