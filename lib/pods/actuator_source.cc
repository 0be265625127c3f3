// SPDX-License-Identifier: Apache-2.0
//
// The actuator follows its source: which pods it wants, and which are gone.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pods/actuator.h"

namespace devmgr::pods {
namespace {

bool IsOver(const Pod& pod) {
  return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
}

/// Null when the source has no pod of that name.
const std::string* UidOf(const ObjectSnapshot& objects,
                         const ObjectName& name) {
  const auto pod = objects.pods.find(name);
  if (pod != objects.pods.end()) return &pod->second->metadata.uid;
  const auto malformed = objects.malformed_pods.find(name);
  if (malformed == objects.malformed_pods.end()) return nullptr;
  return &malformed->second->pod.metadata.uid;
}

}  // namespace

void Actuator::FollowAllOfSource() {
  followed_ = nullptr;
  FollowSource();
}

/// Looks at what differs from what was followed last.
void Actuator::FollowSource() {
  const auto objects = parts_.objects.Current();
  const ObjectSnapshot none;
  const ObjectSnapshot& before = followed_ != nullptr ? *followed_ : none;
  std::vector<PodUid> changed;
  std::set<ObjectName> names;
  objects->pods.VisitChangesSince(
      before.pods, [&](const auto* was, const auto* is) {
        names.insert((was != nullptr ? was : is)->first);
        if (is != nullptr && FollowPod(is->first, is->second)) {
          changed.push_back(PodUid{is->second->metadata.uid});
        }
      });
  objects->malformed_pods.VisitChangesSince(
      before.malformed_pods, [&](const auto* was, const auto* is) {
        names.insert((was != nullptr ? was : is)->first);
        if (is != nullptr && FollowMalformed(is->first, is->second)) {
          changed.push_back(PodUid{is->second->pod.metadata.uid});
        }
      });
  for (const PodUid& uid : Gone(*objects, names)) {
    EntryOf(uid).wanted = false;
    changed.push_back(uid);
  }
  followed_ = objects;
  for (const PodUid& uid : changed) StepAnew(uid, "object");
}

/// Whether the next step is to be taken. What this node decided about the
/// claims of the pod changes the object, and is no news for the step that
/// decided it.
bool Actuator::FollowPod(const ObjectName& name,
                         std::shared_ptr<const Pod> pod) {
  const PodUid uid{pod->metadata.uid};
  const bool wanted = !IsOver(*pod);
  if (!wanted && !entries_.contains(uid)) return false;
  Entry& entry = EntryOf(uid);
  NameEntry(uid, entry, name);
  const auto* of_source = parts_.objects.of_source().pods.Find(name);
  std::shared_ptr<const Pod> read = of_source != nullptr ? *of_source : pod;
  const bool is_known = entry.read == read && entry.malformed == nullptr &&
                        entry.wanted == wanted;
  entry.pod = std::move(pod);
  entry.read = std::move(read);
  entry.malformed = nullptr;
  entry.wanted = wanted;
  return !is_known;
}

bool Actuator::FollowMalformed(const ObjectName& name,
                               std::shared_ptr<const MalformedPod> malformed) {
  const PodUid uid{malformed->pod.metadata.uid};
  Entry& entry = EntryOf(uid);
  NameEntry(uid, entry, name);
  if (entry.malformed == malformed) return false;
  entry.malformed = std::move(malformed);
  return true;
}

/// Wanted pods that are gone: a complete snapshot lacks them, the source
/// vouches for it, or their name belongs to another UID now. All else proves
/// nothing. Looks at `names`, at pods that are newly vouched for, and at all
/// only when the source has become complete.
std::vector<PodUid> Actuator::Gone(const ObjectSnapshot& objects,
                                   const std::set<ObjectName>& names) const {
  std::vector<PodUid> gone;
  const auto look_at = [&](const PodUid& uid, const Entry& entry) {
    if (!entry.wanted) return;
    const std::string* present = UidOf(objects, entry.name);
    if (present != nullptr
            ? *present != uid.value
            : objects.complete || objects.gone_pods.contains(uid)) {
      gone.push_back(uid);
    }
  };
  if (followed_ == nullptr || (objects.complete && !followed_->complete)) {
    for (const auto& [uid, entry] : entries_) look_at(uid, entry);
    return gone;
  }
  for (const ObjectName& name : names) {
    for (auto it = names_.lower_bound({name, PodUid()});
         it != names_.end() && it->first == name; ++it) {
      look_at(it->second, entries_.at(it->second));
    }
  }
  objects.gone_pods.VisitChangesSince(
      followed_->gone_pods, [&](const auto* /*was*/, const auto* is) {
        const auto found = is != nullptr ? entries_.find(*is) : entries_.end();
        if (found != entries_.end()) look_at(found->first, found->second);
      });
  return gone;
}

}  // namespace devmgr::pods
