// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/persistent_map.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "state/state.h"

namespace devmgr::pods {

/// The objects of a source as this node sees them: only its own pods, each
/// object with its identity, and of several objects with one UID the first by
/// name. Follows the source from snapshot to snapshot, at a cost of what has
/// changed. Lives on one thread.
class IdentifiedObjects {
 public:
  /// `node_name`: empty: every pod counts.
  explicit IdentifiedObjects(std::string node_name)
      : node_name_(std::move(node_name)) {}

  /// An object that did not change stays the same pointer.
  ObjectSnapshot Take(const ObjectSnapshot& snapshot,
                      const state::State& state);

 private:
  using Identities =
      PersistentMap<state::IdentityKey,
                    std::shared_ptr<const state::IdentityRecord>>;
  template <typename T>
  struct Kind {
    ObjectMap<T> taken;       ///< As the source had them last.
    ObjectMap<T> identified;  ///< As they are published.
    /// Those with a UID that another one has already.
    std::map<ObjectName, std::shared_ptr<const T>> left_out;
    /// By UID, where one is to be unique.
    std::map<std::string, ObjectName> owners;
  };

  template <typename T>
  std::set<ObjectName> Touched(const std::string& kind,
                               const ObjectMap<T>& before,
                               const ObjectMap<T>& now,
                               const state::State& state) const;
  /// Null when the node does not see it.
  template <typename T>
  std::shared_ptr<const T> Seen(const std::string& kind, const ObjectName& name,
                                const Kind<T>& objects, const ObjectMap<T>& now,
                                const state::State& state) const;
  template <typename T>
  void Follow(const std::string& kind, const ObjectMap<T>& now,
              const state::State& state, Kind<T>* objects) const;
  template <typename T>
  void FollowUnique(const std::string& kind, const ObjectMap<T>& now,
                    const state::State& state, Kind<T>* objects) const;
  template <typename T>
  static void Place(const ObjectName& name, std::shared_ptr<const T> object,
                    Kind<T>* objects);
  bool IsOurs(const Pod& pod) const {
    return node_name_.empty() || pod.spec.node_name == node_name_;
  }
  bool IsOurs(const MalformedPod& pod) const { return IsOurs(pod.pod); }
  template <typename T>
  bool IsOurs(const T& /*object*/) const {
    return true;
  }

  const std::string node_name_;
  Identities identities_;  ///< With which the objects were published.
  Kind<Pod> pods_;
  Kind<MalformedPod> malformed_pods_;
  Kind<ResourceClaim> claims_;
  Kind<DeviceClass> device_classes_;
};

}  // namespace devmgr::pods
