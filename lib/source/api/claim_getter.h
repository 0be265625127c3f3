// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/objects.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/api/api_status.h"
#include "source/api/collection.h"
#include "source/api/object_store.h"
#include "source/api/retry_delay.h"

namespace devmgr::apiserver {

/// Claims that pods refer to, and these pods.
using WantedClaims = std::map<ObjectName, std::set<std::string>>;

/// Adds the claims that `pod` refers to by spec and status.
void AddClaimsOf(const Pod& pod, WantedClaims* wanted);

/// Reads single claims by their names, as the credentials of a node may: those
/// that pods of the node refer to. A claim is asked for again until it is
/// allocated, and reserved for each of these pods. It knows no sockets and no
/// clock. Thread-bound.
class ClaimGetter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr int kMaxRequests = 4;
  /// The server's graph of pods and claims lags behind a binding.
  static constexpr std::chrono::milliseconds kFirstUnrelated{200};
  /// A claim that is not there, or not ready.
  static constexpr std::chrono::milliseconds kFirstUnready{1000};

  struct Get {
    ObjectName claim;
    ApiRequest request;
  };

  explicit ClaimGetter(Random random) : random_(std::move(random)) {}

  /// Claims that are not among them any more are forgotten; that says nothing
  /// of whether they exist.
  void Want(TimePoint now, const WantedClaims& wanted);
  /// The same of one claim, to which these pods refer.
  void WantFor(TimePoint now, const ObjectName& claim,
               const std::set<std::string>& pods);
  /// The version of resource.k8s.io; empty: none is served.
  void SetVersion(TimePoint now, const std::string& version);

  /// The next request, of at most kMaxRequests under way.
  std::optional<Get> Next(TimePoint now);
  std::optional<TimePoint> WakeAt() const;
  void OnAnswer(TimePoint now, const ObjectName& claim,
                const ResponseHead& head, std::string_view body);
  void OnFailure(TimePoint now, const ObjectName& claim,
                 const std::string& error);

  /// What an answer to a request of `since` or later says of a claim; nothing
  /// as long as there is none.
  ///   NotFound     there is no such claim
  ///   Unavailable  it could not be read, or is not asked for
  std::optional<absl::Status> AnswerSince(TimePoint since,
                                          const ObjectName& claim) const;

  /// Each claim that is not settled is asked for at once.
  void Hurry(TimePoint now);
  /// This one is, whether or not it is settled.
  void Refresh(TimePoint now, const ObjectName& claim);
  bool TakeRefused() { return std::exchange(refused_, false); }
  /// True once after the server did not know the version.
  bool TakeNotServed() { return std::exchange(not_served_, false); }

  /// As they were read last, by namespace and name.
  const ObjectStore::Objects& objects() const { return objects_; }
  std::vector<ObjectChange> TakeChanges() {
    return std::exchange(changes_, {});
  }
  /// How many claims are to be read, or to be read again.
  std::size_t unsettled() const;
  /// By claim: why it could not be read. What is transient is not here.
  std::map<ObjectName, std::string> problems() const;
  /// By claim that was never read: why. One that does not exist is not here.
  std::map<ObjectName, std::string> unread() const;

 private:
  enum class Outcome {
    kNone,
    kUnready,
    kUnrelated,
    kUnauthorized,
    kThrottled,
    kRefused,
    kFailed,
  };
  struct Entry {
    std::set<std::string> pods;
    std::optional<TimePoint> due;  // Nothing: settled, or under way.
    bool is_asking = false;
    TimePoint asked;                    // When the last request was sent.
    std::optional<TimePoint> answered;  // The same, of the last answer.
    bool ask_again = false;
    Outcome outcome = Outcome::kNone;
    std::optional<RetryDelay> delay;  // Of this outcome.
    std::string error;
    std::shared_ptr<const StoredObject> object;
  };

  /// The claim may be another one, or asked for or not.
  void Note(const ObjectName& claim);
  /// Calls `visit(name, entry)` for each that is not quiet.
  template <typename Visit>
  void ForEachOpen(Visit visit) const;
  /// What was asked for; null when no pod refers to it any more.
  Entry* EndRequest(const ObjectName& claim);
  void OnObject(TimePoint now, Entry& entry, std::string_view body);
  void OnMissing(TimePoint now, Entry& entry);
  void OnStatus(TimePoint now, Entry& entry, const ApiStatus& status);
  void Retry(TimePoint now, Entry& entry, Outcome outcome, std::string error,
             std::chrono::milliseconds at_least = {});
  static bool IsSettled(const Entry& entry);
  static std::string WhyUnread(const Entry& entry);

  const Random random_;
  std::string version_;
  std::map<ObjectName, Entry> entries_;
  /// Those that are asked for, are to be, or were not read.
  std::set<ObjectName> open_;
  ObjectStore::Objects objects_;
  std::vector<ObjectChange> changes_;
  int requests_ = 0;
  bool refused_ = false;
  bool not_served_ = false;
};

}  // namespace devmgr::apiserver
