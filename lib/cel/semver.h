// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::cel {

/// A version by Semantic Versioning 2.0.0.
struct Semver {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<std::string> pre_release;
};

/// Nothing when `text` is not a version, or a number of it has more than 64
/// bits. `normalize` permits a leading `v`, parts that are left out, and
/// leading zeros.
std::optional<Semver> ParseSemver(std::string_view text, bool normalize);

/// Precedence: the build part does not count.
std::strong_ordering Compare(const Semver& a, const Semver& b);

}  // namespace devmgr::cel
