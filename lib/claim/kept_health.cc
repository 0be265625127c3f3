// SPDX-License-Identifier: Apache-2.0
#include "claim/kept_health.h"

#include <set>
#include <string>
#include <vector>

#include "common/counted.h"

namespace devmgr::claim {
namespace {

/// The record says something new, or its lease would be over to the next
/// process.
bool IsNews(const state::HealthRecord& known, const state::HealthRecord& now,
            Leases leases) {
  if (leases == Leases::kAll && known.told_ms != now.told_ms) return true;
  return known.health != now.health || known.message != now.message ||
         known.boot_id != now.boot_id || known.told_ms < 0 ||
         now.told_ms - known.told_ms > known.lease_ms;
}

}  // namespace

state::Decision KeepHealth(const state::State& state,
                           const HealthRecords& records, Leases leases) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kHealth;
  std::set<ObjectName> claims;
  for (const auto& [key, record] : records) {
    const state::HealthRecord* known = state.FindHealth(key);
    const std::vector<ClaimUid> holders = state.ClaimsOf(key);
    if (holders.empty() || record == nullptr) {
      if (known == nullptr) continue;
      decision.changes.push_back(state::EraseHealth{key});
    } else if (known == nullptr || IsNews(*known, *record, leases)) {
      decision.changes.push_back(state::PutHealth{record});
    } else {
      continue;
    }
    for (const ClaimUid& claim : holders) {
      claims.insert(state.FindClaim(claim)->name);
    }
  }
  decision.claims.assign(claims.begin(), claims.end());
  decision.message = "health of " + Counted(decision.changes.size(), "device");
  return decision;
}

}  // namespace devmgr::claim
