// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// What can be read below /sys. Paths are relative to it, without a leading
/// slash: `devices/system/node/online`. Thread-safe.
class SysfsFiles {
 public:
  virtual ~SysfsFiles() = default;

  /// The text of a file, as it is.
  ///   NotFound       there is no such file
  ///   DataLoss       it is longer than kMaxSysfsFile
  ///   any other      the system call failed; the message has the path
  virtual absl::StatusOr<std::string> Read(std::string_view path) const = 0;

  /// The names in a directory, in no particular order.
  ///   NotFound       there is no such directory
  virtual absl::StatusOr<std::vector<std::string>> List(
      std::string_view path) const = 0;
};

/// Bytes. The kernel's own files are far below it.
inline constexpr std::size_t kMaxSysfsFile = 1 << 20;

/// Reads the files below `root` at each call; blocks for the disk only.
std::unique_ptr<SysfsFiles> HostSysfs(std::string root = "/sys");

}  // namespace devmgr
