// SPDX-License-Identifier: Apache-2.0
#include "control/quota.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/names.h"
#include "api/quota.h"
#include "claim/device_class.h"
#include "control/owned_claim.h"
#include "control/saturated_sum.h"
#include "control/special_claim.h"

namespace devmgr::control {
namespace {

void Add(QuotaUsage& usage, const std::string& key, std::int64_t amount) {
  std::int64_t& sum = usage[key];
  sum = SaturatedSum(sum, amount);
}

std::int64_t AmountOf(const QuotaUsage& usage, const std::string& key) {
  const auto found = usage.find(key);
  return found != usage.end() ? found->second : 0;
}

std::map<std::string, std::int64_t> RequestsOf(const Container& container) {
  std::map<std::string, std::int64_t> requests;
  for (const auto& [resource, quantity] : container.resources.requests) {
    if (quantity.whole > 0 && api::CanBeDraExtendedResource(resource)) {
      requests[resource] = quantity.whole;
    }
  }
  return requests;
}

/// What the pod needs at once of each name: all that runs on, or what runs
/// beside an init container, whichever is more.
QuotaUsage PaidBy(const Pod& pod) {
  QuotaUsage running;
  QuotaUsage most;
  const auto run = [&](const Container& container, bool ends_early) {
    for (const auto& [resource, amount] : RequestsOf(container)) {
      const std::string key = api::ResourceQuotaKey(resource);
      const std::int64_t now = SaturatedSum(AmountOf(running, key), amount);
      most[key] = std::max(AmountOf(most, key), now);
      if (!ends_early) running[key] = now;
    }
  };
  for (const Container& container : pod.spec.init_containers) {
    run(container, container.restart_policy != "Always");
  }
  for (const Container& container : pod.spec.containers) run(container, false);
  return most;
}

std::int64_t DevicesOf(const DeviceSubRequest& request) {
  if (request.allocation_mode == "All") return kMaxDevicesPerClaim;
  if (request.allocation_mode != "ExactCount") return 0;
  return std::max<std::int64_t>(request.count, 0);
}

/// What a claim pays when no pod has paid for it.
QuotaUsage ChargeOf(const ResourceClaim& claim,
                    const ObjectMap<DeviceClass>& classes) {
  QuotaUsage charge;
  for (const auto& [name, devices] : DevicesByClass(claim.spec)) {
    Add(charge, api::ClassQuota(name), devices);
    if (const std::string implicit = ImplicitResourceName(name);
        !implicit.empty()) {
      Add(charge, api::ResourceQuotaKey(implicit), devices);
    }
    const auto item = classes.find({"", name});
    if (item == classes.end()) continue;
    const std::string& resource = item->second->extended_resource_name;
    if (!resource.empty()) {
      Add(charge, api::ResourceQuotaKey(resource), devices);
    }
  }
  Add(charge, api::kClaimCountQuota, 1);
  return charge;
}

/// The special claims of pods, at most one of each: what its pod paid is taken
/// off.
class PaidClaims {
 public:
  PaidClaims(const std::string& ns, const QuotaObjects& objects) {
    for (const Pod* pod : objects.pods) {
      if (pod->metadata.ns == ns && !HasEnded(*pod)) {
        pods_.emplace(pod->metadata.uid, Paid{pod, nullptr});
      }
    }
    for (const ResourceClaim* claim : objects.claims) Consider(*claim);
  }

  /// The pod whose special claim this is; null: it pays all by itself.
  const Pod* PayerOf(const ResourceClaim& claim) const {
    const OwnerReference* owner = ControllingPod(claim);
    if (owner == nullptr) return nullptr;
    const auto found = pods_.find(owner->uid);
    if (found == pods_.end() || found->second.claim != &claim) return nullptr;
    return found->second.pod;
  }

 private:
  struct Paid {
    const Pod* pod = nullptr;
    const ResourceClaim* claim = nullptr;
  };

  void Consider(const ResourceClaim& claim) {
    const OwnerReference* owner = ControllingPod(claim);
    if (owner == nullptr) return;
    const auto found = pods_.find(owner->uid);
    if (found == pods_.end()) return;
    Paid& paid = found->second;
    if (!IsSpecialClaimOf(claim, *paid.pod)) return;
    if (const auto& status = paid.pod->status.extended_resource_claim_status) {
      if (status->resource_claim_name == claim.metadata.name) {
        paid.claim = &claim;
      }
      return;
    }
    if (paid.claim == nullptr || IsOlder(claim, *paid.claim)) {
      paid.claim = &claim;
    }
  }

  std::map<std::string, Paid> pods_;  ///< By UID.
};

/// Both keys of a class show the larger figure.
void Equalise(const ObjectMap<DeviceClass>& classes, QuotaUsage& usage) {
  for (const auto& [resource, item] : claim::ClassesByResource(classes)) {
    const std::string by_class = api::ClassQuota(item->metadata.name);
    const std::string by_resource = api::ResourceQuotaKey(resource.value);
    const std::int64_t larger =
        std::max(AmountOf(usage, by_class), AmountOf(usage, by_resource));
    if (larger == 0) continue;
    usage[by_class] = larger;
    usage[by_resource] = larger;
  }
}

std::string Joined(const std::vector<QuotaExcess::Figure>& figures,
                   std::int64_t QuotaExcess::Figure::*amount) {
  std::string text;
  for (const QuotaExcess::Figure& figure : figures) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", figure.key,
                        figure.*amount);
  }
  return text;
}

}  // namespace

