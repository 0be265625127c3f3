// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/event_splitter.h"
#include "source/api/list_reader.h"
#include "source/api/object_store.h"
#include "source/api/retry_delay.h"

namespace devmgr::apiserver {

/// Keeps a copy of one collection: lists it, watches it from there, lists it
/// again where the watch cannot go on. Knows no sockets and no clock: it says
/// which request is next and when, and is given what the server answers.
/// A list never comes from the server's cache as it may happen to be (resource
/// version 0), so that an object which is missing in it is gone. Thread-bound.
class Reflector {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    /// The last version that was seen before a restart; may be empty.
    std::string resource_version;
    int page = 500;
    /// Have the server stream the first objects instead of listing them.
    bool stream_list = false;
  };

  enum class Phase {
    kWaiting,  // For the time of the next request.
    kListing,
    kWatching,
  };
  /// Why there is no good service; kNone while there is.
  enum class Trouble {
    kNone,
    kUnauthenticated,  // 401, also with credentials that were read again.
    kForbidden,        // 403
    kNotServed,        // 404: discovery has to say what is.
    kThrottled,        // 429 ten times in a row.
    kFailing,          // All else.
  };

  Reflector(const Collection& collection, const Options& options, Random random,
            TimePoint now);

  /// The request that is due, if one is; the answer to it is given by the calls
  /// below. Nothing while a request is under way.
  std::optional<ApiRequest> Next(TimePoint now);
  /// When Next or IsOverdue is to be called; nothing: not before something is
  /// answered.
  std::optional<TimePoint> WakeAt() const;
  /// The request that is under way is to be cancelled, and ends with it.
  bool IsOverdue(TimePoint now);

  void OnHead(TimePoint now, const ResponseHead& head);
  /// False: no more of it is wanted. The request is to be cancelled, and has
  /// ended.
  bool OnData(TimePoint now, std::string_view bytes);
  /// The answer ended, or, with an error, the connection did.
  void OnEnd(TimePoint now, const absl::Status& status);

  /// Something has changed that may have been the reason of failures: the next
  /// request is due at once.
  void Hurry(TimePoint now);
  /// Lists again, from the store of the server. A request that is under way is
  /// to be cancelled first, and has ended.
  void ListAgain(TimePoint now);
  /// The credentials were replaced: a watch with the old ones ends within two
  /// and a half minutes.
  void CredentialsChanged(TimePoint now);
  /// True once after a 401: credentials are to be read again.
  bool TakeRefused() { return std::exchange(refused_, false); }

  const ObjectStore& store() const { return store_; }
  std::vector<ObjectChange> TakeChanges() { return store_.TakeChanges(); }
  /// Every object was listed once, and each is decoded.
  bool IsComplete() const { return lists_ > 0 && store_.IsDecoded(); }
  /// How many lists came to their end.
  std::uint64_t lists() const { return lists_; }
  const std::string& resource_version() const { return resource_version_; }
  const Collection& collection() const { return collection_; }
  Phase phase() const { return phase_; }
  Trouble trouble() const { return trouble_; }
  /// For people; stays after the service is good again.
  const std::string& last_error() const { return last_error_; }
  /// How often something failed.
  std::uint64_t errors() const { return errors_; }

 private:
  /// Which versions a list may have.
  enum class Freshness { kNotOlderThan, kMostRecent };

  ApiRequest ListRequest();
  ApiRequest WatchRequest();
  ApiRequest StreamRequest();
  ApiRequest WatchFor(Query query);
  void Begin(TimePoint now);

  absl::Status TakePage(std::string_view bytes);
  absl::Status TakeEvent(std::string_view text);
  absl::Status TakeObject(std::string_view type, std::string_view object);
  absl::Status TakeBookmark(std::string_view object);

  void OnListEnd(TimePoint now);
  void OnWatchEnd(TimePoint now);
  /// The server says why it does not serve: by an answer, or amid a watch.
  void OnStatus(TimePoint now, const ApiStatus& status);
  bool TryAnotherList(TimePoint now, const ApiStatus& status);
  void OnExpiredWatch(TimePoint now, const std::string& error);
  void OnUnauthorized(TimePoint now, const std::string& error);
  void OnThrottled(TimePoint now, const ApiStatus& status,
                   const std::string& error);

  void CommitList(std::string version);
  void RestartList(Freshness freshness);
  void OnGood(TimePoint now);
  void Fail(TimePoint now, Trouble trouble, std::string error,
            RetryDelay& delay);
  void WaitUntil(TimePoint due);
  /// `the watch of /api/v1/pods`
  std::string What() const;

  const Collection collection_;
  const Options options_;
  const Random random_;
  ObjectStore store_;
  RetryDelay failures_;
  RetryDelay refusals_;

  Phase phase_ = Phase::kWaiting;
  TimePoint due_;
  /// The server asked for this; nothing makes us come earlier.
  TimePoint not_before_;

  /// What comes next, or is under way: a watch from resource_version_, or a
  /// list.
  bool is_listed_ = false;
  Freshness freshness_;
  bool is_paged_ = true;
  bool is_streamed_;
  std::string continue_token_;
  std::size_t list_bytes_ = 0;
  int list_pages_ = 0;

  /// The request that is under way.
  bool is_watch_ = false;
  TimePoint began_;
  std::optional<TimePoint> end_by_;
  ResponseHead head_;
  std::string body_;  // Of an answer that is not 200.
  EventSplitter splitter_;
  ListReader page_;
  bool had_event_ = false;
  std::optional<ApiStatus> error_event_;

  std::string resource_version_;
  std::uint64_t lists_ = 0;
  bool refused_ = false;
  int unauthorized_in_a_row_ = 0;
  int throttled_in_a_row_ = 0;
  int expired_in_a_row_ = 0;
  Trouble trouble_ = Trouble::kNone;
  std::string last_error_;
  std::uint64_t errors_ = 0;
};

/// `Unauthenticated` and so on; empty for kNone.
std::string_view TroubleName(Reflector::Trouble trouble);

}  // namespace devmgr::apiserver
