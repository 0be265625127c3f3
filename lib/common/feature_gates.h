// SPDX-License-Identifier: Apache-2.0
//
// The feature gates that this node knows, under upstream's names. A gate
// governs new decisions only: pods that are Ready keep what they have, and what
// is being given up is given up as it was booked.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace devmgr {

enum class Feature {
  /// Devices that several claims share, each with an ID of its share. Off: the
  /// IDs that drivers answer are not kept.
  kDraConsumableCapacity,
  /// Extended resources through claims (KEP-5004): the special claim exists.
  kDraExtendedResource,
  /// Drivers and devices that want no prepare or unprepare calls.
  kDraOptionalNodeOperations,
  /// Claims of a pod group, for all pods that are in it.
  kDraWorkloadResourceClaims,
  /// Health of devices in the pod's status.
  kResourceHealthStatus,
  /// What drivers and plugins say about it.
  kResourceHealthStatusMessage,
};

struct FeatureGate {
  Feature feature;
  std::string_view name;
  bool on_by_default;
};

/// All of them, by name.
std::span<const FeatureGate> FeatureGates();

/// Null when there is none of that name.
const FeatureGate* FindFeatureGate(std::string_view name);

/// Gates that are on for good here, whatever is set: claims, and alternatives
/// in them, are always served.
bool IsAlwaysOn(std::string_view name);

/// A gate of a kubelet that turns nothing here, so that its list can be taken
/// over: others do what it is for, or it is on for good.
bool IsIdleGate(std::string_view name);

/// What is wrong with turning `gate` so, given all of `gates`, for people;
/// empty when nothing is.
std::string WhyNotGate(const std::map<std::string, bool>& gates,
                       const std::string& gate);

/// The gates of `gates` that turn nothing here, in one text, or none. A gate
/// that is set against its lock is not in there.
std::string IdleGatesText(const std::map<std::string, bool>& gates);

/// Those that are set against the lock that they have in some release, with
/// the release and what holds here, or none.
std::string LockedGatesText(const std::map<std::string, bool>& gates);

/// As `gates` say, else by default.
bool IsOn(const std::map<std::string, bool>& gates, Feature feature);

}  // namespace devmgr
