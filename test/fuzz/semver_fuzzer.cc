// SPDX-License-Identifier: Apache-2.0
//
// Two lines, each of which may be a version: the readers agree, what is read
// can be written and read again, and any two have an order.
#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "api/semver.h"
#include "cel/semver.h"
#include "fuzz/fuzz.h"

namespace {

using devmgr::cel::Compare;
using devmgr::cel::ParseSemver;
using devmgr::cel::Semver;
using devmgr::fuzz::Require;

std::string TextOf(const Semver& version) {
  std::string text =
      fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  if (version.pre_release.empty()) return text;
  return text + '-' + absl::StrJoin(version.pre_release, ".");
}

/// The version of `text`, read leniently.
std::optional<Semver> Check(std::string_view text) {
  const auto strict = ParseSemver(text, false);
  const auto lenient = ParseSemver(text, true);
  Require(!strict || devmgr::api::IsSemanticVersion(text),
          "a version has the form of one");
  if (strict) {
    Require(lenient && Compare(*strict, *lenient) == 0,
            "a version needs no normalization");
  }
  if (!lenient) return lenient;
  const auto again = ParseSemver(TextOf(*lenient), false);
  Require(again && Compare(*again, *lenient) == 0,
          "what is normalized is a version");
  return lenient;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const auto one = Check(text.substr(0, end));
  const auto other = Check(end == text.npos ? "" : text.substr(end + 1));
  if (!one || !other) return 0;
  const auto order = Compare(*one, *other);
  Require(0 <=> order == Compare(*other, *one),
          "the order is the other way round from the other side");
  Require(order != 0 || TextOf(*one) == TextOf(*other),
          "versions of one order are the same");
  return 0;
}
