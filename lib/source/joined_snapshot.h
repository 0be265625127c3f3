// SPDX-License-Identifier: Apache-2.0
//
// Two snapshots as one. Pure.
#pragma once

#include <devmgr/host.h>

#include <set>
#include <string>

#include "common/objects_by_uid.h"

namespace devmgr::source {

/// Adds the keys of what differs.
template <typename Key, typename Value>
void AddTouched(const PersistentMap<Key, Value>& before,
                const PersistentMap<Key, Value>& now, std::set<Key>* keys) {
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    keys->insert((was != nullptr ? was : is)->first);
  });
}
template <typename Key>
void AddTouched(const PersistentSet<Key>& before, const PersistentSet<Key>& now,
                std::set<Key>* keys) {
  now.VisitChangesSince(before, [&](const Key* was, const Key* is) {
    keys->insert(was != nullptr ? *was : *is);
  });
}

/// Joins snapshots of two sources. Follows both at a cost of what has changed
/// in them. Lives on one thread at a time.
class SnapshotJoin {
 public:
  /// The objects of both. A pod that `second` has, too, by name or by UID, and
  /// a claim that it has by name, count as they are there, and are a problem
  /// that says `why`. `vouched`, `watch` and the marker are those of `first`.
  ObjectSnapshot Join(const ObjectSnapshot& first, const ObjectSnapshot& second,
                      const std::string& first_name, const std::string& why);

 private:
  template <typename T>
  struct Pods {
    ObjectsByUid<T> first;
    ObjectsByUid<T> second;
    std::set<ObjectName> left_out;  ///< Of the first.
  };

  void JoinPods(const ObjectSnapshot& first, const ObjectSnapshot& second,
                std::set<std::string>* uids);
  template <typename T>
  void Place(const ObjectName& name, const ObjectMap<T>& first,
             const ObjectMap<T>& second, bool is_taken, ObjectMap<T>* all,
             Pods<T>* pods, std::set<std::string>* uids);
  template <typename T>
  std::set<ObjectName> Overlay(const ObjectMap<T>& first_before,
                               const ObjectMap<T>& first,
                               const ObjectMap<T>& second_before,
                               const ObjectMap<T>& second, ObjectMap<T>* all);
  void JoinClaims(const ObjectSnapshot& first, const ObjectSnapshot& second);
  void JoinGone(const ObjectSnapshot& first, const ObjectSnapshot& second,
                const std::set<std::string>& uids);
  bool IsOfSecond(const std::string& uid) const;
  bool IsThere(const std::string& uid) const;

  ObjectSnapshot first_;  ///< As they were joined last.
  ObjectSnapshot second_;
  ObjectSnapshot all_;  ///< Of which only the objects count.
  Pods<Pod> pods_;
  Pods<MalformedPod> malformed_pods_;
  std::set<ObjectName> claims_left_out_;
};

}  // namespace devmgr::source
