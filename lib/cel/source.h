// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// A problem of an expression, and the byte offset in its text where it was
/// found.
struct Problem {
  std::uint32_t offset = 0;
  std::string message;
};

/// `problem` for a reader: line and column, counted from 1 in characters; the
/// message; the line; and a caret below the place. Of a long line the part
/// around the place is shown.
std::string Render(std::string_view text, const Problem& problem);

/// Render() as an error with the code InvalidArgument.
absl::Status ToStatus(std::string_view text, const Problem& problem);

}  // namespace devmgr::cel
