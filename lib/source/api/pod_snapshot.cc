// SPDX-License-Identifier: Apache-2.0
#include "source/api/pod_snapshot.h"

#include <fmt/core.h>

#include <utility>

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxProblems = 200;

/// The UID of the pod that `snapshot` has by this name; null: none.
const std::string* PodUidIn(const ObjectSnapshot& snapshot,
                            const ObjectName& name) {
  if (const auto pod = snapshot.pods.find(name); pod != snapshot.pods.end()) {
    return &pod->second->metadata.uid;
  }
  const auto malformed = snapshot.malformed_pods.find(name);
  return malformed == snapshot.malformed_pods.end()
             ? nullptr
             : &malformed->second->pod.metadata.uid;
}

/// What a kubelet shows the server of a pod of its files.
bool IsMirror(const Pod& pod) {
  return pod.metadata.annotations.count("kubernetes.io/config.mirror") > 0;
}

template <typename T>
std::shared_ptr<const T> Share(const StoredObject& stored) {
  if (stored.object == nullptr) return nullptr;
  const T* object = std::get_if<T>(stored.object.get());
  if (object == nullptr) return nullptr;
  return std::shared_ptr<const T>(stored.object, object);
}

template <typename T>
void PutOf(const StoredObject& stored, ObjectMap<T>* objects) {
  if (auto object = Share<T>(stored)) {
    objects->insert_or_assign(stored.name, std::move(object));
  }
}

/// Whether it is an object that is shown.
bool IsShown(const StoredObject& stored) {
  if (stored.malformed != nullptr) return true;
  const auto pod = Share<Pod>(stored);
  return stored.object != nullptr && (pod == nullptr || !IsMirror(*pod));
}

bool IsPod(const StoredObject& stored) {
  return stored.malformed != nullptr || Share<Pod>(stored) != nullptr;
}

void Put(const StoredObject& stored, ObjectSnapshot* snapshot) {
  PutOf(stored, &snapshot->pods);
  if (stored.malformed != nullptr) {
    snapshot->malformed_pods.insert_or_assign(stored.name, stored.malformed);
  }
  PutOf(stored, &snapshot->claims);
  PutOf(stored, &snapshot->device_classes);
  PutOf(stored, &snapshot->resource_slices);
}

/// Takes away an object of the kind of `stored`, and of no other.
void Take(const StoredObject& stored, ObjectSnapshot* snapshot) {
  if (IsPod(stored)) {
    snapshot->pods.erase(stored.name);
    snapshot->malformed_pods.erase(stored.name);
  } else if (Share<ResourceClaim>(stored) != nullptr) {
    snapshot->claims.erase(stored.name);
  } else if (Share<DeviceClass>(stored) != nullptr) {
    snapshot->device_classes.erase(stored.name);
  } else if (Share<ResourceSlice>(stored) != nullptr) {
    snapshot->resource_slices.erase(stored.name);
  }
}

}  // namespace

void GonePods::Add(const std::string& uid) {
  if (!uids_.insert(PodUid{uid})) return;
  order_.push_back(uid);
  if (order_.size() <= kMax) return;
  uids_.erase(PodUid{order_.front()});
  order_.pop_front();
}

std::vector<std::shared_ptr<const StoredObject>> NamedObjects::OfName(
    const ObjectName& name) const {
  std::vector<std::shared_ptr<const StoredObject>> all;
  for (auto it = names_.lower_bound({name, ""});
       it != names_.end() && it->first == name; ++it) {
    all.push_back(objects_.at(it->second));
  }
  return all;
}

void NamedObjects::Follow(const ObjectStore::Objects& objects,
                          const ObjectSnapshot& shown,
                          ObjectSnapshot* snapshot) {
  std::set<ObjectName> names;
  objects.VisitChangesSince(objects_, [&](const auto* was, const auto* is) {
    if (was != nullptr && IsShown(*was->second)) {
      names_.erase({was->second->name, was->first});
      names.insert(was->second->name);
      Take(*was->second, snapshot);
    }
    if (is != nullptr && IsShown(*is->second)) {
      names_.emplace(is->second->name, is->first);
      names.insert(is->second->name);
    }
  });
  objects_ = objects;
  for (const ObjectName& name : names) Place(name, shown, snapshot);
}

void NamedObjects::Place(const ObjectName& name, const ObjectSnapshot& shown,
                         ObjectSnapshot* snapshot) {
  repeated_.erase(name);
  const auto all = OfName(name);
  if (all.empty()) return;
  auto placed = all.back();
  if (IsPod(*placed)) {
    placed = all.front();
    const std::string* known = PodUidIn(shown, name);
    for (const auto& stored : all) {
      if (known != nullptr && *known == stored->uid) placed = stored;
    }
    if (all.size() > 1) repeated_.insert(name);
  }
  Take(*placed, snapshot);
  Put(*placed, snapshot);
}

void NamedObjects::Report(ObjectSnapshot* snapshot) const {
  for (const ObjectName& name : repeated_) {
    const auto all = OfName(name);
    snapshot->complete = false;
    for (std::size_t i = 1; i < all.size(); ++i) {
      AddProblem("pods",
                 fmt::format("the server lists two pods '{}', with the UIDs {} "
                             "and {}",
                             name.ToString(), all[0]->uid, all[i]->uid),
                 snapshot);
    }
  }
}

void AddProblem(const std::string& where, const std::string& message,
                ObjectSnapshot* snapshot) {
  if (snapshot->problems.size() >= kMaxProblems) return;
  ManifestProblem problem;
  problem.file = where;
  problem.message = message;
  snapshot->problems.push_back(std::move(problem));
}

void AddObjectProblem(const ObjectProblem& problem, ObjectSnapshot* snapshot) {
  if (snapshot->object_problems.size() >= kMaxProblems) return;
  snapshot->object_problems.push_back(problem);
}

void AddTrouble(const std::string& where, const std::string& message,
                ObjectSnapshot* snapshot) {
  // There are few, and they explain the rest.
  ManifestProblem problem;
  problem.file = where;
  problem.message = message;
  problem.of_source = true;
  snapshot->problems.push_back(std::move(problem));
}

std::set<ObjectName> ClaimsOfPods::Changed(const ObjectMap<Pod>& pods) {
  std::set<ObjectName> changed;
  pods.VisitChangesSince(pods_, [&](const auto* was, const auto* is) {
    WantedClaims before;
    WantedClaims now;
    if (was != nullptr) AddClaimsOf(*was->second, &before);
    if (is != nullptr) AddClaimsOf(*is->second, &now);
    for (const auto& [claim, uids] : before) {
      for (const std::string& uid : uids) wanted_[claim].erase(uid);
      if (wanted_[claim].empty()) wanted_.erase(claim);
      changed.insert(claim);
    }
    for (const auto& [claim, uids] : now) {
      wanted_[claim].insert(uids.begin(), uids.end());
      changed.insert(claim);
    }
  });
  pods_ = pods;
  return changed;
}

}  // namespace devmgr::apiserver
