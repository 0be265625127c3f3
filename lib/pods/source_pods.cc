// SPDX-License-Identifier: Apache-2.0
#include "pods/source_pods.h"

#include <algorithm>
#include <utility>

namespace devmgr::pods {
namespace {

const ObjectName& NameOfEntry(const ObjectName& name) { return name; }
template <typename T>
const ObjectName& NameOfEntry(
    const std::pair<ObjectName, std::shared_ptr<const T>>& entry) {
  return entry.first;
}
const ObjectName& NameOfEntry(
    const std::pair<PodUid, std::shared_ptr<const state::PodRecord>>& pod) {
  return pod.second->name;
}

PodUid UidOfEntry(
    const std::pair<ObjectName, std::shared_ptr<const Pod>>& entry) {
  return {entry.second->metadata.uid};
}
PodUid UidOfEntry(
    const std::pair<ObjectName, std::shared_ptr<const MalformedPod>>& entry) {
  return {entry.second->pod.metadata.uid};
}

/// The names of what came or went.
template <typename Entries>
void AddChanged(const Entries& before, const Entries& now,
                std::set<ObjectName>* names) {
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    if (was == nullptr || is == nullptr) {
      names->insert(NameOfEntry(was != nullptr ? *was : *is));
    }
  });
}

template <typename Base>
bool HasPod(const Base& base, const ObjectName& pod) {
  return base.pods.contains(pod) || base.malformed_pods.contains(pod);
}

bool HasSameWatches(const std::vector<ObjectSnapshot::Part>& a,
                    const std::vector<ObjectSnapshot::Part>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& one, const auto& two) { return one.watch == two.watch; });
}

}  // namespace

std::set<ObjectName> SourcePods::Changed(const Base& before, const Base& now) {
  std::set<ObjectName> names;
  AddChanged(before.pods, now.pods, &names);
  AddChanged(before.malformed_pods, now.malformed_pods, &names);
  AddChanged(before.vouched_pods, now.vouched_pods, &names);
  AddChanged(before.held, now.held, &names);
  return names;
}

/// 0 or 1; 2 if it is malformed, too.
std::size_t SourcePods::OwnOf(const Base& base, const ObjectName& pod) {
  return base.vouched_pods.contains(pod)
             ? 0
             : base.pods.count(pod) + base.malformed_pods.count(pod);
}

bool SourcePods::IsHeld(const ObjectName& pod) const {
  return !state_.PodsNamed(pod).empty();
}

void SourcePods::Follow(const ObjectSnapshot& snapshot) {
  Base now = BaseOf(snapshot);
  state_.pods.VisitChangesSince(followed_.held,
                                [&](const auto* was, const auto* is) {
                                  if (is == nullptr) lacking_.erase(was->first);
                                });
  for (const ObjectName& name : Changed(followed_, now)) {
    const bool is_there = HasPod(now, name);
    for (const PodUid& uid : state_.PodsNamed(name)) {
      if (is_there) {
        lacking_.erase(uid);
      } else {
        lacking_.insert(uid);
      }
    }
  }
  FollowImported(now);
  followed_ = std::move(now);
}

void SourcePods::FollowImported(const Base& now) {
  FollowImported(followed_.pods, now.pods);
  FollowImported(followed_.malformed_pods, now.malformed_pods);
}

template <typename Entries>
void SourcePods::FollowImported(const Entries& before, const Entries& now) {
  std::set<PodUid> here;
  std::set<PodUid> gone;
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    if (was != nullptr) gone.insert(UidOfEntry(*was));
    if (is != nullptr) here.insert(UidOfEntry(*is));
  });
  const auto is_imported = [&](const PodUid& uid) {
    const state::PodRecord* pod = state_.FindPod(uid);
    return pod != nullptr && pod->imported;
  };
  for (const PodUid& uid : gone) {
    if (is_imported(uid)) lacking_.insert(uid);
  }
  for (const PodUid& uid : here) {
    if (is_imported(uid)) lacking_.erase(uid);
  }
}

void SourcePods::NoteParts(const ObjectSnapshot& snapshot) {
  std::set<ObjectName> changed;
  const bool is_same_watch = HasSameWatches(parts_, snapshot.parts);
  if (!is_same_watch) {
    for (const auto& [name, part] : part_of_) changed.insert(name);
  }
  for (std::size_t i = 0; i < snapshot.parts.size(); ++i) {
    AddChanged(is_same_watch ? parts_[i].pods : PersistentSet<ObjectName>(),
               snapshot.parts[i].pods, &changed);
  }
  AddChanged(held_with_parts_, state_.pods, &changed);
  for (const ObjectName& name : changed) {
    if (!IsHeld(name)) part_of_.erase(name);
    for (std::size_t i = 0; i < snapshot.parts.size(); ++i) {
      const ObjectSnapshot::Part& part = snapshot.parts[i];
      if (part.pods.contains(name)) part_of_[name] = {i, part.watch};
    }
  }
  parts_ = snapshot.parts;
  held_with_parts_ = state_.pods;
}

std::optional<SourcePods::Part> SourcePods::PartOf(
    const ObjectName& pod) const {
  const auto found = part_of_.find(pod);
  if (found == part_of_.end()) return std::nullopt;
  return found->second;
}

void SourcePods::NoteSeen(const ObjectSnapshot& snapshot) {
  Base now = BaseOf(snapshot);
  const std::set<ObjectName> changed = Changed(seen_base_, now);
  for (const ObjectName& name : changed) {
    own_ = own_ + OwnOf(now, name) - OwnOf(seen_base_, name);
    if (!IsHeld(name)) seen_.erase(name);
  }
  const auto note = [&](const ObjectName& name) {
    const bool is_own =
        now.malformed_pods.contains(name) ||
        (now.pods.contains(name) && !now.vouched_pods.contains(name));
    // Without a watch it says nothing of where a pod has gone.
    if (is_own && snapshot.watch != 0) seen_[name] = snapshot.watch;
  };
  if (snapshot.watch != watch_) {
    std::erase_if(seen_,
                  [this](const auto& entry) { return !IsHeld(entry.first); });
    for (const auto& [name, pod] : now.pods) note(name);
    for (const auto& [name, pod] : now.malformed_pods) note(name);
  } else {
    for (const ObjectName& name : changed) note(name);
  }
  watch_ = snapshot.watch;
  seen_base_ = std::move(now);
}

std::uint64_t SourcePods::SeenIn(const ObjectName& pod) const {
  const auto found = seen_.find(pod);
  return found == seen_.end() ? 0 : found->second;
}

}  // namespace devmgr::pods
