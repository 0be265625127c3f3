// SPDX-License-Identifier: Apache-2.0
#include "cel/string_literal.h"

#include <utility>

#include "cel/utf8.h"

namespace devmgr::cel {
namespace {

struct Frame {
  bool is_bytes = false;
  bool is_raw = false;
  std::size_t prefix = 0;
  std::string_view quote;  ///< One or three quotation marks.
};

std::optional<Frame> ReadFrame(std::string_view text) {
  Frame frame;
  // The prefixes are `b` and `r`, in this order.
  if (!text.empty() && (text[0] == 'b' || text[0] == 'B')) {
    frame.is_bytes = true;
    ++frame.prefix;
  }
  const std::string_view rest = text.substr(frame.prefix);
  if (!rest.empty() && (rest[0] == 'r' || rest[0] == 'R')) {
    frame.is_raw = true;
    ++frame.prefix;
  }
  text.remove_prefix(frame.prefix);
  if (text.empty() || (text[0] != '"' && text[0] != '\'')) return std::nullopt;
  const bool is_triple =
      text.size() >= 3 && text[1] == text[0] && text[2] == text[0];
  frame.quote = text.substr(0, is_triple ? 3 : 1);
  return frame;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Line ends become `\n`, whichever the text has.
std::string WithPlainNewlines(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      plain += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      plain += '\n';
    }
  }
  return plain;
}

class Unescaper {
 public:
  Unescaper(std::string_view text, bool is_bytes)
      : rest_(text), is_bytes_(is_bytes) {}

  std::optional<std::string> Run() {
    while (!rest_.empty()) {
      if (rest_.front() != '\\') {
        out_ += rest_.front();
        rest_.remove_prefix(1);
      } else if (!TakeEscape()) {
        return std::nullopt;
      }
    }
    return std::move(out_);
  }

 private:
  bool TakeEscape() {
    if (rest_.size() < 2) return false;
    const char kind = rest_[1];
    rest_.remove_prefix(2);
    constexpr std::string_view kNames = "abfnrtv\\'\"`?";
    constexpr std::string_view kMeant = "\a\b\f\n\r\t\v\\'\"`?";
    if (const std::size_t at = kNames.find(kind); at != kNames.npos) {
      out_ += kMeant[at];
      return true;
    }
    switch (kind) {
      case 'x':
      case 'X':
        return TakeNumber(2, 16, 0);
      case 'u':
        return !is_bytes_ && TakeNumber(4, 16, 0);
      case 'U':
        return !is_bytes_ && TakeNumber(8, 16, 0);
      case '0':
      case '1':
      case '2':
      case '3':
        return TakeNumber(2, 8, static_cast<char32_t>(kind - '0'));
      default:
        return false;
    }
  }

  bool TakeNumber(std::size_t digits, int base, char32_t number) {
    if (rest_.size() < digits) return false;
    for (const char c : rest_.substr(0, digits)) {
      const int digit = HexDigit(c);
      if (digit < 0 || digit >= base) return false;
      number =
          number * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
    }
    rest_.remove_prefix(digits);
    if (is_bytes_) {
      out_ += static_cast<char>(static_cast<unsigned char>(number));
      return true;
    }
    if (number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
      return false;
    }
    AppendUtf8(number, out_);
    return true;
  }

  std::string_view rest_;
  bool is_bytes_;
  std::string out_;
};

}  // namespace

std::size_t StringLiteralSize(std::string_view text) {
  const std::optional<Frame> frame = ReadFrame(text);
  if (!frame) return 0;
  const bool is_triple = frame->quote.size() == 3;
  std::size_t at = frame->prefix + frame->quote.size();
  while (at < text.size()) {
    if (text.substr(at, frame->quote.size()) == frame->quote) {
      return at + frame->quote.size();
    }
    if (!is_triple && (text[at] == '\n' || text[at] == '\r')) return 0;
    at += !frame->is_raw && text[at] == '\\' ? 2 : 1;
  }
  // An empty literal `""` looks like the beginning of one in triple quotes.
  return 0;
}

std::optional<StringLiteral> ReadStringLiteral(std::string_view literal) {
  const std::optional<Frame> frame = ReadFrame(literal);
  if (!frame) return std::nullopt;
  const std::size_t begin = frame->prefix + frame->quote.size();
  const std::string body = WithPlainNewlines(
      literal.substr(begin, literal.size() - begin - frame->quote.size()));
  StringLiteral read;
  read.is_bytes = frame->is_bytes;
  if (frame->is_raw) {
    read.value = body;
    return read;
  }
  std::optional<std::string> unescaped = Unescaper(body, frame->is_bytes).Run();
  if (!unescaped) return std::nullopt;
  read.value = *std::move(unescaped);
  return read;
}

}  // namespace devmgr::cel
