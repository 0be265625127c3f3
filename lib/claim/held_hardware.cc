// SPDX-License-Identifier: Apache-2.0
#include "claim/held_hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::HardwareHolding;
using state::State;
using HolderKind = HardwareHolding::Kind;

constexpr std::size_t kMostPods = 5;  // That are named.

/// All its pods, or those it is reserved for, are this one.
bool IsOf(const State& state, const HardwareHolding& holding,
          const PodUid& pod) {
  if (pod.value.empty()) return false;
  switch (holding.kind) {
    case HolderKind::kPod:
      return *holding.uid == pod.value;
    case HolderKind::kClaim: {
      const auto& pods = state.FindClaim(ClaimUid{*holding.uid})->pods;
      return pods.size() == 1 && *pods.begin() == pod;
    }
    case HolderKind::kLocalClaim: {
      const auto& consumers =
          state.FindLocalClaim({*holding.uid})->object->status.reserved_for;
      return consumers.size() == 1 && consumers.front().uid == pod.value;
    }
    case HolderKind::kContainer:
      return state.FindHolder({*holding.uid})->pod_uid == pod;
  }
  return false;
}

bool IsOwnClaim(const HardwareHolding& holding, const std::string& claim) {
  return !claim.empty() && *holding.uid == claim &&
         (holding.kind == HolderKind::kClaim ||
          holding.kind == HolderKind::kLocalClaim);
}

void NamePods(const std::vector<std::string>& pods, HeldHardware* held) {
  for (const std::string& pod : pods) {
    held->waiting_for.push_back({WaitingFor::Kind::kPod, pod});
  }
  if (pods.empty()) return;
  const std::size_t shown = std::min(pods.size(), kMostPods);
  held->holder =
      fmt::format("{} {}{}", pods.size() == 1 ? "pod" : "pods",
                  fmt::join(pods.begin(), pods.begin() + shown, ", "),
                  shown < pods.size() ? ", ..." : "");
}

void NameClaim(const ObjectName& claim, const std::vector<std::string>& pods,
               HeldHardware* held) {
  held->holder = "claim " + claim.ToString();
  NamePods(pods, held);
  held->waiting_for.push_back({WaitingFor::Kind::kClaim, claim.ToString()});
}

HeldHardware Describe(const State& state, const HardwareHolding& holding) {
  HeldHardware held{*holding.identity, holding.kind, *holding.uid,
                    *holding.owner,    {},           {}};
  std::vector<std::string> pods;
  switch (holding.kind) {
    case HolderKind::kPod:
      NamePods({state.FindPod(PodUid{held.uid})->name.ToString()}, &held);
      break;
    case HolderKind::kClaim: {
      const state::ClaimRecord& claim = *state.FindClaim(ClaimUid{held.uid});
      for (const PodUid& pod : claim.pods) {
        pods.push_back(state.FindPod(pod)->name.ToString());
      }
      NameClaim(claim.name, pods, &held);
      break;
    }
    case HolderKind::kLocalClaim: {
      const ResourceClaim& claim = *state.FindLocalClaim({held.uid})->object;
      for (const auto& consumer : claim.status.reserved_for) {
        pods.push_back(ObjectName{claim.metadata.ns, consumer.name}.ToString());
      }
      NameClaim(claim.metadata.FullName(), pods, &held);
      break;
    }
    case HolderKind::kContainer:
      held.holder = state::HolderText(*state.FindHolder({held.uid}));
      held.waiting_for.push_back(
          {WaitingFor::Kind::kRuntime, state.FindHolder({held.uid})->endpoint});
      break;
  }
  return held;
}

}  // namespace

std::optional<HeldHardware> FindHardwareHolder(
    const State& state, const device::Hardware& hardware,
    const HardwareTaker& taker,
    const std::function<bool(const HardwareHolding&)>& counts) {
  for (const device::PhysicalIdentity& identity : hardware.identities) {
    const auto [begin, end] = state.hardware_holdings.equal_range(identity);
    for (auto holding = begin; holding != end; ++holding) {
      const bool is_free =
          (holding->part && hardware.part) || *holding->owner == taker.owner ||
          IsOwnClaim(*holding, taker.claim) ||
          IsOf(state, *holding, taker.pod) || (counts && !counts(*holding));
      if (!is_free) return Describe(state, *holding);
    }
  }
  return std::nullopt;
}

std::string HolderText(const HeldHardware& held) {
  return fmt::format("{}, as {}{}", held.holder,
                     device::IdentityText(held.identity),
                     held.owner.empty() ? "" : " of " + held.owner);
}

std::string HeldElsewhereText(std::string_view device,
                              const HeldHardware& held) {
  return fmt::format("{} is {}, which {} holds{}", device,
                     device::IdentityText(held.identity), held.holder,
                     held.owner.empty() ? "" : " by " + held.owner);
}

Verdict WaitForHardware(std::string_view device, const HeldHardware& held) {
  return {Verdict::Kind::kWait, kDeviceHeldElsewhere,
          HeldElsewhereText(device, held), held.waiting_for};
}

absl::Status CheckHardwareFree(const State& state,
                               const std::vector<state::Change>& changes) {
  for (const state::Change& change : changes) {
    const auto* put = std::get_if<state::PutLocalClaim>(&change);
    if (put == nullptr) continue;
    const state::LocalClaimRecord& claim = *put->claim;
    const auto& consumers = claim.object->status.reserved_for;
    const PodUid pod{consumers.size() == 1 ? consumers.front().uid : ""};
    for (const state::DeviceHardware& item : claim.hardware) {
      const auto& [driver, pool, device] = item.device;
      const auto held = FindHardwareHolder(state, item.hardware,
                                           {driver, pod, claim.uid.value});
      if (!held.has_value()) continue;
      return AbortedError(
          "{}",
          HeldElsewhereText(
              fmt::format("device {}/{}/{}", driver, pool, device), *held));
    }
  }
  return absl::OkStatus();
}

}  // namespace devmgr::claim
