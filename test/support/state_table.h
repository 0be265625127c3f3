// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/source_dir.h"

namespace devmgr {

/// The table of a state machine as a README draws it: the first column names
/// the state, the others are events.
class StateTable {
 public:
  /// Reads the table whose first header cell is `head`. `path` is relative to
  /// the source directory.
  explicit StateTable(const std::string& path,
                      const std::string& head = "State") {
    std::ifstream file(std::string(DEVMGR_SOURCE_DIR) + "/" + path);
    EXPECT_TRUE(file.is_open()) << path;
    std::vector<std::string> header;
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> cells = Cells(line);
      if (header.empty()) {
        if (!cells.empty() && cells[0] == head) header = cells;
        continue;
      }
      if (cells.empty()) break;
      if (cells[0].starts_with("---")) continue;
      EXPECT_EQ(cells.size(), header.size()) << line;
      for (std::size_t i = 1; i < cells.size() && i < header.size(); ++i) {
        EXPECT_TRUE(
            cells_.emplace(std::pair(cells[0], header[i]), cells[i]).second)
            << cells[0] << " x " << header[i] << " stands there twice";
      }
    }
  }

  std::size_t size() const { return cells_.size(); }

  /// Empty when the table has no such cell.
  std::string At(std::string_view state, std::string_view event) const {
    const auto cell = cells_.find({std::string(state), std::string(event)});
    return cell == cells_.end() ? "" : cell->second;
  }

 private:
  static std::vector<std::string> Cells(const std::string& line) {
    std::vector<std::string> cells;
    if (!line.starts_with("|")) return cells;
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = line.find('|', at);
      if (end == std::string::npos) break;
      cells.push_back(Trimmed(line.substr(at, end - at)));
      at = end + 1;
    }
    return cells;
  }

  static std::string Trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
  }

  std::map<std::pair<std::string, std::string>, std::string> cells_;
};

/// All values of an enumeration that counts from 0, by asking for names until
/// one has none.
template <typename Enum, typename NameOf>
std::vector<Enum> AllNamed(NameOf name_of) {
  std::vector<Enum> all;
  while (!name_of(static_cast<Enum>(all.size())).empty()) {
    all.push_back(static_cast<Enum>(all.size()));
  }
  return all;
}

}  // namespace devmgr
