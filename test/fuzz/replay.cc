// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer in builds without fuzzers: runs a fuzzer over all
// files of the folders given, so that what once was found stays found. One TAP
// case.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace {

std::vector<std::filesystem::path> FilesIn(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Replay(const std::filesystem::path& path) {
  // Known when it crashes, and only then of interest.
  std::printf("# %s\n", path.c_str());
  std::fflush(stdout);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                         bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  bool all_full = argc > 1;
  for (int i = 1; i < argc; ++i) {
    const auto files = FilesIn(argv[i]);
    for (const auto& file : files) Replay(file);
    std::printf("# %zu files in %s\n", files.size(), argv[i]);
    count += files.size();
    all_full = all_full && !files.empty();
  }
  std::printf("%s 1 - replays %zu files\n1..1\n", all_full ? "ok" : "not ok",
              count);
  return 0;
}
