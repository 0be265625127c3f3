// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_instance.h"

#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::plugin {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::size_t kMaxErrorBytes = 4096;

std::string Describe(const PluginInstance::Identity& identity) {
  return fmt::format("plugin of '{}' at '{}'", identity.resource,
                     identity.endpoint);
}

}  // namespace

PluginInstance::PluginInstance(Executor& executor, Dialer dialer,
                               std::shared_ptr<ListParser> parser,
                               InstanceOptions options, Identity identity,
                               std::shared_ptr<peer::FlapGuard> guard,
                               InstanceOwner& owner)
    : executor_(executor),
      dialer_(std::move(dialer)),
      parser_(std::move(parser)),
      options_(options),
      identity_(std::move(identity)),
      description_(Describe(identity_)),
      guard_(std::move(guard)),
      owner_(owner),
      back_off_(options.first_retry, options.last_retry),
      lists_(options.lists),
      lane_(std::make_shared<peer::CallLane>(executor, options.lane,
                                             LaneParts())) {}

peer::CallLane::Parts PluginInstance::LaneParts() {
  peer::CallLane::Parts parts;
  parts.peer = description_;
  parts.when_gone = fmt::format("endpoint <{}> has been stopped", description_);
  parts.on_change = [this] { owner_.OnChange(*this); };
  parts.probe = [this]() -> peer::CallLane::Request {
    return {identity_.version.Method(kOptionsMethod),
            identity_.version.encode_empty(),
            options_.timeouts.options,
            {}};
  };
  return parts;
}

PluginInstance::~PluginInstance() {
  for (const TimerId timer : {retry_, read_next_, quarantine_}) {
    executor_.Cancel(timer);
  }
}

void PluginInstance::Start(std::function<void(absl::Status)> done) {
  DEVMGR_ASSERT_ON(executor_);
  started_ = std::move(done);
  dial_until_ = executor_.Now() + options_.dial_window;
  Dial();
}

void PluginInstance::Close(const std::string& why, End end) {
  DEVMGR_ASSERT_ON(executor_);
  if (state_ == InstanceState::kClosed) return;
  const auto self = shared_from_this();  // The owner lets go.
  // A plugin that restarts may register before its hang-up is noticed.
  if (state_ == InstanceState::kLive &&
      (end == End::kLost || connection_->over())) {
    guard_->OnLost(executor_.Now());
  }
  last_error_ = UnavailableError("{}", why);
  Step(InstanceEvent::kClosed);
}

void PluginInstance::Step(InstanceEvent event) {
  const InstanceState before = state_;
  state_ = Next(state_, event);
  if (state_ == before) return;
  switch (state_) {
    case InstanceState::kConnecting:
      return Dial();
    case InstanceState::kAsking:
      return Ask();
    case InstanceState::kListening:
      return Listen();
    case InstanceState::kLive:
      break;
    case InstanceState::kBackingOff:
      DropConnection(MessageOf(last_error_));
      return RetryOrGiveUp();
    case InstanceState::kClosed:
      for (TimerId* timer : {&retry_, &read_next_, &quarantine_}) {
        executor_.Cancel(std::exchange(*timer, 0));
      }
      DropConnection(MessageOf(last_error_));
      if (started_) std::exchange(started_, nullptr)(last_error_);
      break;
  }
  owner_.OnChange(*this);
}

template <typename Result, typename Next>
std::function<void(Result)> PluginInstance::Resume(Next next) {
  return [weak = weak_from_this(), &executor = executor_, attempt = attempt_,
          next](Result result) {
    executor.Post([weak, attempt, next, result = std::move(result)]() mutable {
      const auto self = weak.lock();
      if (self == nullptr || self->attempt_ != attempt) return;
      next(*self, std::move(result));
    });
  };
}

void PluginInstance::Dial() {
  ++attempt_;
  auto connection = dialer_(
      identity_.endpoint, [hung_up = Resume<int>([](PluginInstance& self, int) {
                             self.Lose(UnavailableError("the plugin hung up"));
                           })] { hung_up(0); });
  dial_failed_ = !connection.ok();
  if (connection.ok()) {
    connection_ = *std::move(connection);
    return Step(InstanceEvent::kDialed);
  }
  last_error_ =
      WithContext(connection.status(), "failed to dial device plugin");
  Step(InstanceEvent::kDialFailed);
}

