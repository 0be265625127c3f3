// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/go_writer.h"

#include <absl/strings/escaping.h>

#include <utility>

#include "api/quote.h"
#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {
namespace {

/// U+2028 and U+2029, which Go escapes, without their last byte.
constexpr std::string_view kSeparator = "\xE2\x80";

/// What Go writes for one byte of a text, or nothing where that is the byte.
std::string EscapeOf(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && c != '<' && c != '>' && c != '&') return {};
  return fmt::format("\\u{:04x}", byte);
}

}  // namespace

void GoJsonWriter::String(std::string_view text) {
  if (not_utf8_.empty() &&
      api::FindInvalidUtf8(text) != std::string_view::npos) {
    not_utf8_ = text;
  }
  text_ += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with(kSeparator) && rest.size() > 2 &&
        (rest[2] == '\xA8' || rest[2] == '\xA9')) {
      text_ += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (const std::string escape = EscapeOf(text[i]); !escape.empty()) {
      text_ += escape;
    } else {
      text_ += text[i];
    }
  }
  text_ += '"';
}

void GoJsonWriter::Bytes(std::string_view bytes) {
  text_ += '"';
  text_ += absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
  text_ += '"';
}

absl::StatusOr<std::string> GoJsonWriter::Take(std::string_view file) && {
  if (!not_utf8_.empty()) {
    return InvalidArgumentError("{}: {} is not UTF-8", file,
                                api::Quoted(not_utf8_));
  }
  if (text_.size() > kMaxFileBytes) {
    return InvalidArgumentError("{}: {} bytes, at most {} can be read", file,
                                text_.size(), kMaxFileBytes);
  }
  return std::move(text_);
}

}  // namespace devmgr::kubelet_checkpoint
