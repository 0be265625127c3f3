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

void PutPod(const StoredObject& stored, std::shared_ptr<const Pod> pod,
            ObjectSnapshot* snapshot) {
  snapshot->pods.erase(stored.name);
  snapshot->malformed_pods.erase(stored.name);
  if (pod != nullptr) {
    snapshot->pods.emplace(stored.name, std::move(pod));
  } else {
    snapshot->malformed_pods.emplace(stored.name, stored.malformed);
  }
}

void AddPod(const StoredObject& stored, std::shared_ptr<const Pod> pod,
            const ObjectSnapshot& before, ObjectSnapshot* snapshot) {
  const std::string* other = PodUidIn(*snapshot, stored.name);
  if (other == nullptr) return PutPod(stored, std::move(pod), snapshot);
  snapshot->complete = false;
  AddProblem("pods",
             fmt::format("the server lists two pods '{}', with the UIDs {} and "
                         "{}",
                         stored.name.ToString(), *other, stored.uid),
             snapshot);
  const std::string* known = PodUidIn(before, stored.name);
  if (known != nullptr && *known == stored.uid) {
    PutPod(stored, std::move(pod), snapshot);
  }
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
void AddOf(const StoredObject& stored, ObjectMap<T>* objects) {
  if (auto object = Share<T>(stored)) {
    objects->insert_or_assign(stored.name, std::move(object));
  }
}

}  // namespace

void GonePods::Add(const std::string& uid) {
  if (!uids_.insert(PodUid{uid}).second) return;
  order_.push_back(uid);
  if (order_.size() <= kMax) return;
  uids_.erase(PodUid{order_.front()});
  order_.pop_front();
}

void AddObjects(const ObjectStore::Objects& objects,
                const ObjectSnapshot& before, ObjectSnapshot* snapshot) {
  for (const auto& [uid, stored] : objects) {
    auto pod = Share<Pod>(*stored);
    if (pod != nullptr && IsMirror(*pod)) continue;
    if (pod != nullptr || stored->malformed != nullptr) {
      AddPod(*stored, std::move(pod), before, snapshot);
      continue;
    }
    AddOf(*stored, &snapshot->claims);
    AddOf(*stored, &snapshot->device_classes);
    AddOf(*stored, &snapshot->resource_slices);
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

WantedClaims ClaimsWantedBy(const ObjectSnapshot& snapshot) {
  WantedClaims wanted;
  for (const auto& [name, pod] : snapshot.pods) AddClaimsOf(*pod, &wanted);
  return wanted;
}

}  // namespace devmgr::apiserver
