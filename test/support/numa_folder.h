// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_folder.h"

namespace devmgr {

/// A copy of /sys of a machine with NUMA nodes 0 to `nodes - 1`, each with two
/// CPUs, 10 from itself and 21 from all others.
class NumaFolder {
 public:
  explicit NumaFolder(int nodes) {
    std::string online;
    for (int i = 0; i < nodes; ++i) {
      online += (i == 0 ? "" : ",") + std::to_string(i);
      const std::string node = Node(i);
      Write(node + "/cpulist",
            std::to_string(2 * i) + "-" + std::to_string(2 * i + 1) + "\n");
      Write(node + "/meminfo",
            "Node " + std::to_string(i) + " MemTotal:       2048 kB\n");
      std::string row;
      for (int j = 0; j < nodes; ++j) {
        row += (j == 0 ? "" : " ") + std::string(i == j ? "10" : "21");
      }
      Write(node + "/distance", row + "\n");
    }
    Write("devices/system/node/online", online + "\n");
  }

  static std::string Node(int id) {
    return "devices/system/node/node" + std::to_string(id);
  }

  /// `file`: below the folder.
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

}  // namespace devmgr
