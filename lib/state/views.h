// SPDX-License-Identifier: Apache-2.0
//
// The ledger's projection in the words of devmgr/status_types.h: what people
// and programs are shown. Used by the running manager, which adds what only it
// knows (reasons to wait, last errors), and by the reader of stopped state
// directories.
#pragma once

#include <devmgr/status_types.h>

#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::state {

PodState PodStateOf(PodPhase phase);

/// What the ledger tells about a pod. The phase becomes the state as it is:
/// whether a Ready pod has to be prepared again after a reboot is for the
/// manager to say. Reason and message are those of a rejection.
PodInfo PodInfoOf(const PodRecord& pod, const State& state);

/// A claim with its holders and what each driver prepared. Its state is the
/// least advanced of its drivers' states in the order Preparing, Unpreparing,
/// Prepared; `Prepared` when no driver takes part.
ClaimInfo ClaimInfoOf(const ClaimRecord& claim, const State& state);

/// What drivers owe, by claim, then by driver. Which policy holds is for the
/// manager to say.
std::vector<DebtInfo> DebtsOf(const State& state);

/// The devices that claims hold, by driver, pool and device; then those of
/// device plugins that pods or foreign containers hold, by resource and ID.
std::vector<DeviceInfo> DevicesOf(const State& state);

/// By container ID.
std::vector<ForeignHolderInfo> ForeignHoldersOf(const State& state);

/// What a container holds of device plugins, by resource.
std::vector<ResourceDevices> HeldDevicesOf(const PodRecord& pod,
                                           const ContainerName& container);

/// The extended resources that have an owner or that pods hold devices of.
std::vector<ResourceInfo> ResourcesOf(const State& state);

DecisionInfo DecisionInfoOf(const Batch& batch);

/// `time_ms`: of the state's last batch; 0 when it is not known.
LedgerView LedgerViewOf(const State& state, std::int64_t time_ms);

/// Unix time in milliseconds, as the ledger keeps it, as a point in time.
WallTime WallTimeOf(std::int64_t unix_ms);

}  // namespace devmgr::state
