// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// What is wrong with an expression, and where: an offset in bytes.
struct Problem {
  std::uint32_t offset = 0;
  std::string message;
};

/// Line and column of `problem`, counted from 1 in characters, its message, the
/// line it is in, and a caret below the place. Of a long line the part around
/// the place is shown.
std::string Render(std::string_view text, const Problem& problem);

/// The same as an error of the code InvalidArgument.
absl::Status ToStatus(std::string_view text, const Problem& problem);

}  // namespace devmgr::cel
