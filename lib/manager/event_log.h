// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace devmgr::manager {

/// The last events, bounded. Not thread-safe: lives on the manager's thread.
class EventLog {
 public:
  EventLog(std::size_t limit, std::function<WallTime()> now,
           std::function<void(const EventInfo&)> on_event)
      : limit_(limit), now_(std::move(now)), on_event_(std::move(on_event)) {}

  void Add(bool warning, std::string reason, std::string object_kind,
           ObjectName object, std::string message) {
    EventInfo event{++last_sequence_,
                    now_(),
                    warning,
                    std::move(reason),
                    std::move(object_kind),
                    std::move(object),
                    std::move(message)};
    events_.push_back(event);
    if (events_.size() > limit_) events_.pop_front();
    on_event_(event);
  }

  std::vector<EventInfo> After(std::uint64_t sequence) const {
    std::vector<EventInfo> result;
    for (const EventInfo& event : events_) {
      if (event.sequence > sequence) result.push_back(event);
    }
    return result;
  }

 private:
  const std::size_t limit_;
  const std::function<WallTime()> now_;
  const std::function<void(const EventInfo&)> on_event_;
  std::deque<EventInfo> events_;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace devmgr::manager
