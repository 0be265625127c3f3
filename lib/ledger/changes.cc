// SPDX-License-Identifier: Apache-2.0
#include "ledger/changes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <variant>

namespace devmgr::ledger {
namespace {

template <typename Map>
typename Map::mapped_type FindOrNull(const Map& map,
                                     const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : nullptr;
}

/// Adds one change of a batch to what it changes.
struct Adder {
  const state::State& before;
  Changes& all;

  void operator()(const state::PutPod& put) const {
    all.pods.push_back({FindOrNull(before.pods, put.pod->uid), put.pod});
  }
  void operator()(const state::ErasePod& erase) const {
    all.pods.push_back({FindOrNull(before.pods, erase.uid), nullptr});
  }
  void operator()(const state::PutClaim& put) const {
    all.claims.push_back(
        {FindOrNull(before.claims, put.claim->uid), put.claim});
  }
  void operator()(const state::EraseClaim& erase) const {
    all.claims.push_back({FindOrNull(before.claims, erase.uid), nullptr});
  }
  void operator()(const state::PutResource& put) const {
    const std::string& name = put.resource->name;
    all.resources[name] = {FindOrNull(before.resources, name), put.resource};
  }
  void operator()(const state::EraseResource& erase) const {
    all.resources[erase.name] = {FindOrNull(before.resources, erase.name),
                                 nullptr};
  }
  void operator()(const state::PutHolder& put) const {
    all.holders.push_back(
        {FindOrNull(before.foreign_holders, put.holder->id), put.holder});
  }
  void operator()(const state::EraseHolder& erase) const {
    all.holders.push_back(
        {FindOrNull(before.foreign_holders, erase.id), nullptr});
  }
  void operator()(const state::PutLocalClaim& put) const {
    all.local_claims.push_back(
        {FindOrNull(before.local_claims, put.claim->uid), put.claim});
  }
  void operator()(const state::EraseLocalClaim& erase) const {
    all.local_claims.push_back(
        {FindOrNull(before.local_claims, erase.uid), nullptr});
  }
  void operator()(const state::PutAuthority& put) const {
    all.authority.push_back(
        {FindOrNull(before.authority, state::AuthorityKey{}), put.authority});
  }
  void operator()(const state::EraseAuthority&) const {
    all.authority.push_back(
        {FindOrNull(before.authority, state::AuthorityKey{}), nullptr});
  }
  /// No room follows the other records.
  template <typename Other>
  void operator()(const Other&) const {}
};

bool IsReleasing(const std::shared_ptr<const state::PodRecord>& pod) {
  return pod != nullptr && pod->phase == state::PodPhase::kReleasing;
}

std::set<ResourceName> ResourcesByClaims(
    const std::shared_ptr<const state::PodRecord>& pod) {
  return pod != nullptr ? state::ResourcesByClaims(*pod)
                        : std::set<ResourceName>();
}

void AddClaimed(const Passage<state::PodRecord>& pod, Changes& all) {
  const std::set<ResourceName> before = ResourcesByClaims(pod.before);
  const std::set<ResourceName> now = ResourcesByClaims(pod.now);
  if (before == now) return;
  ClaimedResources claimed{(pod.now != nullptr ? pod.now : pod.before)->name};
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                      std::back_inserter(claimed.taken));
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(),
                      std::back_inserter(claimed.given_up));
  all.claimed.push_back(std::move(claimed));
}

}  // namespace

Changes ChangesOf(const state::State& before, const state::Batch& batch) {
  Changes all{batch.decision};
  for (const state::Change& change : batch.decision.changes) {
    std::visit(Adder{before, all}, change);
  }
  for (const auto& pod : all.pods) AddClaimed(pod, all);
  return all;
}

bool BeginsRelease(const Passage<state::PodRecord>& pod) {
  return IsReleasing(pod.now) && !IsReleasing(pod.before);
}

}  // namespace devmgr::ledger
