// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_phases.h>

#include <map>
#include <utility>

#include "common/executor.h"
#include "common/mutex.h"
#include "common/snapshot_cell.h"

namespace devmgr {
namespace {

using SharedSnapshot = std::shared_ptr<const ObjectSnapshot>;

class PodPhaseSourceImpl final : public PodPhaseSource {
 public:
  explicit PodPhaseSourceImpl(ObjectSource& objects) : objects_(objects) {}

  ~PodPhaseSourceImpl() override { executor_->Stop(); }

  void SetPhase(const ObjectName& pod, const std::string& phase) override {
    {
      MutexLock lock(mutex_);
      phases_.erase(pod);
      if (!phase.empty()) phases_[pod].phase = phase;
      shown_ = nullptr;
    }
    // Not on the caller's thread: it may hold locks that the subscriber takes.
    executor_->Post([this] { subscriber_.Notify(); });
  }
  std::string PhaseOf(const ObjectName& pod) const override {
    MutexLock lock(mutex_);
    const auto found = phases_.find(pod);
    return found == phases_.end() ? "" : found->second.phase;
  }

  SharedSnapshot Snapshot() const override {
    const SharedSnapshot objects = objects_.Snapshot();
    MutexLock lock(mutex_);
    if (shown_ == nullptr || of_ != objects) {
      of_ = objects;
      shown_ = phases_.empty() ? objects : WithPhasesLocked(*objects);
    }
    return shown_;
  }

  void Subscribe(std::function<void()> changed) override {
    objects_.Subscribe(changed);
    subscriber_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override {
    objects_.Unsubscribe();
    subscriber_.SetSubscriber({});
  }
  /// The ledger knows it by that, with and without phases.
  std::string Describe() const override { return objects_.Describe(); }
  void Mark(const std::string& id, std::uint64_t watch) override {
    objects_.Mark(id, watch);
  }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    return objects_.Refresh(kind, name, std::move(done));
  }

 private:
  struct Phase {
    std::string phase;
    std::shared_ptr<const Pod> of;
    /// `of` with the phase; the same pointer as long as `of` is.
    std::shared_ptr<const Pod> shown;
  };

  SharedSnapshot WithPhasesLocked(const ObjectSnapshot& objects) const
      DEVMGR_REQUIRES(mutex_) {
    auto all = std::make_shared<ObjectSnapshot>(objects);
    for (auto& [name, phase] : phases_) {
      const auto found = objects.pods.find(name);
      if (found == objects.pods.end()) continue;
      if (phase.of != found->second) {
        phase.of = found->second;
        auto shown = std::make_shared<Pod>(*phase.of);
        shown->status.phase = phase.phase;
        phase.shown = std::move(shown);
      }
      all->pods.insert_or_assign(name, phase.shown);
    }
    return all;
  }

  ObjectSource& objects_;
  mutable Mutex mutex_;
  mutable std::map<ObjectName, Phase> phases_ DEVMGR_GUARDED_BY(mutex_);
  /// What was shown last, of which snapshot; null: to be made anew.
  mutable SharedSnapshot of_ DEVMGR_GUARDED_BY(mutex_);
  mutable SharedSnapshot shown_ DEVMGR_GUARDED_BY(mutex_);
  /// Hears of phases; of `objects_` it hears from there.
  SnapshotCell<ObjectSnapshot> subscriber_;
  /// Last, so that it is stopped before the rest goes.
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-phases");
};

}  // namespace

std::unique_ptr<PodPhaseSource> PodPhaseSource::Make(ObjectSource& objects) {
  return std::make_unique<PodPhaseSourceImpl>(objects);
}

}  // namespace devmgr
