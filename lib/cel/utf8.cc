// SPDX-License-Identifier: Apache-2.0
#include "cel/utf8.h"

#include <algorithm>

namespace devmgr::cel {
namespace {

unsigned Byte(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

std::size_t CharacterSize(std::string_view text) {
  const unsigned first = Byte(text, 0);
  if (first < 0x80) return 1;
  if (first < 0xE0) return 2;
  return first < 0xF0 ? 3 : 4;
}

char32_t FirstCharacter(std::string_view text) {
  const std::size_t size = CharacterSize(text);
  if (size == 1) return Byte(text, 0);
  char32_t character = Byte(text, 0) & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    character = (character << 6U) | (Byte(text, i) & 0x3FU);
  }
  return character;
}

std::size_t CountCharacters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(
                           text.begin(), text.end(), IsContinuation));
}

std::size_t OffsetOf(std::string_view text, std::size_t index) {
  std::size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) {
    offset += CharacterSize(text.substr(offset));
  }
  return std::min(offset, text.size());
}

void AppendUtf8(char32_t character, std::string& text) {
  const auto append = [&](char32_t bits) {
    text += static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (character < 0x80) {
    append(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr char32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  append(kFirst[more] | (character >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    append(0x80U | ((character >> (6 * i)) & 0x3FU));
  }
}

}  // namespace devmgr::cel
