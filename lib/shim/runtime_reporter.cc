// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_reporter.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace devmgr::shim {
RuntimeReporter::RuntimeReporter(DeviceSource& source,
                                 std::shared_ptr<Executor> executor,
                                 Parts parts)
    : source_(source),
      executor_(std::move(executor)),
      parts_(std::move(parts)) {}

void RuntimeReporter::Add(EventInfo event) {
  if (waiting_.size() < kMaxWaiting) {
    waiting_.push_back(std::move(event));
  } else {
    ++left_out_;
    last_left_out_ = event.sequence;
  }
  OnNews();
}

void RuntimeReporter::OnNews() {
  news_ = true;
  if (!sending_ && timer_ == 0 && !over_) Send();
}

void RuntimeReporter::OnAwaitedNews() {
  awaited_ = true;
  if (taken_ && !sending_) executor_->Cancel(std::exchange(timer_, 0));
  OnNews();
}

RuntimeReport RuntimeReporter::Next() const {
  RuntimeReport report;
  report.session = parts_.identity.session;
  report.name = parts_.identity.name;
  report.listen = parts_.listen;
  report.endpoint = parts_.endpoint;
  report.over = over_;
  parts_.fill_in(&report);
  report.events.assign(waiting_.begin(), waiting_.end());
  if (left_out_ == 0) return report;
  EventInfo event;
  event.sequence = last_left_out_;
  event.time = std::chrono::system_clock::now();
  event.warning = true;
  event.reason = "EventsLeftOut";
  event.object_kind = "Runtime";
  event.message = fmt::format(
      "while {} events of the shim at '{}' waited to be reported, more came "
      "that are left out: {}",
      waiting_.size(), parts_.listen, left_out_);
  // It may be older than what was told to wait since.
  const auto place =
      std::upper_bound(report.events.begin(), report.events.end(), event,
                       [](const EventInfo& a, const EventInfo& b) {
                         return a.sequence < b.sequence;
                       });
  report.events.insert(place, std::move(event));
  return report;
}

void RuntimeReporter::Send() {
  sending_ = true;
  news_ = false;
  awaited_ = false;
  RuntimeReport report = Next();
  sending_left_out_ = left_out_;
  const std::uint64_t last =
      report.events.empty() ? 0 : report.events.back().sequence;
  source_.Report(
      report, [this, last, executor = executor_](const absl::Status& status) {
        executor->Post([this, last, status] { OnSent(last, status); });
      });
}

void RuntimeReporter::OnSent(std::uint64_t last_event,
                             const absl::Status& status) {
  sending_ = false;
  if (parts_.on_sent) parts_.on_sent(status);
  if (status.ok() != std::exchange(taken_, status.ok())) {
    parts_.on_taken(status);
  }
  if (!status.ok()) {
    if (over_) return SendLast();
    news_ = true;
    SendAfter(back_off_.Next());
    return;
  }
  back_off_.Reset();
  while (!waiting_.empty() && waiting_.front().sequence <= last_event) {
    waiting_.pop_front();
  }
  left_out_ -= sending_left_out_;
  if (over_) return SendLast();
  SendAfter(awaited_ ? std::chrono::milliseconds(0) : kPause);
}

void RuntimeReporter::SendAfter(std::chrono::milliseconds pause) {
  timer_ = executor_->PostAfter(pause, [this] {
    timer_ = 0;
    if (news_ && !sending_ && !over_) Send();
  });
}

void RuntimeReporter::End(std::function<void()> done) {
  over_ = true;
  ended_ = std::move(done);
  executor_->Cancel(std::exchange(timer_, 0));
  if (!sending_) SendLast();
}

void RuntimeReporter::SendLast() {
  source_.Report(Next(), [ended = ended_](const absl::Status&) { ended(); });
}

}  // namespace devmgr::shim
