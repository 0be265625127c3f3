// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// devmgr-cri-shim, killed at the end.
class ShimProgram {
 public:
  ShimProgram(std::filesystem::path log, std::vector<std::string> flags);
  ~ShimProgram() { Kill(); }
  /// kill -9, and waits until it is gone.
  void Kill();
  /// SIGTERM; its exit code.
  int Terminate();
  /// False: it has ended.
  bool Signal(int signal) const;
  std::string log() const;
  /// Waits until the log has it.
  bool Logs(std::string_view text) const;

 private:
  const std::filesystem::path log_;
  pid_t pid_ = -1;
};

}  // namespace devmgr
