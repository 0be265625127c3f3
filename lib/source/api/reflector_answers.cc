// SPDX-License-Identifier: Apache-2.0
//
// What follows from what the server answers.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "common/status.h"
#include "source/api/json_view.h"
#include "source/api/reflector.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A watch that ended before it, without an event, has failed.
constexpr seconds kShortWatch{1};
constexpr int kQuietThrottles = 10;
constexpr seconds kDefaultRetryAfter{1};
constexpr int kMaxPages = 1000;

bool IsExpired(const ApiStatus& status) {
  return status.code == 410 || status.reason == "Expired" ||
         status.reason == "Gone";
}

/// Whether this annotation ends the first objects of a streamed list.
bool EndsInitialEvents(std::string_view bookmark) {
  const std::string_view annotations =
      FindMember(FindMember(bookmark, "metadata"), "annotations");
  return StringMember(annotations, "k8s.io/initial-events-end") == "true";
}

std::string VersionOf(std::string_view object) {
  return StringMember(FindMember(object, "metadata"), "resourceVersion");
}

}  // namespace

void Reflector::OnHead(TimePoint now, const ResponseHead& head) {
  if (phase_ == Phase::kWaiting) return;
  head_ = head;
  if (head.code == 200) OnGood(now);
}

bool Reflector::OnData(TimePoint now, std::string_view bytes) {
  if (phase_ == Phase::kWaiting) return false;
  if (head_.code != 200) {
    body_.append(bytes.substr(
        0, kMaxStatusBytes - std::min(kMaxStatusBytes, body_.size())));
    return true;
  }
  const absl::Status status =
      is_watch_ ? splitter_.Feed(
                      bytes,
                      [this](std::string_view text) { return TakeEvent(text); })
                : TakePage(bytes);
  if (status.ok()) return true;
  if (error_event_) {
    OnStatus(now, *error_event_);
  } else {
    Fail(now, Trouble::kFailing,
         fmt::format("{}: {}", What(), MessageOf(status)), failures_);
    RestartList(Freshness::kNotOlderThan);
  }
  return false;
}

void Reflector::OnEnd(TimePoint now, const absl::Status& status) {
  if (phase_ == Phase::kWaiting) return;
  if (!status.ok() || head_.code == 0) {
    Fail(now, Trouble::kFailing,
         fmt::format("{}: {}", What(),
                     status.ok() ? "there was no answer" : MessageOf(status)),
         failures_);
    if (!is_listed_) RestartList(freshness_);
  } else if (head_.code != 200) {
    OnStatus(now, StatusOfAnswer(head_, body_));
  } else if (is_watch_) {
    OnWatchEnd(now);
  } else {
    OnListEnd(now);
  }
}

absl::Status Reflector::TakePage(std::string_view bytes) {
  DEVMGR_RETURN_IF_ERROR(page_.Feed(bytes, [this](std::string_view text) {
    store_.AddListed(text);
    return absl::OkStatus();
  }));
  if (list_bytes_ + page_.bytes() <= kMaxListBytes) return absl::OkStatus();
  return ResourceExhaustedError("the list exceeds {} bytes", kMaxListBytes);
}

absl::Status Reflector::TakeEvent(std::string_view text) {
  const std::string type = StringMember(text, "type");
  const std::string_view object = FindMember(text, "object");
  had_event_ = true;
  if (type == "ERROR") {
    error_event_ = ParseApiStatus(object);
    return AbortedError("the server ended the watch");
  }
  expired_in_a_row_ = 0;
  if (type == "BOOKMARK") return TakeBookmark(object);
  return TakeObject(type, object);
}

absl::Status Reflector::TakeObject(std::string_view type,
                                   std::string_view object) {
  if (const std::string kind = StringMember(object, "kind");
      kind != collection_.kind) {
    return DataLossError("an event is of kind {} instead of {}",
                         api::Quoted(kind), collection_.kind);
  }
  if (type == "ADDED" || type == "MODIFIED") {
    if (is_listed_) {
      store_.Upsert(object);
    } else {
      store_.AddListed(object);
    }
  } else if (type == "DELETED" && is_listed_) {
    store_.Delete(object);
  } else {
    return DataLossError("an event of {} is of type {}", DescribeObject(object),
                         api::Quoted(type));
  }
  if (std::string version = VersionOf(object); is_listed_ && !version.empty()) {
    resource_version_ = std::move(version);
  }
  return absl::OkStatus();
}

absl::Status Reflector::TakeBookmark(std::string_view object) {
  std::string version = VersionOf(object);
  if (version.empty()) return DataLossError("a bookmark has no version");
  if (is_listed_) {
    resource_version_ = std::move(version);
  } else if (EndsInitialEvents(object)) {
    CommitList(std::move(version));
    phase_ = Phase::kWatching;
    end_by_.reset();
  }
  return absl::OkStatus();
}

