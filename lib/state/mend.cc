// SPDX-License-Identifier: Apache-2.0
#include "state/mend.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::state {
namespace {

bool Lists(const PodRecord& pod, const ClaimUid& claim) {
  return std::find(pod.claims.begin(), pod.claims.end(), claim) !=
         pod.claims.end();
}

/// It has to be admitted anew to become Ready: what its containers want, and
/// which claims it has, comes from its plan then.
void PlanAnew(PodRecord& pod) {
  pod.phase = PodPhase::kPreparing;
  pod.answer = nullptr;
  pod.needs.clear();
}

/// The drivers are asked again; what its containers want is known.
void PrepareAgain(PodRecord& pod) {
  pod.phase = PodPhase::kPreparing;
  pod.answer = nullptr;
}

void Release(PodRecord& pod) {
  pod.phase = PodPhase::kReleasing;
  pod.answer = nullptr;
  pod.needs.clear();
}

class Mender {
 public:
  Mender(const State& state, const NameOfPod& name_of_pod)
      : name_of_pod_(name_of_pod) {
    for (const auto& [uid, pod] : state.pods) pods_[uid] = *pod;
    for (const auto& [uid, claim] : state.claims) claims_[uid] = *claim;
  }

  // The order matters: first who holds what, then who has to give it up, then
  // what becomes of claims that nobody holds.
  void Run() {
    for (auto& [uid, pod] : pods_) DropWhatItsPhaseForbids(pod);
    SettleDevices();
    for (auto& [uid, claim] : claims_) BelieveClaim(claim);
    for (auto& [uid, pod] : pods_) BelievePod(pod);
    ReleaseHoldersOfUnpreparing();
    ReleaseHoldersOfOlderNames();
    for (auto& [uid, pod] : pods_) FinishRelease(pod);
    SettleClaimsWithoutHolders();
    for (auto& [uid, pod] : pods_) CheckLive(pod);
  }

  /// Puts what differs; returns how much that is.
  std::size_t Store(State& state) const {
    std::size_t changed = 0;
    for (const auto& [uid, pod] : pods_) {
      const PodRecord* old = state.FindPod(uid);
      if (old != nullptr && *old == pod) continue;
      state.Put(std::make_shared<PodRecord>(pod));
      ++changed;
    }
    for (const auto& [uid, claim] : claims_) {
      const ClaimRecord* old = state.FindClaim(uid);
      if (old != nullptr && *old == claim) continue;
      state.Put(std::make_shared<ClaimRecord>(claim));
      ++changed;
    }
    for (const ClaimUid& uid : erased_) {
      if (state.Erase(uid)) ++changed;
    }
    return changed;
  }

 private:
  static void DropWhatItsPhaseForbids(PodRecord& pod) {
    if (!IsLive(pod) && pod.phase != PodPhase::kReleasing) pod.claims.clear();
    if (pod.phase == PodPhase::kWaiting || pod.phase == PodPhase::kRejected) {
      pod.holds.clear();
    }
    if (pod.phase != PodPhase::kReady) pod.answer = nullptr;
  }

  /// Of the pods that hold one device, the one that was seen first keeps it;
  /// nobody knows what the plugin made of a reservation.
  void SettleDevices() {
    for (auto& [uid, pod] : pods_) {
      if (!IsLive(pod)) continue;
      for (DeviceHold& hold : pod.holds) {
        // What a container was about to get is not what the pod runs on.
        if (hold.phase == device::ReservationPhase::kReserved) {
          hold.phase = device::ReservationPhase::kReleased;
        }
      }
    }
    std::map<std::pair<std::string, std::string>, PodRecord*> holders;
    for (PodRecord* pod : PodsBySight()) {
      const bool lost = std::any_of(
          pod->holds.begin(), pod->holds.end(), [&](const DeviceHold& hold) {
            const bool reserved =
                hold.phase == device::ReservationPhase::kReserved &&
                pod->phase != PodPhase::kReleasing;
            return reserved || IsTaken(holders, *pod, hold);
          });
      if (lost) {
        GiveUpDevices(*pod);
        continue;
      }
      for (const DeviceHold& hold : pod->holds) {
        if (!hold.Holds()) continue;
        for (const device::HeldDevice& device : hold.devices) {
          holders[{hold.resource, device.id}] = pod;
        }
      }
      if (pod->phase == PodPhase::kAllocating) pod->phase = PodPhase::kAdmitted;
    }
  }

  static bool IsTaken(
      const std::map<std::pair<std::string, std::string>, PodRecord*>& holders,
      const PodRecord& pod, const DeviceHold& hold) {
    return hold.Holds() &&
           std::any_of(
               hold.devices.begin(), hold.devices.end(),
               [&](const device::HeldDevice& device) {
                 const auto other = holders.find({hold.resource, device.id});
                 return other != holders.end() && other->second != &pod;
               });
  }

