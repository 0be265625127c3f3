// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_folder.h"

namespace devmgr {

/// A containerd of its own: root, state and socket in a folder, images made
/// from busybox. Kills all it started, and unmounts, at the end.
class Containerd {
 public:
  /// Why containers cannot run here; empty: they can. Tried once for all.
  static const std::string& WhyNot();

  Containerd();
  ~Containerd();

  /// Starts it; a process that runs is killed before. Containers go on.
  void Restart();
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path socket() const { return folder() / "c.sock"; }
  /// Waits until it answers, and imports the image. What went wrong, or
  /// nothing.
  std::string MakeReady();
  std::string log() const;

  /// What containers are made of: a shell and some commands.
  static constexpr char kImage[] = "devmgr.test/busybox:1";

 private:
  friend struct ContainerdTrial;
  /// Words of `ctr`, to their end.
  int Ctl(std::vector<std::string> words, std::string* output) const;
  /// What went wrong, or nothing.
  std::string TryToRun();
  void Kill();

  const TempFolder folder_;
  pid_t pid_ = -1;
};

}  // namespace devmgr
