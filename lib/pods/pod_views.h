// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <string>

#include "pods/pod_lifecycle.h"
#include "resources/device_book.h"
#include "state/state.h"
#include "upkeep/dra_health.h"

namespace devmgr::pods {

/// Pods and claims as people see them: what the ledger holds of them, and on
/// top what only a running manager knows. Lives on the manager's thread.
class PodViews {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    const state::State& state;
    const PodLifecycle& lifecycle;
    const resources::DeviceBook& devices;
    const upkeep::DraHealth& dra_health;
    std::string boot_id;
    bool health = true;  ///< PodInfo::allocated_resources is filled in,
    bool health_messages = true;  ///< with texts.
  };
  explicit PodViews(Parts parts) : parts_(std::move(parts)) {}

  PodInfo InfoOf(const state::PodRecord& pod) const;
  ClaimInfo InfoOf(const state::ClaimRecord& claim) const;

 private:
  /// Adds which drivers the pod waits for while they are being asked.
  void AddCalls(const state::PodRecord& pod, PodInfo* info) const;

  const Parts parts_;
};

}  // namespace devmgr::pods