void Reflector::OnListEnd(TimePoint now) {
  absl::Status status = page_.Finish();
  list_bytes_ += page_.bytes();
  if (status.ok() && ++list_pages_ > kMaxPages) {
    status =
        ResourceExhaustedError("the list has more than {} pages", kMaxPages);
  }
  if (!status.ok()) {
    Fail(now, Trouble::kFailing,
         fmt::format("{}: {}", What(), MessageOf(status)), failures_);
    RestartList(freshness_);
    return;
  }
  if (page_.meta().continue_token.empty()) {
    CommitList(page_.meta().resource_version);
  } else {
    continue_token_ = page_.meta().continue_token;
  }
  WaitUntil(now);
}

void Reflector::OnWatchEnd(TimePoint now) {
  const absl::Status status = splitter_.Finish();
  if (!status.ok() || !is_listed_) {
    Fail(now, Trouble::kFailing,
         fmt::format("{}: {}", What(),
                     status.ok() ? "it ended before all objects had come"
                                 : MessageOf(status)),
         failures_);
    if (!is_listed_) RestartList(freshness_);
    return;
  }
  const auto lasted = now - began_;
  if (lasted < kShortWatch && !had_event_) {
    Fail(now, Trouble::kFailing,
         fmt::format("{} ended after {} ms without an event", What(),
                     std::chrono::duration_cast<milliseconds>(lasted).count()),
         failures_);
    return;
  }
  expired_in_a_row_ = 0;
  // No server makes us ask for watches without end.
  WaitUntil(std::max(now, began_ + kShortWatch));
}

void Reflector::OnStatus(TimePoint now, const ApiStatus& status) {
  const std::string error =
      fmt::format("{}: {}", What(), DescribeStatus(status));
  if (status.retry_after) not_before_ = now + *status.retry_after;
  if (TryAnotherList(now, status)) return;
  if (is_listed_ && IsExpired(status)) return OnExpiredWatch(now, error);
  switch (status.code) {
    case 401:
      return OnUnauthorized(now, error);
    case 403:
      return Fail(now, Trouble::kForbidden, error, refusals_);
    case 404:
      return Fail(now, Trouble::kNotServed, error, refusals_);
    case 429:
      return OnThrottled(now, status, error);
    default:
      break;
  }
  const bool is_ours = status.code >= 300 && status.code < 500;
  Fail(now, Trouble::kFailing, error, is_ours ? refusals_ : failures_);
  if (!is_listed_) RestartList(freshness_);
}

bool Reflector::TryAnotherList(TimePoint now, const ApiStatus& status) {
  const bool is_too_new =
      status.code == 504 &&
      (status.is_version_too_large ||
       status.message.find("Too large resource version") != std::string::npos);
  const bool is_unknown = status.code == 400 || status.code == 403 ||
                          status.code == 404 || status.code == 422;
  if (is_listed_) {
    if (!is_too_new) return false;
    RestartList(Freshness::kMostRecent);
  } else if (is_streamed_ && is_unknown) {
    is_streamed_ = false;
    RestartList(freshness_);
  } else if (!continue_token_.empty() && IsExpired(status)) {
    is_paged_ = false;
    RestartList(freshness_);
  } else if (freshness_ == Freshness::kNotOlderThan &&
             (IsExpired(status) || is_too_new)) {
    RestartList(Freshness::kMostRecent);
  } else {
    return false;
  }
  // Whatever hint came along was for the request that is not repeated.
  not_before_ = TimePoint();
  WaitUntil(now);
  return true;
}

void Reflector::OnExpiredWatch(TimePoint now, const std::string& error) {
  if (expired_in_a_row_++ == 0) {
    WaitUntil(now);
  } else {
    Fail(now, Trouble::kFailing, error, failures_);
  }
  RestartList(Freshness::kNotOlderThan);
}

void Reflector::OnUnauthorized(TimePoint now, const std::string& error) {
  refused_ = true;
  if (unauthorized_in_a_row_++ == 0) {
    WaitUntil(std::max(now, not_before_));
  } else {
    Fail(now, Trouble::kUnauthenticated, error, failures_);
  }
}

void Reflector::OnThrottled(TimePoint now, const ApiStatus& status,
                            const std::string& error) {
  not_before_ = now + status.retry_after.value_or(kDefaultRetryAfter);
  if (++throttled_in_a_row_ < kQuietThrottles) {
    WaitUntil(not_before_);
  } else {
    Fail(now, Trouble::kThrottled, error, failures_);
  }
}

}  // namespace devmgr::apiserver
