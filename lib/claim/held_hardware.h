// SPDX-License-Identifier: Apache-2.0
//
// One piece of hardware, one pod: drivers and device plugins may offer the same
// card by different names, and which record of the ledger has it. Pure.
#pragma once

#include <absl/status/status.h>
#include <devmgr/status_types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/hardware.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// Why a pod waits, or is rejected, whose hardware another pod has by another
/// driver or device plugin; also that of the event.
inline constexpr char kDeviceHeldElsewhere[] = "DeviceHeldElsewhere";

/// What is to get hardware. What it has by itself does not stand in its way.
struct HardwareTaker {
  /// Resource or driver. It knows which of its own devices are one.
  std::string_view owner;
  PodUid pod;              ///< Empty: any pod.
  std::string claim = {};  ///< UID; empty: none.
};

/// A record that has hardware which another one is to get.
struct HeldHardware {
  device::PhysicalIdentity identity;
  state::HardwareHolding::Kind kind = state::HardwareHolding::Kind::kPod;
  std::string uid;    ///< Of the record.
  std::string owner;  ///< Resource or driver; empty of a container.
  /// `pod default/a`, `pods ...`, `claim default/c`, `foreign container ...`.
  std::string holder;
  /// Whose end frees it.
  std::vector<WaitingFor> waiting_for;
};

/// The first that keeps `hardware` from `taker`; nothing when it is free, or
/// when both have parts of it only. With `counts`, others are passed over.
std::optional<HeldHardware> FindHardwareHolder(
    const state::State& state, const device::Hardware& hardware,
    const HardwareTaker& taker,
    const std::function<bool(const state::HardwareHolding&)>& counts = nullptr);

/// `pod default/a, as PCI address 0000:3b:00.0 of example.com/gpu`.
std::string HolderText(const HeldHardware& held);

/// `device 'x' is PCI address 0000:3b:00.0, which pod default/a holds by
/// example.com/gpu`.
std::string HeldElsewhereText(std::string_view device,
                              const HeldHardware& held);

/// A wait, with reason kDeviceHeldElsewhere.
Verdict WaitForHardware(std::string_view device, const HeldHardware& held);

/// Of claims that this node is about to allocate, by their records.
///   Aborted  other pods have their hardware: to be allocated anew
absl::Status CheckHardwareFree(const state::State& state,
                               const std::vector<state::Change>& changes);

}  // namespace devmgr::claim
