// SPDX-License-Identifier: Apache-2.0
#include "manager/change_stream.h"

#include <devmgr/device_manager.h>

#include <algorithm>
#include <random>
#include <variant>

#include "common/run_on.h"
#include "common/status.h"
#include "view/change_replay.h"
#include "view/device_changes.h"
#include "view/health_changes.h"

namespace devmgr {

absl::StatusOr<DeviceChanges> DeviceManager::Changes(
    const ChangesFrom& /*from*/, std::chrono::milliseconds /*wait*/) const {
  return UnimplementedError("this device manager does not have changes");
}

}  // namespace devmgr

namespace devmgr::manager {
namespace {

constexpr std::size_t kMost = DeviceManager::kMostDeviceChanges;
/// States within the history that readers are at.
constexpr std::size_t kMostKept = 8;

/// Tells this process from others that have read the same ledger.
std::uint64_t NewProcess() {
  std::random_device random;
  return std::uint64_t{random()} + 1;
}

/// Appends what is as it is at `end`. The place of all but the last one is
/// where it was before, so that a reader which stops among them gets all again.
void AppendNow(std::vector<DeviceChange> changes, const ChangeToken& before,
               const ChangeToken& end, DeviceChanges* to) {
  for (DeviceChange& change : changes) change.token = before;
  if (!changes.empty()) changes.back().token = end;
  to->changes.insert(to->changes.end(),
                     std::make_move_iterator(changes.begin()),
                     std::make_move_iterator(changes.end()));
  to->next = end;
}

}  // namespace

ChangeStream::ChangeStream(Parts parts)
    : parts_(std::move(parts)), ring_(NewProcess(), parts_.state.seq) {}

void ChangeStream::OnBatch(const state::State& before,
                           const state::Batch& batch) {
  DEVMGR_ASSERT_ON(parts_.executor);
  auto changes = view::ChangesOf(before, parts_.state, batch);
  // It was said already, when it was reported.
  std::erase_if(changes, [](const DeviceChange& change) {
    return change.kind == DeviceChangeKind::kHealthChanged;
  });
  const bool any = !changes.empty();
  ring_.AddDecision(batch.seq, std::move(changes));
  if (any) parts_.on_changes();
}

void ChangeStream::OnPluginHealth(const ResourceName& resource,
                                  const device::InventoryDelta& delta,
                                  const device::Inventory& inventory) {
  DEVMGR_ASSERT_ON(parts_.executor);
  auto changes = view::ChangesOfPlugin(parts_.state, resource,
                                       view::NewsOf(delta, inventory));
  if (!changes.empty()) {
    for (DeviceChange& change : changes) change.time = parts_.now();
    ring_.AddHealth(std::move(changes));
  } else if (delta.added.empty()) {
    return;
  }
  // Devices that are new and work are no change of any pod's, but there are
  // readers of what is listed.
  parts_.on_changes();
}

void ChangeStream::OnDriverHealth(
    const std::string& driver, const device::DriverHealth::Devices& devices,
    const std::function<device::EffectiveHealth(const device::PoolDevice&)>&
        find) {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<view::HealthNews> news;
  for (const device::PoolDevice& device : devices) {
    const device::EffectiveHealth now = find(device);
    const state::DeviceKey key(driver, device.first, device.second);
    const auto known = said_.find(key);
    const device::Health before =
        known != said_.end() ? known->second : device::Health::kUnknown;
    // A report is repeated all the time.
    if (now.health == before) continue;
    if (now.health == device::Health::kUnknown) {
      said_.erase(known);
    } else {
      said_.insert_or_assign(key, now.health);
    }
    news.push_back({device.second, device.first, now.health, now.message});
  }
  auto changes = view::ChangesOfDriver(parts_.state, driver, news);
  if (changes.empty()) return;
  for (DeviceChange& change : changes) change.time = parts_.now();
  ring_.AddHealth(std::move(changes));
  parts_.on_changes();
}

absl::StatusOr<DeviceChanges> ChangeStream::Read(
    const ChangesFrom& from, std::chrono::milliseconds wait) const {
  if (const auto* token = std::get_if<ChangeToken>(&from)) {
    if (wait.count() > 0 && !parts_.executor.IsCurrent()) {
      ring_.WaitPast(*token, std::chrono::steady_clock::now() + wait);
    }
    if (auto found = ring_.After(*token, kMost)) return *std::move(found);
  }
  return ReadHistory(from);
}

ChangeStream::Now ChangeStream::ReadNow() const {
  return RunOn(parts_.executor, [&] {
    return Now{parts_.moment(), ring_.End(), parts_.now()};
  });
}

absl::StatusOr<DeviceChanges> ChangeStream::ReadHistory(
    const ChangesFrom& from) const {
  const Now now = ReadNow();
  const state::State& state = now.moment.state;
  if (std::holds_alternative<FromSnapshot>(from)) {
    DeviceChanges all;
    AppendNow(view::HoldingsOf(state, now.time), {}, {}, &all);
    AppendNow(view::HealthOfAll(now.moment, now.time), {}, now.end, &all);
    return all;
  }
  const state::ReadHistory read = [&](std::uint64_t after, std::size_t most) {
    return parts_.ledger.History(after, most);
  };
  ChangeToken token;
  state::State then;
  if (const auto* given = std::get_if<ChangeToken>(&from)) {
    token = *given;
    DEVMGR_ASSIGN_OR_RETURN(then, StateOf(state, token, read));
  } else {
    DEVMGR_ASSIGN_OR_RETURN(then, state::EarliestState(state, read));
    token.sequence = then.seq;
  }
  DEVMGR_ASSIGN_OR_RETURN(
      view::Replay replay,
      view::ReplayChanges(std::move(then), token, state.seq, kMost, read));
  if (replay.found.more) {
    Keep(replay.then);
    return std::move(replay.found);
  }
  AppendNow(view::HealthOfAll(now.moment, now.time), replay.found.next, now.end,
            &replay.found);
  return std::move(replay.found);
}

absl::StatusOr<state::State> ChangeStream::StateOf(
    const state::State& now, const ChangeToken& token,
    const state::ReadHistory& read) const {
  {
    const MutexLock lock(mutex_);
    const auto found =
        std::find_if(kept_.begin(), kept_.end(), [&](const state::State& kept) {
          return kept.seq == view::ReplayFrom(token);
        });
    if (found != kept_.end()) return *found;
  }
  return view::StateOf(now, token, read);
}

void ChangeStream::Keep(const state::State& then) const {
  std::optional<state::State> dropped;  // Destroyed without the lock.
  const MutexLock lock(mutex_);
  kept_.push_back(then);
  if (kept_.size() <= kMostKept) return;
  dropped = std::move(kept_.front());
  kept_.pop_front();
}

}  // namespace devmgr::manager
