// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/fsck.h>

#include <filesystem>
#include <string>
#include <vector>

#include "claim/published_hardware.h"
#include "common/executor.h"
#include "dra/drivers.h"
#include "fsck/fsck.h"
#include "ledger/container_use.h"
#include "ledger/ledger.h"
#include "pods/object_book.h"
#include "pods/pod_lifecycle.h"
#include "resources/device_book.h"
#include "state/state.h"
#include "upkeep/spec_keeper.h"

namespace devmgr::pods {

/// Checks and mends the ledger while everything goes on.
class LedgerCheck {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;  ///< The manager's.
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on its thread.
    const ledger::ContainerUse& use;
    const dra::Drivers& drivers;
    const PodLifecycle& lifecycle;
    const resources::DeviceBook& devices;
    const ObjectBook& objects;
    upkeep::SpecKeeper& specs;
    std::string boot_id;
    std::vector<std::filesystem::path> cdi_spec_dirs;
    claim::PublishedHardware& hardware;
  };
  explicit LedgerCheck(Parts parts) : parts_(std::move(parts)) {}

  /// As Maintenance::Fsck; thread-safe.
  absl::StatusOr<FsckReport> Run(FsckMode mode);

 private:
  /// What only the running peers and the source can say.
  fsck::RunningView WhatRuns() const;
  /// Hardware with several names.
  std::vector<fsck::Overlap> OverlapsNow() const;
  absl::StatusOr<std::vector<fsck::Finding>> CheckNow() const;
  absl::Status Repair(fsck::Finding finding);

  const Parts parts_;
};

}  // namespace devmgr::pods
