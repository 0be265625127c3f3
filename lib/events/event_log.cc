// SPDX-License-Identifier: Apache-2.0
#include "events/event_log.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace devmgr::events {
namespace {

constexpr char kPod[] = "Pod";
constexpr char kGone[] = " (gone)";

bool IsOfThePast(const std::string& group) { return group.ends_with(kGone); }

/// Of a log with few places every share has some.
constexpr std::size_t kLeastShare = 8;

/// How long a reason counts as one that comes again and again.
constexpr std::chrono::minutes kRepetitive{10};

/// What shares are of.
constexpr char kOfObject = 'o';
constexpr char kOfReason = 'r';
constexpr char kOfRepeats = 'n';
constexpr char kOfGroup = 'g';

/// Puts an entry where its sequence belongs: mostly at the end.
template <typename Place>
void PutInOrder(std::vector<Place>& places, Place entry) {
  const auto is_before = [](const Place& a, const Place& b) {
    return a->event.sequence < b->event.sequence;
  };
  places.insert(
      std::upper_bound(places.begin(), places.end(), entry, is_before), entry);
}

/// A list that becomes empty goes.
template <typename Lists, typename Key, typename Place>
void TakeOut(Lists& lists, const Key& key, Place entry) {
  const auto list = lists.find(key);
  std::erase(list->second, entry);
  if (list->second.empty()) lists.erase(list);
}

}  // namespace

EventLog::EventLog(Executor& executor, std::size_t limit,
                   std::function<WallTime()> now,
                   std::function<void(const EventInfo&)> on_event)
    : executor_(executor),
      limit_(limit),
      now_(std::move(now)),
      on_event_(std::move(on_event)) {}

void EventLog::Add(bool warning, std::string reason, std::string object_kind,
                   ObjectName object, std::string message) {
  DEVMGR_ASSERT_ON(executor_);
  EventInfo event;
  event.time = event.first_time = now_();
  event.warning = warning;
  event.reason = std::move(reason);
  event.object_kind = std::move(object_kind);
  event.object = std::move(object);
  event.message = std::move(message);
  if (const auto known = sources_.find(SourceOf(event));
      known != sources_.end()) {
    const std::vector<Place>& places = known->second;
    MarkAgain(places);
    auto same =
        std::find_if(places.begin(), places.end(), [&](const Place& place) {
          return place->event.message == event.message;
        });
    if (same == places.end() && places.size() >= kMostMessages) {
      same = std::prev(places.end());
    }
    if (same != places.end()) {
      const auto shares = SharesOf(**same);
      Repeat(*same, std::move(event.message));
      return MakeRoom(shares);
    }
    return Insert(std::move(event), /*again=*/true);
  }
  Insert(std::move(event), /*again=*/false);
}

void EventLog::OnObjectGone(const std::string& object_kind,
                            const ObjectName& object) {
  DEVMGR_ASSERT_ON(executor_);
  const auto known = shares_.find(ShareOfObject(object_kind, object));
  if (known == shares_.end()) return;
  const std::string group = object_kind + kGone;
  std::vector<std::pair<Share, std::size_t>> shares;
  const Places places = known->second;
  for (const auto place : places) {
    if (place->group == group) continue;
    TakeOutOfLists(place);
    place->group = group;
    PutIntoLists(place);
    shares = SharesOf(*place);
    // What follows under this name is about another object.
    sources_.erase(SourceOf(place->event));
  }
  MakeRoom(shares);
}

std::vector<EventInfo> EventLog::After(std::uint64_t sequence) const {
  DEVMGR_ASSERT_ON(executor_);
  std::vector<EventInfo> result;
  for (const Entry& entry : entries_) {
    if (entry.event.sequence > sequence) result.push_back(entry.event);
  }
  return result;
}

EventLog::Source EventLog::SourceOf(const EventInfo& event) {
  return {event.warning, event.reason, event.object_kind, event.object};
}

EventLog::Share EventLog::ShareOfObject(const std::string& kind,
                                        const ObjectName& object) {
  return {kOfObject, kind, "", object};
}

std::vector<std::pair<EventLog::Share, std::size_t>> EventLog::SharesOf(
    const Entry& entry) const {
  const std::size_t tenth = std::max(kLeastShare, limit_ / 10);
  const std::size_t twentieth = std::max(kLeastShare, limit_ / 20);
  const std::size_t fortieth = std::max(kLeastShare, limit_ / 40);
  const EventInfo& event = entry.event;
  std::vector<std::pair<Share, std::size_t>> shares;
  shares.emplace_back(ShareOfObject(event.object_kind, event.object),
                      twentieth);
  if (event.warning) {
    shares.push_back(
        {{kOfReason, event.object_kind, event.reason, {}}, twentieth});
  } else if (entry.again) {
    shares.push_back(
        {{kOfRepeats, event.object_kind, event.reason, {}}, fortieth});
  }
  if (entry.group != kPod) {
    shares.push_back({{kOfGroup, entry.group, "", {}}, tenth});
  }
  return shares;
}

