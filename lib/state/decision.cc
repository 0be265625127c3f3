// SPDX-License-Identifier: Apache-2.0
#include "state/decision.h"

#include <devmgr/status_types.h>

#include <map>
#include <utility>

#include "api/quote.h"
#include "common/status.h"
#include "state/state.h"

namespace devmgr::state {
namespace {

Change PutOf(std::shared_ptr<const PodRecord> pod) {
  return PutPod{std::move(pod)};
}
Change PutOf(std::shared_ptr<const ClaimRecord> claim) {
  return PutClaim{std::move(claim)};
}
Change PutOf(std::shared_ptr<const IdentityRecord> identity) {
  return PutIdentity{std::move(identity)};
}
Change PutOf(std::shared_ptr<const ResourceRecord> resource) {
  return PutResource{std::move(resource)};
}
Change EraseOf(const PodUid& uid) { return ErasePod{uid}; }
Change EraseOf(const ClaimUid& uid) { return EraseClaim{uid}; }
Change EraseOf(const IdentityKey& key) {
  return EraseIdentity{key.first, key.second};
}

Change EraseOf(const ResourceName& resource) { return EraseResource{resource}; }
Change PutOf(std::shared_ptr<const HealthRecord> health) {
  return PutHealth{std::move(health)};
}
Change EraseOf(const DeviceKey& device) { return EraseHealth{device}; }
Change PutOf(std::shared_ptr<const SourceRecord> source) {
  return PutSource{std::move(source)};
}
Change EraseOf(const SourceKey& source) { return EraseSource{source}; }
Change PutOf(std::shared_ptr<const ForeignHolderRecord> holder) {
  return PutHolder{std::move(holder)};
}
Change EraseOf(const ContainerId& id) { return EraseHolder{id}; }
Change PutOf(std::shared_ptr<const LocalClaimRecord> claim) {
  return PutLocalClaim{std::move(claim)};
}
Change EraseOf(const LocalClaimUid& uid) { return EraseLocalClaim{uid}; }
Change PutOf(std::shared_ptr<const AuthorityRecord> authority) {
  return PutAuthority{std::move(authority)};
}
Change EraseOf(const AuthorityKey&) { return EraseAuthority{}; }

/// Applies changes one by one and takes them all back unless told to keep them.
class Transaction {
 public:
  explicit Transaction(State& state) : state_(state) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    const std::vector<Change> undo = Keep();
    // What was there before can be put back, and what was not be erased.
    for (const Change& change : undo) {
      std::visit(*this, change).IgnoreError();
    }
  }

  absl::Status Apply(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      DEVMGR_RETURN_IF_ERROR(std::visit(*this, change));
    }
    return absl::OkStatus();
  }

  /// Returns what would take the changes back, in the order to do it.
  std::vector<Change> Keep() {
    std::reverse(undo_.begin(), undo_.end());
    return std::exchange(undo_, {});
  }

