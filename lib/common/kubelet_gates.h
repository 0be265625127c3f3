// SPDX-License-Identifier: Apache-2.0
//
// The names of feature gates that a kubelet of Kubernetes 1.34 to 1.37 takes,
// so that its list can be taken over and a misspelt name is found.
#pragma once

#include <span>
#include <string_view>

namespace devmgr {

/// Minor releases of Kubernetes 1.
inline constexpr int kFirstKnownRelease = 34;
inline constexpr int kLastKnownRelease = 37;

struct KubeletGate {
  std::string_view name;
  /// First release that knows it; kFirstKnownRelease also for older ones.
  int since = kFirstKnownRelease;
  int until = kLastKnownRelease;  ///< Last release that knows it.
  /// From which release on it cannot be turned, again no older than
  /// kFirstKnownRelease; 0: it can.
  int locked_since = 0;
  bool locked_to = true;
};

/// All of them, by name.
std::span<const KubeletGate> KubeletGates();

/// Null when there is none of that name.
const KubeletGate* FindKubeletGate(std::string_view name);

/// The known name that `name` is likely meant to be: the same but for case, or
/// for up to two letters. Empty when there is none.
std::string_view LikelyKubeletGate(std::string_view name);

}  // namespace devmgr
