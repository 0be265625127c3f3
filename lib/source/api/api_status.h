// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::apiserver {

/// How an answer begins.
struct ResponseHead {
  int code = 0;
  std::optional<std::chrono::seconds> retry_after;  ///< `Retry-After`.
};

/// Why a request failed, in the server's own words: an object of kind Status.
struct ApiStatus {
  int code = 0;
  std::string reason;   ///< CamelCase; empty where the server gave none.
  std::string message;  ///< Safe to print.
  bool is_version_too_large = false;  ///< The cause ResourceVersionTooLarge.
  std::optional<std::chrono::seconds> retry_after;
};

/// The text of an object of kind Status, in a body or in an event.
ApiStatus ParseApiStatus(std::string_view text);

/// An answer that is not 200, with its body as far as it was kept; that may be
/// a page of a proxy instead of a Status.
ApiStatus StatusOfAnswer(const ResponseHead& head, std::string_view body);

/// `HTTP 403 Forbidden: what the server said`.
std::string DescribeStatus(const ApiStatus& status);

}  // namespace devmgr::apiserver
