// SPDX-License-Identifier: Apache-2.0
//
// Decisions about devices of plugins: as prepare_intent.h, for what lib/device
// plans.
//
//   Waiting --Reserve--> Allocating --Commit--> Admitted --BookPod--> Ready
//      ^                     |  |                                       ^
//      +-------- Free -------+  +------- Commit without claims ---------+
//
// A Ready pod gives back what only its init containers had once these have
// ended (init_devices.h), and has it reserved anew, without leaving its
// phase, before they run again.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "claim/backing.h"
#include "claim/held_hardware.h"
#include "claim/prepare_intent.h"
#include "device/device.h"
#include "device/pod_needs.h"
#include "device/pod_plan.h"
#include "device/reservation.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// What the pod holds, and what its init containers have given back, as needs.
std::vector<device::DeviceNeed> NeedsOfHolds(const state::PodRecord& pod);

/// What one plugin answered for one container.
struct AllocateAnswer {
  device::ContainerEdits edits;
  /// It is to be asked before each start of the container.
  bool pre_start = false;
};
/// By container and resource.
using AllocateAnswers = std::map<device::NeedKey, AllocateAnswer>;

/// Which hardware containers get, by container and resource; of what is missing
/// nothing is known.
using HardwareByNeed = std::map<device::NeedKey, device::Hardware>;

/// Is something reserved for the pod that is neither committed nor freed?
bool HasReserved(const state::PodRecord& pod);

/// Reserves devices for a pod, beside those it holds. The pod need not be
/// known yet.
///   Aborted             another pod has taken one of them, or its hardware
///                       by another name, or, with Sharing::kOneOwner, holds a
///                       claim for one of the resources: plan again
///   FailedPrecondition  the pod is rejected, being released, holds claims and
///                       has not given back what is reserved, or holds devices
///                       of a resource in the same container
absl::StatusOr<state::Decision> ReserveDevices(
    const state::State& state, const PodIdentity& pod, std::int64_t now_ms,
    const std::vector<device::Reservation>& plan,
    Sharing sharing = Sharing::kOneOwner, const HardwareByNeed& hardware = {});

/// The first of `hardware` that another pod has by another driver or device
/// plugin, and which need it is of; nothing when there is none.
std::optional<std::pair<device::NeedKey, HeldHardware>> FindClash(
    const state::State& state, const PodUid& pod,
    const HardwareByNeed& hardware);

/// What a pod that has no claims is to have once its plugins have answered.
struct WithoutClaims {
  std::vector<state::ContainerNeed> needs;  ///< Its containers, without wants.
  std::string boot_id;
};

/// All plugins have answered: the pod is kAdmitted; or kReady, with its frozen
/// answer, where nothing else is to be prepared for it: it has no claims, and
/// `without_claims` is given.
///   Aborted          the pod has nothing reserved (any more), or another pod
///                    has hardware that the answers turned out to be
///   InvalidArgument  there is no answer for something that it has reserved
absl::StatusOr<state::Decision> CommitDevices(
    const state::State& state, const PodUid& pod,
    const AllocateAnswers& answers,
    const std::optional<WithoutClaims>& without_claims = std::nullopt,
    const HardwareByNeed& hardware = {});

/// Frees what the pod has reserved, not what is committed; nothing to do when
/// it has reserved nothing. `message` says why.
state::Decision FreeReserved(const state::State& state, const PodUid& pod,
                             const std::string& message);

/// The same for all pods. Right after the ledger was opened: what the plugins
/// made of it is not known, and they cannot be notified.
state::Decision FreeAllReserved(const state::State& state,
                                const std::string& message);

}  // namespace devmgr::claim
