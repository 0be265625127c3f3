// SPDX-License-Identifier: Apache-2.0
//
// The words of the enumerations in devmgr/options.h and devmgr/status_types.h:
// one table each, for the rooms, the wire and the programs.
#include <devmgr/options.h>
#include <devmgr/status_types.h>

#include "common/enum_names.h"

namespace devmgr {

std::string_view PodStateName(PodState state) {
  using enum PodState;
  static constexpr auto kNames = EnumTable<PodState>({
      {kWaiting, "Waiting"},
      {kPreparing, "Preparing"},
      {kReady, "Ready"},
      {kRejected, "Rejected"},
      {kReleasing, "Releasing"},
  });
  return kNames.Of(state, "Unknown");
}

std::string_view ActuateName(Actuate actuate) {
  using enum Actuate;
  static constexpr auto kNames = EnumTable<Actuate>({
      {kNone, ""},
      {kSource, "manifests"},
      {kWanted, "embedder"},
  });
  return kNames.Of(actuate);
}

std::string_view AuthorityName(Authority authority) {
  using enum Authority;
  static constexpr auto kNames = EnumTable<Authority>({
      {kNode, "node"},
      {kScheduler, "scheduler"},
  });
  return kNames.Of(authority);
}

std::string_view ProfileName(Profile profile) {
  using enum Profile;
  static constexpr auto kNames = EnumTable<Profile>({
      {kDefault, "default"},
      {kStrictKubelet, "strict-kubelet"},
  });
  return kNames.Of(profile);
}

std::string_view WaitingForKindName(WaitingFor::Kind kind) {
  using enum WaitingFor::Kind;
  static constexpr auto kNames = EnumTable<WaitingFor::Kind>({
      {kClaim, "claim"},
      {kDriver, "driver"},
      {kPod, "pod"},
      {kResource, "resource"},
  });
  return kNames.Of(kind, "unknown");
}

std::string_view ClaimStateName(ClaimState state) {
  using enum ClaimState;
  static constexpr auto kNames = EnumTable<ClaimState>({
      {kPreparing, "Preparing"},
      {kPrepared, "Prepared"},
      {kUnpreparing, "Unpreparing"},
  });
  return kNames.Of(state);
}

std::string_view DecisionKindName(DecisionKind kind) {
  using enum DecisionKind;
  static constexpr auto kNames = EnumTable<DecisionKind>({
      {kIdentity, "Identity"},
      {kSeen, "Seen"},
      {kReject, "Reject"},
      {kPrepareIntent, "PrepareIntent"},
      {kPrepareResult, "PrepareResult"},
      {kUnprepareIntent, "UnprepareIntent"},
      {kUnprepareResult, "UnprepareResult"},
      {kRelease, "Release"},
      {kRepair, "Repair"},
      {kRecovered, "Recovered"},
      {kReserve, "Reserve"},
      {kAllocated, "Allocated"},
      {kUnreserve, "Unreserve"},
      {kBacking, "Backing"},
      {kInitEnded, "InitEnded"},
      {kDebt, "Debt"},
      {kForgiven, "Forgiven"},
      {kHealth, "Health"},
      {kSource, "Source"},
      {kHolderFound, "HolderFound"},
      {kHolderGone, "HolderGone"},
      {kHolderFreed, "HolderFreed"},
      {kWanted, "Wanted"},
      {kUnwanted, "Unwanted"},
      {kOther, "Other"},
  });
  return kNames.Of(kind);
}

}  // namespace devmgr
