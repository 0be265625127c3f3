// SPDX-License-Identifier: Apache-2.0
//
// A host and CDI directories in memory.
#pragma once

#include <devmgr/cdi.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"

namespace devmgr {

/// A host whose paths the test sets. Directories are those set as such; what
/// they hold is what is set below them.
class FakeCdiHost {
 public:
  void AddChar(const std::string& path, std::int64_t major, std::int64_t minor,
               std::uint32_t mode = 0666) {
    paths_[path] = {HostPath::Type::kCharNode, major, minor, mode, 0, 0};
  }
  void Add(const std::string& path, HostPath host) { paths_[path] = host; }
  void AddDirectory(const std::string& path) {
    paths_[path].type = HostPath::Type::kDirectory;
  }
  void AddLink(const std::string& path, const std::string& target) {
    paths_[path].type = HostPath::Type::kSymlink;
    links_[path] = target;
  }

  /// Borrows this.
  CdiHost Host() const {
    return {[this](const std::string& path, bool follow) {
              return LookAt(path, follow);
            },
            [this](const std::string& directory) { return List(directory); }};
  }

 private:
  absl::StatusOr<HostPath> LookAt(const std::string& path, bool follow) const {
    const auto link = links_.find(path);
    if (follow && link != links_.end()) return LookAt(link->second, true);
    const auto found = paths_.find(path);
    if (found == paths_.end()) {
      return NotFoundError("cannot look at '{}': No such file", path);
    }
    return found->second;
  }

  absl::StatusOr<std::vector<std::string>> List(
      const std::string& directory) const {
    std::vector<std::string> names;
    for (const auto& [path, host] : paths_) {
      const std::size_t slash = path.rfind('/');
      if (path.substr(0, slash) == directory) {
        names.push_back(path.substr(slash + 1));
      }
    }
    return names;
  }

  std::map<std::string, HostPath> paths_;
  std::map<std::string, std::string> links_;
};

/// A valid spec of kind `v.com/c` as YAML: each pair is a device's name and its
/// edits in flow style; `more` follows.
inline std::string SpecText(
    const std::vector<std::pair<std::string, std::string>>& devices,
    const std::string& more = "") {
  std::string text = "cdiVersion: 1.1.0\nkind: v.com/c\ndevices:\n";
  for (const auto& [name, edits] : devices) {
    text += "- name: " + name + "\n  containerEdits: {" + edits + "}\n";
  }
  return text + more;
}

/// The files of `/etc/cdi` have priority 0, all others 1.
inline std::shared_ptr<const CdiRegistry> MakeRegistry(
    const std::vector<std::pair<std::string, std::string>>& files,
    std::vector<std::string> unread = {}) {
  std::vector<CdiSpecFile> read;
  for (const auto& [path, text] : files) {
    read.push_back(
        MakeCdiSpecFile(path, path.starts_with("/etc/cdi/") ? 0 : 1, text));
  }
  return std::make_shared<const CdiRegistry>(std::move(read),
                                             std::move(unread));
}

}  // namespace devmgr
