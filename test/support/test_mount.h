// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace devmgr {

/// A small file system in memory, mounted over a folder until this ends. Where
/// nothing may be mounted, as without root, it is not there: skip the test.
class TestMount {
 public:
  /// `size` as tmpfs has it, such as `64k`.
  TestMount(std::filesystem::path folder, const std::string& size)
      : folder_(std::move(folder)),
        mounted_(::mount("tmpfs", folder_.c_str(), "tmpfs", 0,
                         ("size=" + size).c_str()) == 0) {}
  ~TestMount() { Unmount(); }
  TestMount(const TestMount&) = delete;
  TestMount& operator=(const TestMount&) = delete;

  bool mounted() const { return mounted_; }

  /// Nothing in it can be written from now on, not even by root.
  bool MakeReadOnly() {
    return ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY,
                   nullptr) == 0;
  }
  bool MakeWritable() {
    return ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, nullptr) == 0;
  }

  /// Writes `name` until nothing more fits.
  void Fill(const std::string& name) const {
    std::ofstream file(folder_ / name, std::ios::binary);
    const std::string block(1024, 'x');
    while (file.write(block.data(), 1024) && file.flush()) {
    }
  }

  void Unmount() {
    if (!mounted_) return;
    mounted_ = false;
    ::umount2(folder_.c_str(), MNT_DETACH);
  }

 private:
  const std::filesystem::path folder_;
  bool mounted_;
};

}  // namespace devmgr
