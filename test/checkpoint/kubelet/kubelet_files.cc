// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/kubelet_files.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>

#include "checkpoint/kubelet/kubelet_files_folder.h"

namespace devmgr::kubelet_checkpoint {

std::string KubeletFile(std::string_view name) {
  const std::string path = DEVMGR_KUBELET_FILES "/" + std::string(name);
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string OddText() {
  return "<&>\xE2\x80\xA8\xE2\x80\xA9\"\\/\b\f\n\r\t\x01\x7F \xC3\xA9 "
         "\xF0\x9F\x98\x80";
}

std::string RandomText(Luck& luck) {
  static const std::array<std::string, 11> kPieces = {
      "a", "b]",           " ",           ":", "map[", "<nil>", "", "7",
      "é", "\xE2\x80\xA7", "\xE2\x80\xA8"};
  if (luck.Chance(10)) return OddText();
  std::string text;
  for (int left = luck.Below(4); left > 0; --left) text += luck.Pick(kPieces);
  return text;
}

}  // namespace devmgr::kubelet_checkpoint
