// SPDX-License-Identifier: Apache-2.0
//
// Identities of objects that come from files. What an API server gives an
// object, a UID and a time of creation, is given here when the object is first
// seen, and is a decision of the ledger, so that it holds over restarts.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/persistent_map.h>
#include <devmgr/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

// Kinds of objects that have identities.
inline constexpr char kPodKind[] = "Pod";
inline constexpr char kClaimKind[] = "ResourceClaim";
inline constexpr char kClassKind[] = "DeviceClass";

/// What an object is called, also of a pod that breaks a rule.
template <typename T>
auto& MetadataOf(T& object) {
  if constexpr (requires { object.metadata; }) {
    return object.metadata;
  } else {
    return object.pod.metadata;
  }
}

/// The UID of an object that came without one: derived from where it came
/// from, what it is, and the decision that first saw it.
std::string DeriveUid(const std::string& source, const std::string& kind,
                      const ObjectName& name, std::uint64_t incarnation);

/// False for objects of an API server: they bring all that an identity is for.
bool NeedsIdentity(const std::string& kind, const ObjectMeta& metadata);

/// Gives identities to the objects of `source` that have none. A pod that was
/// rejected as invalid gets a new one when its file is valid: an API server
/// would have refused the old one. Identities of objects that are gone are
/// erased: of kinds for which the snapshot is complete.
state::Decision DecideIdentities(const state::State& state,
                                 const ObjectSnapshot& snapshot,
                                 const std::string& source,
                                 std::int64_t now_ms);

/// Whether DecideIdentities has something to decide is to be looked at, where
/// it had nothing for `before` and `known`: true when an object has changed, or
/// a kind has become complete, and that may make a difference. Costs what has
/// changed. A pod that is rejected meanwhile is not seen here.
using Identities = PersistentMap<state::IdentityKey,
                                 std::shared_ptr<const state::IdentityRecord>>;
bool MayNeedIdentities(const ObjectSnapshot& before, const Identities& known,
                       const ObjectSnapshot& snapshot,
                       const state::State& state);

}  // namespace devmgr::claim
