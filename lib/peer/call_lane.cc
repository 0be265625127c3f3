// SPDX-License-Identifier: Apache-2.0
#include "peer/call_lane.h"

#include "common/counted.h"
#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::peer {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

namespace {

/// The call ended with its connection, and not by the peer's answer.
bool IsLost(const absl::Status& status, bool over) {
  if (IsFromPeer(status)) return false;
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         (over && absl::IsInternal(status));
}

}  // namespace

CallLane::CallLane(Executor& executor, LaneOptions options, Parts parts)
    : executor_(executor),
      options_(options),
      parts_(std::move(parts)),
      breaker_(options.breaker) {}

CallLane::~CallLane() { executor_.Cancel(cool_down_); }

void CallLane::Connect(rpc::Connection& connection) {
  DEVMGR_ASSERT_ON(executor_);
  connection_ = &connection;
  ++epoch_;
}

void CallLane::Disconnect(const std::string& why) {
  DEVMGR_ASSERT_ON(executor_);
  why_gone_ = why;
  if (connection_ == nullptr) return;
  connection_ = nullptr;
  ++epoch_;
  calls_ = 0;
  breaker_.OnNoVerdict();
  RefuseQueue(
      UnavailableError("{} went away before the call: {}", parts_.peer, why));
}

void CallLane::Call(Request request, Done done) {
  DEVMGR_ASSERT_ON(executor_);
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
                    parts_.peer, calls_, queued()));
    }
    const auto deadline = executor_.Now() + request.timeout;
    queue_.push_back({std::move(request), std::move(done), deadline});
    return;
  }
  if (!breaker_.TryCall()) return Refuse(done, WhyLeftAlone());
  Send(Kind::kCall, std::move(request), std::move(done));
}

absl::Status CallLane::CheckCall() const {
  DEVMGR_ASSERT_ON(executor_);
  if (connection_ == nullptr) return WhyGone();
  return breaker_.MayCall() ? absl::OkStatus() : WhyLeftAlone();
}

absl::Status CallLane::WhyGone() const {
  return UnavailableError("{}: {}", parts_.when_gone, why_gone_);
}

absl::Status CallLane::WhyLeftAlone() const {
  if (breaker_.state() == BreakerState::kOpen) {
    return UnavailableError(
        "{} let calls exceed their deadline, the last one of {}; it gets no "
        "calls for {}",
        parts_.peer, SpanText(silent_for_), SpanText(breaker_.pause()));
  }
  return UnavailableError(
      "{} let calls exceed their deadline, the last one of {}; one call is "
      "sent to try it",
      parts_.peer, SpanText(silent_for_));
}

void CallLane::Probe(std::function<void(absl::Status)> done) {
  DEVMGR_ASSERT_ON(executor_);
  Send(Kind::kProbe, parts_.probe(),
       [done = std::move(done)](const absl::StatusOr<std::string>& answer) {
         done(answer.status());
       });
}

void CallLane::Send(Kind kind, Request request, Done done) {
  if (kind == Kind::kCall) ++calls_;
  const milliseconds timeout = request.timeout;
  connection_->Call(
      request.method, std::move(request.bytes),
      {timeout, std::move(request.metadata)},
      [weak = weak_from_this(), &executor = executor_, done = std::move(done),
       peer = parts_.peer, on_call = parts_.on_call, method = request.method,
       epoch = epoch_, kind, timeout,
       began = executor_.Now()](absl::StatusOr<std::string> answer) {
        executor.Post([=, &executor, answer = std::move(answer)]() mutable {
          if (on_call && kind == Kind::kCall) {
            on_call(method, answer.status(), executor.Now() - began);
          }
          const auto self = weak.lock();
          const bool current = self != nullptr && self->epoch_ == epoch;
          if (current) {
            self->OnCallOver(kind, timeout, answer);
          } else if (IsLost(answer.status(), true)) {
            answer = AbortedError(
                "{} went away during the call; it may or may not have acted",
                peer);
          }
          done(std::move(answer));
        });
      });
}

void CallLane::OnCallOver(Kind kind, milliseconds timeout,
                          absl::StatusOr<std::string>& answer) {
  if (kind == Kind::kCall) --calls_;
  if (IsLost(answer.status(), connection_->over())) {
    answer =
        AbortedError("{} hung up during the call; it may or may not have acted",
                     parts_.peer);
  }
  Judge(kind, timeout, answer.status());
  Pump();
}

void CallLane::Judge(Kind kind, milliseconds timeout,
                     const absl::Status& status) {
  const BreakerState before = breaker_.state();
  const bool its_own = IsFromPeer(status);
  if (!its_own && absl::IsDeadlineExceeded(status)) {
    silent_for_ = timeout;
    breaker_.OnSilent();
  } else if (!its_own && absl::IsAborted(status)) {
    breaker_.OnNoVerdict();
  } else if (kind == Kind::kProbe) {
    breaker_.OnProbed();
  } else {
    breaker_.OnAnswered();
  }
  if (breaker_.state() == before) return;
  executor_.Cancel(std::exchange(cool_down_, 0));
  if (breaker_.state() == BreakerState::kOpen) {
    RefuseQueue(WhyLeftAlone());
    cool_down_ =
        executor_.PostAfter(breaker_.pause(), [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->OnCooledDown();
        });
  }
  parts_.on_change();
}

void CallLane::OnCooledDown() {
  cool_down_ = 0;
  breaker_.OnCooledDown();
  if (parts_.probe && connection_ != nullptr) {
    breaker_.TryCall();
    Probe([](const absl::Status&) {});
  }
  parts_.on_change();
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
      Refuse(next.done, ResourceExhaustedError(
                            "the call waited for others to {} until "
                            "its deadline of {}; it was not sent",
                            parts_.peer, SpanText(next.request.timeout)));
      continue;
    }
    next.request.timeout = left;
    Send(Kind::kCall, std::move(next.request), std::move(next.done));
  }
}

}  // namespace devmgr::peer
