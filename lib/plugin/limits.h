// SPDX-License-Identifier: Apache-2.0
//
// Bounds of what a plugin may say.
#pragma once

#include <cstddef>

namespace devmgr::plugin {

/// Of a list, serialised: 60,000 devices take about 3 MiB.
inline constexpr int kMaxListBytes = 64 * 1024 * 1024;
/// Of a list, and of one device in it.
inline constexpr std::size_t kMaxDevices = 1'000'000;
inline constexpr std::size_t kMaxDeviceBytes = 64 * 1024;
/// Of one answer, serialised.
inline constexpr std::size_t kMaxAnswerBytes = 1024 * 1024;
/// Of one container: of each kind, and of each text.
inline constexpr std::size_t kMaxEdits = 4096;
inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxValueBytes = 128 * 1024;

}  // namespace devmgr::plugin
