// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "cel/function.h"
#include "cel/value.h"

namespace re2 {
class RE2;
}

namespace devmgr::cel {

/// A compiled pattern in the syntax of RE2. It is immutable, so that threads
/// may share it.
using Regex = std::shared_ptr<const re2::RE2>;

/// Compiles a pattern, or returns what is wrong with it.
std::variant<Regex, std::string> CompileRegex(std::string_view pattern);

/// Whether the second argument of `function` is a pattern.
bool TakesPattern(std::string_view function);

/// The result of a call of such a function with `pattern`, which takes the
/// place of the pattern among `args`.
Value CallWithPattern(std::string_view function, const re2::RE2& pattern,
                      const Args& args);

}  // namespace devmgr::cel
