// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cel.h>

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

/// `problem` with the line and column of its offset, and an excerpt of the
/// text. Of a long line the part around the place is shown.
CelProblem Locate(std::string_view text, const Problem& problem);

/// All of a problem as one text: `line:column: message`, then the excerpt.
std::string Render(std::string_view text, const Problem& problem);

}  // namespace devmgr::cel
