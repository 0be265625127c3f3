// SPDX-License-Identifier: Apache-2.0
#include "source/api/reflector.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "common/status.h"
#include "source/api/json_view.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::seconds;

constexpr seconds kListDeadline{60};
constexpr seconds kWatchGrace{30};
constexpr seconds kStreamedListDeadline{60};
/// Together with the time until the change is noticed five minutes at most.
constexpr seconds kOldCredentials{150};

}  // namespace

std::string_view TroubleName(Reflector::Trouble trouble) {
  using Trouble = Reflector::Trouble;
  switch (trouble) {
    case Trouble::kNone:
      return "";
    case Trouble::kUnauthenticated:
      return "Unauthenticated";
    case Trouble::kForbidden:
      return "Forbidden";
    case Trouble::kNotServed:
      return "NotServed";
    case Trouble::kThrottled:
      return "Throttled";
    case Trouble::kFailing:
      return "Failing";
  }
  return "";
}

Reflector::Reflector(const Collection& collection, const Options& options,
                     Random random, TimePoint now)
    : collection_(collection),
      options_(options),
      random_(random),
      store_(collection),
      failures_(random, RetryDelay::kLast),
      refusals_(random, RetryDelay::kLastRefused),
      due_(now),
      freshness_(options.resource_version.empty() ? Freshness::kMostRecent
                                                  : Freshness::kNotOlderThan),
      is_streamed_(options.stream_list),
      resource_version_(options.resource_version) {}

std::optional<ApiRequest> Reflector::Next(TimePoint now) {
  if (phase_ != Phase::kWaiting || now < due_) return std::nullopt;
  Begin(now);
  if (is_listed_) return WatchRequest();
  return is_streamed_ ? StreamRequest() : ListRequest();
}

std::optional<Reflector::TimePoint> Reflector::WakeAt() const {
  if (phase_ == Phase::kWaiting) return due_;
  return end_by_;
}

bool Reflector::IsOverdue(TimePoint now) {
  if (phase_ == Phase::kWaiting || !end_by_ || now < *end_by_) return false;
  if (is_listed_) {
    // Its credentials are old: the next one has the new ones.
    WaitUntil(now);
  } else {
    is_streamed_ = false;
    Fail(now, Trouble::kFailing,
         fmt::format("the streamed list of {} had no end after {} s",
                     collection_.path, kStreamedListDeadline.count()),
         failures_);
  }
  return true;
}

void Reflector::Begin(TimePoint now) {
  is_watch_ = is_listed_ || is_streamed_;
  phase_ = is_listed_ ? Phase::kWatching : Phase::kListing;
  began_ = now;
  end_by_.reset();
  if (is_watch_ && !is_listed_) end_by_ = now + kStreamedListDeadline;
  head_ = ResponseHead();
  body_.clear();
  splitter_ = EventSplitter();
  page_ = ListReader();
  had_event_ = false;
  error_event_.reset();
}

ApiRequest Reflector::ListRequest() {
  Query query;
  if (!collection_.field_selector.empty()) {
    query.emplace_back("fieldSelector", collection_.field_selector);
  }
  if (is_paged_) query.emplace_back("limit", fmt::format("{}", options_.page));
  if (!continue_token_.empty()) {
    // The token has the version in it.
    query.emplace_back("continue", continue_token_);
  } else if (freshness_ == Freshness::kNotOlderThan) {
    query.emplace_back("resourceVersion", resource_version_);
    query.emplace_back("resourceVersionMatch", "NotOlderThan");
  }
  return {.kind = ApiRequest::Kind::kList,
          .target = TargetOf(collection_.path, query),
          .deadline = kListDeadline,
          .max_bytes = kMaxPageBytes};
}

ApiRequest Reflector::WatchRequest() {
  return WatchFor({{"resourceVersion", resource_version_}});
}

ApiRequest Reflector::StreamRequest() {
  Query query;
  if (freshness_ == Freshness::kNotOlderThan) {
    query.emplace_back("resourceVersion", resource_version_);
  }
  query.emplace_back("resourceVersionMatch", "NotOlderThan");
  query.emplace_back("sendInitialEvents", "true");
  return WatchFor(std::move(query));
}

ApiRequest Reflector::WatchFor(Query query) {
  const seconds duration(300 + static_cast<int>(random_() * 300));
  if (!collection_.field_selector.empty()) {
    query.emplace_back("fieldSelector", collection_.field_selector);
  }
  query.emplace_back("watch", "true");
  query.emplace_back("allowWatchBookmarks", "true");
  query.emplace_back("timeoutSeconds", fmt::format("{}", duration.count()));
  return {.kind = ApiRequest::Kind::kWatch,
          .target = TargetOf(collection_.path, query),
          .deadline = duration + kWatchGrace,
          .max_bytes = 0};
}

void Reflector::Hurry(TimePoint now) {
  failures_.Reset();
  refusals_.Reset();
  if (phase_ == Phase::kWaiting) due_ = std::min(due_, now);
  due_ = std::max(due_, not_before_);
}

void Reflector::ListAgain(TimePoint now) {
  RestartList(Freshness::kMostRecent);
  if (phase_ != Phase::kWaiting) WaitUntil(now);
}

void Reflector::CredentialsChanged(TimePoint now) {
  if (phase_ != Phase::kWatching) return;
  const TimePoint end = now + kOldCredentials;
  end_by_ = end_by_ ? std::min(*end_by_, end) : end;
}

void Reflector::RestartList(Freshness freshness) {
  is_listed_ = false;
  freshness_ = resource_version_.empty() ? Freshness::kMostRecent : freshness;
  continue_token_.clear();
  list_bytes_ = 0;
  list_pages_ = 0;
  store_.BeginList();
}

void Reflector::CommitList(std::string version) {
  store_.EndList();
  resource_version_ = std::move(version);
  is_listed_ = true;
  is_paged_ = true;
  continue_token_.clear();
  list_bytes_ = 0;
  list_pages_ = 0;
  ++lists_;
}

void Reflector::OnGood(TimePoint now) {
  failures_.OnGood(now);
  refusals_.OnGood(now);
  trouble_ = Trouble::kNone;
  unauthorized_in_a_row_ = 0;
  throttled_in_a_row_ = 0;
}

void Reflector::Fail(TimePoint now, Trouble trouble, std::string error,
                     RetryDelay& delay) {
  trouble_ = trouble;
  last_error_ = std::move(error);
  // The list in full may be more than one answer can have.
  is_paged_ = true;
  ++errors_;
  WaitUntil(std::max(now + delay.OnFailure(now), not_before_));
}

void Reflector::WaitUntil(TimePoint due) {
  phase_ = Phase::kWaiting;
  due_ = due;
  end_by_.reset();
}

std::string Reflector::What() const {
  return fmt::format("the {} of {}", is_watch_ ? "watch" : "list",
                     collection_.path);
}

}  // namespace devmgr::apiserver
