// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {

inline const std::string& UidOfObject(const MalformedPod& pod) {
  return pod.pod.metadata.uid;
}
template <typename T>
const std::string& UidOfObject(const T& object) {
  return object.metadata.uid;
}

/// Finds objects of snapshots by their UIDs. Follows from one snapshot to the
/// next at a cost of what has changed.
template <typename T>
class ObjectsByUid {
 public:
  /// Calls `visit(name, was, is)` for each object that came, changed or went,
  /// with what it was and is; null: there was none, or is none now.
  template <typename Visit>
  void Follow(const ObjectMap<T>& now, Visit visit) {
    now.VisitChangesSince(objects_, [&](const auto* was, const auto* is) {
      const ObjectName& name = (was != nullptr ? was : is)->first;
      if (was != nullptr) names_.erase({UidOfObject(*was->second), name});
      if (is != nullptr) names_.emplace(UidOfObject(*is->second), name);
      visit(name, was != nullptr ? was->second.get() : nullptr,
            is != nullptr ? is->second.get() : nullptr);
    });
    objects_ = now;
  }
  void Follow(const ObjectMap<T>& now) {
    Follow(now, [](const ObjectName&, const T*, const T*) {});
  }

  bool contains(const std::string& uid) const {
    const auto first = names_.lower_bound({uid, ObjectName()});
    return first != names_.end() && first->first == uid;
  }
  /// Null when there is none; the first by name, should several have the UID.
  std::shared_ptr<const T> Find(const std::string& uid) const {
    const auto first = names_.lower_bound({uid, ObjectName()});
    if (first == names_.end() || first->first != uid) return nullptr;
    return objects_.at(first->second);
  }
  std::vector<ObjectName> NamesOf(const std::string& uid) const {
    std::vector<ObjectName> names;
    for (auto it = names_.lower_bound({uid, ObjectName()});
         it != names_.end() && it->first == uid; ++it) {
      names.push_back(it->second);
    }
    return names;
  }

 private:
  ObjectMap<T> objects_;
  std::set<std::pair<std::string, ObjectName>> names_;
};

}  // namespace devmgr
