// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace devmgr::checkpoint {

/// What became of a ledger that was converted.
struct Conversion {
  std::uint64_t batches = 0;      ///< Of the history that are left.
  std::vector<std::string> lost;  ///< One sentence for each loss.
};

/// Converts the ledger of a stopped store to the older format `to`, so that an
/// older version can open it; without `apply` nothing is changed. What that
/// format does not have is removed; pods, claims and who holds which device
/// stay. A crash in between leaves a ledger of our format; then it is begun
/// again.
///   InvalidArgument     nothing can be converted to that format
///   NotFound            there is no ledger
///   FailedPrecondition  it has that format or an older one already; or
///                       somebody holds it, whom the message names
///   DataLoss            it is damaged; nothing was changed
absl::StatusOr<Conversion> ConvertStoppedStore(
    const std::filesystem::path& directory, std::uint64_t to, bool apply);

}  // namespace devmgr::checkpoint
