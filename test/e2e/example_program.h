// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr {

/// A program of the examples, killed at the end.
class ExampleProgram {
 public:
  /// `program` is its path below the examples of the build.
  ExampleProgram(const std::string& program, std::filesystem::path log,
                 std::vector<std::string> flags);
  ExampleProgram(const ExampleProgram&) = delete;
  ExampleProgram& operator=(const ExampleProgram&) = delete;
  ~ExampleProgram() { Kill(); }
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

class ShimProgram : public ExampleProgram {
 public:
  ShimProgram(std::filesystem::path log, std::vector<std::string> flags)
      : ExampleProgram("cri-shim/devmgr-cri-shim", std::move(log),
                       std::move(flags)) {}
};

}  // namespace devmgr
