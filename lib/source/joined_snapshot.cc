// SPDX-License-Identifier: Apache-2.0
#include "source/joined_snapshot.h"

#include <fmt/core.h>

#include <set>
#include <utility>

namespace devmgr::source {
namespace {

/// Joins two snapshots into one.
class Join {
 public:
  Join(const ObjectSnapshot& first, const ObjectSnapshot& second,
       std::string first_name, std::string why)
      : second_(second),
        first_name_(std::move(first_name)),
        why_(std::move(why)),
        all_(first) {}

  ObjectSnapshot Run() {
    all_.complete = all_.complete && second_.complete;
    std::set<std::string> uids;
    for (const auto& [name, pod] : second_.pods) {
      uids.insert(pod->metadata.uid);
    }
    for (const auto& [name, pod] : second_.malformed_pods) {
      uids.insert(pod->pod.metadata.uid);
    }
    uids.erase("");  // They get one later.
    DropPods(uids, all_.pods);
    DropPods(uids, all_.malformed_pods);
    for (const auto& [name, pod] : second_.pods) all_.pods[name] = pod;
    for (const auto& [name, pod] : second_.malformed_pods) {
      all_.malformed_pods[name] = pod;
    }
    for (const auto& [name, claim] : second_.claims) {
      if (all_.claims.contains(name)) Report("ResourceClaim", name);
      all_.claims[name] = claim;
    }
    Add(second_.claim_templates, all_.claim_templates);
    Add(second_.device_classes, all_.device_classes);
    Add(second_.resource_slices, all_.resource_slices);
    Add(second_.nodes, all_.nodes);
    Add(second_.device_taint_rules, all_.device_taint_rules);
    all_.partial_kinds.insert(second_.partial_kinds.begin(),
                              second_.partial_kinds.end());
    all_.unread_claims.insert(second_.unread_claims.begin(),
                              second_.unread_claims.end());
    std::erase_if(all_.unread_claims, [&](const auto& entry) {
      return all_.claims.contains(entry.first);
    });
    all_.vouched_pods.insert(second_.vouched_pods.begin(),
                             second_.vouched_pods.end());
    all_.gone_pods.insert(second_.gone_pods.begin(), second_.gone_pods.end());
    // One that is gone from one of them and has come to the other is there.
    for (const auto& [name, pod] : all_.pods) {
      all_.gone_pods.erase(PodUid{pod->metadata.uid});
    }
    for (const auto& [name, pod] : all_.malformed_pods) {
      all_.gone_pods.erase(PodUid{pod->pod.metadata.uid});
    }
    all_.problems.insert(all_.problems.end(), second_.problems.begin(),
                         second_.problems.end());
    all_.object_problems.insert(all_.object_problems.end(),
                                second_.object_problems.begin(),
                                second_.object_problems.end());
    return std::move(all_);
  }

 private:
  static const std::string& UidOf(const Pod& pod) { return pod.metadata.uid; }
  static const std::string& UidOf(const MalformedPod& pod) {
    return pod.pod.metadata.uid;
  }

  template <typename T>
  static void Add(const ObjectMap<T>& objects, ObjectMap<T>& to) {
    for (const auto& [name, object] : objects) to[name] = object;
  }

  /// Those that the second has, too, by name or by UID.
  template <typename Pods>
  void DropPods(const std::set<std::string>& uids, Pods& pods) {
    std::erase_if(pods, [&](const auto& entry) {
      const bool is_there = second_.pods.contains(entry.first) ||
                            second_.malformed_pods.contains(entry.first) ||
                            uids.contains(UidOf(*entry.second));
      if (is_there) Report("Pod", entry.first);
      return is_there;
    });
  }

  void Report(const char* kind, const ObjectName& name) {
    ManifestProblem problem;
    problem.message = fmt::format("{} '{}' of {} is left out: {}", kind,
                                  name.ToString(), first_name_, why_);
    all_.problems.push_back(std::move(problem));
  }

  const ObjectSnapshot& second_;
  const std::string first_name_;
  const std::string why_;
  ObjectSnapshot all_;
};

}  // namespace

ObjectSnapshot JoinSnapshots(const ObjectSnapshot& first,
                             const ObjectSnapshot& second,
                             const std::string& first_name,
                             const std::string& why) {
  return Join(first, second, first_name, why).Run();
}

}  // namespace devmgr::source
