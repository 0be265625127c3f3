// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_instance.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::dra {
namespace {

constexpr std::string_view kDeregistered = "was deregistered";

/// As gRPC's Go library spells them: `DeadlineExceeded`.
std::string GrpcCodeName(absl::StatusCode code) {
  if (code == absl::StatusCode::kOk) return "OK";
  if (code == absl::StatusCode::kCancelled) return "Canceled";
  std::string name;
  bool begins = true;
  for (const char c : absl::StatusCodeToString(code)) {
    if (c != '_') name += begins ? c : absl::ascii_tolower(c);
    begins = c == '_';
  }
  return name;
}

}  // namespace

DriverInstance::DriverInstance(Executor& executor, Dialer dialer,
                               InstanceOptions options, std::string driver,
                               std::string endpoint, SpokenApi api,
                               WallTime registered_since,
                               std::function<void()> on_change)
    : executor_(executor),
      dialer_(std::move(dialer)),
      options_(options),
      driver_(std::move(driver)),
      endpoint_(std::move(endpoint)),
      registered_since_(registered_since),
      on_change_(std::move(on_change)),
      api_(std::move(api)) {}

DriverInstance::~DriverInstance() { executor_.Cancel(retry_); }

void DriverInstance::Start() { Dial(); }

void DriverInstance::Close() { Step(InstanceEvent::kDeregistered); }

void DriverInstance::Step(InstanceEvent event) {
  const InstanceState before = state_;
  state_ = Next(state_, event);
  if (state_ == before) return;
  switch (state_) {
    case InstanceState::kConnecting:
      Dial();
      return;
    case InstanceState::kConnected:
      executor_.Cancel(std::exchange(retry_, 0));
      next_delay_ = kFirstRetry;
      last_error_ = absl::OkStatus();
      on_change_();
      return;
    case InstanceState::kBackingOff:
      connection_.reset();
      ScheduleRetry();
      if (before == InstanceState::kConnected) on_change_();
      return;
    case InstanceState::kClosed:
      executor_.Cancel(retry_);
      connection_.reset();
      return;
  }
}

void DriverInstance::Dial() {
  const std::uint64_t generation = ++generation_;
  auto connection = dialer_(
      endpoint_, [weak = weak_from_this(), &executor = executor_, generation] {
        executor.Post([weak, generation] {
          const auto self = weak.lock();
          if (self == nullptr || self->generation_ != generation) return;
          self->last_error_ = UnavailableError("the driver hung up");
          self->Step(InstanceEvent::kHungUp);
        });
      });
  if (connection.ok()) {
    connection_ = *std::move(connection);
    Step(InstanceEvent::kDialed);
  } else {
    last_error_ = connection.status();
    Step(InstanceEvent::kDialFailed);
  }
}

void DriverInstance::ScheduleRetry() {
  // A call that dialled in between changes nothing about when we do.
  if (retry_ != 0) return;
  retry_ = executor_.PostAfter(next_delay_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->retry_ = 0;
    self->Step(InstanceEvent::kRetryDue);
  });
  next_delay_ = std::min(next_delay_ * 2, kLastRetry);
}

absl::Status DriverInstance::CheckCallable() {
  // The hang-up may be known to the connection before it is told to us.
  if (connection_ != nullptr && connection_->over()) {
    Step(InstanceEvent::kHungUp);
  }
  Step(InstanceEvent::kCalled);
  if (state_ != InstanceState::kConnected) {
    return WithContext(UnavailableError("{}", MessageOf(last_error_)),
                       "DRA driver {} is not connected at '{}'", driver_,
                       endpoint_);
  }
  if (calls_ >= options_.max_calls) {
    return ResourceExhaustedError(
        "DRA driver {} has {} calls under way, which is the limit", driver_,
        calls_);
  }
  return absl::OkStatus();
}

void DriverInstance::Call(
    const std::string& method, absl::StatusOr<std::string> request,
    std::function<void(absl::StatusOr<std::string>)> done) {
  absl::Status status = request.status();
  if (status.ok()) status = CheckCallable();
  if (!status.ok()) {
    executor_.Post([done, status] { done(status); });
    return;
  }
  ++calls_;
  connection_->Call(
      method, *std::move(request), {options_.call_timeout},
      [weak = weak_from_this(), &executor = executor_, driver = driver_, done,
       method, generation = generation_,
       began = executor_.Now()](absl::StatusOr<std::string> answer) {
        executor.Post([weak, driver, done, method, generation, began,
                       answer = std::move(answer)]() mutable {
          std::string_view lost = kDeregistered;
          if (const auto self = weak.lock()) {
            self->TellCall(method, answer.status(), began);
            lost = self->OnCallOver(generation, answer.status());
          }
          if (!lost.empty() && absl::IsCancelled(answer.status())) {
            // Not by anybody's wish: it ended with its connection.
            answer = UnavailableError(
                "DRA driver {} {} during the call; it may or may not have "
                "acted",
                driver, lost);
          }
          done(std::move(answer));
        });
      });
}

void DriverInstance::TellCall(
    const std::string& method, const absl::Status& status,
    std::chrono::steady_clock::time_point began) const {
  if (!options_.on_call) return;
  options_.on_call(driver_, method, GrpcCodeName(status.code()),
                   executor_.Now() - began);
}

std::string_view DriverInstance::OnCallOver(std::uint64_t generation,
                                            const absl::Status& status) {
  --calls_;
  if (state_ == InstanceState::kClosed) return kDeregistered;
  if (generation != generation_ || connection_ == nullptr) return "hung up";
  if (!status.ok()) last_error_ = status;
  return "";
}

PluginInfo DriverInstance::Info() const {
  PluginInfo info;
  info.name = driver_;
  info.kind = "dra";
  info.endpoint = endpoint_;
  info.version = api_.Name();
  info.state = std::string(InstanceStateName(state_));
  info.registered_since = registered_since_;
  info.last_error = MessageOf(last_error_);
  return info;
}

}  // namespace devmgr::dra
