// SPDX-License-Identifier: Apache-2.0
#include <devmgr/control.h>

#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "source/joined_snapshot.h"

namespace devmgr {
namespace {

using SharedSnapshot = std::shared_ptr<const ObjectSnapshot>;

class CombinedSource final : public ObjectSource {
 public:
  CombinedSource(ObjectSource& first, WantedPods& wanted)
      : first_(first), wanted_(wanted) {}

  SharedSnapshot Snapshot() const override {
    const SharedSnapshot first = first_.Snapshot();
    const SharedSnapshot wanted = wanted_.Snapshot();
    MutexLock lock(mutex_);
    if (joined_ != nullptr && of_first_ == first && of_wanted_ == wanted) {
      return joined_;
    }
    joined_ = std::make_shared<const ObjectSnapshot>(
        join_.Join(*first, *wanted, first_.Describe(),
                   "a client wants a pod with it, or with its UID, over the "
                   "control socket"));
    of_first_ = first;
    of_wanted_ = wanted;
    return joined_;
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
  mutable source::SnapshotJoin join_ DEVMGR_GUARDED_BY(mutex_);
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
