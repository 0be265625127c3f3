// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// The number of characters of `text`, which must be UTF-8.
std::size_t CountCharacters(std::string_view text);
/// The number of bytes of the first character of `text`, which must be UTF-8
/// and not empty.
std::size_t CharacterSize(std::string_view text);
/// The first character of `text`, which must be UTF-8 and not empty.
char32_t FirstCharacter(std::string_view text);
/// The byte offset of character number `index`; the size of `text` if it has
/// fewer characters.
std::size_t OffsetOf(std::string_view text, std::size_t index);
void AppendUtf8(char32_t character, std::string& text);

}  // namespace devmgr::cel
