// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

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

/// The name of one kind of thing. Text becomes a name and a name becomes text
/// without a cast, since names come from files and from the wire. A name of one
/// kind never becomes a name of another kind: C++ takes one such conversion at
/// a time. So a resource cannot be passed where a device is expected.
template <class Kind>
struct Name {
  std::string value;

  Name() = default;
  Name(std::string text) : value(std::move(text)) {}
  Name(const char* text) : value(text) {}
  explicit Name(std::string_view text) : value(text) {}

  operator const std::string&() const { return value; }
  operator std::string_view() const { return value; }
  bool empty() const { return value.empty(); }
  friend auto operator<=>(const Name&, const Name&) = default;
};

/// Name of an extended resource: `vendor.com/gpu`.
using ResourceName = Name<struct ResourceNameKind>;

/// ID of a device, as its device plugin lists it.
using DeviceId = Name<struct DeviceIdKind>;

/// Name of a container within its pod.
using ContainerName = Name<struct ContainerNameKind>;

/// Namespace and name of an object; the namespace is empty for objects of the
/// whole cluster. Prints as `namespace/name`.
struct ObjectName {
  std::string ns;
  std::string name;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
};

}  // namespace devmgr

template <class Kind>
struct std::hash<devmgr::Name<Kind>> {
  std::size_t operator()(const devmgr::Name<Kind>& name) const noexcept {
    return std::hash<std::string>()(name.value);
  }
};

template <>
struct std::hash<devmgr::PodUid> {
  std::size_t operator()(const devmgr::PodUid& uid) const noexcept {
    return std::hash<std::string>()(uid.value);
  }
};
