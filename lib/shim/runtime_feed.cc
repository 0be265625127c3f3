// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_feed.h"

#include <utility>

namespace devmgr::shim {

RuntimeFeed::RuntimeFeed(std::shared_ptr<Executor> executor,
                         RuntimeClient& client, DeviceSource& source,
                         ShimIdentity identity,
                         std::function<void(bool awaited)> on_news)
    : executor_(std::move(executor)),
      source_(source),
      identity_(std::move(identity)),
      on_news_(std::move(on_news)),
      looker_(*executor_, client, cell_, RuntimeWatchOptions()) {
  RuntimeLooker::PublishUnknown(cell_, "the runtime has not been asked yet");
  cell_.SetSubscriber([this] { on_news_(/*awaited=*/false); });
}

void RuntimeFeed::Ask() {
  DEVMGR_ASSERT_ON(*executor_);
  asking_ = true;
  source_.WaitForLook(
      identity_, asked_,
      [this, executor = executor_](const absl::StatusOr<std::uint64_t>& look) {
        executor->Post([this, look] { OnWanted(look); });
      });
}

void RuntimeFeed::AskAfter(std::chrono::milliseconds pause) {
  timer_ = executor_->PostAfter(pause, [this] {
    timer_ = 0;
    Ask();
  });
}

void RuntimeFeed::OnWanted(const absl::StatusOr<std::uint64_t>& look) {
  asking_ = false;
  if (!look.ok()) {
    // It is asked again when it may have become another one.
    if (absl::IsFailedPrecondition(look.status())) {
      wanted_ = false;
      return;
    }
    return AskAfter(back_off_.Next());
  }
  back_off_.Reset();
  wanted_ = true;
  if (std::exchange(asked_, *look) != *look) {
    looker_.Refresh([this, done = *look] {
      looked_ = done;
      on_news_(/*awaited=*/true);
    });
  }
  AskAfter(kPause);
}

void RuntimeFeed::OnChange() {
  if (wanted_) looker_.OnChange();
}

void RuntimeFeed::OnRuntimeLost() {
  if (wanted_) looker_.OnLost();
}

void RuntimeFeed::OnSourceLost() {
  taken_ = nullptr;
  sent_ = nullptr;
  asked_ = 0;
  looked_ = 0;
  if (!asking_ && timer_ == 0) AskAfter(back_off_.Next());
}

void RuntimeFeed::FillIn(RuntimeReport* report) {
  sent_ = nullptr;
  if (!wanted_) return;
  report->look = looked_;
  sent_ = cell_.Get();
  if (sent_ != taken_) report->runs = sent_;
}

void RuntimeFeed::OnSent(const absl::Status& status) {
  taken_ = status.ok() ? sent_ : nullptr;
}

}  // namespace devmgr::shim
