// SPDX-License-Identifier: Apache-2.0
#include "control/generated_name.h"

#include <algorithm>
#include <cstddef>

namespace devmgr::control {
namespace {

constexpr std::string_view kSuffixCharacters = "bcdfghjklmnpqrstvwxz2456789";
constexpr int kSuffixLength = 5;
constexpr std::size_t kMaxBase = 57;

/// How many suffixes there are.
constexpr std::uint64_t SuffixCount() {
  std::uint64_t count = 1;
  for (int i = 0; i < kSuffixLength; ++i) count *= kSuffixCharacters.size();
  return count;
}

/// Has no divisor in common with their number, so that it maps no two suffixes
/// to one; about that number by the golden ratio, so that neighbours get apart.
constexpr std::uint64_t kSpread = 8'868'112;

/// What ends a name's part and may not stand before a hyphen, or is not wanted
/// there.
std::string_view WithoutTail(std::string_view text) {
  while (!text.empty() && (text.back() == '-' || text.back() == '.')) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

std::string NameSuffix(std::uint64_t number) {
  std::uint64_t rest = number % SuffixCount() * kSpread % SuffixCount();
  std::string suffix;
  for (int i = 0; i < kSuffixLength; ++i) {
    suffix += kSuffixCharacters[rest % kSuffixCharacters.size()];
    rest /= kSuffixCharacters.size();
  }
  return suffix;
}

std::string GeneratedBase(std::string_view pod, std::string_view part) {
  const std::size_t whole = pod.size() + 1 + part.size();
  if (whole > kMaxBase) {
    const std::size_t of_pod =
        std::max<std::size_t>(pod.size() * kMaxBase / whole, 1);
    const std::size_t of_part =
        std::max<std::size_t>(part.size() * kMaxBase / whole, 1);
    pod = pod.substr(0, std::min(of_pod, kMaxBase - 1 - of_part));
    part = part.substr(0, of_part);
  }
  std::string base(WithoutTail(pod));
  base += '-';
  base += WithoutTail(part);
  return std::string(WithoutTail(base));
}

std::string GeneratedName(std::string_view base, std::string_view suffix) {
  std::string name(base);
  name += '-';
  name += suffix;
  return name;
}

std::string SpecialClaimName(const Pod& pod, std::string_view suffix) {
  return GeneratedName(GeneratedBase(pod.metadata.name, "extended-resources"),
                       suffix);
}

}  // namespace devmgr::control
