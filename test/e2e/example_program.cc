// SPDX-License-Identifier: Apache-2.0
#include "e2e/example_program.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "e2e/build_dirs.h"
#include "e2e/real_runtime.h"
#include "support/mailbox.h"
#include "support/read_all.h"

namespace fs = std::filesystem;

namespace devmgr {

ExampleProgram::ExampleProgram(const std::string& program, fs::path log,
                               std::vector<std::string> flags)
    : log_(std::move(log)) {
  flags.insert(flags.begin(), std::string(DEVMGR_EXAMPLES_DIR) + "/" + program);
  pid_ = SpawnProgram(flags, log_);
}

void ExampleProgram::Kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int ExampleProgram::Terminate() {
  if (!Signal(SIGTERM)) return -1;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool ExampleProgram::Signal(int signal) const {
  return pid_ > 0 && ::kill(pid_, signal) == 0;
}

std::string ExampleProgram::log() const { return ReadAll(log_); }

bool ExampleProgram::Logs(std::string_view text) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (log().find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace devmgr
