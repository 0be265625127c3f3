// SPDX-License-Identifier: Apache-2.0
#include "model/objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "support/builders.h"

namespace devmgr::model {
namespace {

ObjectName PodName(std::size_t pod) {
  return NameOf(fmt::format("p{}", pod % kPods));
}
ObjectName ClaimName(std::size_t claim) {
  return NameOf(fmt::format("c{}", claim % kClaims));
}

AllocationResult Allocation(Luck& luck) {
  AllocationResult allocation;
  for (const std::string& driver : kDrivers) {
    if (!luck.Chance(60)) continue;
    allocation.results.push_back({"r", driver, "pool-1", "dev-1", false, ""});
    if (luck.Chance(50)) {
      allocation.results.push_back({"s", driver, "pool-1", "dev-2", false, ""});
    }
  }
  return allocation;
}

std::string Request(Luck& luck) {
  return std::vector<std::string>{"", "r", "s"}[luck.Below(3)];
}

}  // namespace

std::string Objects::NextUid(const ObjectName& name) {
  return fmt::format("{}-{}", name.name, ++made_);
}

void Objects::Put(const Pod& pod) {
  auto object = std::make_shared<const Pod>(pod);
  const ObjectName name = pod.metadata.FullName();
  pods_[name] = object;
  malformed_.erase(name);
  versions_[{name, pod.metadata.uid}].push_back(std::move(object));
}

void Objects::Put(const ResourceClaim& claim) {
  claims_[claim.metadata.FullName()] =
      std::make_shared<const ResourceClaim>(claim);
}

const std::vector<Objects::PodObject>& Objects::Versions(
    const ObjectName& name, const std::string& uid) const {
  static const std::vector<PodObject> kNone;
  const auto found = versions_.find({name, uid});
  return found != versions_.end() ? found->second : kNone;
}

std::string Objects::PublishPod(std::size_t pod, Luck luck) {
  const ObjectName name = PodName(pod);
  if (luck.Chance(15) && Restore(name)) {
    return fmt::format("publish pod {} ({}) again", name.name,
                       pods_.at(name)->metadata.uid);
  }
  PodBuilder builder(name.name);
  // One in ten comes from a file and has no UID.
  builder.Uid(luck.Chance(90) ? NextUid(name) : "");
  std::set<ObjectName> claims;
  std::set<ObjectName> owned;
  std::vector<std::string> entries;
  const std::size_t count = luck.Below(4);
  for (std::size_t i = 0; i < count; ++i) {
    const ObjectName claim = ClaimName(luck.Below(kClaims));
    if (!claims.insert(claim).second) continue;
    const std::string entry = "x-" + claim.name;
    if (luck.Chance(25)) {
      builder.Template(entry);
      if (luck.Chance(70)) builder.Made(entry, claim.name);
      owned.insert(claim);
    } else {
      builder.Claim(entry, claim.name);
    }
    entries.push_back(entry);
  }
  if (luck.Chance(10)) builder.Template("none").Made("none", std::nullopt);
  for (const std::string container : {"init", "main", "side"}) {
    container == "init" ? builder.InitContainer(container)
                        : builder.Container(container);
    for (const std::string& entry : entries) {
      if (luck.Chance(60)) builder.Uses(entry, Request(luck));
      if (luck.Chance(20)) builder.Uses(entry, Request(luck));
    }
  }
  if (luck.Chance(15)) {
    const ObjectName claim = ClaimName(luck.Below(kClaims));
    if (claims.insert(claim).second) {
      builder.Requests(kResource);  // of container `side`
      if (luck.Chance(75)) {
        builder.SpecialClaim(claim.name).Maps("side", kResource, "r");
      }
    }
  }
  const Pod built = builder;
  if (luck.Chance(4)) {
    MalformedPod malformed;
    malformed.pod = built;
    malformed.problem.field = "spec.containers[0].name";
    malformed.problem.message = "is not a name";
    pods_.erase(name);
    malformed_[name] = std::make_shared<const MalformedPod>(malformed);
    return fmt::format("publish malformed pod {} ({})", name.name,
                       built.metadata.uid);
  }
  Put(built);
  std::string used;
  for (const ObjectName& claim : claims) {
    used += " " + claim.name;
    if (!claims_.contains(claim) && luck.Chance(70)) MakeClaim(claim, luck);
    if (luck.Chance(85)) Reserve(claim, built.metadata);
    if (owned.contains(claim) && luck.Chance(80)) Own(claim, built.metadata);
  }
  return fmt::format("publish pod {} ({}) with claims [{} ]", name.name,
                     built.metadata.uid, used);
}

/// The pod that was withdrawn last comes back as it was, if it can.
bool Objects::Restore(const ObjectName& name) {
  if (pods_.contains(name) || !withdrawn_.contains(name)) return false;
  Put(*withdrawn_.at(name));
  return true;
}

std::string Objects::ChangePod(std::size_t pod, Luck luck) {
  const ObjectName name = PodName(pod);
  const auto found = pods_.find(name);
  if (found == pods_.end()) return "change no pod";
  Pod changed = *found->second;
  switch (luck.Below(5)) {
    case 0:
      changed.metadata.deletion_timestamp = "2026-01-02T03:04:05Z";
      break;
    case 1:
      changed.status.phase = luck.Chance(50) ? "Succeeded" : "Running";
      break;
    case 2:
      if (!changed.status.extended_resource_claim_status.has_value()) {
        auto& special = changed.status.extended_resource_claim_status.emplace();
        special.resource_claim_name = ClaimName(luck.Below(kClaims)).name;
        special.request_mappings = {{"side", kResource, "s"}};
      }
      break;
    default:
      changed.status.resource_claim_statuses.clear();
      for (const PodResourceClaim& entry : changed.spec.resource_claims) {
        if (entry.resource_claim_name.has_value()) continue;
        const std::string claim = entry.name.substr(2);
        changed.status.resource_claim_statuses.push_back(
            {entry.name, entry.name == "none"
                             ? std::nullopt
                             : std::optional<std::string>(claim)});
      }
  }
  Put(changed);
  return fmt::format("change pod {} ({}): {} {} {}", name.name,
                     changed.metadata.uid, changed.metadata.deletion_timestamp,
                     changed.status.phase,
                     changed.status.resource_claim_statuses.size());
}

std::string Objects::WithdrawPod(std::size_t pod) {
  const ObjectName name = PodName(pod);
  malformed_.erase(name);
  if (pods_.contains(name)) withdrawn_[name] = pods_.at(name);
  return fmt::format("withdraw pod {}{}", name.name,
                     pods_.erase(name) > 0 ? "" : " (there is none)");
}

void Objects::MakeClaim(const ObjectName& name, Luck& luck) {
  ResourceClaim claim = ClaimBuilder(name.name);
  claim.metadata.uid = luck.Chance(88) ? NextUid(name) : "";
  claim.status.allocation = Allocation(luck);
  if (luck.Chance(8)) claim.status.allocation.reset();
  Put(claim);
}

void Objects::Reserve(const ObjectName& claim, const ObjectMeta& pod) {
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return;
  ResourceClaim changed = *found->second;
  changed.status.reserved_for.push_back({"", "pods", pod.name, pod.uid});
  Put(changed);
}

void Objects::Own(const ObjectName& claim, const ObjectMeta& pod) {
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return;
  ResourceClaim changed = *found->second;
  changed.metadata.owner_references = {Owner(pod.uid, pod.name)};
  Put(changed);
}

std::string Objects::PublishClaim(std::size_t claim, Luck luck) {
  const ObjectName name = ClaimName(claim);
  MakeClaim(name, luck);
  for (const auto& [pod, object] : pods_) {
    if (luck.Chance(80)) Reserve(name, object->metadata);
  }
  return fmt::format("publish claim {} ({})", name.name,
                     claims_.at(name)->metadata.uid);
}

std::string Objects::ReallocateClaim(std::size_t claim, Luck luck) {
  const ObjectName name = ClaimName(claim);
  const auto found = claims_.find(name);
  if (found == claims_.end()) return "reallocate no claim";
  ResourceClaim changed = *found->second;
  changed.status.allocation = Allocation(luck);
  if (luck.Chance(20)) changed.status.allocation.reset();
  Put(changed);
  return fmt::format("reallocate claim {} ({})", name.name,
                     changed.metadata.uid);
}

std::string Objects::ReserveClaim(std::size_t claim, Luck luck) {
  const ObjectName name = ClaimName(claim);
  const auto found = claims_.find(name);
  if (found == claims_.end()) return "reserve no claim";
  if (luck.Chance(15)) {
    ResourceClaim changed = *found->second;
    changed.status.reserved_for.clear();
    Put(changed);
    return fmt::format("reserve claim {} for nobody", name.name);
  }
  for (const auto& [pod, object] : pods_) {
    if (luck.Chance(80)) Reserve(name, object->metadata);
  }
  return fmt::format("reserve claim {} for pods", name.name);
}

std::string Objects::WithdrawClaim(std::size_t claim) {
  const ObjectName name = ClaimName(claim);
  return fmt::format("withdraw claim {}{}", name.name,
                     claims_.erase(name) > 0 ? "" : " (there is none)");
}

std::string Objects::Scan(Luck luck) {
  hidden_.clear();
  if (luck.Chance(70)) return "scan everything";
  hidden_.insert(NameOf("unreadable"));
  for (std::size_t i = 0; i < kPods; ++i) {
    if (luck.Chance(30)) hidden_.insert(PodName(i));
  }
  for (std::size_t i = 0; i < kClaims; ++i) {
    if (luck.Chance(30)) hidden_.insert(ClaimName(i));
  }
  return fmt::format("scan all but {} objects", hidden_.size() - 1);
}

void Objects::Clear() {
  pods_.clear();
  malformed_.clear();
  claims_.clear();
  hidden_.clear();
  withdrawn_.clear();
  versions_.clear();
}

ObjectSnapshot Objects::Snapshot() const {
  ObjectSnapshot snapshot;
  snapshot.complete = hidden_.empty();
  const auto show = [this](const auto& all, auto* shown) {
    for (const auto& [name, object] : all) {
      if (!hidden_.contains(name)) shown->emplace(name, object);
    }
  };
  show(pods_, &snapshot.pods);
  show(malformed_, &snapshot.malformed_pods);
  show(claims_, &snapshot.claims);
  return snapshot;
}

}  // namespace devmgr::model
