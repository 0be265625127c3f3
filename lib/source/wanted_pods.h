// SPDX-License-Identifier: Apache-2.0
//
// What is behind WantedPods, with its limits in reach of tests.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/control.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace devmgr::source {

struct WantedOptions {
  std::filesystem::path directory;
  std::string node_name;
  const ObjectSource* others = nullptr;

  std::size_t max_bytes = WantedPods::kMaxBytes;
  std::size_t max_pods = WantedPods::kMaxPods;
  std::size_t max_total_bytes = WantedPods::kMaxTotalBytes;
};

/// As WantedPods::Open.
absl::StatusOr<std::unique_ptr<WantedPods>> OpenWanted(WantedOptions options);

}  // namespace devmgr::source
