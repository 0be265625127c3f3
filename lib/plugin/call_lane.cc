// SPDX-License-Identifier: Apache-2.0
#include "plugin/call_lane.h"

#include "common/status.h"

namespace devmgr::plugin {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

CallLane::CallLane(Executor& executor, LaneOptions options, std::string peer,
                   std::function<void()> on_change)
    : executor_(executor),
      options_(options),
      peer_(std::move(peer)),
      on_change_(std::move(on_change)),
      breaker_(options.breaker) {}

CallLane::~CallLane() { executor_.Cancel(cool_down_); }

void CallLane::Connect(rpc::Connection& connection) {
  connection_ = &connection;
  ++epoch_;
}

void CallLane::Disconnect(const std::string& why) {
  if (connection_ == nullptr) return;
  connection_ = nullptr;
  ++epoch_;
  calls_ = 0;
  why_gone_ = why;
  breaker_.OnNoVerdict();
  RefuseQueue(UnavailableError("{} went away before the call: {}", peer_, why));
}

void CallLane::Call(Request request, Done done) {
  if (connection_ == nullptr) {
    return Refuse(done, WhyGone());
  }
  if (calls_ >= options_.max_calls &&
      breaker_.state() == BreakerState::kClosed) {
    if (queued() >= options_.max_queued) {
      return Refuse(
          done, ResourceExhaustedError(
                    "{} has {} calls under way and {} waiting, which is the "
                    "limit",
                    peer_, calls_, queued()));
    }
    const auto deadline = executor_.Now() + request.timeout;
    queue_.push_back({std::move(request), std::move(done), deadline});
    return;
  }
  if (!breaker_.TryCall()) return Refuse(done, WhyLeftAlone());
  Send(std::move(request), std::move(done));
}

absl::Status CallLane::CheckCall() const {
  if (connection_ == nullptr) return WhyGone();
  return breaker_.MayCall() ? absl::OkStatus() : WhyLeftAlone();
}

absl::Status CallLane::WhyGone() const {
  return UnavailableError("endpoint <{}> has been stopped: {}", peer_,
                          why_gone_);
}

absl::Status CallLane::WhyLeftAlone() const {
  if (breaker_.state() == BreakerState::kOpen) {
    return UnavailableError(
        "{} let calls run into their deadline and is left alone for {} ms",
        peer_, breaker_.pause().count());
  }
  return UnavailableError(
      "{} let calls run into their deadline; one call tries it now", peer_);
}

void CallLane::Send(Request request, Done done) {
  ++calls_;
  connection_->Call(
      request.method, std::move(request.bytes),
      {request.timeout, std::move(request.metadata)},
      [weak = weak_from_this(), &executor = executor_, done = std::move(done),
       peer = peer_, epoch = epoch_](absl::StatusOr<std::string> answer) {
        executor.Post([weak, done, peer, epoch,
                       answer = std::move(answer)]() mutable {
          const auto self = weak.lock();
          const bool current = self != nullptr && self->epoch_ == epoch;
          if (current) {
            self->OnCallOver(answer);
          } else if (absl::IsCancelled(answer.status()) ||
                     absl::IsUnavailable(answer.status())) {
            // Not by anybody's word: it ended with its connection.
            answer = AbortedError(
                "{} went away during the call; it may or may not have acted",
                peer);
          }
          done(std::move(answer));
        });
      });
}

void CallLane::OnCallOver(absl::StatusOr<std::string>& answer) {
  --calls_;
  const absl::Status status = answer.status();
  if ((absl::IsUnavailable(status) || absl::IsCancelled(status)) &&
      connection_->over()) {
    // gRPC says so, not the plugin.
    answer = AbortedError(
        "{} hung up during the call; it may or may not have acted", peer_);
  }
  Judge(answer.status());
  Pump();
}

void CallLane::Judge(const absl::Status& status) {
  const BreakerState before = breaker_.state();
  if (absl::IsDeadlineExceeded(status)) {
    breaker_.OnSilent();
  } else if (absl::IsAborted(status)) {
    breaker_.OnNoVerdict();
  } else {
    breaker_.OnAnswered();
  }
  if (breaker_.state() == before) return;
  executor_.Cancel(std::exchange(cool_down_, 0));
  if (breaker_.state() == BreakerState::kOpen) {
    RefuseQueue(WhyLeftAlone());
    cool_down_ =
        executor_.PostAfter(breaker_.pause(), [weak = weak_from_this()] {
          const auto self = weak.lock();
          if (self == nullptr) return;
          self->cool_down_ = 0;
          self->breaker_.OnCooledDown();
          self->on_change_();
        });
  }
  on_change_();
}

void CallLane::Refuse(const Done& done, const absl::Status& status) {
  executor_.Post([done, status] { done(status); });
}

void CallLane::RefuseQueue(const absl::Status& status) {
  for (const Waiting& waiting : std::exchange(queue_, {})) {
    Refuse(waiting.done, status);
  }
}

void CallLane::Pump() {
  while (!queue_.empty() && connection_ != nullptr &&
         calls_ < options_.max_calls) {
    Waiting next = std::move(queue_.front());
    queue_.pop_front();
    const auto left =
        duration_cast<milliseconds>(next.deadline - executor_.Now());
    if (left <= milliseconds::zero()) {
      Refuse(next.done,
             ResourceExhaustedError("the call waited for others to {} until "
                                    "its deadline of {} ms; it was not sent",
                                    peer_, next.request.timeout.count()));
      continue;
    }
    next.request.timeout = left;
    Send(std::move(next.request), std::move(next.done));
  }
}

}  // namespace devmgr::plugin
