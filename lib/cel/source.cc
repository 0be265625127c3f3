// SPDX-License-Identifier: Apache-2.0
#include "cel/source.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/quote.h"
#include "cel/utf8.h"

namespace devmgr::cel {

namespace {

/// The number of characters of a line that are shown, and how many of them
/// before the caret.
constexpr std::size_t kShown = 120;
constexpr std::size_t kShownBefore = 60;

/// The part of `line` around the character `column`. `column` becomes the
/// position within that part.
std::string Window(std::string_view line, std::size_t& column) {
  const std::size_t size = CountCharacters(line);
  const std::size_t begin =
      size > kShown && column > kShownBefore ? column - kShownBefore : 0;
  const std::size_t end = std::min(size, begin + kShown);
  std::string shown =
      api::Readable(line.substr(OffsetOf(line, begin),
                                OffsetOf(line, end) - OffsetOf(line, begin)),
                    line.size());
  column -= begin;
  if (begin > 0) {
    shown = "..." + shown;
    column += 3;
  }
  return end < size ? shown + "..." : shown;
}

}  // namespace

CelProblem Locate(std::string_view text, const Problem& problem) {
  const std::size_t offset = std::min<std::size_t>(problem.offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line_number = std::count(before.begin(), before.end(), '\n') + 1;
  // On the first line rfind() finds nothing, and npos + 1 is 0.
  const std::size_t begin = before.rfind('\n') + 1;
  const std::string_view line =
      text.substr(begin, text.find('\n', begin) - begin);
  const std::size_t column =
      CountCharacters(text.substr(begin, offset - begin));
  std::size_t caret = column;
  const std::string shown = Window(line, caret);
  return {static_cast<std::size_t>(line_number), column + 1, problem.message,
          fmt::format(" | {}\n | {}^", shown, std::string(caret, '.'))};
}

std::string Render(std::string_view text, const Problem& problem) {
  return Locate(text, problem).ToString();
}

}  // namespace devmgr::cel
