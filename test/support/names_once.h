// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <string>

namespace devmgr {

/// A text in which `part`, such as a path, stands once.
MATCHER_P(NamesOnce, part, "") {
  const std::string text(arg);
  const std::string wanted(part);
  const std::size_t first = text.find(wanted);
  return first != std::string::npos &&
         text.find(wanted, first + 1) == std::string::npos;
}

}  // namespace devmgr
