// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_instance.h"

#include <absl/strings/ascii.h>

#include <utility>

#include "common/counted.h"
#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::dra {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Where the API has no call without an effect. Servers that do not know it
/// answer as well.
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

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
                               std::shared_ptr<peer::FlapGuard> guard,
                               std::function<void(Change)> on_change)
    : executor_(executor),
      dialer_(std::move(dialer)),
      options_(std::move(options)),
      driver_(std::move(driver)),
      endpoint_(std::move(endpoint)),
      registered_since_(registered_since),
      guard_(std::move(guard)),
      on_change_(std::move(on_change)),
      api_(std::move(api)),
      lane_(std::make_shared<peer::CallLane>(
          executor, peer::LaneOptions{options_.max_calls, 256, {}},
          LaneParts())) {}

DriverInstance::~DriverInstance() {
  executor_.Cancel(retry_);
  executor_.Cancel(quarantine_);
}

peer::CallLane::Parts DriverInstance::LaneParts() {
  peer::CallLane::Parts parts;
  parts.peer = fmt::format("DRA driver {} at '{}'", driver_, endpoint_);
  parts.when_gone =
      fmt::format("DRA driver {} is not connected at '{}'", driver_, endpoint_);
  parts.on_change = [this] { OnLane(); };
  parts.probe = [this] { return ProbeRequest(); };
  if (options_.on_call) {
    parts.on_call = [driver = driver_, on_call = options_.on_call](
                        const std::string& method, const absl::Status& status,
                        std::chrono::nanoseconds took) {
      on_call(driver, method, GrpcCodeName(status.code()), took);
    };
  }
  return parts;
}

peer::CallLane::Request DriverInstance::ProbeRequest() const {
  const ApiVersion& version = api_.current();
  return {version.batched ? version.PrepareMethod() : kHealthCheck,
          version.batched ? version.encode_prepare({}) : "",
          options_.call_timeout,
          {}};
}

void DriverInstance::Start() { Dial(); }

void DriverInstance::Close() {
  DEVMGR_ASSERT_ON(executor_);
  // Its hang-up may not have been told yet.
  if (state_ == InstanceState::kConnected && connection_->over()) {
    guard_->OnLost(executor_.Now());
  }
  last_error_ = UnavailableError("it was deregistered");
  Step(InstanceEvent::kDeregistered);
}

void DriverInstance::Step(InstanceEvent event) {
  const InstanceState before = state_;
  state_ = Next(state_, event);
  if (state_ == before) return;
  switch (state_) {
    case InstanceState::kConnecting:
      return Dial();
    case InstanceState::kConnected:
      return OnAnswered();
    case InstanceState::kBackingOff:
      return OnLost(before);
    case InstanceState::kClosed:
      for (TimerId* timer : {&retry_, &quarantine_}) {
        executor_.Cancel(std::exchange(*timer, 0));
      }
      lane_->Disconnect(MessageOf(last_error_));
      connection_.reset();
      return;
  }
}

void DriverInstance::Dial() {
  const std::uint64_t generation = ++generation_;
  dialed_at_ = executor_.Now();
  auto connection = dialer_(
      endpoint_, [weak = weak_from_this(), &executor = executor_, generation] {
        executor.Post([weak, generation] {
          const auto self = weak.lock();
          if (self != nullptr && self->generation_ == generation) {
            self->HangUp();
          }
        });
      });
  if (!connection.ok()) {
    last_error_ = connection.status();
    return Step(InstanceEvent::kDialFailed);
  }
  answered_ = false;
  connection_ = *std::move(connection);
  lane_->Connect(*connection_);
  Probe();
}

void DriverInstance::Probe() {
  probing_ = true;
  lane_->Probe([weak = weak_from_this(),
                generation = generation_](const absl::Status& status) {
    const auto self = weak.lock();
    if (self == nullptr || self->generation_ != generation) return;
    self->probing_ = false;
    if (self->connection_ != nullptr) self->OnProbed(status);
  });
}

void DriverInstance::OnProbed(const absl::Status& status) {
  if (ShowsAnswer(status)) return Step(InstanceEvent::kAnswered);
  if (state_ != InstanceState::kConnecting) return;
  if (!absl::IsDeadlineExceeded(status)) {
    // The connection is of no use, whether or not the peer has hung up.
    last_error_ = status;
    return Step(InstanceEvent::kHungUp);
  }
  last_error_ = DeadlineExceededError(
      "it took the connection, and has not answered a call within {}",
      SpanText(options_.call_timeout));
  if (!std::exchange(doubted_, true)) on_change_(Change::kLost);
  // Another connection would lead to the same peer.
  ScheduleRetry();
}

void DriverInstance::OnAnswered() {
  executor_.Cancel(std::exchange(retry_, 0));
  answered_ = true;
  doubted_ = false;
  // One that answers and hangs up, time and again, gets no new beginning.
  if (!IsQuarantined()) back_off_.Reset();
  last_error_ = absl::OkStatus();
  on_change_(Change::kGained);
}

void DriverInstance::OnLost(InstanceState before) {
  const bool was_hoped_for = connection_ != nullptr && !doubted_;
  if (before == InstanceState::kConnected) {
    guard_->OnLost(executor_.Now());
    WatchQuarantine();
  } else if (connection_ != nullptr) {
    doubted_ = true;
  } else {
    answered_ = false;  // The driver that did has gone.
  }
  lane_->Disconnect(MessageOf(last_error_));
  connection_.reset();
  probing_ = false;
  ScheduleRetry();
  if (was_hoped_for) on_change_(Change::kLost);
}

