// SPDX-License-Identifier: Apache-2.0
#include "api/semver.h"

#include <algorithm>

#include "common/ascii.h"

namespace devmgr::api {
namespace {

bool IsIdentifierCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '-';
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

bool HasLeadingZero(std::string_view number) {
  return number.size() > 1 && number.front() == '0';
}

/// Identifiers between dots. Only those of pre-releases may not be numbers
/// with leading zeros.
bool AreIdentifiers(std::string_view text, bool zeros_allowed) {
  for (;;) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    if (part.empty() ||
        !std::all_of(part.begin(), part.end(), IsIdentifierCharacter) ||
        (!zeros_allowed && IsNumber(part) && HasLeadingZero(part))) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

bool IsSemanticVersion(std::string_view text) {
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!AreIdentifiers(text.substr(plus + 1), /*zeros_allowed=*/true)) {
      return false;
    }
    text = text.substr(0, plus);
  }
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!AreIdentifiers(text.substr(dash + 1), /*zeros_allowed=*/false)) {
      return false;
    }
    text = text.substr(0, dash);
  }
  for (int i = 0; i < 3; ++i) {
    const std::size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != (i == 2)) return false;
    const std::string_view number = text.substr(0, dot);
    if (!IsNumber(number) || HasLeadingZero(number)) return false;
    if (i < 2) text.remove_prefix(dot + 1);
  }
  return true;
}

}  // namespace devmgr::api
