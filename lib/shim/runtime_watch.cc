// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_source.h>
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "rpc/connection.h"
#include "shim/runtime_client.h"
#include "shim/runtime_snapshot.h"

namespace devmgr::shim {
namespace {

/// One look after the other, on a thread of its own.
class RuntimeWatch final : public RuntimeSource {
 public:
  RuntimeWatch(std::filesystem::path endpoint, RuntimeWatchOptions options)
      : endpoint_(std::move(endpoint)),
        options_(options),
        back_off_(options.first_retry, options.last_retry),
        runtime_(rpc::Runtime::Start()) {
    Publish([](RuntimeSnapshot& first) {
      first.since = std::chrono::system_clock::now();
      first.reason = "the runtime has not been asked yet";
    });
    if (runtime_.ok()) {
      client_ = std::make_unique<RuntimeClient>(
          **runtime_, *executor_, endpoint_, [this] { OnLost(); });
    }
    executor_->Post([this] { BeginLook(); });
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
    executor_->Post([this, done = std::move(done)] {
      waiting_.push_back(done);
      if (!looking_) BeginLook();
    });
    return true;
  }

  void Expect(bool pods) override {
    executor_->Post([this, pods] {
      if (std::exchange(expects_, pods) == pods || looking_) return;
      ArmTimer();
    });
  }

 private:
  /// So many containers are asked about at a time.
  static constexpr std::size_t kStatusesAtOnce = 8;

  void BeginLook() {
    looking_ = true;
    executor_->Cancel(std::exchange(timer_, 0));
    served_ = std::exchange(waiting_, {});
    if (client_ == nullptr) return EndLook(runtime_.status());
    client_->Relist(
        [this](const RuntimeIdentity& identity) {
          name_ = identity.version.runtime_name + " " +
                  identity.version.runtime_version;
        },
        [this](absl::StatusOr<RuntimeLists> lists) {
          if (!lists.ok()) return EndLook(lists.status());
          lists_ = *std::move(lists);
          const auto missing = details_.Missing(lists_.containers);
          to_ask_ = {missing.begin(), missing.end()};
          lacks_details_ = false;
          AskOn();
        });
  }

  void AskOn() {
    while (asked_ < kStatusesAtOnce && !to_ask_.empty()) {
      ++asked_;
      const cri::Container next = std::move(to_ask_.front());
      to_ask_.pop_front();
      client_->StatusOf(
          next.id,
          [this, next](absl::StatusOr<cri::ContainerStatus> status) {
            --asked_;
            OnStatus(next, std::move(status));
          },
          /*verbose=*/false);
    }
    if (asked_ == 0) EndLook(absl::OkStatus());
  }

  /// One that has been removed meanwhile is not listed the next time. Of any
  /// other the list has said what matters most.
  void OnStatus(const cri::Container& container,
                absl::StatusOr<cri::ContainerStatus> status) {
    if (status.ok() && status->id == container.id) {
      details_.Put(container, *std::move(status));
    } else {
      lacks_details_ = true;
    }
    AskOn();
  }

  void EndLook(const absl::Status& status) {
    looking_ = false;
    status.ok() ? PublishLists() : PublishFailure(status);
    for (const auto& done : std::exchange(served_, {})) done();
    if (!waiting_.empty()) return BeginLook();
    ArmTimer();
  }

  void PublishLists() {
    back_off_.Reset();
    const auto before = cell_.Get();
    PodRuns pods = PodRunsOf(lists_, details_, before->pods);
    lists_ = {};
    if (before->known && before->runtime == name_ && before->pods == pods) {
      return;
    }
    Publish([&](RuntimeSnapshot& next) {
      if (!next.known) next.since = std::chrono::system_clock::now();
      next.known = true;
      next.reason.clear();
      next.runtime = name_;
      next.pods = std::move(pods);
    });
  }

  void PublishFailure(const absl::Status& status) {
    const std::string reason = MessageOf(status);
    const auto before = cell_.Get();
    if (!before->known && before->reason == reason) return;
    Publish([&](RuntimeSnapshot& next) {
      if (next.known) next.since = std::chrono::system_clock::now();
      next.known = false;
      next.reason = reason;
    });
  }

  template <typename Change>
  void Publish(const Change& change) {
    auto next = std::make_shared<RuntimeSnapshot>(*cell_.Get());
    change(*next);
    cell_.Put(std::move(next));
    cell_.Notify();
  }

  void ArmTimer() {
    executor_->Cancel(std::exchange(timer_, 0));
    const auto snapshot = cell_.Get();
    if (snapshot->known && !expects_ && !lacks_details_ &&
        !AnyRuns(snapshot->pods)) {
      return;
    }
    timer_ = executor_->PostAfter(
        snapshot->known ? options_.period : back_off_.Next(),
        [this] { BeginLook(); });
  }

  /// What answers next may be another runtime, or none may come.
  void OnLost() {
    if (!looking_) BeginLook();
  }

  const std::filesystem::path endpoint_;
  const RuntimeWatchOptions options_;
  SnapshotCell<RuntimeSnapshot> cell_;

  // On the executor.
  std::vector<std::function<void()>> waiting_;  ///< For the next look.
  std::vector<std::function<void()>> served_;   ///< By the one under way.
  bool looking_ = false;
  bool expects_ = false;
  bool lacks_details_ = false;  ///< A container could not be asked about.
  TimerId timer_ = 0;
  BackOff back_off_;
  std::string name_;
  RuntimeLists lists_;
  ContainerDetails details_;
  std::deque<cri::Container> to_ask_;
  std::size_t asked_ = 0;

  const absl::StatusOr<std::unique_ptr<rpc::Runtime>> runtime_;
  const std::unique_ptr<Executor> executor_ =
      ThreadExecutor::Start("devmgr-runtime");
  /// Goes before what it runs on, which has stopped by then. Null: there is no
  /// `runtime_`.
  std::unique_ptr<RuntimeClient> client_;
};

}  // namespace
}  // namespace devmgr::shim

namespace devmgr {

std::unique_ptr<RuntimeSource> WatchRuntime(std::filesystem::path endpoint,
                                            RuntimeWatchOptions options) {
  options.period = std::max(options.period, std::chrono::milliseconds(1));
  options.first_retry =
      std::max(options.first_retry, std::chrono::milliseconds(1));
  options.last_retry = std::max(options.last_retry, options.first_retry);
  return std::make_unique<shim::RuntimeWatch>(std::move(endpoint), options);
}

}  // namespace devmgr
