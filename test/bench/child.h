// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>

namespace devmgr::bench {

/// A process of its own that serves until this one ends. To be made before
/// gRPC is up here, which does not live through a fork.
class Child {
 public:
  /// `serve` calls its argument when it is ready and then waits.
  explicit Child(
      const std::function<void(const std::function<void()>&)>& serve);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  double ResidentMiB() const;
  /// How often any of its threads has woken up.
  double WakeUps() const;

 private:
  pid_t pid_ = 0;
};

}  // namespace devmgr::bench