QuotaUsage UsageOf(const std::string& ns, const QuotaObjects& objects,
                   const ObjectMap<DeviceClass>& classes, QuotaRule rule) {
  QuotaUsage usage;
  for (const Pod* pod : objects.pods) {
    if (pod->metadata.ns != ns || HasEnded(*pod)) continue;
    for (const auto& [key, amount] : PaidBy(*pod)) Add(usage, key, amount);
  }
  const PaidClaims paid(ns, objects);
  for (const ResourceClaim* claim : objects.claims) {
    if (claim->metadata.ns != ns) continue;
    const Pod* payer = paid.PayerOf(*claim);
    const QuotaUsage already = payer != nullptr ? PaidBy(*payer) : QuotaUsage();
    for (const auto& [key, amount] : ChargeOf(*claim, classes)) {
      Add(usage, key,
          std::max<std::int64_t>(amount - AmountOf(already, key), 0));
    }
  }
  if (rule == QuotaRule::kEqualised) Equalise(classes, usage);
  return usage;
}

std::map<std::string, std::int64_t> DevicesByClass(
    const ResourceClaimSpec& spec) {
  std::map<std::string, std::int64_t> devices;
  for (const DeviceRequest& request : spec.requests) {
    if (request.exactly.has_value()) {
      std::int64_t& sum = devices[request.exactly->device_class_name];
      sum = SaturatedSum(sum, DevicesOf(*request.exactly));
      continue;
    }
    std::map<std::string, std::int64_t> largest;
    for (const DeviceSubRequest& alternative : request.first_available) {
      std::int64_t& most = largest[alternative.device_class_name];
      most = std::max(most, DevicesOf(alternative));
    }
    for (const auto& [name, count] : largest) {
      devices[name] = SaturatedSum(devices[name], count);
    }
  }
  return devices;
}

std::string QuotaExcess::ToString() const {
  return fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                     quota.name, Joined(figures, &Figure::requested),
                     Joined(figures, &Figure::used),
                     Joined(figures, &Figure::hard));
}

std::vector<QuotaExcess> ExceededQuotas(const std::string& ns,
                                        const ObjectMap<ResourceQuota>& quotas,
                                        const QuotaUsage& before,
                                        const QuotaUsage& after) {
  std::vector<QuotaExcess> exceeded;
  for (const auto& [name, quota] : quotas) {
    if (name.ns != ns) continue;
    QuotaExcess excess{name, {}};
    for (const auto& [key, hard] : quota->hard) {
      const std::int64_t used = AmountOf(before, key);
      const std::int64_t wanted = AmountOf(after, key);
      if (wanted > used && wanted > hard.whole) {
        excess.figures.push_back({key, wanted - used, used, hard.whole});
      }
    }
    if (!excess.figures.empty()) exceeded.push_back(std::move(excess));
  }
  return exceeded;
}

WaitingFor QuotaAwaited(const std::string& ns, const std::string& key) {
  return {WaitingFor::Kind::kQuota, ns + "/" + key};
}

std::set<WaitingFor> PaidNoMore(const Pod& pod) {
  std::set<WaitingFor> all;
  for (const auto& [key, amount] : PaidBy(pod)) {
    all.insert(QuotaAwaited(pod.metadata.ns, key));
  }
  return all;
}

std::set<WaitingFor> ChangedQuotas(const ObjectSnapshot& before,
                                   const ObjectSnapshot& after) {
  std::set<WaitingFor> changed;
  after.quotas.VisitChangesSince(
      before.quotas, [&](const auto* was, const auto* is) {
        if (was == nullptr) return;
        for (const auto& [key, hard] : was->second->hard) {
          if (is != nullptr) {
            const auto now = is->second->hard.find(key);
            const bool as_tight = now != is->second->hard.end() &&
                                  now->second.whole <= hard.whole;
            if (as_tight) continue;
          }
          changed.insert(QuotaAwaited(was->first.ns, key));
        }
      });
  if (after.quotas.empty()) return changed;
  after.pods.VisitChangesSince(before.pods, [&](const auto* was,
                                                const auto* is) {
    const bool same_pod = was != nullptr && is != nullptr &&
                          was->second->metadata.uid == is->second->metadata.uid;
    if (was == nullptr || HasEnded(*was->second)) return;
    if (same_pod && !HasEnded(*is->second)) return;
    changed.merge(PaidNoMore(*was->second));
  });
  after.claims.VisitChangesSince(
      before.claims, [&](const auto* was, const auto* is) {
        if (was == nullptr) return;
        if (is != nullptr &&
            was->second->metadata.uid == is->second->metadata.uid) {
          return;
        }
        for (const auto& [key, amount] :
             ChargeOf(*was->second, before.device_classes)) {
          changed.insert(QuotaAwaited(was->first.ns, key));
        }
      });
  // What claims of the class pay under its name falls with it.
  std::set<std::string> lost;
  after.device_classes.VisitChangesSince(
      before.device_classes, [&](const auto* was, const auto* is) {
        if (was == nullptr || was->second->extended_resource_name.empty()) {
          return;
        }
        const std::string& name = was->second->extended_resource_name;
        if (is == nullptr || is->second->extended_resource_name != name) {
          lost.insert(api::ResourceQuotaKey(name));
        }
      });
  if (lost.empty()) return changed;
  for (const auto& [name, quota] : after.quotas) {
    for (const auto& [key, hard] : quota->hard) {
      if (lost.count(key) != 0) changed.insert(QuotaAwaited(name.ns, key));
    }
  }
  return changed;
}

}  // namespace devmgr::control
