// SPDX-License-Identifier: Apache-2.0
#include "pods/object_changes.h"

#include <set>
#include <string>

namespace devmgr::pods {
namespace {

void AddClass(const DeviceClass& item, std::set<WaitingFor>* changed) {
  changed->insert({WaitingFor::Kind::kDeviceClass, item.metadata.name});
  for (const std::string& name : {item.extended_resource_name,
                                  ImplicitResourceName(item.metadata.name)}) {
    if (!name.empty()) changed->insert({WaitingFor::Kind::kResource, name});
  }
}

void AddDriver(const std::string& driver, std::set<WaitingFor>* changed) {
  changed->insert({WaitingFor::Kind::kDevices, driver});
  changed->insert({WaitingFor::Kind::kDevices, WaitingFor::kAnyDriver});
}

void AddQuota(const std::string& ns, std::set<WaitingFor>* changed) {
  changed->insert({WaitingFor::Kind::kQuota, ns});
}

/// Of all drivers: what is different concerns any of them.
void AddAllDrivers(const ObjectSnapshot& objects,
                   std::set<WaitingFor>* changed) {
  for (const auto& [name, slice] : objects.resource_slices) {
    AddDriver(slice->driver, changed);
  }
  changed->insert({WaitingFor::Kind::kDevices, WaitingFor::kAnyDriver});
}

/// The devices of that claim were held, and are not any more.
void AddDevicesOf(const ResourceClaim& claim,
                  std::vector<WaitingFor>* changed) {
  if (!claim.status.allocation.has_value()) return;
  std::set<WaitingFor> devices;
  for (const auto& result : claim.status.allocation->results) {
    AddDriver(result.driver, &devices);
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

std::vector<WaitingFor> ChangedDevices(const ObjectSnapshot& before,
                                       const ObjectSnapshot& after) {
  std::set<WaitingFor> changed;
  after.device_classes.VisitChangesSince(before.device_classes,
                                         [&](const auto* was, const auto* is) {
                                           if (was != nullptr)
                                             AddClass(*was->second, &changed);
                                           if (is != nullptr)
                                             AddClass(*is->second, &changed);
                                         });
  after.resource_slices.VisitChangesSince(
      before.resource_slices, [&](const auto* was, const auto* is) {
        // Published again as it was.
        const bool same =
            was != nullptr && is != nullptr && *was->second == *is->second;
        if (same) return;
        if (was != nullptr) AddDriver(was->second->driver, &changed);
        if (is != nullptr) AddDriver(is->second->driver, &changed);
      });
  const bool others =
      !after.device_taint_rules.SharesAllWith(before.device_taint_rules) ||
      !after.nodes.SharesAllWith(before.nodes) ||
      !after.claim_templates.SharesAllWith(before.claim_templates);
  if (others) AddAllDrivers(after, &changed);
  after.quotas.VisitChangesSince(before.quotas,
                                 [&](const auto* was, const auto* is) {
                                   if (was != nullptr)
                                     AddQuota(was->first.ns, &changed);
                                   if (is != nullptr)
                                     AddQuota(is->first.ns, &changed);
                                 });
  after.claims.VisitChangesSince(
      before.claims, [&](const auto* was, const auto* is) {
        const bool is_gone = was != nullptr && is == nullptr;
        if (is_gone) AddQuota(was->first.ns, &changed);
      });
  std::vector<WaitingFor> all(changed.begin(), changed.end());
  after.claims.VisitChangesSince(
      before.claims, [&](const auto* was, const auto* is) {
        const bool held = is != nullptr && is->second->status.allocation;
        if (was != nullptr && !held) {
          AddDevicesOf(*was->second, &all);
        }
      });
  return all;
}

}  // namespace devmgr::pods
