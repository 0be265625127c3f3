// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace devmgr::api {

/// `'text'` for messages: control characters and bytes that are not UTF-8 are
/// shown as `\xNN`, and long text is cut with its length given, so that foreign
/// input can neither flood nor garble a log.
std::string Quoted(std::string_view text, std::size_t limit = 80);

/// Foreign text as it may stand in messages, events and documents: control
/// characters (but for tabs and the ends of lines) and bytes that are not UTF-8
/// become `?`; what is longer than `limit` is cut at a character's border, and
/// `...` follows.
std::string Readable(std::string_view text, std::size_t limit);

/// Has the text control characters of ASCII, tabs and ends of lines included?
bool HasControlCharacters(std::string_view text);

/// Index of the first byte that does not belong to valid UTF-8 (RFC 3629: no
/// overlong forms, no surrogates); npos when all of it is fine.
std::size_t FindInvalidUtf8(std::string_view text);

}  // namespace devmgr::api
