// SPDX-License-Identifier: Apache-2.0
//
// Taints of devices (KEP-5055): which ones keep a request off a device.
#pragma once

#include <devmgr/objects.h>

#include <string>
#include <vector>

namespace devmgr::allocator {

/// By key (empty with `Exists`: any), value (with `Exists`: any) and effect
/// (empty: any).
bool Tolerates(const DeviceToleration& toleration, const DeviceTaint& taint);

/// Does the rule select this device? One without a selector selects none.
bool Selects(const DeviceTaintRule& rule, const std::string& driver,
             const std::string& pool, const std::string& device);

/// The taints of `device` that keep claims off which do not tolerate them:
/// those of effect NoSchedule and NoExecute, of its slice and of `rules` that
/// select it. They live as long as slice and rules do.
std::vector<const DeviceTaint*> BlockingTaints(
    const ResourceSlice& slice, const SliceDevice& device,
    const std::vector<const DeviceTaintRule*>& rules);

/// The first of `taints` that no toleration covers; null when there is none.
const DeviceTaint* Untolerated(
    const std::vector<const DeviceTaint*>& taints,
    const std::vector<DeviceToleration>& tolerations);

}  // namespace devmgr::allocator
