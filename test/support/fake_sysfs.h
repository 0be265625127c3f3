// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/sysfs.h"

namespace devmgr {

/// Files in memory, by their paths below /sys. A folder is there when something
/// is in it.
class FakeSysfs : public SysfsFiles {
 public:
  std::string& operator[](const std::string& path) { return files_[path]; }
  void Remove(const std::string& path) { files_.erase(path); }
  /// Reading `path` fails with `status` from now on.
  void Fail(const std::string& path, absl::Status status) {
    failures_[path] = std::move(status);
  }

  absl::StatusOr<std::string> Read(std::string_view path) const override {
    const std::string name(path);
    if (const auto failure = failures_.find(name); failure != failures_.end()) {
      return failure->second;
    }
    const auto file = files_.find(name);
    if (file == files_.end()) return NotFoundError("{}: no such file", name);
    return file->second;
  }

  absl::StatusOr<std::vector<std::string>> List(
      std::string_view path) const override {
    const std::string folder = std::string(path) + "/";
    std::set<std::string> names;
    for (auto file = files_.lower_bound(folder); file != files_.end(); ++file) {
      if (!file->first.starts_with(folder)) break;
      const std::string rest = file->first.substr(folder.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
    if (names.empty()) return NotFoundError("{}: no such folder", path);
    // By name, as the kernel does not: node10 comes before node2.
    return std::vector<std::string>(names.begin(), names.end());
  }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, absl::Status> failures_;
};

}  // namespace devmgr
