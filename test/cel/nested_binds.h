// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace devmgr::cel {

/// 60 nested cel.bind(), for values and types that grow exponentially while the
/// text does not. `v0` is `first`, each later `v` is `next` of the name of the
/// one before it, and the innermost expression is `body`, in which the last one
/// is `v59`.
inline std::string NestedBinds(
    const std::string& first,
    const std::function<std::string(const std::string&)>& next,
    const std::string& body) {
  constexpr int kLevels = 60;
  std::string text = "cel.bind(v0, " + first + ", ";
  for (int i = 1; i < kLevels; ++i) {
    text += "cel.bind(v" + std::to_string(i) + ", " +
            next("v" + std::to_string(i - 1)) + ", ";
  }
  return text + body + std::string(kLevels, ')');
}

}  // namespace devmgr::cel