  /// It is admitted anew; first what it has prepared is given up.
  static void GiveUpDevices(PodRecord& pod) {
    pod.holds.clear();
    if (IsLive(pod)) {
      Release(pod);
    } else if (pod.phase != PodPhase::kReleasing) {
      pod.phase = PodPhase::kWaiting;
    }
  }

  std::vector<PodRecord*> PodsBySight() {
    std::vector<PodRecord*> pods;
    for (auto& [uid, pod] : pods_) pods.push_back(&pod);
    std::stable_sort(pods.begin(), pods.end(),
                     [](const PodRecord* a, const PodRecord* b) {
                       return a->first_seen_seq < b->first_seen_seq;
                     });
    return pods;
  }

  /// A pod that a claim lists holds it.
  void BelieveClaim(ClaimRecord& claim) {
    for (auto& [name, driver] : claim.drivers) {
      if (driver.phase != DriverPhase::kUnpreparing) driver.debt.reset();
      if (driver.phase != DriverPhase::kPreparing &&
          driver.spec_recovery == SpecRecovery::kUnprepareFirst) {
        driver.spec_recovery = SpecRecovery::kNone;
      }
      if (driver.phase == DriverPhase::kPrepared && driver.boot_id.empty()) {
        driver = driver.Anew();
      }
    }
    const std::set<PodUid> holders = claim.pods;
    for (const PodUid& uid : holders) {
      const auto found = pods_.find(uid);
      if (found == pods_.end()) {
        PodRecord& pod = pods_[uid];
        pod.uid = uid;
        pod.name = name_of_pod_(uid).value_or(
            ObjectName{claim.name.ns, "recovered-" + uid.value});
        PlanAnew(pod);
        pod.claims.push_back(claim.uid);
      } else if (found->second.phase == PodPhase::kRejected) {
        claim.pods.erase(uid);
      } else if (!Lists(found->second, claim.uid)) {
        found->second.claims.push_back(claim.uid);
        if (found->second.phase != PodPhase::kReleasing) {
          PlanAnew(found->second);
        }
      }
    }
  }

  /// A live pod holds what it lists, unless that is gone.
  void BelievePod(PodRecord& pod) {
    const bool lacks = std::erase_if(pod.claims, [&](const ClaimUid& claim) {
                         return !claims_.contains(claim);
                       }) > 0;
    if (!IsLive(pod)) return;
    for (const ClaimUid& claim : pod.claims) {
      claims_.at(claim).pods.insert(pod.uid);
    }
    if (lacks) PlanAnew(pod);
  }

  /// Their release has begun, and its intent is carried out.
  void ReleaseHoldersOfUnpreparing() {
    for (auto& [uid, pod] : pods_) {
      if (!IsLive(pod)) continue;
      if (std::any_of(pod.claims.begin(), pod.claims.end(),
                      [&](const ClaimUid& claim) {
                        return IsUnpreparing(claims_.at(claim));
                      })) {
        Release(pod);
      }
    }
  }

  /// Of claims of one name, the one whose holder was seen last stays.
  void ReleaseHoldersOfOlderNames() {
    std::map<ObjectName, std::vector<ClaimRecord*>> named;
    for (auto& [uid, claim] : claims_) {
      if (!IsUnpreparing(claim)) named[claim.name].push_back(&claim);
    }
    for (auto& [name, claims] : named) {
      const auto newest = std::max_element(claims.begin(), claims.end(),
                                           [&](const auto* a, const auto* b) {
                                             return LastSeen(*a) < LastSeen(*b);
                                           });
      for (auto claim = claims.begin(); claim != claims.end(); ++claim) {
        if (claim == newest) continue;
        for (const PodUid& pod : (*claim)->pods) Release(pods_.at(pod));
      }
    }
  }

  std::uint64_t LastSeen(const ClaimRecord& claim) const {
    std::uint64_t last = 0;
    for (const PodUid& uid : claim.pods) {
      const PodRecord& pod = pods_.at(uid);
      if (IsLive(pod)) last = std::max(last, pod.first_seen_seq + 1);
    }
    return last;
  }

  /// As when a release begins: what others hold is given up at once.
  void FinishRelease(PodRecord& pod) {
    if (pod.phase != PodPhase::kReleasing) return;
    std::erase_if(pod.claims, [&](const ClaimUid& uid) {
      ClaimRecord& claim = claims_.at(uid);
      const bool shared = std::any_of(
          claim.pods.begin(), claim.pods.end(),
          [&](const PodUid& other) { return IsLive(pods_.at(other)); });
      if (shared) {
        claim.pods.erase(pod.uid);
      } else {
        claim.pods.insert(pod.uid);
      }
      return shared;
    });
  }

  void SettleClaimsWithoutHolders() {
    for (auto claim = claims_.begin(); claim != claims_.end();) {
      if (Settle(claim->second)) {
        ++claim;
        continue;
      }
      for (const PodUid& pod : claim->second.pods) {
        std::erase(pods_.at(pod).claims, claim->first);
      }
      erased_.push_back(claim->first);
      claim = claims_.erase(claim);
    }
  }

