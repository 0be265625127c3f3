// SPDX-License-Identifier: Apache-2.0
//
// The source behind WatchManifests, with its limits in reach of tests.
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "watcher/directory_watcher.h"

namespace devmgr::source {

struct FileSourceOptions {
  std::filesystem::path directory;
  std::string node_name;

  std::size_t max_files = 10'000;
  std::size_t max_file_bytes = 8 << 20;
  std::size_t max_total_bytes = 256 << 20;
  /// Directories outside that links lead to, and that are watched as well.
  std::size_t max_link_directories = 16;
  /// Scans that are thrown away because the directory changed meanwhile.
  int max_restless_scans = 8;
  /// How soon to look again at what no event will tell about, such as a file
  /// that we may not read. Doubles up to `max_retry`.
  std::chrono::milliseconds first_retry{1'000};
  std::chrono::milliseconds max_retry{30'000};
  watcher::WatchOptions watch;  ///< How all directories are watched.
};

/// Never fails: what cannot be set up is a problem in the snapshot.
std::unique_ptr<ObjectSource> WatchFiles(FileSourceOptions options);

}  // namespace devmgr::source
