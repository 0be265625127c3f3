// SPDX-License-Identifier: Apache-2.0
//
// Which driver a token belongs to.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "endpoint/limits.h"

namespace devmgr::endpoint {

/// 256 random bits as a text. Internal when the host has no random bits.
absl::StatusOr<std::string> MakeToken();

/// Not thread-safe.
class TokenBook {
 public:
  /// So long one goes on that was replaced.
  static constexpr std::chrono::minutes kOldTokenLife{10};

  /// The token of the driver from now on.
  void Set(const std::string& driver, std::string_view token, TimePoint now);
  /// Those that have a token.
  std::set<std::string> Drivers() const;
  /// Whose header `Authorization` this is. It takes the same time whatever
  /// token comes.
  std::optional<std::string> DriverOf(std::string_view authorization,
                                      TimePoint now) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    std::string driver;
    Digest digest;
    std::optional<TimePoint> ends;
  };
  static Digest DigestOf(std::string_view token);

  std::vector<Entry> entries_;
};

}  // namespace devmgr::endpoint
