// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_source.h>
#include <fmt/core.h>

#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "rpc/connection.h"
#include "shim/runtime_client.h"
#include "shim/runtime_looker.h"

namespace devmgr::shim {
namespace {

/// Looks on a thread of its own.
class RuntimeWatch final : public RuntimeSource {
 public:
  RuntimeWatch(std::filesystem::path endpoint, RuntimeWatchOptions options)
      : endpoint_(std::move(endpoint)), runtime_(rpc::Runtime::Start()) {
    RuntimeLooker::PublishUnknown(
        cell_, runtime_.ok() ? "the runtime has not been asked yet"
                             : MessageOf(runtime_.status()));
    if (!runtime_.ok()) return;
    client_ = std::make_unique<RuntimeClient>(**runtime_, *executor_, endpoint_,
                                              [this] { looker_->OnLost(); });
    looker_ = std::make_unique<RuntimeLooker>(*executor_, *client_, cell_,
                                              RuntimeLooker::Sane(options));
    executor_->Post([this] { looker_->Begin(); });
  }
  ~RuntimeWatch() override { executor_->Stop(); }

  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override {
    return fmt::format("runtime {}", endpoint_.string());
  }

  bool Refresh(std::function<void()> done) override {
    if (looker_ == nullptr) return false;
    executor_->Post([this, done = std::move(done)] { looker_->Refresh(done); });
    return true;
  }

  void Expect(bool pods) override {
    if (looker_ == nullptr) return;
    executor_->Post([this, pods] { looker_->Expect(pods); });
  }

 private:
  const std::filesystem::path endpoint_;
  RuntimeLooker::Cell cell_;

  const absl::StatusOr<std::unique_ptr<rpc::Runtime>> runtime_;
  const std::unique_ptr<Executor> executor_ =
      ThreadExecutor::Start("devmgr-runtime");
  /// Go before what they run on, which has stopped by then. Null: there is no
  /// `runtime_`.
  std::unique_ptr<RuntimeClient> client_;
  std::unique_ptr<RuntimeLooker> looker_;
};

}  // namespace
}  // namespace devmgr::shim

namespace devmgr {

std::unique_ptr<RuntimeSource> WatchRuntime(std::filesystem::path endpoint,
                                            RuntimeWatchOptions options) {
  return std::make_unique<shim::RuntimeWatch>(std::move(endpoint), options);
}

}  // namespace devmgr
