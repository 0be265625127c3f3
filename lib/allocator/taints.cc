// SPDX-License-Identifier: Apache-2.0
#include "allocator/taints.h"

#include <algorithm>
#include <string>

namespace devmgr::allocator {
namespace {

/// An effect of a newer version blocks nothing, since its meaning is not known.
bool IsBlocking(const DeviceTaint& taint) {
  return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
}

}  // namespace

bool Tolerates(const DeviceToleration& toleration, const DeviceTaint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) {
    return false;
  }
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  return (toleration.op.empty() || toleration.op == "Equal") &&
         toleration.value == taint.value;
}

bool Selects(const DeviceTaintRule& rule, const std::string& driver,
             const std::string& pool, const std::string& device) {
  if (!rule.device_selector) return false;
  const DeviceTaintSelector& selector = *rule.device_selector;
  return (!selector.driver || *selector.driver == driver) &&
         (!selector.pool || *selector.pool == pool) &&
         (!selector.device || *selector.device == device);
}

std::vector<const DeviceTaint*> BlockingTaints(
    const ResourceSlice& slice, const SliceDevice& device,
    const std::vector<const DeviceTaintRule*>& rules) {
  std::vector<const DeviceTaint*> taints;
  for (const DeviceTaint& taint : device.taints) {
    if (IsBlocking(taint)) taints.push_back(&taint);
  }
  for (const DeviceTaintRule* rule : rules) {
    if (IsBlocking(rule->taint) &&
        Selects(*rule, slice.driver, slice.pool, device.name)) {
      taints.push_back(&rule->taint);
    }
  }
  return taints;
}

const DeviceTaint* Untolerated(
    const std::vector<const DeviceTaint*>& taints,
    const std::vector<DeviceToleration>& tolerations) {
  for (const DeviceTaint* taint : taints) {
    if (std::none_of(tolerations.begin(), tolerations.end(),
                     [&](const DeviceToleration& toleration) {
                       return Tolerates(toleration, *taint);
                     })) {
      return taint;
    }
  }
  return nullptr;
}

}  // namespace devmgr::allocator
