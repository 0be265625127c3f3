// SPDX-License-Identifier: Apache-2.0
#include "api/quote.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace devmgr::api {
namespace {

bool IsContinuation(unsigned char c) { return (c & 0xC0) == 0x80; }

/// Length of the valid sequence at `text[at]`, 0 when it is not valid.
std::size_t SequenceLength(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) -> unsigned char {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return IsContinuation(byte(1)) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned char low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && IsContinuation(byte(2)) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned char low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && IsContinuation(byte(2)) &&
                   IsContinuation(byte(3))
               ? 4
               : 0;
  }
  return 0;
}

/// C0, DEL and C1.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

bool HasControlCharacters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

std::size_t FindInvalidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = SequenceLength(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string Readable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = SequenceLength(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    if (out.size() + taken > limit) return out + "...";
    if (length == 0 || IsControl(text.substr(at, length))) {
      out += first == '\n' || first == '\t' ? text[at] : '?';
    } else {
      out.append(text.substr(at, length));
    }
    at += taken;
  }
  return out;
}

std::string Quoted(std::string_view text, std::size_t limit) {
  std::string out = "'";
  std::size_t at = 0;
  while (at < text.size() && at < limit) {
    const std::size_t length = SequenceLength(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    if (length == 0 || first < 0x20 || first == 0x7F) {
      out += fmt::format("\\x{:02x}", first);
      ++at;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  if (at < text.size()) {
    return out + fmt::format("...' ({} bytes)", text.size());
  }
  return out + "'";
}

}  // namespace devmgr::api
