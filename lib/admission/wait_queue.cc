// SPDX-License-Identifier: Apache-2.0
#include "admission/wait_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace devmgr::admission {
namespace {

/// It is to be judged again whether it can have its devices or not.
bool IsAffected(const WaitQueue::Place& place,
                const std::set<ResourceName>& changed) {
  return place.any_change &&
         std::any_of(place.short_of.begin(), place.short_of.end(),
                     [&](const auto& r) { return changed.contains(r); });
}

}  // namespace

bool WaitQueue::Order::operator<(const Order& other) const {
  return std::tie(other.priority, first_seen_ms, pod) <
         std::tie(priority, other.first_seen_ms, other.pod);
}

std::set<ResourceName> WaitQueue::ResourcesOf(const Place& place) {
  std::set<ResourceName> resources;
  for (const auto& [resource, count] : place.needs) resources.insert(resource);
  return resources;
}

std::set<ResourceName> WaitQueue::Enter(const PodUid& pod, Place place,
                                        std::int64_t now_ms) {
  std::set<ResourceName> let_go;
  Entry entry;
  entry.since_ms = now_ms;
  if (const auto old = pods_.find(pod); old != pods_.end()) {
    entry.since_ms = old->second.since_ms;
    if (IsKeptFor(old->second, now_ms)) let_go = ResourcesOf(old->second.place);
    Remove(pod, old->second);
  }
  if (place.limit.has_value()) {
    entry.deadline_ms = entry.since_ms + place.limit->count();
  }
  if (!place.short_of.empty()) {
    for (const auto& [resource, count] : place.needs) {
      lines_[resource].insert(OrderOf(pod, place));
    }
  }
  entry.place = std::move(place);
  if (IsKeptFor(entry, now_ms)) let_go.clear();
  pods_[pod] = std::move(entry);
  return let_go;
}

std::set<ResourceName> WaitQueue::Leave(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return {};
  std::set<ResourceName> resources = ResourcesOf(found->second.place);
  Remove(pod, found->second);
  pods_.erase(found);
  return resources;
}

std::set<ResourceName> WaitQueue::StepAside(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return {};
  Entry& entry = found->second;
  if (entry.place.short_of.empty()) return {};
  std::set<ResourceName> resources = ResourcesOf(entry.place);
  Remove(pod, entry);
  entry.place.short_of.clear();
  entry.turn_until_ms.reset();
  return resources;
}

void WaitQueue::Remove(const PodUid& pod, const Entry& entry) {
  if (entry.place.short_of.empty()) return;
  for (const auto& [resource, count] : entry.place.needs) {
    const auto line = lines_.find(resource);
    line->second.erase(OrderOf(pod, entry.place));
    if (line->second.empty()) lines_.erase(line);
  }
}

std::chrono::milliseconds WaitQueue::WaitedFor(const PodUid& pod,
                                               std::int64_t now_ms) const {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(now_ms - found->second.since_ms);
}

bool WaitQueue::IsKeptFor(const Entry& entry, std::int64_t now_ms) const {
  if (entry.turn_until_ms.has_value()) return true;
  return !entry.place.short_of.empty() && !entry.place.any_change &&
         now_ms - entry.since_ms >= options_.starvation_limit.count();
}

std::optional<PodUid> WaitQueue::FirstBefore(const PodUid& pod,
                                             const Place& place,
                                             std::int64_t now_ms,
                                             const FreeCount& free) const {
  const Order own = OrderOf(pod, place);
  for (const auto& [resource, count] : place.needs) {
    const auto line = lines_.find(resource);
    if (line == lines_.end()) continue;
    std::int64_t left = free(resource);
    for (const Order& before : line->second) {
      if (!(before < own)) break;
      // It may have come under another time, before the ledger knew it.
      if (before.pod == pod) continue;
      const Entry& entry = pods_.at(before.pod);
      if (!IsKeptFor(entry, now_ms)) continue;
      const auto need = entry.place.needs.find(resource);
      if (need != entry.place.needs.end()) left -= need->second;
      if (entry.place.aligned) left = 0;
      if (left < count) return before.pod;
    }
  }
  return std::nullopt;
}

std::vector<PodUid> WaitQueue::Turns(const std::set<ResourceName>& changed,
                                     std::int64_t now_ms, const FreeCount& free,
                                     const PodUid& but, const Aligns& aligns) {
  std::set<Order> concerned;
  for (const ResourceName& resource : changed) {
    const auto line = lines_.find(resource);
    if (line == lines_.end()) continue;
    concerned.insert(line->second.begin(), line->second.end());
  }
  DeviceCounts left;
  const auto fits = [&](const DeviceCounts& needs) {
    return std::all_of(needs.begin(), needs.end(), [&](const auto& need) {
      const auto known = left.find(need.first);
      if (known != left.end()) return need.second <= known->second;
      return need.second <= (left[need.first] = free(need.first));
    });
  };
  std::vector<PodUid> turns;
  for (const Order& order : concerned) {
    Entry& entry = pods_.at(order.pod);
    const DeviceCounts& needs = entry.place.needs;
    const bool its_turn = entry.turn_until_ms.has_value();
    const bool asked = !its_turn && order.pod != but;
    // Those before it may keep what none of them waits for in these lines.
    const bool enough =
        asked && entry.place.takes && fits(needs) &&
        !FirstBefore(order.pod, entry.place, now_ms, free).has_value() &&
        (!entry.place.aligned || !aligns || aligns(order.pod));
    if (enough || (asked && IsAffected(entry.place, changed))) {
      turns.push_back(order.pod);
    }
    if (enough) entry.turn_until_ms = now_ms + options_.turn.count();
    if (!IsKeptFor(entry, now_ms)) continue;
    for (const auto& [resource, count] : needs) {
      std::int64_t& rest =
          left.try_emplace(resource, free(resource)).first->second;
      rest = entry.place.aligned ? 0 : rest - count;
    }
  }
  return turns;
}

std::optional<std::int64_t> WaitQueue::NextDeadline() const {
  std::optional<std::int64_t> next;
  const auto take = [&](const std::optional<std::int64_t>& time) {
    if (time.has_value() && (!next.has_value() || *time < *next)) next = time;
  };
  for (const auto& [pod, entry] : pods_) {
    take(entry.deadline_ms);
    take(entry.turn_until_ms);
  }
  return next;
}

WaitQueue::DueNow WaitQueue::Due(std::int64_t now_ms) {
  DueNow due;
  for (auto& [pod, entry] : pods_) {
    if (entry.turn_until_ms.has_value() && *entry.turn_until_ms <= now_ms) {
      entry.turn_until_ms.reset();
      Remove(pod, entry);
      entry.place.short_of.clear();
      for (const auto& [resource, count] : entry.place.needs) {
        due.resources.insert(resource);
      }
    }
    if (entry.deadline_ms.has_value() && *entry.deadline_ms <= now_ms) {
      entry.deadline_ms.reset();
      due.pods.push_back(pod);
    }
  }
  return due;
}

}  // namespace devmgr::admission
