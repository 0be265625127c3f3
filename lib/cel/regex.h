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

/// A pattern in RE2's syntax, compiled. Immutable, so that threads may share
/// it.
using Regex = std::shared_ptr<const re2::RE2>;

/// The pattern, or what is wrong with it.
std::variant<Regex, std::string> CompileRegex(std::string_view pattern);

/// Whether calls of `function` take a pattern as their second argument.
bool TakesPattern(std::string_view function);

/// What such a call yields; the pattern among `args` is not looked at.
Value CallWithPattern(std::string_view function, const re2::RE2& pattern,
                      const Args& args);

}  // namespace devmgr::cel