void DriverInstance::HangUp() {
  if (state_ == InstanceState::kConnecting) {
    last_error_ = UnavailableError(
        "it took the connection, and hung up without an "
        "answer");
    if (connection_ == nullptr) return;
  } else {
    last_error_ = UnavailableError("the driver hung up");
  }
  Step(InstanceEvent::kHungUp);
}

void DriverInstance::ScheduleRetry() {
  // A call that dialled in between changes nothing about when we do.
  if (retry_ != 0) return;
  retry_ = executor_.PostAfter(back_off_.Next(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->retry_ = 0;
    self->OnRetryDue();
  });
}

void DriverInstance::OnRetryDue() {
  if (state_ == InstanceState::kBackingOff) {
    return Step(InstanceEvent::kRetryDue);
  }
  // The lane probes while the breaker is open.
  if (state_ == InstanceState::kConnecting && !probing_ &&
      lane_->breaker().state() == peer::BreakerState::kClosed) {
    Probe();
  }
}

void DriverInstance::OnLane() {
  const bool closed = lane_->breaker().state() == peer::BreakerState::kClosed;
  if (closed && state_ == InstanceState::kConnecting) {
    return Step(InstanceEvent::kAnswered);
  }
  if (state_ != InstanceState::kConnected) return;
  on_change_(closed ? Change::kGained : Change::kLost);
}

bool DriverInstance::IsQuarantined() const {
  return guard_->QuarantinedUntil(executor_.Now()).has_value();
}

void DriverInstance::WatchQuarantine() {
  executor_.Cancel(std::exchange(quarantine_, 0));
  const auto now = executor_.Now();
  const auto until = guard_->QuarantinedUntil(now);
  if (!until.has_value()) return;
  quarantine_ = executor_.PostAfter(
      duration_cast<milliseconds>(*until - now) + milliseconds(1),
      [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->quarantine_ = 0;
        if (self->state_ != InstanceState::kConnected) return;
        self->back_off_.Reset();
        self->on_change_(Change::kGained);
      });
}

DriverInstance::Standing DriverInstance::standing() const {
  DEVMGR_ASSERT_ON(executor_);
  if (connection_ == nullptr || connection_->over()) {
    return Standing::kNoConnection;
  }
  if (state_ != InstanceState::kConnected) return Standing::kNotAnswered;
  if (!lane_->breaker().MayCall()) return Standing::kLeftAlone;
  return IsQuarantined() ? Standing::kQuarantined : Standing::kTrusted;
}

bool DriverInstance::MayAnswer() const {
  DEVMGR_ASSERT_ON(executor_);
  return state_ == InstanceState::kConnected ||
         (state_ == InstanceState::kConnecting && connection_ != nullptr &&
          !doubted_);
}

bool DriverInstance::MayDialForCall() const {
  if (answered_ && !IsQuarantined()) return true;
  return executor_.Now() - dialed_at_ >= kCallDial;
}

void DriverInstance::Call(
    const std::string& method, absl::StatusOr<std::string> request,
    std::function<void(absl::StatusOr<std::string>)> done) {
  DEVMGR_ASSERT_ON(executor_);
  if (!request.ok()) {
    executor_.Post([done, status = request.status()] { done(status); });
    return;
  }
  // The hang-up may be known to the connection before it is told to us.
  if (connection_ != nullptr && connection_->over()) HangUp();
  if (MayDialForCall()) Step(InstanceEvent::kCalled);
  lane_->Call(
      {method, *std::move(request), options_.call_timeout, {}},
      [weak = weak_from_this(), generation = generation_,
       done](absl::StatusOr<std::string> answer) {
        if (const auto self = weak.lock()) {
          self->OnCallOver(generation, answer.status());
        }
        if (absl::IsAborted(answer.status()) && !IsFromPeer(answer.status())) {
          // It may work later, as for a driver that is not there.
          answer = UnavailableError("{}", MessageOf(answer.status()));
        }
        done(std::move(answer));
      });
}

void DriverInstance::OnCallOver(std::uint64_t generation,
                                const absl::Status& status) {
  if (generation != generation_ || connection_ == nullptr) return;
  const bool answered = ShowsAnswer(status);
  if (answered) Step(InstanceEvent::kAnswered);
  if (!status.ok() && (answered || absl::IsDeadlineExceeded(status))) {
    last_error_ = status;
  }
}

PluginInfo DriverInstance::Info(WallTime now) const {
  DEVMGR_ASSERT_ON(executor_);
  PluginInfo info;
  info.name = driver_;
  info.kind = PluginKind::kDra;
  info.endpoint = endpoint_;
  info.version = api_.Name();
  info.state = PublicOf(state_);
  info.registered_since = registered_since_;
  info.last_error = MessageOf(last_error_);
  info.breaker = PublicOf(lane_->breaker().state());
  const auto steady = executor_.Now();
  if (const auto until = guard_->QuarantinedUntil(steady); until.has_value()) {
    info.quarantined_until =
        now + duration_cast<WallTime::duration>(*until - steady);
  }
  info.calls = lane_->calls();
  info.queued = lane_->queued();
  return info;
}

std::shared_ptr<const PluginInfo> DriverInstance::Shown(WallTime now,
                                                        bool serves) {
  DEVMGR_ASSERT_ON(executor_);
  return shown_.Of(
      {serves, state_, api_.Name(), last_error_, lane_->breaker().state(),
       guard_->QuarantinedUntil(executor_.Now()), lane_->calls(),
       lane_->queued()},
      [&] {
        PluginInfo info = Info(now);
        info.serves = serves;
        return info;
      });
}

}  // namespace devmgr::dra
