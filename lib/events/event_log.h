// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/executor.h"

namespace devmgr::events {

/// The last events, bounded, each once: repeats are counted. What one object,
/// one reason of warnings or one kind of object may take of it is bounded as
/// well (DeviceManager::Events), and so is the rate at which it delivers
/// (DeviceManagerObserver::OnEvent). Lives on the manager's thread.
class EventLog {
 public:
  /// Between two deliveries of what is not delivered at once.
  static constexpr std::chrono::milliseconds kPause{10'000};
  /// Events of one kind of object that are delivered at once in such a pause.
  static constexpr std::size_t kMostAtOnce = 200;
  /// Messages of one reason and object that are kept apart.
  static constexpr std::size_t kMostMessages = 16;

  /// `executor` is borrowed and must outlive the log, or be stopped before.
  /// `on_event` may look at the log.
  EventLog(Executor& executor, std::size_t limit, std::function<WallTime()> now,
           std::function<void(const EventInfo&)> on_event);

  void Add(bool warning, std::string reason, std::string object_kind,
           ObjectName object, std::string message);

  /// The object is gone: what is known of it counts as of the past, of which
  /// less is kept.
  void OnObjectGone(const std::string& object_kind, const ObjectName& object);

  std::vector<EventInfo> After(std::uint64_t sequence) const;
  /// Of the newest event; 0: there is none.
  std::uint64_t last_sequence() const { return last_sequence_; }

 private:
  struct Entry {
    EventInfo event;
    std::string group;  ///< The kind, or that of objects gone.
    /// Its source had another event, too, or its reason is one that others
    /// have had again and again.
    bool again = false;
    std::uint64_t delivered = 0;  ///< Of `event.count`.
    std::chrono::steady_clock::time_point delivered_at{};
  };
  using Entries = std::list<Entry>;
  using Place = Entries::iterator;
  /// Type, reason, kind and object.
  using Source = std::tuple<bool, std::string, std::string, ObjectName>;
  /// What has a share of the log: an object, a reason of warnings, a reason of
  /// others that come again for the same object, a group.
  using Share = std::tuple<char, std::string, std::string, ObjectName>;

  /// By sequence.
  using Places = std::vector<Place>;

  static Source SourceOf(const EventInfo& event);
  static Share ShareOfObject(const std::string& kind, const ObjectName& object);
  /// The shares that an entry counts for, each with its bound.
  std::vector<std::pair<Share, std::size_t>> SharesOf(const Entry& entry) const;
  /// Puts an entry into the lists of its shares and of its group; takes it out,
  /// before anything of it changes on which those depend.
  void PutIntoLists(Place entry);
  void TakeOutOfLists(Place entry);

  void MarkAgain(const std::vector<Place>& places);
  bool IsRepetitive(const EventInfo& event) const;
  void Repeat(Place entry, std::string message);
  void Insert(EventInfo event, bool again);
  /// Drops the oldest of what takes more than its share. While there are too
  /// many then, the oldest of objects gone, or else of the largest group.
  void MakeRoom(const std::vector<std::pair<Share, std::size_t>>& shares);
  void Drop(Place entry);

  /// Whether something of this kind may be delivered at once.
  bool MayDeliver(const std::string& kind);
  /// Calls `on_event_` last.
  void Deliver(Place entry);
  void ArmTimer();
  void DeliverRest();

  Executor& executor_;
  const std::size_t limit_;
  const std::function<WallTime()> now_;
  const std::function<void(const EventInfo&)> on_event_;
  Entries entries_;  ///< By sequence.
  std::map<Source, std::vector<Place>> sources_;
  std::map<Share, Places> shares_;
  std::map<std::string, Places> groups_;
  /// Kinds and reasons, no warnings, that have used up their share of repeats:
  /// until when they count so, since what is dropped is not remembered.
  std::map<std::pair<std::string, std::string>,
           std::chrono::steady_clock::time_point>
      repetitive_;
  std::uint64_t last_sequence_ = 0;
  /// Deliveries at once by kind, since `window_`.
  std::map<std::string, std::size_t> at_once_;
  std::chrono::steady_clock::time_point window_{};
  bool timer_armed_ = false;
};

}  // namespace devmgr::events