void EventLog::PutIntoLists(Place entry) {
  for (const auto& [share, most] : SharesOf(*entry)) {
    PutInOrder(shares_[share], entry);
  }
  PutInOrder(groups_[entry->group], entry);
}

void EventLog::TakeOutOfLists(Place entry) {
  for (const auto& [share, most] : SharesOf(*entry)) {
    TakeOut(shares_, share, entry);
  }
  TakeOut(groups_, entry->group, entry);
}

void EventLog::Repeat(Place entry, std::string message) {
  ++entry->event.count;
  entry->event.time = now_();
  entry->event.message = std::move(message);
  const bool rested = executor_.Now() - entry->delivered_at >= kPause;
  if (rested && entry->delivered > 0 && MayDeliver(entry->event.object_kind)) {
    Deliver(entry);
  } else {
    ArmTimer();
  }
}

/// What happens to an object once in its life needs no bound of its own.
void EventLog::MarkAgain(const std::vector<Place>& places) {
  for (const auto place : places) {
    if (place->again) continue;
    TakeOutOfLists(place);
    place->again = true;
    PutIntoLists(place);
  }
}

bool EventLog::IsRepetitive(const EventInfo& event) const {
  const auto known = repetitive_.find({event.object_kind, event.reason});
  return known != repetitive_.end() && executor_.Now() < known->second;
}

void EventLog::Insert(EventInfo event, bool again) {
  again = again || IsRepetitive(event);
  event.sequence = ++last_sequence_;
  const auto place = entries_.insert(entries_.end(), Entry{});
  place->group = event.object_kind;
  place->again = again;
  place->event = std::move(event);
  sources_[SourceOf(place->event)].push_back(place);
  PutIntoLists(place);
  MakeRoom(SharesOf(*place));
  if (MayDeliver(place->event.object_kind)) {
    Deliver(place);
  } else {
    ArmTimer();
  }
}

void EventLog::MakeRoom(
    const std::vector<std::pair<Share, std::size_t>>& shares) {
  for (const auto& [share, most] : shares) {
    for (;;) {
      const auto places = shares_.find(share);
      if (places == shares_.end() || places->second.size() <= most) break;
      if (const auto& [what, kind, reason, object] = share;
          what == kOfRepeats) {
        const auto now = executor_.Now();
        std::erase_if(repetitive_,
                      [now](const auto& known) { return known.second <= now; });
        repetitive_[{kind, reason}] = now + kRepetitive;
      }
      Drop(places->second.front());
    }
  }
  // Of groups of one size that with the oldest entry: never what is new.
  const auto rank = [](const auto& group) {
    const Places& places = group.second;
    return std::tuple(IsOfThePast(group.first), places.size(),
                      std::numeric_limits<std::uint64_t>::max() -
                          places.front()->event.sequence);
  };
  while (entries_.size() > limit_) {
    const auto largest = std::max_element(
        groups_.begin(), groups_.end(),
        [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    Drop(largest->second.front());
  }
}

void EventLog::Drop(Place entry) {
  if (const auto source = sources_.find(SourceOf(entry->event));
      source != sources_.end()) {
    std::erase(source->second, entry);
    if (source->second.empty()) sources_.erase(source);
  }
  TakeOutOfLists(entry);
  entries_.erase(entry);
}

bool EventLog::MayDeliver(const std::string& kind) {
  const auto now = executor_.Now();
  if (now - window_ >= kPause) {
    window_ = now;
    at_once_.clear();
  }
  std::size_t& count = at_once_[kind];
  if (count >= kMostAtOnce) return false;
  ++count;
  return true;
}

void EventLog::Deliver(Place entry) {
  EventInfo& event = entry->event;
  // Who has read it before reads it again.
  if (entry->delivered > 0 || event.sequence != last_sequence_) {
    TakeOutOfLists(entry);
    event.sequence = ++last_sequence_;
    PutIntoLists(entry);
  }
  event.fresh = event.count - entry->delivered;
  entry->delivered = event.count;
  entry->delivered_at = executor_.Now();
  entries_.splice(entries_.end(), entries_, entry);
  // A copy: what it leads to may drop the entry.
  const EventInfo copy = event;
  on_event_(copy);
}

void EventLog::ArmTimer() {
  if (std::exchange(timer_armed_, true)) return;
  executor_.PostAfter(kPause, [this] {
    timer_armed_ = false;
    DeliverRest();
  });
}

void EventLog::DeliverRest() {
  std::vector<std::uint64_t> waiting;
  for (const Entry& entry : entries_) {
    if (entry.delivered < entry.event.count) {
      waiting.push_back(entry.event.sequence);
    }
  }
  for (const std::uint64_t sequence : waiting) {
    const auto entry = std::find_if(
        entries_.begin(), entries_.end(),
        [&](const Entry& e) { return e.event.sequence == sequence; });
    if (entry == entries_.end()) continue;
    if (!MayDeliver(entry->event.object_kind)) {
      ArmTimer();
    } else {
      Deliver(entry);
    }
  }
}

}  // namespace devmgr::events
