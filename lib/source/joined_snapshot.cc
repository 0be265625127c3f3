// SPDX-License-Identifier: Apache-2.0
#include "source/joined_snapshot.h"

#include <fmt/core.h>

#include <utility>

namespace devmgr::source {
namespace {

template <typename T>
bool HasUid(const ObjectMap<T>& objects, const ObjectName& name,
            const std::string& uid) {
  const std::shared_ptr<const T>* object = objects.Find(name);
  return object != nullptr && UidOfObject(**object) == uid;
}

/// What is to be compared later.
ObjectSnapshot WithoutProblems(const ObjectSnapshot& snapshot) {
  ObjectSnapshot objects = snapshot;
  objects.problems.clear();
  objects.object_problems.clear();
  return objects;
}

void ReportLeftOut(const char* kind, const std::set<ObjectName>& names,
                   const std::string& first_name, const std::string& why,
                   ObjectSnapshot* all) {
  for (const ObjectName& name : names) {
    ManifestProblem problem;
    problem.message = fmt::format("{} '{}' of {} is left out: {}", kind,
                                  name.ToString(), first_name, why);
    all->problems.push_back(std::move(problem));
  }
}

}  // namespace

bool SnapshotJoin::IsOfSecond(const std::string& uid) const {
  // Those without one get it later.
  return !uid.empty() &&
         (pods_.second.contains(uid) || malformed_pods_.second.contains(uid));
}

bool SnapshotJoin::IsThere(const std::string& uid) const {
  if (pods_.second.contains(uid) || malformed_pods_.second.contains(uid)) {
    return true;
  }
  for (const ObjectName& name : pods_.first.NamesOf(uid)) {
    if (HasUid(all_.pods, name, uid)) return true;
  }
  for (const ObjectName& name : malformed_pods_.first.NamesOf(uid)) {
    if (HasUid(all_.malformed_pods, name, uid)) return true;
  }
  return false;
}

/// `is_taken`: the second has a pod of that name. Adds the UIDs of pods that
/// come or go.
template <typename T>
void SnapshotJoin::Place(const ObjectName& name, const ObjectMap<T>& first,
                         const ObjectMap<T>& second, bool is_taken,
                         ObjectMap<T>* all, Pods<T>* pods,
                         std::set<std::string>* uids) {
  const auto* before = all->Find(name);
  if (before != nullptr) uids->insert(UidOfObject(**before));
  const auto* of_first = first.Find(name);
  const bool is_left_out =
      of_first != nullptr && (is_taken || IsOfSecond(UidOfObject(**of_first)));
  if (is_left_out) {
    pods->left_out.insert(name);
    of_first = nullptr;
  } else {
    pods->left_out.erase(name);
  }
  const auto* of_second = second.Find(name);
  const auto* now = of_second != nullptr ? of_second : of_first;
  if (now == nullptr) {
    all->erase(name);
    return;
  }
  uids->insert(UidOfObject(**now));
  all->insert_or_assign(name, *now);
}

void SnapshotJoin::JoinPods(const ObjectSnapshot& first,
                            const ObjectSnapshot& second,
                            std::set<std::string>* uids) {
  std::set<ObjectName> names;
  const auto of_first = [&](const ObjectName& name, const auto*, const auto*) {
    names.insert(name);
  };
  std::set<std::string> of_second_uids;
  const auto of_second = [&](const ObjectName& name, const auto* was,
                             const auto* is) {
    names.insert(name);
    if (was != nullptr) of_second_uids.insert(UidOfObject(*was));
    if (is != nullptr) of_second_uids.insert(UidOfObject(*is));
  };
  pods_.first.Follow(first.pods, of_first);
  malformed_pods_.first.Follow(first.malformed_pods, of_first);
  pods_.second.Follow(second.pods, of_second);
  malformed_pods_.second.Follow(second.malformed_pods, of_second);
  of_second_uids.erase("");
  for (const std::string& uid : of_second_uids) {
    for (const ObjectName& name : pods_.first.NamesOf(uid)) names.insert(name);
    for (const ObjectName& name : malformed_pods_.first.NamesOf(uid)) {
      names.insert(name);
    }
  }
  for (const ObjectName& name : names) {
    const bool is_taken =
        second.pods.contains(name) || second.malformed_pods.contains(name);
    Place(name, first.pods, second.pods, is_taken, &all_.pods, &pods_, uids);
    Place(name, first.malformed_pods, second.malformed_pods, is_taken,
          &all_.malformed_pods, &malformed_pods_, uids);
  }
}

/// What the second has counts. The names of what has changed in either.
template <typename T>
std::set<ObjectName> SnapshotJoin::Overlay(const ObjectMap<T>& first_before,
                                           const ObjectMap<T>& first,
                                           const ObjectMap<T>& second_before,
                                           const ObjectMap<T>& second,
                                           ObjectMap<T>* all) {
  std::set<ObjectName> names;
  AddTouched(first_before, first, &names);
  AddTouched(second_before, second, &names);
  for (const ObjectName& name : names) {
    const auto* object = second.Find(name);
    if (object == nullptr) object = first.Find(name);
    if (object == nullptr) {
      all->erase(name);
    } else {
      all->insert_or_assign(name, *object);
    }
  }
  return names;
}

void SnapshotJoin::JoinClaims(const ObjectSnapshot& first,
                              const ObjectSnapshot& second) {
  std::set<ObjectName> names = Overlay(
      first_.claims, first.claims, second_.claims, second.claims, &all_.claims);
  for (const ObjectName& name : names) {
    if (first.claims.contains(name) && second.claims.contains(name)) {
      claims_left_out_.insert(name);
    } else {
      claims_left_out_.erase(name);
    }
  }
  AddTouched(first_.unread_claims, first.unread_claims, &names);
  AddTouched(second_.unread_claims, second.unread_claims, &names);
  for (const ObjectName& name : names) {
    const UnreadObject* unread = first.unread_claims.Find(name);
    if (unread == nullptr) unread = second.unread_claims.Find(name);
    if (unread == nullptr || all_.claims.contains(name)) {
      all_.unread_claims.erase(name);
    } else {
      all_.unread_claims.insert_or_assign(name, *unread);
    }
  }
}

/// `uids`: of pods that came or went.
void SnapshotJoin::JoinGone(const ObjectSnapshot& first,
                            const ObjectSnapshot& second,
                            const std::set<std::string>& uids) {
  std::set<PodUid> pods;
  for (const std::string& uid : uids) pods.insert(PodUid{uid});
  AddTouched(first_.gone_pods, first.gone_pods, &pods);
  AddTouched(second_.gone_pods, second.gone_pods, &pods);
  for (const PodUid& pod : pods) {
    const bool is_gone =
        first.gone_pods.contains(pod) || second.gone_pods.contains(pod);
    // One that is gone from one of them and has come to the other is there.
    if (is_gone && !IsThere(pod.value)) {
      all_.gone_pods.insert(pod);
    } else {
      all_.gone_pods.erase(pod);
    }
  }
}

ObjectSnapshot SnapshotJoin::Join(const ObjectSnapshot& first,
                                  const ObjectSnapshot& second,
                                  const std::string& first_name,
                                  const std::string& why) {
  std::set<std::string> uids;
  JoinPods(first, second, &uids);
  JoinClaims(first, second);
  Overlay(first_.claim_templates, first.claim_templates,
          second_.claim_templates, second.claim_templates,
          &all_.claim_templates);
  Overlay(first_.device_classes, first.device_classes, second_.device_classes,
          second.device_classes, &all_.device_classes);
  Overlay(first_.resource_slices, first.resource_slices,
          second_.resource_slices, second.resource_slices,
          &all_.resource_slices);
  Overlay(first_.nodes, first.nodes, second_.nodes, second.nodes, &all_.nodes);
  Overlay(first_.device_taint_rules, first.device_taint_rules,
          second_.device_taint_rules, second.device_taint_rules,
          &all_.device_taint_rules);
  Overlay(first_.quotas, first.quotas, second_.quotas, second.quotas,
          &all_.quotas);
  Overlay(first_.device_statuses, first.device_statuses,
          second_.device_statuses, second.device_statuses,
          &all_.device_statuses);
  std::set<ObjectName> vouched;
  AddTouched(first_.vouched_pods, first.vouched_pods, &vouched);
  AddTouched(second_.vouched_pods, second.vouched_pods, &vouched);
  for (const ObjectName& name : vouched) {
    if (first.vouched_pods.contains(name) ||
        second.vouched_pods.contains(name)) {
      all_.vouched_pods.insert(name);
    } else {
      all_.vouched_pods.erase(name);
    }
  }
  JoinGone(first, second, uids);
  first_ = WithoutProblems(first);
  second_ = WithoutProblems(second);

  ObjectSnapshot all = all_;
  all.resource_classes = first.resource_classes;
  all.resource_class_parameters = first.resource_class_parameters;
  all.resource_claim_parameters = first.resource_claim_parameters;
  all.complete = first.complete && second.complete;
  all.partial_kinds = first.partial_kinds;
  all.partial_kinds.insert(second.partial_kinds.begin(),
                           second.partial_kinds.end());
  all.vouched = first.vouched;
  all.watch = first.watch;
  all.marker = first.marker;
  all.marker_problem = first.marker_problem;
  all.parts = first.parts;
  all.problems = first.problems;
  ReportLeftOut("Pod", pods_.left_out, first_name, why, &all);
  ReportLeftOut("Pod", malformed_pods_.left_out, first_name, why, &all);
  ReportLeftOut("ResourceClaim", claims_left_out_, first_name, why, &all);
  all.problems.insert(all.problems.end(), second.problems.begin(),
                      second.problems.end());
  all.object_problems = first.object_problems;
  all.object_problems.insert(all.object_problems.end(),
                             second.object_problems.begin(),
                             second.object_problems.end());
  return all;
}

}  // namespace devmgr::source
