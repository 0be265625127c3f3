// SPDX-License-Identifier: Apache-2.0
#include <devmgr/device_changes.h>

#include <charconv>

#include "common/status.h"

namespace devmgr {
namespace {

/// Takes a number off the front of `text`; false: there is none.
template <typename Number>
bool Take(std::string_view* text, Number* number, int base = 10) {
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, *number, base);
  if (read.ec != std::errc()) return false;
  text->remove_prefix(static_cast<std::size_t>(read.ptr - text->data()));
  return true;
}

bool TakePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool Read(std::string_view text, ChangeToken* token) {
  if (!Take(&text, &token->sequence)) return false;
  if (TakePrefix(&text, ".h")) {
    if (!Take(&text, &token->health)) return false;
  } else if (TakePrefix(&text, ".")) {
    if (!Take(&text, &token->index)) return false;
  }
  if (TakePrefix(&text, "-") && !Take(&text, &token->process, 16)) return false;
  return text.empty();
}

}  // namespace

std::string ChangeToken::ToString() const {
  std::string text = fmt::format("{}", sequence);
  if (health != 0) {
    text += fmt::format(".h{}", health);
  } else if (index != kWhole) {
    text += fmt::format(".{}", index);
  }
  if (process != 0) text += fmt::format("-{:x}", process);
  return text;
}

absl::StatusOr<ChangeToken> ChangeToken::Parse(std::string_view text) {
  ChangeToken token;
  if (Read(text, &token)) return token;
  return InvalidArgumentError(
      "'{}' is no token of a change, such as 1234, 1234.2 or 1234.h5-8c21",
      text);
}

}  // namespace devmgr