  absl::Status operator()(const PutPod& change) {
    if (change.pod == nullptr) return DataLossError("a pod record is missing");
    if (change.pod->uid.value.empty()) {
      return DataLossError("pod {} has no uid",
                           api::Quoted(change.pod->name.ToString()));
    }
    Put(change.pod, change.pod->uid, state_.pods);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutClaim& change) {
    if (change.claim == nullptr) {
      return DataLossError("a claim record is missing");
    }
    if (change.claim->uid.value.empty()) {
      return DataLossError("claim {} has no uid",
                           api::Quoted(change.claim->name.ToString()));
    }
    Put(change.claim, change.claim->uid, state_.claims);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutIdentity& change) {
    if (change.identity == nullptr) {
      return DataLossError("an identity record is missing");
    }
    const IdentityRecord& identity = *change.identity;
    // The store separates the parts of its keys by NUL.
    if (identity.kind.find('\0') != std::string::npos ||
        identity.name.ns.find('\0') != std::string::npos) {
      return DataLossError("the identity of {} has a NUL in its name",
                           api::Quoted(identity.name.name));
    }
    Put(change.identity, IdentityKey(identity.kind, identity.name),
        state_.identities);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutResource& change) {
    if (change.resource == nullptr) {
      return DataLossError("a resource record is missing");
    }
    if (change.resource->name.empty()) {
      return DataLossError("a resource has no name");
    }
    Put(change.resource, change.resource->name, state_.resources);
    return absl::OkStatus();
  }
  absl::Status operator()(const ErasePod& change) {
    if (Erase(change.uid, state_.pods)) return absl::OkStatus();
    return DataLossError("pod with uid {} is not known",
                         api::Quoted(change.uid.value));
  }
  absl::Status operator()(const EraseClaim& change) {
    if (Erase(change.uid, state_.claims)) return absl::OkStatus();
    return DataLossError("claim with uid {} is not known",
                         api::Quoted(change.uid.value));
  }
  absl::Status operator()(const EraseIdentity& change) {
    if (Erase(IdentityKey(change.kind, change.name), state_.identities)) {
      return absl::OkStatus();
    }
    return DataLossError("the identity of {} {} is not known",
                         api::Quoted(change.kind),
                         api::Quoted(change.name.ToString()));
  }
  absl::Status operator()(const EraseResource& change) {
    if (Erase(change.name, state_.resources)) return absl::OkStatus();
    return DataLossError("resource {} is not known", api::Quoted(change.name));
  }
  absl::Status operator()(const PutHealth& change) {
    if (change.health == nullptr) {
      return DataLossError("a health record is missing");
    }
    const HealthRecord& health = *change.health;
    // The store separates the parts of its keys by NUL.
    if (health.driver.empty() ||
        health.driver.find('\0') != std::string::npos ||
        health.pool.find('\0') != std::string::npos) {
      return DataLossError("the health of {} has no driver, or a NUL in a name",
                           api::Quoted(health.device));
    }
    Put(change.health, health.Key(), state_.healths);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseHealth& change) {
    if (Erase(change.device, state_.healths)) return absl::OkStatus();
    return DataLossError("the health of {} is not known",
                         api::Quoted(std::get<2>(change.device)));
  }
  absl::Status operator()(const PutSource& change) {
    if (change.source == nullptr) {
      return DataLossError("a source record is missing");
    }
    if (change.source->name.empty()) {
      return DataLossError("a source has no name");
    }
    Put(change.source, change.source->Key(), state_.sources);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseSource& change) {
    if (Erase(change.source, state_.sources)) return absl::OkStatus();
    return DataLossError("source {} is not known",
                         api::Quoted(change.source.name));
  }
  absl::Status operator()(const PutHolder& change) {
    if (change.holder == nullptr) {
      return DataLossError("a record of a foreign holder is missing");
    }
    if (change.holder->id.value.empty()) {
      return DataLossError("a foreign holder of pod {} has no container ID",
                           api::Quoted(change.holder->pod.ToString()));
    }
    Put(change.holder, change.holder->id, state_.foreign_holders);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseHolder& change) {
    if (Erase(change.id, state_.foreign_holders)) return absl::OkStatus();
    return DataLossError("foreign holder {} is not known",
                         api::Quoted(change.id.value));
  }
  absl::Status operator()(const PutLocalClaim& change) {
    if (change.claim == nullptr || change.claim->object == nullptr) {
      return DataLossError("a claim that this node allocates is missing");
    }
    const LocalClaimRecord& claim = *change.claim;
    if (claim.uid.value.empty() ||
        claim.uid.value != claim.object->metadata.uid) {
      return DataLossError(
          "claim {} that this node allocates has UID {}, and its object {}",
          api::Quoted(claim.object->metadata.FullName().ToString()),
          api::Quoted(claim.uid.value),
          api::Quoted(claim.object->metadata.uid));
    }
    Put(change.claim, claim.uid, state_.local_claims);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseLocalClaim& change) {
    if (Erase(change.uid, state_.local_claims)) return absl::OkStatus();
    return DataLossError("claim {} that this node allocates is not known",
                         api::Quoted(change.uid.value));
  }

  absl::Status operator()(const PutAuthority& change) {
    if (change.authority == nullptr) {
      return DataLossError("the record of the authority is missing");
    }
    Put(change.authority, change.authority->Key(), state_.authority);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseAuthority&) {
    if (Erase(AuthorityKey{}, state_.authority)) return absl::OkStatus();
    return DataLossError("there is no record of the authority");
  }

 private:
  template <typename Key, typename Record>
  void Put(const std::shared_ptr<const Record>& record, const Key& key,
           const PersistentMap<Key, std::shared_ptr<const Record>>& map) {
    RememberOld(key, map);
    state_.Put(record);
  }

  template <typename Key, typename Record>
  bool Erase(const Key& key,
             const PersistentMap<Key, std::shared_ptr<const Record>>& map) {
    if (map.find(key) == map.end()) return false;
    RememberOld(key, map);
    return state_.Erase(key);
  }

  template <typename Key, typename Record>
  void RememberOld(
      const Key& key,
      const PersistentMap<Key, std::shared_ptr<const Record>>& map) {
    const auto old = map.find(key);
    undo_.push_back(old == map.end() ? EraseOf(key) : PutOf(old->second));
  }

  State& state_;
  std::vector<Change> undo_;
};

