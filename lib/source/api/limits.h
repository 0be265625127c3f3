// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace devmgr::apiserver {

// What an API server may send. Beyond it there is an error, and what was known
// before stays.
inline constexpr std::size_t kMaxEventBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxPageBytes = std::size_t{32} << 20;
inline constexpr std::size_t kMaxListBytes = std::size_t{64} << 20;
/// Of `metadata` of a list, and of bodies that say why a request failed.
inline constexpr std::size_t kMaxStatusBytes = std::size_t{64} << 10;

}  // namespace devmgr::apiserver
