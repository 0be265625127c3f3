// SPDX-License-Identifier: Apache-2.0
#include "pods/identified_objects.h"

#include <fmt/core.h>

#include "api/meta.h"
#include "claim/object_uid.h"

namespace devmgr::pods {
namespace {

using claim::MetadataOf;

template <typename T>
std::shared_ptr<const T> WithIdentity(const std::shared_ptr<const T>& object,
                                      const state::IdentityRecord& identity) {
  auto copy = std::make_shared<T>(*object);
  ObjectMeta& filled = MetadataOf(*copy);
  filled.uid = identity.uid;
  if (filled.creation_timestamp.empty()) {
    filled.creation_timestamp = api::TimestampOf(identity.first_seen_ms);
  }
  return copy;
}

/// A UID belongs to one object: of several that claim it, the first by name
/// counts, the others are reported.
template <typename Kind>
void ReportLeftOut(const std::string& kind, const Kind& objects,
                   std::vector<ManifestProblem>* problems) {
  for (const auto& [name, object] : objects.left_out) {
    const std::string& uid = object->metadata.uid;
    ManifestProblem problem;
    problem.field = "metadata.uid";
    problem.message = fmt::format(
        "{} '{}' is left out: its UID '{}' belongs to '{}' already", kind,
        name.ToString(), uid, objects.owners.at(uid).ToString());
    problems->push_back(std::move(problem));
  }
}

}  // namespace

template <typename T>
std::set<ObjectName> IdentifiedObjects::Touched(
    const std::string& kind, const ObjectMap<T>& before,
    const ObjectMap<T>& now, const state::State& state) const {
  std::set<ObjectName> touched;
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    touched.insert((was != nullptr ? was : is)->first);
  });
  state.identities.VisitChangesSince(
      identities_, [&](const auto* was, const auto* is) {
        const state::IdentityKey& key = (was != nullptr ? was : is)->first;
        if (key.first == kind) touched.insert(key.second);
      });
  return touched;
}

template <typename T>
std::shared_ptr<const T> IdentifiedObjects::Seen(
    const std::string& kind, const ObjectName& name, const Kind<T>& objects,
    const ObjectMap<T>& now, const state::State& state) const {
  const std::shared_ptr<const T>* object = now.Find(name);
  if (object == nullptr || !IsOurs(**object)) return nullptr;
  const ObjectMeta& metadata = MetadataOf(**object);
  if (!claim::NeedsIdentity(kind, metadata)) return *object;
  const auto* identity = state.FindIdentity(kind, metadata.FullName());
  if (identity == nullptr) return *object;
  const std::shared_ptr<const T>* taken = objects.taken.Find(name);
  if (taken != nullptr && *taken == *object) {
    const auto left_out = objects.left_out.find(name);
    const std::shared_ptr<const T>* same = left_out == objects.left_out.end()
                                               ? objects.identified.Find(name)
                                               : &left_out->second;
    if (same != nullptr && *same != *object &&
        MetadataOf(**same).uid == identity->uid) {
      return *same;
    }
  }
  return WithIdentity(*object, *identity);
}

template <typename T>
void IdentifiedObjects::Follow(const std::string& kind, const ObjectMap<T>& now,
                               const state::State& state,
                               Kind<T>* objects) const {
  for (const ObjectName& name : Touched(kind, objects->taken, now, state)) {
    auto seen = Seen(kind, name, *objects, now, state);
    if (seen == nullptr) {
      objects->identified.erase(name);
    } else {
      objects->identified.insert_or_assign(name, std::move(seen));
    }
  }
  objects->taken = now;
}

template <typename T>
void IdentifiedObjects::Place(const ObjectName& name,
                              std::shared_ptr<const T> object,
                              Kind<T>* objects) {
  const auto [owner, is_new] =
      objects->owners.emplace(object->metadata.uid, name);
  if (!is_new && owner->second < name) {
    objects->left_out[name] = std::move(object);
    return;
  }
  if (!is_new) {
    objects->left_out[owner->second] = objects->identified.at(owner->second);
    objects->identified.erase(owner->second);
    owner->second = name;
  }
  objects->identified.insert_or_assign(name, std::move(object));
}

template <typename T>
void IdentifiedObjects::FollowUnique(const std::string& kind,
                                     const ObjectMap<T>& now,
                                     const state::State& state,
                                     Kind<T>* objects) const {
  std::map<ObjectName, std::shared_ptr<const T>> to_place;
  const std::set<ObjectName> touched =
      Touched(kind, objects->taken, now, state);
  for (const ObjectName& name : touched) {
    if (auto seen = Seen(kind, name, *objects, now, state)) {
      to_place.emplace(name, std::move(seen));
    }
  }
  std::set<std::string> free_uids;
  for (const ObjectName& name : touched) {
    if (objects->left_out.erase(name) > 0) continue;
    const std::shared_ptr<const T>* object = objects->identified.Find(name);
    if (object == nullptr) continue;
    const std::string& uid = (*object)->metadata.uid;
    objects->owners.erase(uid);
    free_uids.insert(uid);
    objects->identified.erase(name);
  }
  std::erase_if(objects->left_out, [&](const auto& entry) {
    return free_uids.contains(entry.second->metadata.uid) &&
           to_place.insert(entry).second;
  });
  for (auto& [name, object] : to_place) {
    Place(name, std::move(object), objects);
  }
  objects->taken = now;
}

ObjectSnapshot IdentifiedObjects::Take(const ObjectSnapshot& snapshot,
                                       const state::State& state) {
  FollowUnique(claim::kPodKind, snapshot.pods, state, &pods_);
  Follow(claim::kPodKind, snapshot.malformed_pods, state, &malformed_pods_);
  FollowUnique(claim::kClaimKind, snapshot.claims, state, &claims_);
  Follow(claim::kClassKind, snapshot.device_classes, state, &device_classes_);
  identities_ = state.identities;
  ObjectSnapshot result = snapshot;
  result.pods = pods_.identified;
  result.malformed_pods = malformed_pods_.identified;
  result.claims = claims_.identified;
  result.device_classes = device_classes_.identified;
  ReportLeftOut(claim::kPodKind, pods_, &result.problems);
  ReportLeftOut(claim::kClaimKind, claims_, &result.problems);
  return result;
}

}  // namespace devmgr::pods
