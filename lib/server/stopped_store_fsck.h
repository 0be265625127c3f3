// SPDX-License-Identifier: Apache-2.0
//
// Checking and mending a ledger whose daemon is stopped.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/fsck.h>

#include <filesystem>

#include "checkpoint/ledger_store.h"

namespace devmgr::server {

/// Checks what was read; reads the CDI directories.
absl::StatusOr<FsckReport> CheckContents(
    const checkpoint::StoreContents& contents, const FsckRequest& request);

/// Opens the store for itself alone, mends and checks again. What is to be
/// prepared again is when the daemon is back. Errors as OpenRocksDbStore.
absl::StatusOr<FsckReport> RepairStoppedStore(
    const std::filesystem::path& state_dir, const FsckRequest& request);

}  // namespace devmgr::server
