// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "source/api/claim_getter.h"
#include "source/api/object_store.h"

namespace devmgr::apiserver {

/// Pods whose deletion the server reported; the latest ones. Thread-bound.
class GonePods {
 public:
  static constexpr std::size_t kMax = 1000;

  void Add(const std::string& uid);
  void Remove(const std::string& uid) { uids_.erase(PodUid{uid}); }
  const std::set<PodUid>& uids() const { return uids_; }

 private:
  std::set<PodUid> uids_;
  std::deque<std::string> order_;
};

/// Adds pods, classes, slices or claims to `snapshot`, by name. Of two objects
/// with one name the one stays that `before` has, and the snapshot is not
/// complete: nothing is to be released for that.
void AddObjects(const ObjectStore::Objects& objects,
                const ObjectSnapshot& before, ObjectSnapshot* snapshot);

/// A remark on what the server sends, `where` it was.
void AddProblem(const std::string& where, const std::string& message,
                ObjectSnapshot* snapshot);

/// The claims that pods of the snapshot refer to.
WantedClaims ClaimsWantedBy(const ObjectSnapshot& snapshot);

}  // namespace devmgr::apiserver
