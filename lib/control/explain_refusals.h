// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <map>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "claim/held_hardware.h"

namespace devmgr::control {

/// Why `outcome` has no solution, for people: what is wrong with a claim, or
/// for each request that lacks devices how many were refused for which reason.
/// Those that are busy are named with the pods that hold them; `elsewhere` is
/// what of them is held by the hardware.
std::string RefusalText(
    const allocator::Outcome& outcome, const ObjectSnapshot& objects,
    const std::map<std::string, claim::HeldHardware>& elsewhere = {});

/// What of `elsewhere` (HeldElsewhere::Devices::holders) keeps devices from the
/// requests of `outcome`.
std::vector<const claim::HeldHardware*> HoldersElsewhere(
    const allocator::Outcome& outcome,
    const std::map<std::string, claim::HeldHardware>& elsewhere);

/// The pods that hold what `claim` (`namespace/name`) has, as `pod
/// default/a`; the claim when it is reserved for none. Or what of `elsewhere`
/// it stands for.
std::string HolderText(
    const std::string& claim, const ObjectSnapshot& objects,
    const std::map<std::string, claim::HeldHardware>& elsewhere = {});

}  // namespace devmgr::control
