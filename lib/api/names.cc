// SPDX-License-Identifier: Apache-2.0
//
// The rules of upstream's apimachinery validation and of its helpers for
// resource names, written as plain scans.
#include "api/names.h"

#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <algorithm>

#include "api/quote.h"

namespace devmgr {
namespace api {
namespace {

constexpr std::size_t kLabelLimit = 63;
constexpr std::size_t kSubdomainLimit = 253;
constexpr std::size_t kDriverNameLimit = 63;
constexpr std::size_t kMaxUidBytes = 128;

bool IsLowerAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsAlnum(char c) { return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z'); }

/// Whether `text` has the characters of a label; its length is not looked at.
bool HasLabelSyntax(std::string_view text) {
  return !text.empty() && IsLowerAlnum(text.front()) &&
         IsLowerAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerAlnum(c) || c == '-'; });
}

/// Whether all parts of `text` between dots have the syntax of labels.
/// Upstream bounds the whole of a subdomain, not its parts.
bool HasSubdomainSyntax(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!HasLabelSyntax(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

/// Whether a text that is not empty has the characters of a label's value, or
/// of the last part of a qualified name.
bool HasNameSyntax(std::string_view text) {
  return IsAlnum(text.front()) && IsAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string TooLong(std::string_view name, std::size_t limit) {
  return fmt::format("{} is too long: {} characters, at most {} are allowed",
                     Quoted(name), name.size(), limit);
}

}  // namespace

std::string CheckUid(std::string_view uid) {
  const bool fine = uid.size() <= kMaxUidBytes &&
                    std::all_of(uid.begin(), uid.end(),
                                [](char c) {
                                  return IsAlnum(c) || c == '-' || c == '_' ||
                                         c == '.' || c == ':';
                                }) &&
                    uid != "." && uid != "..";
  if (fine) return "";
  return fmt::format(
      "{} is not a usable UID: up to {} letters, digits, '-', '_', '.', ':'",
      Quoted(uid), kMaxUidBytes);
}

std::string CheckLabel(std::string_view name) {
  if (name.empty()) return "'' is empty, a DNS label is required";
  if (name.size() > kLabelLimit) return TooLong(name, kLabelLimit);
  if (HasLabelSyntax(name)) return "";
  return fmt::format(
      "{} is not a DNS label (a-z, 0-9 and '-', beginning and ending with a "
      "letter or digit)",
      Quoted(name));
}

std::string CheckSubdomain(std::string_view name) {
  if (name.empty()) return "'' is empty, a DNS subdomain is required";
  if (name.size() > kSubdomainLimit) return TooLong(name, kSubdomainLimit);
  if (HasSubdomainSyntax(name)) return "";
  return fmt::format(
      "{} is not a DNS subdomain (a-z, 0-9, '-' and '.', each part beginning "
      "and ending with a letter or digit)",
      Quoted(name));
}

std::string CheckQualifiedName(std::string_view name) {
  std::string_view last = name;
  if (const std::size_t slash = name.find('/');
      slash != std::string_view::npos) {
    const std::string_view prefix = name.substr(0, slash);
    if (prefix.size() > kSubdomainLimit || !HasSubdomainSyntax(prefix)) {
      return fmt::format(
          "{} is not a qualified name: the part before '/' must be a DNS "
          "subdomain of at most {} characters",
          Quoted(name), kSubdomainLimit);
    }
    last = name.substr(slash + 1);
  }
  if (last.empty() || last.size() > kLabelLimit) {
    return fmt::format(
        "{} is not a qualified name: its name part has {} characters, 1 to {} "
        "are allowed",
        Quoted(name), last.size(), kLabelLimit);
  }
  if (!HasNameSyntax(last)) {
    return fmt::format(
        "{} is not a qualified name: its name part must consist of letters, "
        "digits, '-', '_' and '.', beginning and ending with a letter or digit",
        Quoted(name));
  }
  return "";
}

std::string CheckLabelValue(std::string_view value) {
  if (value.empty()) return "";
  if (value.size() > kLabelLimit) return TooLong(value, kLabelLimit);
  if (HasNameSyntax(value)) return "";
  return fmt::format(
      "{} is not a label's value (letters, digits, '-', '_' and '.', beginning "
      "and ending with a letter or digit)",
      Quoted(value));
}

std::string CheckUuid(std::string_view text) {
  constexpr std::string_view kUuidShape =
      "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  const auto fits = [](char c, char shape) {
    if (shape == '-') return c == '-';
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  };
  if (text.size() == kUuidShape.size() &&
      std::equal(text.begin(), text.end(), kUuidShape.begin(), fits)) {
    return "";
  }
  return fmt::format("{} is not a UUID in lower case", Quoted(text));
}

std::string CheckDriverName(std::string_view name) {
  if (name.empty()) return "'': Required value: a driver name";
  if (name.size() > kDriverNameLimit) {
    return fmt::format("{}: Too long: {} characters, at most {} are allowed",
                       Quoted(name), name.size(), kDriverNameLimit);
  }
  if (HasSubdomainSyntax(name)) return "";
  return fmt::format(
      "{}: invalid DRA driver name: it must be a lower-case DNS subdomain",
      Quoted(name));
}

std::string CheckPoolName(std::string_view name) {
  if (name.empty()) return "'' is empty, a pool name is required";
  if (name.size() > kSubdomainLimit) return TooLong(name, kSubdomainLimit);
  for (std::string_view rest = name;;) {
    const std::size_t slash = rest.find('/');
    if (!HasSubdomainSyntax(rest.substr(0, slash))) {
      return fmt::format(
          "{} is not a pool name (DNS subdomains, joined by '/')",
          Quoted(name));
    }
    if (slash == std::string_view::npos) return "";
    rest.remove_prefix(slash + 1);
  }
}

bool IsExtendedResourceName(std::string_view name) {
  // As upstream's IsExtendedResourceName: what counts as native is decided by
  // the text `kubernetes.io/` anywhere, and the quota name must be valid too.
  if (name.find('/') == std::string_view::npos) return false;
  if (name.find("kubernetes.io/") != std::string_view::npos) return false;
  if (name.starts_with("requests.")) return false;
  return CheckQualifiedName("requests." + std::string(name)).empty();
}

bool CanBeDraExtendedResource(std::string_view name) {
  if (name.starts_with(kImplicitResourcePrefix)) {
    return CheckQualifiedName(name).empty();
  }
  return IsExtendedResourceName(name);
}

std::string_view BaseRequestName(std::string_view request) {
  return request.substr(0, request.find('/'));
}

}  // namespace api

std::string ImplicitResourceName(std::string_view class_name) {
  std::string name(api::kImplicitResourcePrefix);
  name += class_name;
  return api::CheckQualifiedName(name).empty() ? name : std::string();
}

}  // namespace devmgr
