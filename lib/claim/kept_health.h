// SPDX-License-Identifier: Apache-2.0
//
// What the ledger keeps of what drivers say about the health of their devices,
// for the next process to go on with.
#pragma once

#include <map>
#include <memory>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// By device; null: nothing is to be kept of it.
using HealthRecords =
    std::map<state::DeviceKey, std::shared_ptr<const state::HealthRecord>>;

/// Of a report that says nothing new, its lease is worth a write only where it
/// would have run out for the next process, or, at the end, always.
enum class Leases { kWithNews, kAll };

/// Writes records of devices that claims hold, where they say something new;
/// erases records of other devices. The decision has no changes when there is
/// nothing to write.
state::Decision KeepHealth(const state::State& state,
                           const HealthRecords& records, Leases leases);

}  // namespace devmgr::claim
