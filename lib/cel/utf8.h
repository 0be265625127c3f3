// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// How many characters there are in `text`, which is UTF-8.
std::size_t CountCharacters(std::string_view text);
/// How many bytes the character at the beginning of `text` has; `text` is UTF-8
/// and not empty.
std::size_t CharacterSize(std::string_view text);
/// The character at the beginning of `text`, likewise.
char32_t FirstCharacter(std::string_view text);
/// Where character number `index` begins; the end if there are fewer.
std::size_t OffsetOf(std::string_view text, std::size_t index);
void AppendUtf8(char32_t character, std::string& text);

}  // namespace devmgr::cel
