// SPDX-License-Identifier: Apache-2.0
#include "api/value.h"

#include <charconv>

namespace devmgr::api {
namespace {

/// Takes the first step off `path`: a name up to `.` or `[`, or what stands
/// between brackets.
std::string_view TakeStep(std::string_view& path) {
  if (path.front() == '.') path.remove_prefix(1);
  const bool bracketed = path.starts_with('[');
  const std::size_t end = bracketed ? path.find(']') : path.find_first_of(".[");
  const std::size_t begin = bracketed ? 1 : 0;
  if (end == std::string_view::npos) {
    const std::string_view step = path.substr(begin);
    path = {};
    return step;
  }
  const std::string_view step = path.substr(begin, end - begin);
  path.remove_prefix(bracketed ? end + 1 : end);
  return step;
}

}  // namespace

int LineAt(const Value& root, std::string_view path) {
  const Value* value = &root;
  int line = root.line;
  while (!path.empty()) {
    const std::string_view step = TakeStep(path);
    if (value->kind == Value::Kind::kList) {
      std::size_t index = 0;
      const auto result =
          std::from_chars(step.data(), step.data() + step.size(), index);
      if (result.ec != std::errc() || index >= value->items.size()) break;
      value = value->items[index].get();
      line = value->line;
    } else {
      const auto found = value->members.find(step);
      if (found == value->members.end()) break;
      line = found->second.line;
      value = found->second.value.get();
    }
  }
  return line;
}

}  // namespace devmgr::api
