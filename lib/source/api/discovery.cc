// SPDX-License-Identifier: Apache-2.0
#include "source/api/discovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/parser.h"
#include "api/value.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

constexpr char kGroupPath[] = "/apis/resource.k8s.io";

/// Newest first. v1alpha1 has no claims that are bound to a node.
constexpr const char* kRead[] = {"v1", "v1beta2", "v1beta1", "v1alpha3",
                                 "v1alpha2"};

/// The versions of an APIGroup; nothing when the body is none.
std::optional<std::set<std::string>> ListedVersions(std::string_view body) {
  const api::ParsedText parsed = api::ParseText(body, /*json_only=*/true);
  if (parsed.documents.size() != 1) return std::nullopt;
  const api::Value* versions = parsed.documents.front()->Find("versions");
  if (versions == nullptr) return std::nullopt;
  std::set<std::string> listed;
  for (const api::ValuePtr& item : versions->items) {
    if (const api::Value* version = item->Find("version")) {
      listed.insert(version->text);
    }
  }
  return listed;
}

}  // namespace

std::optional<ApiRequest> Discovery::Next(TimePoint now) {
  if (is_asking_ || !due_ || now < *due_) return std::nullopt;
  is_asking_ = true;
  due_.reset();
  return ApiRequest{.kind = ApiRequest::Kind::kGet,
                    .target = kGroupPath,
                    .max_bytes = kMaxStatusBytes};
}

void Discovery::OnAnswer(TimePoint now, const ResponseHead& head,
                         std::string_view body) {
  if (head.code == 404) {
    unauthorized_in_a_row_ = 0;
    return Set(now, State::kNotServed, "");
  }
  if (head.code == 200) {
    unauthorized_in_a_row_ = 0;
    if (const auto listed = ListedVersions(body)) return Choose(now, *listed);
    return OnFailure(now, "the answer is no APIGroup");
  }
  const ApiStatus status = StatusOfAnswer(head, body);
  if (head.code == 401) refused_ = true;
  if (head.code == 401 && unauthorized_in_a_row_++ == 0) {
    is_asking_ = false;
    due_ = now;
    return;
  }
  OnFailure(now, DescribeStatus(status));
  if (status.retry_after) due_ = std::max(*due_, now + *status.retry_after);
}

void Discovery::OnFailure(TimePoint now, const std::string& error) {
  last_error_ = fmt::format("{}: {}", kGroupPath, error);
  is_asking_ = false;
  due_ = now + delay_.OnFailure(now);
}

void Discovery::AskAgain(TimePoint now) {
  if (is_asking_) {
    ask_again_ = true;
  } else {
    due_ = due_ ? std::min(*due_, now) : now;
  }
}

void Discovery::OnNotServed(TimePoint now) {
  if (state_ != State::kServed) return;
  without_objects_.insert(version_);
  AskAgain(now);
}

void Discovery::Choose(TimePoint now, const std::set<std::string>& listed) {
  for (const char* version : kRead) {
    if (listed.count(version) == 0 || without_objects_.count(version) > 0) {
      continue;
    }
    return Set(now, State::kServed, version);
  }
  Set(now, State::kUnreadable, "");
}

void Discovery::Set(TimePoint now, State state, std::string version) {
  delay_.OnGood(now);
  is_asking_ = false;
  state_ = state;
  version_ = std::move(version);
  if (state != State::kServed) {
    due_ = now + kPeriod;
    without_objects_.clear();
  }
  if (std::exchange(ask_again_, false)) due_ = now;
}

}  // namespace devmgr::apiserver
