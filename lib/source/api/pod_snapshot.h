// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "source/api/claim_getter.h"
#include "source/api/object_store.h"

namespace devmgr::apiserver {

/// Pods whose deletion the server reported; the latest ones. Thread-bound.
class GonePods {
 public:
  static constexpr std::size_t kMax = 1000;

  void Add(const std::string& uid);
  void Remove(const std::string& uid) { uids_.erase(PodUid{uid}); }
  const PersistentSet<PodUid>& uids() const { return uids_; }

 private:
  PersistentSet<PodUid> uids_;
  std::deque<std::string> order_;
};

/// Pods, classes, slices or claims of a server by name. Follows what is stored
/// at a cost of what has changed. Thread-bound.
class NamedObjects {
 public:
  /// Brings `snapshot`, which has what was followed before, up to date. Of two
  /// pods with one name the one stays that `shown` has.
  void Follow(const ObjectStore::Objects& objects, const ObjectSnapshot& shown,
              ObjectSnapshot* snapshot);
  /// Names that the server gives to two pods make `snapshot` incomplete:
  /// nothing is to be released for that.
  void Report(ObjectSnapshot* snapshot) const;

 private:
  std::vector<std::shared_ptr<const StoredObject>> OfName(
      const ObjectName& name) const;
  void Place(const ObjectName& name, const ObjectSnapshot& shown,
             ObjectSnapshot* snapshot);

  ObjectStore::Objects objects_;
  std::set<std::pair<ObjectName, std::string>> names_;  ///< And their keys.
  std::set<ObjectName> repeated_;
};

/// A remark on what the server sends, `where` it was.
void AddProblem(const std::string& where, const std::string& message,
                ObjectSnapshot* snapshot);
/// The same of one object.
void AddObjectProblem(const ObjectProblem& problem, ObjectSnapshot* snapshot);
/// The same about the server as such: how it is reached, and that it answers.
void AddTrouble(const std::string& where, const std::string& message,
                ObjectSnapshot* snapshot);

/// The claims that pods refer to. Follows the pods at a cost of what has
/// changed. Thread-bound.
class ClaimsOfPods {
 public:
  /// Calls `visit(claim, pods)` where other pods than before refer to a claim.
  template <typename Visit>
  void Follow(const ObjectMap<Pod>& pods, Visit visit) {
    for (const ObjectName& name : Changed(pods)) {
      const auto found = wanted_.find(name);
      visit(name,
            found == wanted_.end() ? std::set<std::string>() : found->second);
    }
  }

 private:
  std::set<ObjectName> Changed(const ObjectMap<Pod>& pods);

  ObjectMap<Pod> pods_;
  WantedClaims wanted_;
};

}  // namespace devmgr::apiserver