void PluginInstance::Ask() {
  called_at_ = executor_.Now();
  connection_->Call(
      identity_.version.Method(kOptionsMethod),
      identity_.version.encode_empty(), {options_.timeouts.options},
      Resume<absl::StatusOr<std::string>>(
          [](PluginInstance& self, const absl::StatusOr<std::string>& answer) {
            self.OnAnswered(answer);
          }));
  owner_.OnChange(*this);
}

void PluginInstance::OnAnswered(const absl::StatusOr<std::string>& answer) {
  TellCall(kOptionsMethod, answer.status());
  const auto options = answer.ok()
                           ? identity_.version.decode_options(*answer)
                           : absl::StatusOr<PluginOptions>(answer.status());
  if (!options.ok()) return Lose(options.status());
  plugin_options_ = *options;
  Step(InstanceEvent::kAnswered);
}

void PluginInstance::Listen() {
  generation_ = owner_.NewGeneration();
  was_connected_ = true;
  devices_ = 0;
  lane_->Connect(*connection_);
  const std::uint64_t attempt = attempt_;
  owner_.OnConnected(*this);
  WatchQuarantine();
  if (started_) std::exchange(started_, nullptr)(absl::OkStatus());
  // They may have closed us.
  if (state_ != InstanceState::kListening || attempt_ != attempt) return;
  OpenStream();
  owner_.OnChange(*this);
}

void PluginInstance::OpenStream() {
  called_at_ = executor_.Now();
  // Not parsed here, so that a long list holds up no decisions; nor, when it is
  // long, where it comes in.
  const auto decode = identity_.version.decode_list;
  using List = std::shared_ptr<absl::StatusOr<DeviceList>>;
  const auto take = Resume<List>([](PluginInstance& self, const List& list) {
    self.OnList(std::move(*list));
  });
  lists_taken_in_ = 0;
  rpc::StreamEvents events;
  events.on_message = [take, decode, parser = parser_](std::string bytes) {
    const std::size_t size = bytes.size();
    parser->Parse(size, [take, decode, bytes = std::move(bytes)] {
      take(std::make_shared<absl::StatusOr<DeviceList>>(decode(bytes)));
    });
  };
  const auto lose = Resume<absl::Status>([](PluginInstance& self,
                                            const absl::Status& status) {
    self.Lose(status.ok() ? UnavailableError("the plugin ended ListAndWatch")
                          : WithContext(status, "ListAndWatch"));
  });
  events.on_end = [lose, parser = parser_](const absl::Status& status) {
    parser->After([lose, status] { lose(status); });
  };
  stream_ = connection_->Stream(
      identity_.version.Method(kListMethod), identity_.version.encode_empty(),
      {.unread = rpc::Unread::kKeepNewest}, std::move(events));
}

bool PluginInstance::is_behind() const {
  DEVMGR_ASSERT_ON(executor_);
  return stream_ != 0 && connection_->Arrived(stream_) != lists_taken_in_;
}

void PluginInstance::OnList(absl::StatusOr<DeviceList> list) {
  if (!list.ok()) return Lose(WithContext(list.status(), "ListAndWatch"));
  ++lists_taken_in_;
  devices_ = list->devices.size();
  if (state_ == InstanceState::kListening) {
    live_since_ = executor_.Now();
    TellCall(kFirstList, absl::OkStatus());
  }
  ReadNext(devices_);
  Step(InstanceEvent::kListed);
  if (state_ != InstanceState::kLive) return;
  owner_.OnList(*this, *std::move(list));
}

void PluginInstance::ReadNext(std::size_t devices) {
  const auto wait = lists_.Spend(executor_.Now(), CostOfDevices(devices));
  if (wait == WorkBudget::Duration::zero()) {
    return connection_->ReadNext(stream_);
  }
  read_next_ = executor_.PostAfter(
      std::chrono::ceil<milliseconds>(wait), [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        self->read_next_ = 0;
        if (self->connection_) self->connection_->ReadNext(self->stream_);
      });
}

void PluginInstance::Lose(const absl::Status& why) {
  last_error_ = state_ == InstanceState::kAsking
                    ? WithContext(why, "failed to get device plugin options")
                    : why;
  if (state_ == InstanceState::kLive) {
    const auto now = executor_.Now();
    guard_->OnLost(now);
    if (now - live_since_ >= options_.stable_after) {
      redials_ = 0;
      back_off_.Reset();
    }
  }
  Step(InstanceEvent::kLost);
}

