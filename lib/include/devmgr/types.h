// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>

namespace devmgr {

/// UID of a pod. Identity is the UID, never the name: a re-created pod of the
/// same name is another pod.
struct PodUid {
  std::string value;
  friend auto operator<=>(const PodUid&, const PodUid&) = default;
};

/// UID of a ResourceClaim.
struct ClaimUid {
  std::string value;
  friend auto operator<=>(const ClaimUid&, const ClaimUid&) = default;
};

/// Namespace and name of an object; the namespace is empty for objects of the
/// whole cluster. Prints as `namespace/name`.
struct ObjectName {
  std::string ns;
  std::string name;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
};

}  // namespace devmgr

template <>
struct std::hash<devmgr::PodUid> {
  std::size_t operator()(const devmgr::PodUid& uid) const noexcept {
    return std::hash<std::string>()(uid.value);
  }
};
