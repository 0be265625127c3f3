// SPDX-License-Identifier: Apache-2.0
//
// The order in which devices are kept, chosen and shown.
#pragma once

#include <string_view>

namespace devmgr::device {

/// Natural order: runs of digits compare as numbers, all else bytewise, so
/// `gpu-2` comes before `gpu-10`. Total: only equal IDs are equivalent.
bool IdLess(std::string_view a, std::string_view b);

/// IdLess for sets and maps.
struct IdOrder {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    return IdLess(a, b);
  }
};

}  // namespace devmgr::device