  /// False when the claim is to be forgotten.
  bool Settle(ClaimRecord& claim) {
    if (std::any_of(claim.pods.begin(), claim.pods.end(),
                    [&](const PodUid& pod) { return IsLive(pods_.at(pod)); })) {
      return true;
    }
    if (claim.drivers.empty()) return false;
    for (auto& [name, driver] : claim.drivers) {
      driver.phase = DriverPhase::kUnpreparing;
      driver.spec_recovery = SpecRecovery::kNone;
    }
    if (!claim.pods.empty()) return true;
    // Its pods have gone on purpose.
    if (std::all_of(claim.drivers.begin(), claim.drivers.end(),
                    [](const auto& driver) {
                      return driver.second.debt.has_value();
                    })) {
      return true;
    }
    const PodUid uid{"recovered-" + claim.uid.value};
    PodRecord& keeper = pods_[uid];
    keeper.uid = uid;
    keeper.name = {claim.name.ns, "recovered-" + claim.name.name};
    Release(keeper);
    keeper.claims.push_back(claim.uid);
    claim.pods.insert(uid);
    return true;
  }

  void CheckLive(PodRecord& pod) const {
    if (!IsLive(pod)) return;
    const bool unlisted = std::any_of(
        pod.needs.begin(), pod.needs.end(), [&](const ContainerNeed& need) {
          return std::any_of(
              need.wants.begin(), need.wants.end(),
              [&](const Want& want) { return !Lists(pod, want.claim); });
        });
    if (unlisted) PlanAnew(pod);
    if (pod.phase == PodPhase::kReady && !IsReady(pod)) PrepareAgain(pod);
    if (pod.phase == PodPhase::kPreparing && pod.claims.empty()) {
      pod.phase = pod.holds.empty() ? PodPhase::kWaiting : PodPhase::kAdmitted;
      pod.needs.clear();
    }
  }

  bool IsReady(const PodRecord& pod) const {
    if (pod.answer == nullptr || pod.answer->uid != pod.uid ||
        pod.answer->name != pod.name) {
      return false;
    }
    if (pod.claims.empty()) return true;
    return !pod.boot_id.empty() &&
           std::all_of(pod.claims.begin(), pod.claims.end(),
                       [&](const ClaimUid& claim) {
                         return IsPrepared(claims_.at(claim), pod.boot_id);
                       });
  }

  /// After a reboot none of its drivers has prepared it yet, or all have.
  static bool IsPrepared(const ClaimRecord& claim, const std::string& boot_id) {
    const auto prepared = std::count_if(
        claim.drivers.begin(), claim.drivers.end(), [&](const auto& driver) {
          return driver.second.phase == DriverPhase::kPrepared &&
                 driver.second.boot_id == boot_id;
        });
    return prepared == 0 ||
           prepared == static_cast<std::ptrdiff_t>(claim.drivers.size());
  }

  const NameOfPod& name_of_pod_;
  std::map<PodUid, PodRecord> pods_;
  std::map<ClaimUid, ClaimRecord> claims_;
  std::vector<ClaimUid> erased_;
};

/// Of objects of a kind with one UID the one that was seen last keeps it; the
/// other gets its identity anew.
std::size_t MendIdentities(State& state) {
  std::map<std::pair<std::string, std::string>, const IdentityRecord*> newest;
  std::vector<IdentityKey> doubles;
  for (const auto& [key, identity] : state.identities) {
    const IdentityRecord*& other =
        newest[std::pair(identity->kind, identity->uid)];
    const IdentityRecord* loser = other;
    if (other == nullptr || other->first_seen_ms < identity->first_seen_ms) {
      other = identity.get();
    } else {
      loser = identity.get();
    }
    if (loser != nullptr) doubles.emplace_back(loser->kind, loser->name);
  }
  for (const IdentityKey& key : doubles) state.Erase(key);
  return doubles.size();
}

/// What other pods have been given is theirs.
std::size_t MendHolders(State& state) {
  std::vector<ForeignHolderRecord> mended;
  for (const auto& [id, holder] : state.foreign_holders) {
    ForeignHolderRecord record = *holder;
    if (record.Holds()) {
      std::erase_if(record.devices, [&](const auto& device) {
        const PodUid* pod = state.HolderOf(device.first, device.second);
        return pod != nullptr && *pod != record.pod_uid;
      });
    }
    const bool holds = !record.devices.empty() || !record.cdi_devices.empty();
    if (!holds || record != *holder) mended.push_back(std::move(record));
  }
  for (ForeignHolderRecord& record : mended) {
    if (record.devices.empty() && record.cdi_devices.empty()) {
      state.Erase(record.id);
    } else {
      state.Put(std::make_shared<ForeignHolderRecord>(std::move(record)));
    }
  }
  return mended.size();
}

}  // namespace

std::size_t Mend(State& state, const NameOfPod& name_of_pod) {
  Mender mender(state, name_of_pod);
  mender.Run();
  const std::size_t stored = mender.Store(state);
  return stored + MendIdentities(state) + MendHolders(state);
}

}  // namespace devmgr::state
