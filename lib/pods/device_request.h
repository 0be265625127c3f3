// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "claim/device_booking.h"
#include "device/pod_needs.h"

namespace devmgr::pods {

struct ClaimsBeside;

/// What a pod wants of device plugins.
struct DeviceRequest {
  claim::PodIdentity pod;
  std::int32_t priority = 0;
  std::vector<device::DeviceNeed> needs;
  /// What it holds is believed while no plugin has listed its devices; false
  /// when its containers are gone and have to start again.
  bool trust_held = true;
  /// What it holds has to work; false when it runs on it anyway.
  bool judge_held = true;
  /// Of a pod that has no claims: it is Ready with the plugins' answers.
  std::optional<claim::WithoutClaims> without_claims = std::nullopt;
  /// For hints of its claims and of providers; null: the ledger settles it.
  std::shared_ptr<const Pod> object = nullptr;
  /// With the claims that hints are of; null: as they are now.
  std::shared_ptr<const ObjectSnapshot> objects = nullptr;
  /// To what the pod is aligned that has been admitted: what it gets besides
  /// follows that. Null: it may be anywhere.
  std::shared_ptr<const PodAlignmentInfo> aligned_to = nullptr;
  /// The claims that this node allocates to the pod with its devices; null: it
  /// has what claims it is to have.
  std::shared_ptr<const ClaimsBeside> claims = nullptr;
};

}  // namespace devmgr::pods
