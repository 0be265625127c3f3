// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace devmgr {

inline constexpr uid_t kNobody = 65'534;

/// Runs `act` in a child process that may do no more than anybody else:
/// permissions count there, also when root runs the test, and the threads of
/// this process keep their rights. True when `act` returned true. `act` must
/// not use threads that were there before.
inline bool AsNobody(const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_root = ::geteuid() == 0;
    const bool became =
        !is_root || (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
    ::_exit(became && act() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace devmgr
