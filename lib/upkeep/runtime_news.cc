// SPDX-License-Identifier: Apache-2.0
#include "upkeep/runtime_news.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

namespace devmgr::upkeep {
namespace {

constexpr char kKind[] = "Runtime";

}  // namespace

RuntimeNews::RuntimeNews(Executor& executor, events::EventLog& events,
                         const RuntimeSource& source)
    : executor_(executor), events_(events), source_(source) {
  info_.source = source_.Describe();
}

const RuntimeSourceInfo& RuntimeNews::Info() {
  DEVMGR_ASSERT_ON(executor_);
  auto now = source_.Snapshot();
  if (now == shown_) return info_;
  shown_ = std::move(now);
  info_.known = shown_->known;
  info_.since = shown_->since;
  info_.reason = shown_->reason;
  info_.runtime = shown_->runtime;
  info_.pods = static_cast<int>(shown_->pods.size());
  return info_;
}

void RuntimeNews::OnRuntime() {
  const RuntimeSourceInfo& now = Info();
  if (!now.known) {
    if (timer_ != 0 || reported_ == now.reason) return;
    timer_ = executor_.PostAfter(kDelay, [this] {
      timer_ = 0;
      ReportUnknown();
    });
    return;
  }
  executor_.Cancel(std::exchange(timer_, 0));
  if (!std::exchange(reported_, std::nullopt).has_value()) return;
  events_.Add(false, "RuntimeKnown", kKind, {"", now.source},
              fmt::format("it is known again what {} runs: {}, {} pods",
                          now.source, now.runtime, now.pods));
}

void RuntimeNews::ReportUnknown() {
  const RuntimeSourceInfo& now = Info();
  if (now.known || reported_ == now.reason) return;
  reported_ = now.reason;
  events_.Add(true, "RuntimeUnknown", kKind, {"", now.source},
              fmt::format("it is not known what {} runs, so that pods which "
                          "are over keep their devices: {}",
                          now.source, now.reason));
}

}  // namespace devmgr::upkeep
