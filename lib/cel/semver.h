// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cel {

/// A version of Semantic Versioning 2.0.0, without its build part.
struct Semver {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<std::string> pre_release;
};

/// Reads a version. Returns nothing when `text` is no version, or when one of
/// its numbers needs more than 64 bits. With `normalize` a leading `v`, missing
/// minor and patch numbers, and leading zeros are permitted.
std::optional<Semver> ParseSemver(std::string_view text, bool normalize);

/// Compares two versions by precedence, for which the build part does not
/// count.
std::strong_ordering Compare(const Semver& a, const Semver& b);

}  // namespace devmgr::cel
