// SPDX-License-Identifier: Apache-2.0
#include "cel/semver.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "api/semver.h"
#include "common/ascii.h"

namespace devmgr::cel {
namespace {

std::optional<std::uint64_t> ReadNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

/// Removes the part before `separator`, and the separator itself, from `text`,
/// and returns the part.
std::string_view TakePart(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? "" : text.substr(end + 1);
  return part;
}

/// `part` without its leading zeros; a number of zeros only is `0`.
std::string StripZeros(std::string_view part) {
  if (part.size() < 2) return std::string(part);
  const std::size_t zeros = std::min(part.find_first_not_of('0'), part.size());
  part.remove_prefix(zeros);
  const bool needs_zero = part.empty() || !IsDigit(part.front());
  return (needs_zero ? "0" : "") + std::string(part);
}

/// Completes a version to three numbers. Returns nothing for a shorter one with
/// a pre-release or build part.
std::optional<std::string> Normalize(std::string_view text) {
  if (!text.empty() && text.front() == 'v') text.remove_prefix(1);
  std::string full;
  for (int part = 0; part < 3; ++part) {
    const bool is_last = text.find('.') == std::string_view::npos;
    const std::string stripped =
        StripZeros(part == 2 ? text : TakePart(text, '.'));
    full += part == 0 ? stripped : "." + stripped;
    if (part == 2 || !is_last) continue;
    if (stripped.find_first_of("+-") != std::string::npos) return std::nullopt;
    for (; part < 2; ++part) full += ".0";
  }
  return full;
}

/// Compares identifiers of pre-releases. Numbers come before names, and are
/// compared as numbers.
std::strong_ordering CompareIdentifiers(std::string_view a,
                                        std::string_view b) {
  const bool a_is_number = IsDigits(a);
  if (a_is_number != IsDigits(b)) {
    return a_is_number ? std::strong_ordering::less
                       : std::strong_ordering::greater;
  }
  // Numbers have no leading zeros here, so that the longer one is greater.
  if (a_is_number && a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

}  // namespace

std::optional<Semver> ParseSemver(std::string_view text, bool normalize) {
  std::string full(text);
  if (normalize) {
    std::optional<std::string> normalized = Normalize(text);
    if (!normalized) return std::nullopt;
    full = *std::move(normalized);
  }
  if (!api::IsSemanticVersion(full)) return std::nullopt;
  std::string_view rest = full;
  rest = rest.substr(0, rest.find('+'));
  const std::size_t dash = rest.find('-');
  std::string_view pre_release =
      dash == std::string_view::npos ? "" : rest.substr(dash + 1);
  rest = rest.substr(0, dash);
  const std::array numbers = {ReadNumber(TakePart(rest, '.')),
                              ReadNumber(TakePart(rest, '.')),
                              ReadNumber(rest)};
  if (!numbers[0] || !numbers[1] || !numbers[2]) return std::nullopt;
  Semver version{*numbers[0], *numbers[1], *numbers[2], {}};
  while (!pre_release.empty()) {
    const std::string_view part = TakePart(pre_release, '.');
    if (IsDigits(part) && !ReadNumber(part)) return std::nullopt;
    version.pre_release.emplace_back(part);
  }
  return version;
}

std::strong_ordering Compare(const Semver& a, const Semver& b) {
  if (const auto order = a.major <=> b.major; order != 0) return order;
  if (const auto order = a.minor <=> b.minor; order != 0) return order;
  if (const auto order = a.patch <=> b.patch; order != 0) return order;
  // A pre-release comes before its release.
  if (a.pre_release.empty() || b.pre_release.empty()) {
    return b.pre_release.size() <=> a.pre_release.size();
  }
  const std::size_t common =
      std::min(a.pre_release.size(), b.pre_release.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto order = CompareIdentifiers(a.pre_release[i], b.pre_release[i]);
    if (order != 0) return order;
  }
  return a.pre_release.size() <=> b.pre_release.size();
}

}  // namespace devmgr::cel
