// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace devmgr::conformance {

/// One sample of test/data/conformance.
struct WireSample {
  std::string sample;
  std::string message;  ///< Upstream's full name.
  std::string bytes;
  std::string text;  ///< Protobuf text format.
};

/// Reads `<name>.txt`; empty when it cannot be read.
std::vector<WireSample> ReadWireSamples(const std::string& name);

/// Reads `names.txt`: lines of `key: value`.
std::map<std::string, std::string> ReadWireNames();

std::string ToHex(const std::string& bytes);

}  // namespace devmgr::conformance
