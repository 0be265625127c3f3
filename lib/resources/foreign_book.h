// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/runtime_report.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "claim/foreign_holders.h"
#include "common/executor.h"
#include "device/hardware.h"
#include "device/inventory.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "state/state.h"

namespace devmgr::resources {

/// Containers that hold devices which no pod was given: has the ledger remember
/// what CRI shims report of them, and says what becomes of it. Lives on the
/// manager's thread.
class ForeignBook {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    const device::InventoryMap& inventories;
    std::function<std::int64_t()> now_ms;
    std::string boot_id;
    /// Which hardware a device of a plugin is. Null: that is not known.
    std::function<device::Hardware(const ResourceName&, const DeviceId&)>
        hardware_of = nullptr;
  };
  /// Has the ledger end those of earlier boots.
  explicit ForeignBook(Parts parts);

  /// Of a report that RuntimeBook took. One write at most; should it fail, the
  /// next report brings the same.
  void Take(const RuntimeReport& report);

  /// Pods may have what their containers hold now; events of holders that are
  /// new, gone or free.
  void OnCommitted(const ledger::Changes& changes);

  /// As manager::FreeHolder. `done` runs on the ledger's thread, once it is on
  /// disk.
  void Free(const std::string& id, const std::string& reason,
            std::function<void(const absl::Status&)> done);

 private:
  /// The pod's record is another: it may have what its containers hold.
  void OnPod(const PodUid& pod);
  /// The ledger has `now` in place of `before` (null: nothing).
  void OnRecorded(const state::ForeignHolderRecord* before,
                  const state::ForeignHolderRecord* now);
  /// Container, resource and device.
  using Conflicts =
      std::set<std::tuple<state::ContainerId, ResourceName, DeviceId>>;

  state::ForeignHolderRecord RecordOf(const ForeignHolder& holder) const;
  bool IsOldNews(const claim::ReportedHolders& reported);
  /// An event for each device that another pod has, once.
  void TellOfConflicts(const claim::ReportedHolders& reported);
  void Tell(bool warning, const char* reason,
            const state::ForeignHolderRecord& holder,
            const std::string& message);

  const Parts parts_;
  /// Runtimes whose last report had no holders.
  std::set<std::string> empty_;
  /// Conflicts of which there was an event, by runtime.
  std::map<std::string, Conflicts> conflicts_;
};

}  // namespace devmgr::resources
