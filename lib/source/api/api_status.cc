// SPDX-License-Identifier: Apache-2.0
#include "source/api/api_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "api/quote.h"
#include "source/api/json_view.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxMessage = 500;
constexpr int kLongestWait = 3600;  // Seconds that a server may ask for.

std::optional<int> IntegerMember(std::string_view object,
                                 std::string_view key) {
  const std::string_view text = FindMember(object, key);
  int number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty()) return std::nullopt;
  return number;
}

std::optional<std::chrono::seconds> Bounded(std::optional<int> seconds) {
  if (!seconds || *seconds <= 0) return std::nullopt;
  return std::chrono::seconds(std::min(*seconds, kLongestWait));
}

}  // namespace

ApiStatus ParseApiStatus(std::string_view text) {
  ApiStatus status;
  status.code = IntegerMember(text, "code").value_or(0);
  status.reason = api::Readable(StringMember(text, "reason"), 80);
  status.message = api::Readable(StringMember(text, "message"), kMaxMessage);
  const std::string_view details = FindMember(text, "details");
  status.is_version_too_large =
      FindMember(details, "causes").find("\"ResourceVersionTooLarge\"") !=
      std::string_view::npos;
  status.retry_after = Bounded(IntegerMember(details, "retryAfterSeconds"));
  return status;
}

ApiStatus StatusOfAnswer(const ResponseHead& head, std::string_view body) {
  ApiStatus status;
  if (StringMember(body, "kind") == "Status") {
    status = ParseApiStatus(body);
  } else {
    status.message = api::Readable(body.substr(0, kMaxMessage), 200);
  }
  status.code = head.code;
  if (head.retry_after) {
    status.retry_after =
        std::min(*head.retry_after, std::chrono::seconds(kLongestWait));
  }
  return status;
}

std::string DescribeStatus(const ApiStatus& status) {
  std::string text = fmt::format("HTTP {}", status.code);
  if (!status.reason.empty()) text += " " + status.reason;
  if (!status.message.empty()) text += ": " + status.message;
  return text;
}

}  // namespace devmgr::apiserver
