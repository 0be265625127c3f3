// SPDX-License-Identifier: Apache-2.0
//
// What all Kubernetes objects have, and quantities.
#pragma once

#include <devmgr/compact.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace devmgr {

/// A Kubernetes quantity. `whole` and `nanos` have the same sign; numbers
/// beyond 64 bits are clamped, as upstream does. `text` is as it was written.
struct Quantity {
  std::int64_t whole = 0;
  std::int32_t nanos = 0;
  SharedText text;

  bool IsZero() const { return whole == 0 && nanos == 0; }
  bool IsInteger() const { return nanos == 0; }
  /// Compares amounts, not spellings: `1000m` equals `1`.
  friend bool operator==(const Quantity& a, const Quantity& b) {
    return a.whole == b.whole && a.nanos == b.nanos;
  }
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
  /// `blockOwnerDeletion`: the owner goes after what it owns.
  bool blocks_owner_deletion = false;
  friend bool operator==(const OwnerReference&,
                         const OwnerReference&) = default;
};

struct ObjectMeta {
  std::string name;
  std::string ns;  ///< Empty for objects of the whole cluster.
  /// Empty when the file gives none; the manager then derives one and keeps it.
  std::string uid;
  /// RFC 3339 as written; empty when absent.
  std::string creation_timestamp;
  std::string deletion_timestamp;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<OwnerReference> owner_references;
  std::vector<std::string> finalizers;

  ObjectName FullName() const { return {ns, name}; }
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

/// An entry of `status.conditions`.
struct Condition {
  std::string type;
  std::string status;  ///< `True`, `False` or `Unknown`.
  std::string reason;
  std::string message;
  std::string last_transition_time;  ///< RFC 3339 as written.
  std::int64_t observed_generation = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

}  // namespace devmgr
