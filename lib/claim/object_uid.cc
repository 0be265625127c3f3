// SPDX-License-Identifier: Apache-2.0
#include "claim/object_uid.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "api/pod.h"
#include "claim/claim_names.h"

namespace devmgr::claim {
namespace {

/// Calls `visit(kind, metadata)` for every object that may need an identity.
template <typename Visit>
void ForEachIdentity(const ObjectSnapshot& snapshot, Visit visit) {
  for (const auto& [name, pod] : snapshot.pods) visit(kPodKind, pod->metadata);
  for (const auto& [name, pod] : snapshot.malformed_pods) {
    visit(kPodKind, pod->pod.metadata);
  }
  for (const auto& [name, claim] : snapshot.claims) {
    visit(kClaimKind, claim->metadata);
  }
  for (const auto& [name, item] : snapshot.device_classes) {
    visit(kClassKind, item->metadata);
  }
}

ObjectKind ObjectKindOf(const std::string& identity_kind) {
  if (identity_kind == kClaimKind) return ObjectKind::kResourceClaim;
  if (identity_kind == kClassKind) return ObjectKind::kDeviceClass;
  return ObjectKind::kPod;
}

/// A pod from a file that was rejected for what it was: an API server would
/// never have had it, so that as which it is mended is another pod.
bool IsMended(const ObjectSnapshot& snapshot, const state::State& state,
              const state::IdentityRecord& identity) {
  const state::PodRecord* record = state.FindPod(PodUid{identity.uid});
  if (record == nullptr || record->phase != state::PodPhase::kRejected ||
      record->reason != kInvalidPod) {
    return false;
  }
  const auto found = snapshot.pods.find(identity.name);
  if (found == snapshot.pods.end()) return false;
  Pod pod = *found->second;
  api::DefaultPod(pod);
  const auto& claims = pod.spec.resource_claims;
  return std::all_of(claims.begin(), claims.end(), HasSource) &&
         api::ValidatePod(pod).empty();
}

/// Objects that had no identity to get, and have none, make no difference.
template <typename T>
bool MayDiffer(const char* kind, const ObjectMap<T>& before,
               const ObjectMap<T>& now) {
  bool may_differ = false;
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    for (const auto* entry : {was, is}) {
      may_differ =
          may_differ ||
          (entry != nullptr && NeedsIdentity(kind, MetadataOf(*entry->second)));
    }
  });
  return may_differ;
}

}  // namespace

std::string DeriveUid(const std::string& source, const std::string& kind,
                      const ObjectName& name, std::uint64_t incarnation) {
  // FNV-1a, 128 bits, shown in the form of a UUID (version 8: our own).
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13B;
  Wide hash = (Wide{0x6C62272E07BB0142} << 64) | Wide{0x62B821756295C58D};
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}", source, kind, name.ToString(), incarnation);
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kPrime;
  }
  const auto high = static_cast<std::uint64_t>(hash >> 64);
  const auto low = static_cast<std::uint64_t>(hash);
  return fmt::format("{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}", high >> 32,
                     (high >> 16) & 0xFFFF, high & 0xFFF,
                     0x8000 | ((low >> 48) & 0x3FFF), low & 0xFFFFFFFFFFFF);
}

bool NeedsIdentity(const std::string& kind, const ObjectMeta& metadata) {
  return kind == kClassKind ? metadata.creation_timestamp.empty()
                            : metadata.uid.empty();
}

state::Decision DecideIdentities(const state::State& state,
                                 const ObjectSnapshot& snapshot,
                                 const std::string& source,
                                 std::int64_t now_ms) {
  state::Decision decision;
  decision.kind = state::DecisionKind::kIdentity;
  std::set<state::IdentityKey> present;
  ForEachIdentity(
      snapshot, [&](const std::string& kind, const ObjectMeta& metadata) {
        if (!NeedsIdentity(kind, metadata)) return;
        const ObjectName name = metadata.FullName();
        present.insert({kind, name});
        if (const auto* known = state.FindIdentity(kind, name);
            known != nullptr &&
            (kind != kPodKind || !IsMended(snapshot, state, *known))) {
          return;
        }
        auto identity = std::make_shared<state::IdentityRecord>();
        identity->kind = kind;
        identity->name = name;
        identity->uid = metadata.uid.empty()
                            ? DeriveUid(source, kind, name, state.seq + 1)
                            : metadata.uid;
        identity->first_seen_ms = now_ms;
        decision.changes.push_back(state::PutIdentity{std::move(identity)});
      });
  for (const auto& [key, identity] : state.identities) {
    if (present.contains(key) ||
        !snapshot.IsComplete(ObjectKindOf(key.first))) {
      continue;
    }
    decision.changes.push_back(state::EraseIdentity{key.first, key.second});
  }
  return decision;
}

bool MayNeedIdentities(const ObjectSnapshot& before, const Identities& known,
                       const ObjectSnapshot& snapshot,
                       const state::State& state) {
  const auto becomes_complete = [&](ObjectKind kind) {
    return snapshot.IsComplete(kind) && !before.IsComplete(kind);
  };
  return !state.identities.SharesAllWith(known) ||
         becomes_complete(ObjectKind::kPod) ||
         becomes_complete(ObjectKind::kResourceClaim) ||
         becomes_complete(ObjectKind::kDeviceClass) ||
         MayDiffer(kPodKind, before.pods, snapshot.pods) ||
         MayDiffer(kPodKind, before.malformed_pods, snapshot.malformed_pods) ||
         MayDiffer(kClaimKind, before.claims, snapshot.claims) ||
         MayDiffer(kClassKind, before.device_classes, snapshot.device_classes);
}

}  // namespace devmgr::claim
