// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/runtime_source.h>

#include <functional>
#include <memory>
#include <string>

#include "common/executor.h"
#include "common/mutex.h"
#include "common/status.h"
#include "shim/runtime_looker.h"

namespace devmgr::shim {

/// What one shim after the other says of the runtime behind it. Thread-safe.
class ShimRuntime final : public ShimRuntimeSource {
 public:
  explicit ShimRuntime(RuntimeWatchOptions options);

  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override;
  bool Refresh(std::function<void()> done) override;
  void Expect(bool pods) override;

  // For a shim.
  /// It is the one from now on. FailedPrecondition: there is another.
  absl::Status Claim();
  /// `looker` answers from now on, on `executor`, which runs nothing of it yet.
  /// Both live until Leave has returned.
  void Follow(std::shared_ptr<Executor> executor, RuntimeLooker& looker);
  /// The shim ends. Nothing of `looker` is called after this.
  void Leave(const std::string& reason);

  /// For the looker; written on its executor only.
  RuntimeLooker::Cell& cell() { return cell_; }
  const RuntimeWatchOptions& options() const { return options_; }

 private:
  const RuntimeWatchOptions options_;
  RuntimeLooker::Cell cell_;

  Mutex mutex_;
  bool claimed_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool expects_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Executor> executor_ DEVMGR_GUARDED_BY(mutex_);
  RuntimeLooker* looker_ DEVMGR_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace devmgr::shim
