// SPDX-License-Identifier: Apache-2.0
//
// Decisions: changes of the projection that hold together or not at all.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "state/records.h"

namespace devmgr {
enum class DecisionKind;
}  // namespace devmgr

namespace devmgr::state {

struct State;

// One change of the projection. Records are never null.
struct PutPod {
  std::shared_ptr<const PodRecord> pod;
};
struct ErasePod {
  PodUid uid;
};
struct PutClaim {
  std::shared_ptr<const ClaimRecord> claim;
};
struct EraseClaim {
  ClaimUid uid;
};
struct PutIdentity {
  std::shared_ptr<const IdentityRecord> identity;
};
struct EraseIdentity {
  std::string kind;
  ObjectName name;
};
struct PutResource {
  std::shared_ptr<const ResourceRecord> resource;
};
struct EraseResource {
  ResourceName name;
};
struct PutHealth {
  std::shared_ptr<const HealthRecord> health;
};
struct EraseHealth {
  DeviceKey device;
};
struct PutSource {
  std::shared_ptr<const SourceRecord> source;
};
struct EraseSource {
  SourceKey source;
};
struct PutHolder {
  std::shared_ptr<const ForeignHolderRecord> holder;
};
struct EraseHolder {
  ContainerId id;
};
struct PutLocalClaim {
  std::shared_ptr<const LocalClaimRecord> claim;
};
struct EraseLocalClaim {
  LocalClaimUid uid;
};
struct PutAuthority {
  std::shared_ptr<const AuthorityRecord> authority;
};
struct EraseAuthority {};
using Change =
    std::variant<PutPod, ErasePod, PutClaim, EraseClaim, PutIdentity,
                 EraseIdentity, PutResource, EraseResource, PutHealth,
                 EraseHealth, PutSource, EraseSource, PutHolder, EraseHolder,
                 PutLocalClaim, EraseLocalClaim, PutAuthority, EraseAuthority>;

/// What was decided. Stored: never renumber.
enum class DecisionKind : std::uint8_t {
  kIdentity = 1,       ///< Objects from files got their UIDs, or lost them.
  kSeen = 2,           ///< A pod that has to wait is known.
  kReject = 3,         ///< A pod is rejected for good.
  kPrepareIntent = 4,  ///< A pod references its claims; drivers will be asked.
  kPrepareResult = 5,  ///< Drivers answered; pods may have become Ready.
  kUnprepareIntent = 6,  ///< A pod gives up its claims.
  kUnprepareResult = 7,  ///< Drivers answered; claims may be gone.
  kRelease = 8,          ///< A pod is forgotten, maybe with its last claim.
  kRepair = 9,           ///< What a check of the ledger found was mended.
  kRecovered = 10,       ///< What could be saved of a damaged ledger.
  kReserve = 11,         ///< Devices are chosen; plugins will be asked.
  kAllocated = 12,       ///< Plugins answered; the pod has its devices.
  kUnreserve = 13,       ///< Devices are free again; the pod did not get them.
  kBacking = 14,         ///< What serves a resource's name.
  kInitEnded = 15,       ///< Init containers ended; their devices are free.
  kDebt = 16,            ///< Drivers have not unprepared what they were to.
  kForgiven = 17,        ///< What drivers owed is not waited for any more.
  kHealth = 18,          ///< The health of devices that claims hold.
  kSource = 19,       ///< How a source is recognised, or what it vouches for.
  kHolderFound = 20,  ///< Containers hold devices that no pod was given.
  kHolderGone = 21,   ///< Such containers are gone, or their devices pods'.
  kHolderFreed = 22,  ///< An operator freed what such a container holds.
  kWanted = 23,       ///< A client wants a pod, over the control socket.
  kUnwanted = 24,     ///< A client wants it no longer.
  kClaimsAllocated = 25,  ///< This node made or allocated claims for a pod.
  kClaimsReleased = 26,   ///< Such claims are free again, or gone.
  kSlicesDeleted = 27,    ///< An operator deletes what a driver has published.
  kEvict = 28,            ///< A pod has to leave its devices.
  kEvicted = 29,          ///< It has left them, and is not admitted again.
  kRecheck = 30,          ///< An operator has devices offered again at once.
  kImported = 31,   ///< What checkpoint files of a kubelet hold is taken over.
  kShown = 32,      ///< The source shows a pod that was imported.
  kAuthority = 33,  ///< Which party allocates, or that it is handed over.
  kReplaced = 34,   ///< A container gives up devices that do not work.
  kOther = 255,     ///< Of a newer version, which let us ignore it.
};
/// As devmgr/status_types.h has it.
devmgr::DecisionKind PublicOf(DecisionKind kind);

/// A decision before it has a number.
struct Decision {
  DecisionKind kind = DecisionKind::kSeen;
  std::vector<ObjectName> pods;    ///< Pods that it concerns, for the history.
  std::vector<ObjectName> claims;  ///< The same.
  std::string message;             ///< For people; may be empty.
  std::vector<Change> changes;     ///< Empty: nothing to decide, no write.
};

/// True with changes, and for what lies outside of the ledger: what a repair
/// does, which pods clients want, and what becomes of slices.
bool IsWorthWriting(const Decision& decision);

/// A decision with its number: the unit of the ledger.
struct Batch {
  std::uint64_t seq = 0;
  std::int64_t time_ms = 0;  ///< Unix time.
  Decision decision;
  /// What takes the decision's changes back, one for each, the last one first.
  /// Empty when that is not known (see CanRevert).
  std::vector<Change> undo;
};

/// Applies one batch. Costs as much as its changes, however much is stored.
/// On error `state` is unchanged.
///   DataLoss  the number is not the next one, a record to be erased is not
///             there, or a record to be put is missing or has no UID
absl::Status Apply(State& state, const Batch& batch);

/// Apply for a batch that is being made: fills in its `undo`.
absl::Status ApplyNew(State& state, Batch& batch);

/// Whether the state before this batch can be had from the one after it. Not
/// so for batches of ledger format 1, and never for kRecovered: what was there
/// before that is lost.
bool CanRevert(const Batch& batch);

/// Takes back the last batch, the inverse of Apply. On error `state` is
/// unchanged.
///   FailedPrecondition  not CanRevert
///   DataLoss            it is not the last batch, or its `undo` does not fit
absl::Status Revert(State& state, const Batch& batch);

}  // namespace devmgr::state
