// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "state/state.h"

namespace devmgr::state {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;

/// A pod in one of these phases uses its claims, or is about to.
bool PreparedIn(const DriverRecord& driver, std::string_view boot_id) {
  return driver.phase == DriverPhase::kPrepared && driver.boot_id == boot_id;
}

class Checker {
 public:
  Checker(const State& state, std::string_view boot_id)
      : state_(state), boot_id_(boot_id) {}

  std::vector<std::string> Run() {
    for (const auto& [uid, pod] : state_.pods) CheckPod(uid, *pod);
    for (const auto& [uid, claim] : state_.claims) CheckClaim(uid, *claim);
    CheckDevices();
    CheckHolders();
    CheckLocalClaims();
    CheckHardware();
    CheckIdentities();
    CheckNames();
    return std::move(violations_);
  }

 private:
  template <typename... Args>
  void Violation(fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(api::Readable(
        fmt::format(format, std::forward<Args>(args)...), kMaxTextBytes));
  }
  template <typename... Args>
  void PodViolation(const PodRecord& pod, fmt::format_string<Args...> format,
                    Args&&... args) {
    Violation("{} pod '{}' ({}) {}", PodPhaseName(pod.phase),
              pod.name.ToString(), pod.uid.value,
              fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void ClaimViolation(const ClaimRecord& claim,
                      fmt::format_string<Args...> format, Args&&... args) {
    Violation("claim '{}' ({}) {}", claim.name.ToString(), claim.uid.value,
              fmt::format(format, std::forward<Args>(args)...));
  }

  void CheckPod(const PodUid& uid, const PodRecord& pod) {
    if (pod.uid != uid) PodViolation(pod, "is kept under '{}'", uid.value);
    if (HoldsNoClaims(pod.phase) && !pod.claims.empty()) {
      PodViolation(pod, "holds {} claims", pod.claims.size());
    }
    CheckHolds(pod);
    CheckAnswer(pod);
    for (const ClaimUid& claim : pod.claims) CheckClaimOf(pod, claim);
    if (IsLive(pod)) CheckWants(pod);
  }

  static bool HoldsNoClaims(PodPhase phase) {
    return phase == PodPhase::kWaiting || phase == PodPhase::kRejected ||
           phase == PodPhase::kAllocating || phase == PodPhase::kAdmitted;
  }

  void CheckHolds(const PodRecord& pod) {
    const bool none =
        pod.phase == PodPhase::kWaiting || pod.phase == PodPhase::kRejected;
    if (none && !pod.holds.empty()) {
      PodViolation(pod, "holds devices of '{}'", pod.holds.front().resource);
    }
    std::set<std::pair<std::string, std::string>> seen;
    for (const DeviceHold& hold : pod.holds) {
      if (!seen.emplace(hold.container, hold.resource).second) {
        PodViolation(pod, "holds '{}' twice in container '{}'", hold.resource,
                     hold.container);
      }
      CheckHoldPhase(pod, hold);
      std::set<std::string> ids;
      for (const auto& device : hold.devices) ids.insert(device.id);
      if (ids.empty() || ids.size() != hold.devices.size()) {
        PodViolation(pod, "has no or double devices of '{}' in container '{}'",
                     hold.resource, hold.container);
      }
    }
  }

  /// Its answer says so, as far as there is one.
  static bool HasGivenBack(const PodRecord& pod, const DeviceHold& hold) {
    if (pod.answer == nullptr) return true;
    return std::any_of(
        pod.answer->containers.begin(), pod.answer->containers.end(),
        [&](const auto& container) {
          return container.name == hold.container && container.devices_released;
        });
  }

  void CheckHoldPhase(const PodRecord& pod, const DeviceHold& hold) {
    // What an init container had given back, or another one because it does not
    // work, is chosen anew before it runs again, while the pod is what it was.
    const bool again = (hold.kind == device::ContainerKind::kInit ||
                        HasGivenBack(pod, hold)) &&
                       (IsLive(pod) || pod.phase == PodPhase::kReleasing);
    switch (hold.phase) {
      case device::ReservationPhase::kCommitted:
        return;
      case device::ReservationPhase::kReserved:
        if (again || pod.phase == PodPhase::kAllocating) return;
        break;
      case device::ReservationPhase::kReleased:
        if (again) return;
        break;
    }
    PodViolation(pod, "has devices of '{}' in container '{}' {}", hold.resource,
                 hold.container,
                 hold.Holds() ? "for which its plugin has not answered"
                              : "that were given back");
  }

  /// One pod each, and the index knows them all. Within a pod init containers
  /// hand devices over.
  void CheckDevices() {
    decltype(state_.device_holders) holders;
    for (const auto& [uid, pod] : state_.pods) {
      for (const DeviceHold& hold : pod->holds) {
        if (!hold.Holds()) continue;
        for (const device::HeldDevice& device : hold.devices) {
          holders.insert({hold.resource, device.id, uid});
        }
      }
    }
    if (holders != state_.device_holders) {
      Violation("{} devices are held, {} are found by their names",
                holders.size(), state_.device_holders.size());
    }
    decltype(state_.class_holders) by_claim;
    for (const auto& [uid, pod] : state_.pods) {
      for (const ResourceName& resource : ResourcesByClaims(*pod)) {
        by_claim.insert({resource, uid});
      }
    }
    if (by_claim != state_.class_holders) {
      Violation("{} resources are held by claims, {} are found by their names",
                by_claim.size(), state_.class_holders.size());
    }
    CheckPrepared();
    CheckKept();
    const std::tuple<ResourceName, DeviceId, PodUid>* last = nullptr;
    for (const auto& holder : holders) {
      const auto& [resource, device, pod] = holder;
      if (last != nullptr && std::get<0>(*last) == resource &&
          std::get<1>(*last) == device) {
        Violation("device '{}' of '{}' is held by the pods '{}' and '{}'",
                  device, resource, std::get<2>(*last).value, pod.value);
      }
      last = &holder;
    }
  }

  /// No device is allocated twice here, unless it is shared.
  void CheckLocalClaims() {
    std::map<DeviceKey, std::string_view> claims;
    for (const auto& [uid, claim] : state_.local_claims) {
      if (claim->uid != uid || claim->object->metadata.uid != uid.value) {
        Violation("claim '{}' that this node allocates is kept under '{}'",
                  claim->uid.value, uid.value);
      }
      const auto& allocation = claim->object->status.allocation;
      if (!allocation.has_value()) continue;
      for (const auto& result : allocation->results) {
        if (result.admin_access || !result.share_id.empty()) continue;
        const auto [other, fresh] = claims.emplace(
            DeviceKey(result.driver, result.pool, result.device), uid.value);
        if (fresh) continue;
        Violation(
            "device '{}' of '{}' is allocated to the claims '{}' and '{}'",
            result.device, result.driver, other->second, uid.value);
      }
    }
  }

  /// What a foreign holder has, no pod is given but its own.
  void CheckHolders() {
    decltype(state_.foreign_devices) held;
    for (const auto& [id, holder] : state_.foreign_holders) {
      if (holder->id != id) {
        Violation("foreign container '{}' is kept under '{}'", holder->id.value,
                  id.value);
      }
      if (holder->devices.empty() && holder->cdi_devices.empty()) {
        Violation("{} holds nothing", HolderText(*holder));
      }
      if (!holder->Holds()) continue;
      for (const auto& [resource, device] : holder->devices) {
        held.insert({resource, device, id});
        const PodUid* pod = state_.HolderOf(resource, device);
        if (pod == nullptr || *pod == holder->pod_uid) continue;
        Violation("device '{}' of '{}' is held by the pod '{}' and by {}",
                  device, resource, pod->value, HolderText(*holder));
      }
    }
    if (held != state_.foreign_devices) {
      Violation(
          "{} devices are held by foreign containers, {} are found by "
          "name",
          held.size(), state_.foreign_devices.size());
    }
  }

  /// The index has what the records say, and points into them.
  void CheckHardware() {
    using Kind = HardwareHolding::Kind;
    decltype(state_.hardware_holdings) held;
    const auto add = [&](Kind kind, const std::string& uid,
                         const auto& record) {
      for (const auto& [owner, hardware] : HardwareOf(record)) {
        for (const auto& identity : hardware->identities) {
          held.insert({&identity, kind, &uid, owner, hardware->part});
        }
      }
    };
    for (const auto& [uid, pod] : state_.pods) {
      add(Kind::kPod, pod->uid.value, *pod);
    }
    for (const auto& [uid, claim] : state_.claims) {
      add(Kind::kClaim, claim->uid.value, *claim);
    }
    for (const auto& [uid, claim] : state_.local_claims) {
      add(Kind::kLocalClaim, claim->uid.value, *claim);
    }
    for (const auto& [id, holder] : state_.foreign_holders) {
      add(Kind::kContainer, holder->id.value, *holder);
    }
    if (!(held == state_.hardware_holdings)) {
      Violation(
          "{} identities of hardware are held, {} are found by their text",
          held.size(), state_.hardware_holdings.size());
    }
  }

  void CheckPrepared() {
    decltype(state_.device_claims) prepared;
    for (const auto& [uid, claim] : state_.claims) {
      for (const auto& [driver, record] : claim->drivers) {
        for (const PreparedDevice& device : record.devices) {
          prepared.insert({&driver, &device, claim.get()});
        }
      }
    }
    const auto same_records = [](const ByDevice& a, const ByDevice& b) {
      return a == b && a.claim == b.claim;
    };
    if (!std::equal(prepared.begin(), prepared.end(),
                    state_.device_claims.begin(), state_.device_claims.end(),
                    same_records)) {
      Violation("{} devices are prepared for claims, {} are found by name",
                prepared.size(), state_.device_claims.size());
    }
  }

  void CheckKept() {
    decltype(state_.kept_devices) kept;
    for (const auto& [uid, claim] : state_.claims) {
      if (!claim->pods.empty()) continue;
      for (const DeviceKey& device : OwnDevices(*claim)) {
        kept.insert({device, uid});
      }
    }
    if (kept != state_.kept_devices) {
      Violation(
          "{} devices are kept by claims without pods, {} are found by name",
          kept.size(), state_.kept_devices.size());
    }
  }

  void CheckAnswer(const PodRecord& pod) {
    if (pod.phase != PodPhase::kReady) {
      if (pod.answer != nullptr) PodViolation(pod, "has an answer");
      return;
    }
    if (pod.answer == nullptr) {
      PodViolation(pod, "has no answer");
    } else if (pod.answer->uid != pod.uid || pod.answer->name != pod.name) {
      PodViolation(pod, "has the answer of pod '{}' ({})",
                   pod.answer->name.ToString(), pod.answer->uid.value);
    }
    if (pod.boot_id.empty() && !pod.claims.empty()) {
      PodViolation(pod, "does not say in which boot");
    }
  }

  void CheckClaimOf(const PodRecord& pod, const ClaimUid& uid) {
    const ClaimRecord* claim = state_.FindClaim(uid);
    if (claim == nullptr) {
      PodViolation(pod, "lists claim '{}', which is not known", uid.value);
      return;
    }
    if (!IsLive(pod)) return;
    if (!claim->pods.contains(pod.uid)) {
      PodViolation(pod, "is not among the pods of its claim '{}' ({})",
                   claim->name.ToString(), uid.value);
    }
    if (IsUnpreparing(*claim)) {
      PodViolation(pod, "uses claim '{}' ({}), which is being unprepared",
                   claim->name.ToString(), uid.value);
    }
    if (pod.phase == PodPhase::kReady) CheckPreparedFor(pod, *claim);
  }

  /// After a reboot a Ready pod keeps the answer of the old boot until it is
  /// prepared again, and another pod may have its claims prepared before that.
  /// A claim that is taken up again drops what all its drivers did in the old
  /// boot at once. So without knowing the boot: all drivers, or none.
  void CheckPreparedFor(const PodRecord& pod, const ClaimRecord& claim) {
    const auto prepared = std::count_if(
        claim.drivers.begin(), claim.drivers.end(), [&](const auto& driver) {
          return PreparedIn(driver.second, pod.boot_id);
        });
    const auto drivers = static_cast<std::ptrdiff_t>(claim.drivers.size());
    if (prepared == drivers) return;
    if (prepared == 0 && pod.boot_id != boot_id_) return;
    PodViolation(pod, "uses claim '{}' ({}), prepared by {} of {} drivers",
                 claim.name.ToString(), claim.uid.value, prepared, drivers);
  }

  void CheckWants(const PodRecord& pod) {
    for (const ContainerNeed& need : pod.needs) {
      for (const Want& want : need.wants) {
        if (std::find(pod.claims.begin(), pod.claims.end(), want.claim) ==
            pod.claims.end()) {
          PodViolation(pod, "wants claim '{}' in container '{}' but lists none",
                       want.claim.value, need.name);
        }
      }
    }
  }

  void CheckClaim(const ClaimUid& uid, const ClaimRecord& claim) {
    if (claim.uid != uid) {
      ClaimViolation(claim, "is kept under '{}'", uid.value);
    }
    bool used = false;
    for (const PodUid& pod_uid : claim.pods) {
      const PodRecord* pod = state_.FindPod(pod_uid);
      if (pod == nullptr) {
        ClaimViolation(claim, "lists pod '{}', which is not known",
                       pod_uid.value);
        continue;
      }
      used = used || IsLive(*pod);
      CheckPodOf(claim, *pod);
    }
    for (const auto& [name, driver] : claim.drivers) {
      if (driver.phase == DriverPhase::kPrepared && driver.boot_id.empty()) {
        ClaimViolation(claim, "is prepared by driver '{}' in no boot", name);
      }
      if (driver.spec_recovery == SpecRecovery::kUnprepareFirst &&
          driver.phase != DriverPhase::kPreparing) {
        ClaimViolation(claim,
                       "is to be unprepared before it is prepared by driver "
                       "'{}', which is {}",
                       name, DriverPhaseName(driver.phase));
      }
      if (driver.debt.has_value() &&
          driver.phase != DriverPhase::kUnpreparing) {
        ClaimViolation(claim, "is owed by driver '{}', which is {}", name,
                       DriverPhaseName(driver.phase));
      }
      if (driver.phase != DriverPhase::kUnpreparing && !used) {
        ClaimViolation(claim, "is {} by driver '{}' for no pod",
                       DriverPhaseName(driver.phase), name);
      }
    }
    if (claim.pods.empty() && claim.drivers.empty()) {
      ClaimViolation(claim, "has neither pods nor drivers");
    }
  }

  void CheckPodOf(const ClaimRecord& claim, const PodRecord& pod) {
    if (!IsLive(pod) && pod.phase != PodPhase::kReleasing) {
      ClaimViolation(claim, "is held by {} pod '{}' ({})",
                     PodPhaseName(pod.phase), pod.name.ToString(),
                     pod.uid.value);
    }
    if (std::find(pod.claims.begin(), pod.claims.end(), claim.uid) ==
        pod.claims.end()) {
      ClaimViolation(claim, "is not among the claims of its pod '{}' ({})",
                     pod.name.ToString(), pod.uid.value);
    }
  }

  /// UIDs of pods and of claims are looked up apart, so a UID is unique among
  /// the objects of a kind.
  void CheckIdentities() {
    std::map<std::pair<std::string, std::string>, const IdentityRecord*> seen;
    for (const auto& [key, identity] : state_.identities) {
      if (IdentityKey(identity->kind, identity->name) != key) {
        Violation("the identity of {} '{}' is kept under {} '{}'",
                  identity->kind, identity->name.ToString(), key.first,
                  key.second.ToString());
      }
      const auto [other, fresh] = seen.emplace(
          std::pair(identity->kind, identity->uid), identity.get());
      if (!fresh) {
        Violation("{} '{}' and '{}' have the same uid '{}'", identity->kind,
                  other->second->name.ToString(), identity->name.ToString(),
                  identity->uid);
      }
    }
  }

  void CheckNames() {
    CheckIndex("pod", state_.pods, state_.pod_names);
    CheckIndex("claim", state_.claims, state_.claim_names);
    std::map<ObjectName, ClaimUid> held;
    for (const auto& [uid, claim] : state_.claims) {
      if (IsUnpreparing(*claim)) continue;
      const auto [other, fresh] = held.emplace(claim->name, uid);
      if (!fresh) {
        Violation("claims {} and {} of the name '{}' are both held",
                  other->second.value, uid.value, claim->name.ToString());
      }
    }
  }

  template <typename Map, typename Index>
  void CheckIndex(std::string_view what, const Map& map, const Index& index) {
    for (const auto& [uid, record] : map) {
      const auto found = index.find({record.get()});
      if (found == index.end() || found->record != record.get()) {
        Violation("{} '{}' ({}) is not found by its name", what,
                  record->name.ToString(), uid.value);
      }
    }
    if (index.size() != map.size()) {
      Violation("{} {} names for {} records", index.size(), what, map.size());
    }
  }

  const State& state_;
  const std::string_view boot_id_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> CheckInvariants(const State& state,
                                         std::string_view boot_id) {
  return Checker(state, boot_id).Run();
}

}  // namespace devmgr::state
