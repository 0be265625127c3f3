// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace devmgr::watcher {

/// The inotify watches that notice every change of what a path leads to: one
/// on each directory in which a component of the path, or of a symbolic link
/// on the way, is looked up, and one on the directory at the end.
///
///   /run/plugins/x, where plugins -> /data/p:  / (run, data)  /run (plugins)
///                                              /data (p)  /data/p (x)
///                                              /data/p/x, the end
///
/// Where a component is missing, the chain stops until it appears.
class PathChain {
 public:
  /// As inotify_add_watch.
  using AddWatch = std::function<int(int, const char*, std::uint32_t)>;

  /// `inotify` is borrowed and must outlive this.
  PathChain(int inotify, std::filesystem::path path, AddWatch add_watch);

  /// Walks the path anew, adds the watches that are missing and drops those
  /// that lead nowhere any more. A component that is missing, or that we may
  /// not look into, is no error.
  ///   ResourceExhausted  the kernel gives us no more watches; what could be
  ///                      watched is
  absl::Status Resolve();

  /// What an event on a watch tells.
  struct Meaning {
    bool path_changed = false;  ///< Resolve again.
    bool in_end = false;        ///< Something in the directory at the end.
  };
  Meaning Interpret(int watch, std::uint32_t mask,
                    const std::string& name) const;

  /// The watch on the directory at the end; -1 while there is none.
  int end() const { return end_; }
  /// Where that directory is, without any symbolic link; with a slash at its
  /// end. Empty while there is none.
  const std::string& end_path() const { return end_path_; }

 private:
  class Walk;
  /// Names that matter in each watched directory, by watch.
  using Names = std::map<int, std::set<std::string>>;

  const int inotify_;
  const std::filesystem::path path_;
  const AddWatch add_watch_;
  Names names_;
  int end_ = -1;
  std::string end_path_;
};

}  // namespace devmgr::watcher
