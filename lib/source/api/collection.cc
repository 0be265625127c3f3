// SPDX-License-Identifier: Apache-2.0
#include "source/api/collection.h"

#include <fmt/core.h>

#include <algorithm>

namespace devmgr::apiserver {
namespace {

constexpr std::string_view kGroup = "resource.k8s.io";

std::string Encoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string result;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

/// `resourceclaims` of `ResourceClaim`.
std::string Plural(std::string_view kind) {
  std::string text(kind);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text + (text.ends_with('s') ? "es" : "s");
}

}  // namespace

std::string TargetOf(std::string_view path, const Query& query) {
  std::string target(path);
  char separator = '?';
  for (const auto& [name, value] : query) {
    target += separator;
    target += fmt::format("{}={}", name, Encoded(value));
    separator = '&';
  }
  return target;
}

std::string PathSegment(std::string_view text) {
  // As a segment of its own it would lead elsewhere.
  if (text == "." || text == "..") return text == "." ? "%2E" : "%2E%2E";
  return Encoded(text);
}

Collection PodsOfNode(const std::string& node) {
  return {.path = "/api/v1/pods",
          .api_version = "v1",
          .kind = "Pod",
          .field_selector = "spec.nodeName=" + node};
}

Collection ResourceCollection(std::string_view version, std::string_view kind) {
  return {.path = fmt::format("/apis/{}/{}/{}", kGroup, version, Plural(kind)),
          .api_version = fmt::format("{}/{}", kGroup, version),
          .kind = std::string(kind),
          .field_selector = ""};
}

std::string ClaimPath(std::string_view version, const std::string& ns,
                      const std::string& name) {
  return fmt::format("/apis/{}/{}/namespaces/{}/resourceclaims/{}", kGroup,
                     version, PathSegment(ns), PathSegment(name));
}

}  // namespace devmgr::apiserver
