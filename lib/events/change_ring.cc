// SPDX-License-Identifier: Apache-2.0
#include "events/change_ring.h"

#include <algorithm>
#include <utility>

namespace devmgr::events {
namespace {

std::size_t WeightOf(const DeviceChange& change) {
  return 1 + change.devices.size() + change.cdi_devices.size();
}

}  // namespace

ChangeRing::ChangeRing(std::uint64_t process, std::uint64_t sequence,
                       std::size_t most_devices)
    : process_(process),
      most_devices_(most_devices),
      begin_{sequence, ChangeToken::kWhole, 0, process},
      end_(begin_) {}

void ChangeRing::AddDecision(std::uint64_t sequence,
                             std::vector<DeviceChange> changes) {
  for (DeviceChange& change : changes) change.token.process = process_;
  Add({sequence, ChangeToken::kWhole, 0, process_}, std::move(changes));
}

void ChangeRing::AddHealth(std::vector<DeviceChange> changes) {
  if (changes.empty()) return;
  // One thread adds, so that this is still the end below.
  ChangeToken end = End();
  for (DeviceChange& change : changes) {
    ++end.health;
    change.token = end;
  }
  Add(end, std::move(changes));
}

void ChangeRing::Add(const ChangeToken& end,
                     std::vector<DeviceChange> changes) {
  Changes shared;
  shared.reserve(changes.size());
  std::size_t devices = 0;
  for (DeviceChange& change : changes) {
    devices += WeightOf(change);
    shared.push_back(std::make_shared<const DeviceChange>(std::move(change)));
  }
  Changes dropped;
  const MutexLock lock(mutex_);
  end_ = end;
  if (shared.empty()) return;
  changes_.insert(changes_.end(), shared.begin(), shared.end());
  devices_ += devices;
  TrimLocked(&dropped);
  added_.NotifyAll();
}

void ChangeRing::TrimLocked(Changes* dropped) {
  // One change is kept, however large it is.
  while (devices_ > most_devices_ && changes_.size() > 1) {
    begin_ = changes_.front()->token;
    devices_ -= WeightOf(*changes_.front());
    dropped->push_back(std::move(changes_.front()));
    changes_.pop_front();
  }
}

ChangeToken ChangeRing::End() const {
  const MutexLock lock(mutex_);
  return end_;
}

bool ChangeRing::ReachesLocked(const ChangeToken& token) const {
  return token.process == process_ && begin_ <= token && token <= end_;
}

bool ChangeRing::Reaches(const ChangeToken& token) const {
  const MutexLock lock(mutex_);
  return ReachesLocked(token);
}

std::optional<DeviceChanges> ChangeRing::After(const ChangeToken& token,
                                               std::size_t most) const {
  Changes found;
  DeviceChanges result;
  {
    const MutexLock lock(mutex_);
    if (!ReachesLocked(token)) return std::nullopt;
    auto next =
        std::upper_bound(changes_.begin(), changes_.end(), token,
                         [](const ChangeToken& wanted, const auto& change) {
                           return wanted < change->token;
                         });
    const auto left = static_cast<std::size_t>(changes_.end() - next);
    const auto count = std::min(left, most);
    found.assign(next, next + static_cast<std::ptrdiff_t>(count));
    result.more = count < left;
    result.next = result.more ? found.back()->token : end_;
  }
  result.changes.reserve(found.size());
  for (const auto& change : found) result.changes.push_back(*change);
  return result;
}

void ChangeRing::WaitPast(
    const ChangeToken& token,
    std::chrono::steady_clock::time_point deadline) const {
  const MutexLock lock(mutex_);
  while (ReachesLocked(token) &&
         (changes_.empty() || changes_.back()->token <= token)) {
    if (!added_.WaitUntil(mutex_, deadline)) return;
  }
}

}  // namespace devmgr::events
