// SPDX-License-Identifier: Apache-2.0
//
// Checking what is remembered against what is there, and mending it.
#pragma once

#include <devmgr/export.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace devmgr {

/// Something that is not as it should be.
struct FsckFinding {
  std::string check;    ///< Which check found it, such as `missing-spec`.
  bool error = true;    ///< False: a warning; nothing is wrong yet.
  std::string object;   ///< `claim/default/gpu`, `driver/gpu.example.com`, ...
  std::string message;  ///< What is wrong.
  std::string repair;   ///< What a repair does about it; empty: nothing.
  std::string hint;     ///< What a person can do; may be empty.
  friend bool operator==(const FsckFinding&, const FsckFinding&) = default;
};

/// A repair that was tried.
struct FsckRepair {
  std::string object;
  std::string action;
  std::string error;  ///< Empty: done, or begun where a driver has to answer.
};

struct FsckReport {
  std::uint64_t ledger_sequence = 0;
  /// Errors first. After a repair: what remains.
  std::vector<FsckFinding> findings;
  std::vector<FsckRepair> repairs;
};

enum class FsckMode {
  kCheck,   ///< Changes nothing.
  kRepair,  ///< Carries out all repairs, each one a decision of the ledger,
            ///< then checks again.
};

/// How an Inspector is to check.
struct FsckRequest {
  FsckMode mode = FsckMode::kCheck;

  // For a state directory only; a running manager knows these.
  /// Directories of CDI specs. Empty: the ledger alone is checked.
  std::vector<std::filesystem::path> cdi_spec_dirs;
  /// Empty: the kernel's.
  std::string boot_id;
};

}  // namespace devmgr
