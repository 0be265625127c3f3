// SPDX-License-Identifier: Apache-2.0
#include <devmgr/control.h>
#include <fmt/core.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/mutex.h"

namespace devmgr {
namespace {

using SharedSnapshot = std::shared_ptr<const ObjectSnapshot>;

/// Joins two snapshots into one.
class Join {
 public:
  Join(const ObjectSnapshot& first, const ObjectSnapshot& wanted,
       std::string first_name)
      : wanted_(wanted), first_name_(std::move(first_name)), all_(first) {}

  ObjectSnapshot Run() {
    all_.complete = all_.complete && wanted_.complete;
    std::set<std::string> uids;
    for (const auto& [name, pod] : wanted_.pods) {
      uids.insert(pod->metadata.uid);
    }
    DropPods(uids, all_.pods);
    DropPods(uids, all_.malformed_pods);
    for (const auto& [name, pod] : wanted_.pods) all_.pods[name] = pod;
    for (const auto& [name, claim] : wanted_.claims) {
      if (all_.claims.contains(name)) Report("ResourceClaim", name);
      all_.claims[name] = claim;
    }
    all_.partial_kinds.insert(wanted_.partial_kinds.begin(),
                              wanted_.partial_kinds.end());
    all_.unread_claims.insert(wanted_.unread_claims.begin(),
                              wanted_.unread_claims.end());
    std::erase_if(all_.unread_claims, [&](const auto& entry) {
      return all_.claims.contains(entry.first);
    });
    all_.vouched_pods.insert(wanted_.vouched_pods.begin(),
                             wanted_.vouched_pods.end());
    all_.gone_pods.insert(wanted_.gone_pods.begin(), wanted_.gone_pods.end());
    // One that was unwanted and has come to the other source is there.
    for (const auto& [name, pod] : all_.pods) {
      all_.gone_pods.erase(PodUid{pod->metadata.uid});
    }
    for (const auto& [name, pod] : all_.malformed_pods) {
      all_.gone_pods.erase(PodUid{pod->pod.metadata.uid});
    }
    all_.problems.insert(all_.problems.end(), wanted_.problems.begin(),
                         wanted_.problems.end());
    return std::move(all_);
  }

 private:
  static const std::string& UidOf(const Pod& pod) { return pod.metadata.uid; }
  static const std::string& UidOf(const MalformedPod& pod) {
    return pod.pod.metadata.uid;
  }

  /// Those that are wanted, too, by name or by UID.
  template <typename Pods>
  void DropPods(const std::set<std::string>& uids, Pods& pods) {
    std::erase_if(pods, [&](const auto& entry) {
      const bool is_wanted = wanted_.pods.contains(entry.first) ||
                             uids.contains(UidOf(*entry.second));
      if (is_wanted) Report("Pod", entry.first);
      return is_wanted;
    });
  }

  void Report(const char* kind, const ObjectName& name) {
    ManifestProblem problem;
    problem.message = fmt::format(
        "{} '{}' of {} is left out: a client wants a pod with it, or with its "
        "UID, over the control socket",
        kind, name.ToString(), first_name_);
    all_.problems.push_back(std::move(problem));
  }

  const ObjectSnapshot& wanted_;
  const std::string first_name_;
  ObjectSnapshot all_;
};

class CombinedSource final : public ObjectSource {
 public:
  CombinedSource(ObjectSource& first, WantedPods& wanted)
      : first_(first), wanted_(wanted) {}

  SharedSnapshot Snapshot() const override {
    const SharedSnapshot first = first_.Snapshot();
    const SharedSnapshot wanted = wanted_.Snapshot();
    {
      MutexLock lock(mutex_);
      if (joined_ != nullptr && of_first_ == first && of_wanted_ == wanted) {
        return joined_;
      }
    }
    auto joined = std::make_shared<const ObjectSnapshot>(
        Join(*first, *wanted, first_.Describe()).Run());
    MutexLock lock(mutex_);
    of_first_ = first;
    of_wanted_ = wanted;
    joined_ = joined;
    return joined;
  }

  void Subscribe(std::function<void()> changed) override {
    first_.Subscribe(changed);
    wanted_.Subscribe(std::move(changed));
  }
  void Unsubscribe() override {
    first_.Unsubscribe();
    wanted_.Unsubscribe();
  }
  /// The ledger knows it by that, with and without wanted pods.
  std::string Describe() const override { return first_.Describe(); }
  void Mark(const std::string& id, std::uint64_t watch) override {
    first_.Mark(id, watch);
  }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    const bool is_wanted = kind == ObjectKind::kResourceClaim &&
                           wanted_.Snapshot()->claims.contains(name);
    return !is_wanted && first_.Refresh(kind, name, std::move(done));
  }

 private:
  ObjectSource& first_;
  WantedPods& wanted_;
  mutable Mutex mutex_;
  /// What was joined last, of which snapshots.
  mutable SharedSnapshot of_first_ DEVMGR_GUARDED_BY(mutex_);
  mutable SharedSnapshot of_wanted_ DEVMGR_GUARDED_BY(mutex_);
  mutable SharedSnapshot joined_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<ObjectSource> CombineSources(ObjectSource& first,
                                             WantedPods& wanted) {
  return std::make_unique<CombinedSource>(first, wanted);
}

}  // namespace devmgr
