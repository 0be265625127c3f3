// SPDX-License-Identifier: Apache-2.0
#include "conformance/wire_samples.h"

#include <fstream>
#include <utility>

namespace devmgr::conformance {
namespace {

std::string FileOf(const std::string& name) {
  return std::string(DEVMGR_TEST_DATA_DIR) + "/conformance/" + name + ".txt";
}

/// Splits `key: value`; the value may be empty.
std::pair<std::string, std::string> SplitLine(const std::string& line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) return {line, ""};
  const std::size_t value = line.find_first_not_of(' ', colon + 1);
  return {line.substr(0, colon),
          value == std::string::npos ? "" : line.substr(value)};
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(
        static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace

std::vector<WireSample> ReadWireSamples(const std::string& name) {
  std::vector<WireSample> samples;
  std::ifstream file(FileOf(name));
  for (std::string line; std::getline(file, line);) {
    auto [key, value] = SplitLine(line);
    if (key == "sample") {
      samples.push_back({value, "", "", ""});
    } else if (key == "message") {
      samples.back().message = value;
    } else if (key == "hex") {
      samples.back().bytes = FromHex(value);
    } else if (key == "text") {
      samples.back().text = value;
    }
  }
  return samples;
}

std::map<std::string, std::string> ReadWireNames() {
  std::map<std::string, std::string> names;
  std::ifstream file(FileOf("names"));
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    names.insert(SplitLine(line));
  }
  return names;
}

std::string ToHex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace devmgr::conformance
