// SPDX-License-Identifier: Apache-2.0
//
// The words of the enumerations in devmgr/options.h, devmgr/status_types.h,
// devmgr/device_changes.h and devmgr/host.h: one table each, for the rooms, the
// wire and the programs.
#include <devmgr/device_changes.h>
#include <devmgr/host.h>
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
      {kEvicting, "Evicting"},
  });
  return kNames.Of(state, "Unknown");
}

std::string_view PodActionKindName(PodAction::Kind kind) {
  using enum PodAction::Kind;
  static constexpr auto kNames = EnumTable<PodAction::Kind>({
      {kFail, "Fail"},
      {kEvict, "Evict"},
      {kStop, "Stop"},
  });
  return kNames.Of(kind);
}

std::string_view HealthPolicyName(HealthPolicy policy) {
  using enum HealthPolicy;
  static constexpr auto kNames = EnumTable<HealthPolicy>({
      {kReport, "report"},
      {kFail, "fail"},
      {kDrain, "drain"},
      {kReplace, "replace"},
  });
  return kNames.Of(policy);
}

std::string_view ActuateName(Actuate actuate) {
  using enum Actuate;
  static constexpr auto kNames = EnumTable<Actuate>({
      {kNone, ""},
      {kSource, "source"},
      {kWanted, "embedder"},
  });
  return kNames.Of(actuate);
}

std::string_view AuthorityName(Authority authority) {
  using enum Authority;
  static constexpr auto kNames = EnumTable<Authority>({
      {kNode, "node"},
      {kScheduler, "scheduler"},
      {kSplit, "split"},
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
      {kRuntime, "runtime"},
      {kDevices, "devices"},
      {kFreeDevices, "free devices"},
      {kFewerDevices, "fewer devices"},
      {kTaint, "end of a taint"},
      {kDeviceClass, "device class"},
      {kClaimTemplate, "claim template"},
      {kQuota, "quota"},
      {kAuthority, "authority"},
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

std::string_view DeviceHealthName(DeviceHealth health) {
  using enum DeviceHealth;
  static constexpr auto kNames = EnumTable<DeviceHealth>({
      {kHealthy, "Healthy"},
      {kUnhealthy, "Unhealthy"},
      {kUnknown, "Unknown"},
  });
  return kNames.Of(health);
}

std::string_view ResourceOwnerName(ResourceOwner owner) {
  using enum ResourceOwner;
  static constexpr auto kNames = EnumTable<ResourceOwner>({
      {kDevicePlugin, "DevicePlugin"},
      {kDeviceClass, "DeviceClass"},
      {kAutomatic, "Automatic"},
  });
  return kNames.Of(owner);
}

std::string_view ResourceStateName(ResourceState state) {
  using enum ResourceState;
  static constexpr auto kNames = EnumTable<ResourceState>({
      {kUnknown, "Unknown"},
      {kRestored, "Restored"},
      {kConnected, "Connected"},
      {kLive, "Live"},
      {kStopped, "Stopped"},
      {kForgotten, "Forgotten"},
  });
  return kNames.Of(state);
}

std::string_view PluginKindName(PluginKind kind) {
  using enum PluginKind;
  static constexpr auto kNames = EnumTable<PluginKind>({
      {kDra, "dra"},
      {kDevicePlugin, "device-plugin"},
  });
  return kNames.Of(kind);
}

std::string_view PluginStateName(PluginState state) {
  using enum PluginState;
  static constexpr auto kNames = EnumTable<PluginState>({
      {kConnecting, "Connecting"},
      {kAsking, "Asking"},
      {kConnected, "Connected"},
      {kLive, "Live"},
      {kDisconnected, "Disconnected"},
      {kClosed, "Closed"},
  });
  return kNames.Of(state);
}

std::string_view PluginViaName(PluginVia via) {
  using enum PluginVia;
  static constexpr auto kNames = EnumTable<PluginVia>({
      {kSocket, "socket"},
      {kDirectory, "directory"},
  });
  return kNames.Of(via);
}

std::string_view PluginBreakerName(PluginBreaker breaker) {
  using enum PluginBreaker;
  static constexpr auto kNames = EnumTable<PluginBreaker>({
      {kClosed, "Closed"},
      {kOpen, "Open"},
      {kHalfOpen, "HalfOpen"},
  });
  return kNames.Of(breaker);
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
      {kClaimsAllocated, "ClaimsAllocated"},
      {kClaimsReleased, "ClaimsReleased"},
      {kSlicesDeleted, "SlicesDeleted"},
      {kEvict, "Evict"},
      {kEvicted, "Evicted"},
      {kRecheck, "Recheck"},
      {kImported, "Imported"},
      {kShown, "Shown"},
      {kAuthority, "Authority"},
      {kReplaced, "Replaced"},
      {kOther, "Other"},
  });
  return kNames.Of(kind);
}

std::string_view DeviceChangeKindName(DeviceChangeKind kind) {
  using enum DeviceChangeKind;
  static constexpr auto kNames = EnumTable<DeviceChangeKind>({
      {kHeld, "Held"},
      {kAllocated, "Allocated"},
      {kReleased, "Released"},
      {kHealthChanged, "HealthChanged"},
      {kHandedOver, "HandedOver"},
      {kHealthReset, "HealthReset"},
  });
  return kNames.Of(kind);
}

}  // namespace devmgr
