// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace devmgr {

/// How many times more than usual random tests run: DEVMGR_TEST_SCALE.
inline int TestScale() {
  const char* scale = std::getenv("DEVMGR_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

/// Where random tests begin: DEVMGR_TEST_SEED, to see a failure again.
inline std::uint32_t TestSeed(std::uint32_t usual) {
  const char* seed = std::getenv("DEVMGR_TEST_SEED");
  return seed == nullptr
             ? usual
             : static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10));
}

/// The seed of the one random life to live again: DEVMGR_TEST_REPLAY.
inline std::optional<std::uint32_t> TestReplay() {
  if (std::getenv("DEVMGR_TEST_REPLAY") == nullptr) return std::nullopt;
  return static_cast<std::uint32_t>(
      std::strtoul(std::getenv("DEVMGR_TEST_REPLAY"), nullptr, 10));
}

}  // namespace devmgr
