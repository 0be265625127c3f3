// SPDX-License-Identifier: Apache-2.0
//
// Letters and digits of ASCII, whatever the locale; unlike those of <cctype>
// for all values of a char.
#pragma once

namespace devmgr {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

inline bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

inline bool IsLetterOrDigit(char c) { return IsLetter(c) || IsDigit(c); }

}  // namespace devmgr