void PluginInstance::DropConnection(const std::string& why) {
  ++attempt_;  // Nothing of what this connection still says counts.
  executor_.Cancel(std::exchange(read_next_, 0));
  if (std::exchange(stream_, 0) != 0) {
    TellCall(kListMethod, UnavailableError("{}", why));
  }
  const Generation generation = std::exchange(generation_, 0);
  lane_->Disconnect(why);
  connection_.reset();
  if (generation != 0) owner_.OnGone(*this, generation, why);
}

void PluginInstance::TellCall(std::string_view method,
                              const absl::Status& status) {
  owner_.OnOwnCall(*this, method, status, executor_.Now() - called_at_);
}

void PluginInstance::RetryOrGiveUp() {
  // The owner may have closed us over what was lost.
  if (state_ != InstanceState::kBackingOff) return;
  if (absl::Status why = WhyGiveUp(); !why.ok()) {
    const auto self = shared_from_this();
    last_error_ = std::move(why);
    return Step(InstanceEvent::kClosed);
  }
  if (was_connected_) ++redials_;
  retry_ = executor_.PostAfter(back_off_.Next(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->retry_ = 0;
    self->Step(InstanceEvent::kRetryDue);
  });
  owner_.OnChange(*this);
}

absl::Status PluginInstance::WhyGiveUp() const {
  if (!was_connected_) {
    // It may call Register a moment before it listens.
    const bool later = dial_failed_ &&
                       executor_.Now() + back_off_.next() <= dial_until_ &&
                       owner_.MayWaitForSocket(*this);
    return later ? absl::OkStatus() : last_error_;
  }
  if (dial_failed_) return last_error_;
  if (redials_ < options_.max_redials) return absl::OkStatus();
  return WithContext(last_error_, "given up after {} connections", redials_);
}

void PluginInstance::WatchQuarantine() {
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
        self->owner_.OnChange(*self);
      });
}

absl::Status PluginInstance::CheckQuarantine(Trust trust) const {
  const auto now = executor_.Now();
  const auto until = guard_->QuarantinedUntil(now);
  if (trust == Trust::kNotNeeded || !until.has_value()) return absl::OkStatus();
  return UnavailableError(
      "{} connects and disconnects again and again; it is in quarantine for {} "
      "s more",
      description_,
      duration_cast<std::chrono::seconds>(*until - now).count() + 1);
}

absl::Status PluginInstance::CheckCall(Trust trust) const {
  DEVMGR_ASSERT_ON(executor_);
  DEVMGR_RETURN_IF_ERROR(CheckQuarantine(trust));
  return lane_->CheckCall();
}

void PluginInstance::Call(
    std::string_view method, std::string request, milliseconds timeout,
    const std::vector<std::pair<std::string, std::string>>& metadata,
    Trust trust, peer::CallLane::Done done) {
  DEVMGR_ASSERT_ON(executor_);
  // The hang-up may be known to the connection before it is told to us.
  if (connection_ != nullptr && connection_->over()) {
    Lose(UnavailableError("the plugin hung up"));
  }
  if (absl::Status status = CheckQuarantine(trust); !status.ok()) {
    executor_.Post([done = std::move(done), status] { done(status); });
    return;
  }
  lane_->Call(
      {identity_.version.Method(method), std::move(request), timeout, metadata},
      std::move(done));
}

InstanceInfo PluginInstance::Info(WallTime now) const {
  DEVMGR_ASSERT_ON(executor_);
  InstanceInfo info;
  info.resource = identity_.resource;
  info.endpoint = identity_.endpoint;
  info.version = std::string(identity_.version.name);
  info.via = identity_.via;
  info.state = state_;
  info.generation = generation_;
  info.options = plugin_options_;
  info.devices = devices_;
  info.breaker = lane_->breaker().state();
  const auto steady = executor_.Now();
  if (const auto until = guard_->QuarantinedUntil(steady); until.has_value()) {
    info.quarantined_until =
        now + duration_cast<WallTime::duration>(*until - steady);
  }
  info.calls = lane_->calls();
  info.queued = lane_->queued();
  info.registered_since = identity_.registered_since;
  info.last_error = api::Readable(MessageOf(last_error_), kMaxErrorBytes);
  return info;
}

std::shared_ptr<const PluginInfo> PluginInstance::Shown(WallTime now,
                                                        bool serves) {
  DEVMGR_ASSERT_ON(executor_);
  return shown_.Of(
      {serves, state_, devices_, last_error_, lane_->breaker().state(),
       guard_->QuarantinedUntil(executor_.Now()), lane_->calls(),
       lane_->queued()},
      [&] {
        PluginInfo info = PluginInfoOf(Info(now));
        info.serves = serves;
        return info;
      });
}

}  // namespace devmgr::plugin
