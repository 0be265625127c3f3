// SPDX-License-Identifier: Apache-2.0
#include "pods/object_changes.h"

#include <devmgr/manifests.h>

#include <set>
#include <string>
#include <utility>

#include "control/pool_changes.h"
#include "control/quota.h"

namespace devmgr::pods {
namespace {

using Kind = WaitingFor::Kind;

/// The extended resources that the class stands for; null: there is none.
std::set<std::string> NamesOf(const DeviceClass* item) {
  std::set<std::string> names;
  if (item == nullptr) return names;
  names.insert(item->extended_resource_name);
  names.insert(ImplicitResourceName(item->metadata.name));
  names.erase("");
  return names;
}

/// Its metadata does not count. One of the two may be null.
void AddClass(const DeviceClass* was, const DeviceClass* is,
              std::set<WaitingFor>* changed) {
  const bool same = was != nullptr && is != nullptr &&
                    was->selectors == is->selectors &&
                    was->config == is->config &&
                    was->extended_resource_name == is->extended_resource_name;
  if (same) return;
  for (const DeviceClass* each : {was, is}) {
    if (each != nullptr) {
      changed->insert({Kind::kDeviceClass, each->metadata.name});
    }
  }
  const std::set<std::string> before = NamesOf(was);
  const std::set<std::string> after = NamesOf(is);
  for (const auto& [from, other] :
       {std::pair(&before, &after), std::pair(&after, &before)}) {
    for (const std::string& name : *from) {
      if (other->count(name) == 0) changed->insert({Kind::kResource, name});
    }
  }
}

/// The devices of that claim were held, and are not any more.
void AddDevicesOf(const ResourceClaim& claim,
                  std::vector<WaitingFor>* changed) {
  if (!claim.status.allocation.has_value()) return;
  std::set<WaitingFor> devices;
  for (const auto& result : claim.status.allocation->results) {
    if (result.admin_access) continue;  // Others may have it all the same.
    devices.insert({Kind::kFreeDevices, result.driver});
    devices.insert({Kind::kFreeDevices, WaitingFor::kAnyDriver});
  }
  changed->insert(changed->end(), devices.begin(), devices.end());
}

}  // namespace

std::vector<WaitingFor> ChangedClaims(const ObjectSnapshot& before,
                                      const ObjectSnapshot& after) {
  std::vector<WaitingFor> changed;
  const auto add = [&](const ObjectName& name) {
    changed.push_back({WaitingFor::Kind::kClaim, name.ToString()});
  };
  after.claims.VisitChangesSince(before.claims,
                                 [&](const auto* was, const auto* is) {
                                   add((was != nullptr ? was : is)->first);
                                 });
  after.unread_claims.VisitChangesSince(
      before.unread_claims, [&](const auto* /*was*/, const auto* is) {
        if (is != nullptr) add(is->first);
      });
  return changed;
}

std::vector<WaitingFor> ChangedDevices(
    const ObjectSnapshot& before, const ObjectSnapshot& after,
    const std::string& node_name,
    const std::map<std::string, bool>& feature_gates) {
  std::set<WaitingFor> changed =
      control::ChangedPools(before, after, node_name, feature_gates);
  changed.merge(control::ChangedQuotas(before, after));
  after.device_classes.VisitChangesSince(
      before.device_classes, [&](const auto* was, const auto* is) {
        AddClass(was != nullptr ? was->second.get() : nullptr,
                 is != nullptr ? is->second.get() : nullptr, &changed);
      });
  after.claim_templates.VisitChangesSince(
      before.claim_templates, [&](const auto* was, const auto* is) {
        const ObjectName& name = (was != nullptr ? was : is)->first;
        changed.insert({Kind::kClaimTemplate, name.ToString()});
      });
  std::vector<WaitingFor> all(changed.begin(), changed.end());
  after.claims.VisitChangesSince(
      before.claims, [&](const auto* was, const auto* is) {
        const bool held = is != nullptr && is->second->status.allocation;
        if (was != nullptr && !held) AddDevicesOf(*was->second, &all);
      });
  return all;
}

}  // namespace devmgr::pods