/// Applies a batch and returns what takes it back.
absl::StatusOr<std::vector<Change>> ApplyBatch(State& state,
                                               const Batch& batch) {
  if (batch.seq != state.seq + 1) {
    return DataLossError("batch {} does not follow batch {}", batch.seq,
                         state.seq);
  }
  Transaction transaction(state);
  DEVMGR_RETURN_IF_ERROR(WithContext(transaction.Apply(batch.decision.changes),
                                     "batch {}", batch.seq));
  state.seq = batch.seq;
  return transaction.Keep();
}

}  // namespace

devmgr::DecisionKind PublicOf(DecisionKind kind) {
  using Public = devmgr::DecisionKind;
  switch (kind) {
    case DecisionKind::kIdentity:
      return Public::kIdentity;
    case DecisionKind::kSeen:
      return Public::kSeen;
    case DecisionKind::kReject:
      return Public::kReject;
    case DecisionKind::kPrepareIntent:
      return Public::kPrepareIntent;
    case DecisionKind::kPrepareResult:
      return Public::kPrepareResult;
    case DecisionKind::kUnprepareIntent:
      return Public::kUnprepareIntent;
    case DecisionKind::kUnprepareResult:
      return Public::kUnprepareResult;
    case DecisionKind::kRelease:
      return Public::kRelease;
    case DecisionKind::kRepair:
      return Public::kRepair;
    case DecisionKind::kRecovered:
      return Public::kRecovered;
    case DecisionKind::kReserve:
      return Public::kReserve;
    case DecisionKind::kAllocated:
      return Public::kAllocated;
    case DecisionKind::kUnreserve:
      return Public::kUnreserve;
    case DecisionKind::kBacking:
      return Public::kBacking;
    case DecisionKind::kInitEnded:
      return Public::kInitEnded;
    case DecisionKind::kDebt:
      return Public::kDebt;
    case DecisionKind::kForgiven:
      return Public::kForgiven;
    case DecisionKind::kHealth:
      return Public::kHealth;
    case DecisionKind::kSource:
      return Public::kSource;
    case DecisionKind::kHolderFound:
      return Public::kHolderFound;
    case DecisionKind::kHolderGone:
      return Public::kHolderGone;
    case DecisionKind::kHolderFreed:
      return Public::kHolderFreed;
    case DecisionKind::kClaimsAllocated:
      return Public::kClaimsAllocated;
    case DecisionKind::kClaimsReleased:
      return Public::kClaimsReleased;
    case DecisionKind::kSlicesDeleted:
      return Public::kSlicesDeleted;
    case DecisionKind::kEvict:
      return Public::kEvict;
    case DecisionKind::kEvicted:
      return Public::kEvicted;
    case DecisionKind::kRecheck:
      return Public::kRecheck;
    case DecisionKind::kImported:
      return Public::kImported;
    case DecisionKind::kShown:
      return Public::kShown;
    case DecisionKind::kAuthority:
      return Public::kAuthority;
    case DecisionKind::kReplaced:
      return Public::kReplaced;
    case DecisionKind::kWanted:
      return Public::kWanted;
    case DecisionKind::kUnwanted:
      return Public::kUnwanted;
    case DecisionKind::kOther:
      return Public::kOther;
  }
  return Public::kOther;
}

bool IsWorthWriting(const Decision& decision) {
  return !decision.changes.empty() || decision.kind == DecisionKind::kRepair ||
         decision.kind == DecisionKind::kWanted ||
         decision.kind == DecisionKind::kUnwanted ||
         decision.kind == DecisionKind::kSlicesDeleted ||
         decision.kind == DecisionKind::kRecheck;
}

absl::Status Apply(State& state, const Batch& batch) {
  return ApplyBatch(state, batch).status();
}

absl::Status ApplyNew(State& state, Batch& batch) {
  DEVMGR_ASSIGN_OR_RETURN(batch.undo, ApplyBatch(state, batch));
  return absl::OkStatus();
}

bool CanRevert(const Batch& batch) {
  return batch.decision.kind != DecisionKind::kRecovered &&
         batch.undo.size() == batch.decision.changes.size();
}

absl::Status Revert(State& state, const Batch& batch) {
  if (batch.seq != state.seq || batch.seq == 0) {
    return DataLossError("batch {} is not the last one, which is {}", batch.seq,
                         state.seq);
  }
  if (!CanRevert(batch)) {
    return FailedPreconditionError("what was before batch {} is not known",
                                   batch.seq);
  }
  Transaction transaction(state);
  DEVMGR_RETURN_IF_ERROR(WithContext(transaction.Apply(batch.undo),
                                     "undo of batch {}", batch.seq));
  transaction.Keep();
  --state.seq;
  return absl::OkStatus();
}

}  // namespace devmgr::state
