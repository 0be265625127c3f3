// SPDX-License-Identifier: Apache-2.0
#include "bench/child.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/support.h"

namespace devmgr::bench {
namespace {

double Number(const std::filesystem::path& file, const std::string& name) {
  std::ifstream in(file);
  std::string word;
  double value = 0;
  while (in >> word) {
    if (word == name && in >> value) return value;
  }
  Fail(fmt::format("no {} in {}", name, file.string()));
}

}  // namespace

Child::Child(const std::function<void(const std::function<void()>&)>& serve) {
  int ends[2];
  if (pipe(ends) != 0) Fail("no pipe");
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    serve([&] {
      const char ready = 'r';
      if (write(ends[1], &ready, 1) != 1) _exit(1);
    });
    _exit(0);
  }
  close(ends[1]);
  char ready = 0;
  if (read(ends[0], &ready, 1) != 1) Fail("a peer does not start");
  close(ends[0]);
}

Child::~Child() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

double Child::ResidentMiB() const {
  return Number(fmt::format("/proc/{}/status", pid_), "VmRSS:") / 1024;
}

double Child::WakeUps() const {
  double sum = 0;
  for (const auto& task : std::filesystem::directory_iterator(
           fmt::format("/proc/{}/task", pid_))) {
    sum += Number(task.path() / "status", "voluntary_ctxt_switches:");
  }
  return sum;
}

}  // namespace devmgr::bench
