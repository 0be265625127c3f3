// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace devmgr {

/// Whether this build's sanitizer multiplies memory and processor time, so that
/// bounds of these say nothing. GCC defines macros, clang answers a question.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace devmgr
