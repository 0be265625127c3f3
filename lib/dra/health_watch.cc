// SPDX-License-Identifier: Apache-2.0
#include "dra/health_watch.h"

#include <utility>

#include "common/status.h"
#include "dra/health_service.h"

namespace devmgr::dra {

using std::chrono::milliseconds;

namespace {

/// Drivers may end a stream without a word.
std::string WhyEnded(const absl::Status& status) {
  if (status.ok()) return "the driver ended the stream";
  if (!status.message().empty()) return MessageOf(status);
  return fmt::format("the driver ended the stream with code {}",
                     status.raw_code());
}

}  // namespace

HealthWatch::HealthWatch(Executor& executor, std::string driver,
                         Preferred preferred, HealthListener& listener)
    : executor_(executor),
      driver_(std::move(driver)),
      preferred_(std::move(preferred)),
      listener_(listener) {}

HealthWatch::~HealthWatch() { executor_.Cancel(timer_); }

void HealthWatch::Update() {
  std::shared_ptr<DriverInstance> preferred = preferred_();
  const std::uint64_t connection =
      preferred != nullptr ? preferred->generation() : 0;
  const bool same = preferred == instance_;
  if (same && connection == connection_) {
    // It had not answered yet when it was looked at before.
    if (CanListen() && stream_ == 0 && timer_ == 0) Open();
    return;
  }
  Drop();
  instance_ = std::move(preferred);
  connection_ = connection;
  if (!same) refused_ = false;
  if (!CanListen()) {
    TellLost(instance_ != nullptr
                 ? "the driver has left it out of its last report"
                 : "the driver is gone");
    return;
  }
  // An instance that takes over goes on with what the one before it told, as
  // far as leases go; one that was away may have become another.
  if (same) TellLost("the driver hung up");
  back_off_.Reset();
  Open();
}

bool HealthWatch::CanListen() const {
  return instance_ != nullptr && instance_->health_service() != nullptr &&
         !refused_ && instance_->state() == InstanceState::kConnected;
}

template <typename Value, typename Next>
std::function<void(Value)> HealthWatch::Resume(Next next) {
  return [weak = weak_from_this(), &executor = executor_, epoch = epoch_,
          next](Value value) {
    executor.Post([weak, epoch, next, value = std::move(value)] {
      const auto self = weak.lock();
      if (self != nullptr && self->epoch_ == epoch) next(*self, value);
    });
  };
}

void HealthWatch::Open() {
  ++epoch_;
  rpc::StreamEvents events;
  // Parsed where it comes in, so that a long report holds up nobody's
  // decisions.
  events.on_message =
      [take = Resume<std::shared_ptr<const Report>>(
           [](HealthWatch& self, const std::shared_ptr<const Report>& report) {
             self.OnReport(*report);
           })](const std::string& bytes) {
        take(std::make_shared<const Report>(DecodeHealthReport(bytes)));
      };
  events.on_end =
      Resume<absl::Status>([](HealthWatch& self, const absl::Status& status) {
        self.OnEnd(status);
      });
  stream_ = instance_->connection()->Stream(
      std::string(instance_->health_service()->method), "",
      {.unread = rpc::Unread::kJoin}, std::move(events));
}

void HealthWatch::Drop() {
  ++epoch_;
  executor_.Cancel(std::exchange(timer_, 0));
  const rpc::Connection::CallId stream = std::exchange(stream_, 0);
  // Without its connection it is over by itself.
  if (stream == 0 || instance_->connection() == nullptr ||
      instance_->generation() != connection_) {
    return;
  }
  instance_->connection()->Cancel(stream);
}

void HealthWatch::OnReport(const Report& report) {
  if (!report.ok()) {
    Drop();
    OnEnd(report.status());
    return;
  }
  back_off_.Reset();
  reported_ = true;
  ReadNext(report->size());
  listener_.OnHealthReport(driver_, *report);
}

void HealthWatch::ReadNext(std::size_t devices) {
  const auto wait = reports_.Spend(executor_.Now(), CostOfDevices(devices));
  if (wait == WorkBudget::Duration::zero()) return ReadNext();
  timer_ = executor_.PostAfter(std::chrono::ceil<milliseconds>(wait),
                               [weak = weak_from_this()] {
                                 const auto self = weak.lock();
                                 if (self == nullptr) return;
                                 self->timer_ = 0;
                                 self->ReadNext();
                               });
}

void HealthWatch::ReadNext() {
  rpc::Connection* connection = instance_->connection();
  // Another one has a stream of its own.
  if (connection == nullptr || instance_->generation() != connection_) return;
  connection->ReadNext(stream_);
}

void HealthWatch::OnEnd(const absl::Status& status) {
  executor_.Cancel(std::exchange(timer_, 0));
  stream_ = 0;
  refused_ = absl::IsUnimplemented(status);
  if (refused_) reported_ = true;  // It said that it would; told once.
  TellLost(WhyEnded(status));
  if (refused_) return;
  timer_ = executor_.PostAfter(back_off_.Next(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = 0;
    // Else it is opened with the next connection.
    if (self->CanListen() &&
        self->instance_->generation() == self->connection_) {
      self->Open();
    }
  });
  Update();
}

void HealthWatch::TellLost(const std::string& why) {
  if (std::exchange(reported_, false)) listener_.OnHealthLost(driver_, why);
}

}  // namespace devmgr::dra
