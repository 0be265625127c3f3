// SPDX-License-Identifier: Apache-2.0
#include "shim/shim_runtime_source.h"

#include <future>
#include <utility>

namespace devmgr::shim {

ShimRuntime::ShimRuntime(RuntimeWatchOptions options)
    : options_(RuntimeLooker::Sane(options)) {
  RuntimeLooker::PublishUnknown(cell_, "the CRI shim has not started yet");
}

std::string ShimRuntime::Describe() const {
  return "runtime behind the CRI shim";
}

bool ShimRuntime::Refresh(std::function<void()> done) {
  const MutexLock lock(mutex_);
  if (looker_ == nullptr) return false;
  executor_->Post(
      [looker = looker_, done = std::move(done)] { looker->Refresh(done); });
  return true;
}

void ShimRuntime::Expect(bool pods) {
  const MutexLock lock(mutex_);
  expects_ = pods;
  if (looker_ == nullptr) return;
  executor_->Post([looker = looker_, pods] { looker->Expect(pods); });
}

absl::Status ShimRuntime::Claim() {
  const MutexLock lock(mutex_);
  if (std::exchange(claimed_, true)) {
    return FailedPreconditionError(
        "runtime_source is that of another shim, which has not ended");
  }
  return absl::OkStatus();
}

void ShimRuntime::Follow(std::shared_ptr<Executor> executor,
                         RuntimeLooker& looker) {
  const MutexLock lock(mutex_);
  executor_ = std::move(executor);
  looker_ = &looker;
  executor_->Post([&looker, pods = expects_] {
    looker.Expect(pods);
    looker.Begin();
  });
}

void ShimRuntime::Leave(const std::string& reason) {
  std::shared_ptr<Executor> executor;
  RuntimeLooker* looker = nullptr;
  {
    const MutexLock lock(mutex_);
    executor = std::exchange(executor_, nullptr);
    looker = std::exchange(looker_, nullptr);
  }
  if (looker != nullptr) {
    // After what was posted before, so that no caller waits in vain.
    std::promise<void> ended;
    executor->Post([&] {
      looker->End(reason);
      ended.set_value();
    });
    ended.get_future().wait();
  }
  const MutexLock lock(mutex_);
  claimed_ = false;
}

}  // namespace devmgr::shim

namespace devmgr {

std::unique_ptr<ShimRuntimeSource> ShimRuntimeSource::Make(
    RuntimeWatchOptions options) {
  return std::make_unique<shim::ShimRuntime>(options);
}

}  // namespace devmgr
