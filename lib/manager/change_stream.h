// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_changes.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "events/change_ring.h"
#include "ledger/ledger.h"
#include "state/decision.h"
#include "state/history.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::manager {

/// What readers of changes get: the newest from memory, what is older from the
/// ledger's history. Lives on the manager's thread, but for Read.
class ChangeStream {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    std::function<view::Moment()> moment;
    std::function<WallTime()> now;
    std::function<void()> on_changes;
  };
  /// Begins with what the state is now.
  explicit ChangeStream(Parts parts);

  /// The projection has this batch; `before`: as it was.
  void OnBatch(const state::State& before, const state::Batch& batch);
  /// A list, or the end of a plugin, has changed its devices.
  void OnPluginHealth(const ResourceName& resource,
                      const device::InventoryDelta& delta,
                      const device::Inventory& inventory);
  /// These devices may have another health, as `find` says.
  void OnDriverHealth(
      const std::string& driver, const device::DriverHealth::Devices& devices,
      const std::function<device::EffectiveHealth(const device::PoolDevice&)>&
          find);

  /// As DeviceManager::Changes. On any thread; waits on another one than the
  /// manager's only.
  absl::StatusOr<DeviceChanges> Read(const ChangesFrom& from,
                                     std::chrono::milliseconds wait) const;

 private:
  /// What is known at one moment, and the place of it.
  struct Now {
    view::Moment moment;
    ChangeToken end;
    WallTime time;
  };
  Now ReadNow() const;
  absl::StatusOr<DeviceChanges> ReadHistory(const ChangesFrom& from) const;
  absl::StatusOr<state::State> StateOf(const state::State& now,
                                       const ChangeToken& token,
                                       const state::ReadHistory& read) const;
  /// Where the next part of a long history is likely to be asked for.
  void Keep(const state::State& then) const;

  const Parts parts_;
  events::ChangeRing ring_;
  /// Health of devices of drivers as it was passed on last; Unknown ones are
  /// not among them. No more than what is known of drivers.
  std::map<state::DeviceKey, device::Health> said_;

  mutable Mutex mutex_;
  mutable std::deque<state::State> kept_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::manager
