// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace devmgr {

/// While it lives, a test that root runs is a user who owns `folder` with all
/// there is in it, and may do no more than others: permissions count. For whom
/// is not root it does nothing. Concerns all threads.
class Unprivileged {
 public:
  explicit Unprivileged(const std::filesystem::path& folder) {
    if (::geteuid() != 0) return;
    GiveAway(folder);
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder)) {
      GiveAway(entry.path());
    }
    was_root_ = true;
    Become(kNobody);
  }
  ~Unprivileged() {
    if (was_root_) Become(0);
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65'534;

  static void GiveAway(const std::filesystem::path& path) {
    if (::lchown(path.c_str(), kNobody, kNobody) != 0) std::abort();
  }
  static void Become(uid_t user) {
    // Root first, who may change the group.
    if (::seteuid(0) != 0 || ::setegid(user) != 0 || ::seteuid(user) != 0) {
      std::abort();
    }
    // Else the kernel closes our own /proc/self to us.
    if (::prctl(PR_SET_DUMPABLE, 1) != 0) std::abort();
  }

  bool was_root_ = false;
};

}  // namespace devmgr
