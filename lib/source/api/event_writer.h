// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "source/api/collection.h"
#include "source/api/outgoing.h"
#include "source/api/request_rate.h"

namespace devmgr::apiserver {

/// What an event is about, as the server knows it.
struct InvolvedObject {
  std::string api_version;
  std::string kind;
  ObjectName name;
  std::string uid;
};

/// Sends events in their order, one request at a time: a new one is created,
/// one that has happened again is patched. Of what waits for a server that is
/// away the newest 1,000 are kept; one that waits already counts once more. An
/// answer of the server ends an event, whatever it is, but for those that ask
/// for time. Of one object 25 are sent, and from then on one in five minutes.
/// Follows client-go's tools/record. Knows no sockets and no clock.
/// Thread-bound.
class EventWriter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMostWaiting = 1'000;
  static constexpr std::size_t kMostKnown = 4'096;
  static constexpr int kBurst = 25;
  static constexpr std::chrono::minutes kPeriod{5};
  static constexpr std::size_t kMaxMessage = 1'024;

  EventWriter(std::string node, Random random);

  /// `event` is about `object`.
  void Add(TimePoint now, const EventInfo& event, const InvolvedObject& object);

  std::optional<ApiRequest> Next(TimePoint now);
  std::optional<TimePoint> WakeAt() const;
  void OnAnswer(TimePoint now, const ResponseHead& head, std::string_view body);
  /// There was no answer: it is sent again, under the same name.
  void OnFailure(TimePoint now, const std::string& error);

  void Hurry(TimePoint now);
  bool TakeRefused() { return std::exchange(refused_, false); }
  std::size_t waiting() const { return waiting_.size(); }
  /// Events that were not sent, because there were too many, or that the server
  /// did not take.
  std::uint64_t dropped() const { return dropped_; }
  const std::string& last_error() const { return last_error_; }

 private:
  /// By which an event is known to be the same again.
  using Key = std::tuple<bool, std::string, std::string, ObjectName,
                         std::string, std::string>;
  struct Waiting {
    Key key;
    EventInfo event;
    InvolvedObject object;
    std::string name;  ///< At the server.
  };
  /// A bounded map: what was not used for longest goes first.
  template <typename KeyType, typename Value>
  class Known {
   public:
    Value* Find(const KeyType& key);
    Value& Put(const KeyType& key, Value value);
    void Erase(const KeyType& key);

   private:
    using Entries = std::list<std::pair<KeyType, Value>>;
    Entries entries_;
    std::map<KeyType, typename Entries::iterator> places_;
  };

  bool IsTooOften(TimePoint now, const Key& key);
  std::string NewName(const EventInfo& event, const InvolvedObject& object);
  ApiRequest Create(const Waiting& waiting) const;
  ApiRequest Repeat(const Waiting& waiting) const;
  void End(bool is_stored);

  const std::string node_;
  WriteRetry retry_;
  std::list<Waiting> waiting_;
  /// Of those that are not under way.
  std::map<Key, std::list<Waiting>::iterator> places_;
  bool is_asking_ = false;
  bool is_creating_ = false;  // What is under way.
  std::optional<TimePoint> due_;
  /// Names of events that the server has.
  Known<Key, std::string> stored_;
  /// By kind and object.
  Known<std::pair<std::string, ObjectName>, RequestRate> rates_;
  std::uint64_t last_number_ = 0;
  std::uint64_t dropped_ = 0;
  bool refused_ = false;
  std::string last_error_;
};

}  // namespace devmgr::apiserver
