// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace devmgr::conformance {

/// Of the claims in the samples.
inline constexpr char kUidA[] = "3f1c9e52-0b6d-4a87-9c57-5d2f6c1e8a10";
inline constexpr char kUidB[] = "b7a4d0c6-91e2-4f0b-8a3d-6e5f4c3b2a19";

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
