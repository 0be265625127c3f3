// SPDX-License-Identifier: Apache-2.0
#include <devmgr/host.h>

#include <memory>
#include <utility>

#include "common/executor.h"
#include "common/snapshot_cell.h"

namespace devmgr {
namespace {

class MemoryObjectSourceImpl final : public MemoryObjectSource {
 public:
  ~MemoryObjectSourceImpl() override { executor_->Stop(); }

  void Publish(ObjectSnapshot snapshot) override {
    cell_.Put(std::make_shared<const ObjectSnapshot>(std::move(snapshot)));
    // Not on the publisher's thread: it may hold locks that the subscriber
    // takes.
    executor_->Post([this] { cell_.Notify(); });
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override { return "memory"; }

 private:
  SnapshotCell<ObjectSnapshot> cell_;
  /// Last, so that it is stopped before the cell goes.
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-objects");
};

}  // namespace

void ObjectSource::Mark(const std::string&, std::uint64_t) {}

bool ObjectSource::Refresh(ObjectKind, const ObjectName&,
                           std::function<void(const absl::Status&)>) {
  return false;
}

std::unique_ptr<MemoryObjectSource> MemoryObjectSource::Create() {
  return std::make_unique<MemoryObjectSourceImpl>();
}

}  // namespace devmgr
