// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_looker.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "common/status.h"

namespace devmgr::shim {
namespace {

template <typename Change>
void Publish(RuntimeLooker::Cell& cell, const Change& change) {
  auto next = std::make_shared<RuntimeSnapshot>(*cell.Get());
  change(*next);
  cell.Put(std::move(next));
  cell.Notify();
}

}  // namespace

RuntimeWatchOptions RuntimeLooker::Sane(RuntimeWatchOptions options) {
  constexpr std::chrono::milliseconds kLeast(1);
  options.period = std::max(options.period, kLeast);
  options.first_retry = std::max(options.first_retry, kLeast);
  options.last_retry = std::max(options.last_retry, options.first_retry);
  return options;
}

void RuntimeLooker::PublishUnknown(Cell& cell, const std::string& reason) {
  const auto before = cell.Get();
  if (!before->known && before->reason == reason) return;
  Publish(cell, [&](RuntimeSnapshot& next) {
    if (next.known || next.since == WallTime()) {
      next.since = std::chrono::system_clock::now();
    }
    next.known = false;
    next.reason = reason;
  });
}

void RuntimeLooker::Refresh(std::function<void()> done) {
  DEVMGR_ASSERT_ON(executor_);
  if (over_) return done();
  waiting_.push_back(std::move(done));
  Begin();
}

void RuntimeLooker::OnChange() {
  DEVMGR_ASSERT_ON(executor_);
  if (looking_) {
    look_again_ = true;
  } else {
    BeginLook();
  }
}

void RuntimeLooker::Expect(bool pods) {
  DEVMGR_ASSERT_ON(executor_);
  if (std::exchange(expects_, pods) == pods || looking_) return;
  ArmTimer();
}

void RuntimeLooker::End(const std::string& reason) {
  DEVMGR_ASSERT_ON(executor_);
  over_ = true;
  executor_.Cancel(std::exchange(timer_, 0));
  PublishUnknown(cell_, reason);
  for (auto* const list : {&served_, &waiting_}) {
    for (const auto& done : std::exchange(*list, {})) done();
  }
}

void RuntimeLooker::BeginLook() {
  executor_.Cancel(std::exchange(timer_, 0));
  if (over_) return;
  looking_ = true;
  look_again_ = false;
  served_ = std::exchange(waiting_, {});
  client_.Relist(
      [this](const RuntimeIdentity& identity) {
        name_ = identity.version.runtime_name + " " +
                identity.version.runtime_version;
      },
      [this](absl::StatusOr<RuntimeLists> lists) {
        if (!lists.ok()) return EndLook(lists.status());
        lists_ = *std::move(lists);
        const auto missing = details_.Missing(lists_.containers);
        to_ask_ = {missing.begin(), missing.end()};
        const auto sandboxes = addresses_.Missing(lists_.sandboxes);
        sandboxes_to_ask_ = {sandboxes.begin(), sandboxes.end()};
        lacks_details_ = false;
        AskOn();
      });
}

void RuntimeLooker::AskOn() {
  while (asked_ < kStatusesAtOnce && !to_ask_.empty()) {
    ++asked_;
    const cri::Container next = std::move(to_ask_.front());
    to_ask_.pop_front();
    client_.StatusOf(
        next.id,
        [this, next](absl::StatusOr<cri::ContainerStatus> status) {
          --asked_;
          OnStatus(next, std::move(status));
        },
        /*verbose=*/false);
  }
  while (asked_ < kStatusesAtOnce && !sandboxes_to_ask_.empty()) {
    ++asked_;
    const std::string next = std::move(sandboxes_to_ask_.front());
    sandboxes_to_ask_.pop_front();
    client_.SandboxStatusOf(
        next, [this, next](const absl::StatusOr<cri::SandboxStatus>& status) {
          --asked_;
          OnAddresses(next, status);
        });
  }
  if (asked_ == 0) EndLook(absl::OkStatus());
}

void RuntimeLooker::OnAddresses(
    const std::string& sandbox,
    const absl::StatusOr<cri::SandboxStatus>& status) {
  if (status.ok()) {
    addresses_.Put(sandbox, status->ips);
  } else if (absl::IsUnimplemented(status.status())) {
    addresses_.Put(sandbox, {});
  } else {
    lacks_details_ = true;
  }
  AskOn();
}

/// One that has been removed meanwhile is not listed the next time. Of any
/// other the list has said what matters most.
void RuntimeLooker::OnStatus(const cri::Container& container,
                             absl::StatusOr<cri::ContainerStatus> status) {
  if (status.ok() && status->id == container.id) {
    details_.Put(container, *std::move(status));
  } else {
    lacks_details_ = true;
  }
  AskOn();
}

void RuntimeLooker::EndLook(const absl::Status& status) {
  looking_ = false;
  if (over_) return;
  status.ok() ? PublishLists() : PublishUnknown(cell_, MessageOf(status));
  for (const auto& done : std::exchange(served_, {})) done();
  // After a failure a change is seen by the next look in any case.
  if (!waiting_.empty() || (look_again_ && status.ok())) return BeginLook();
  ArmTimer();
}

void RuntimeLooker::PublishLists() {
  back_off_.Reset();
  const auto before = cell_.Get();
  PodRuns pods = PodRunsOf(lists_, details_, addresses_, before->pods);
  lists_ = {};
  if (before->known && before->runtime == name_ && before->pods == pods) {
    return;
  }
  Publish(cell_, [&](RuntimeSnapshot& next) {
    if (!next.known) next.since = std::chrono::system_clock::now();
    next.known = true;
    next.reason.clear();
    next.runtime = name_;
    next.pods = std::move(pods);
  });
}

void RuntimeLooker::ArmTimer() {
  executor_.Cancel(std::exchange(timer_, 0));
  const auto snapshot = cell_.Get();
  if (over_ || (snapshot->known && !expects_ && !lacks_details_ &&
                !AnyRuns(snapshot->pods))) {
    return;
  }
  timer_ =
      executor_.PostAfter(snapshot->known ? options_.period : back_off_.Next(),
                          [this] { BeginLook(); });
}

}  // namespace devmgr::shim
