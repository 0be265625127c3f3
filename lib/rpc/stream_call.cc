// SPDX-License-Identifier: Apache-2.0
//
// The calling side of a call that is answered by a stream of messages.
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/mutex.h"
#include "rpc/pending_call.h"
#include "rpc/unread_messages.h"

namespace devmgr::rpc {
namespace {

/// Brings a stream back to the queue's thread, later. One at a time.
class StreamAlarm final : public Completion {
 public:
  StreamAlarm(grpc::CompletionQueue& queue, std::function<void()> due)
      : queue_(queue), due_(std::move(due)) {}

  bool pending() const { return pending_; }
  void Set(UnreadMessages::Duration delay) {
    pending_ = true;
    const auto whole = std::chrono::ceil<std::chrono::microseconds>(delay);
    alarm_.emplace();
    alarm_->Set(&queue_,
                gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                             gpr_time_from_micros(whole.count(), GPR_TIMESPAN)),
                this);
  }
  /// If it is pending, it comes at once.
  void Hasten() {
    if (pending_) alarm_->Cancel();
  }
  /// It has come.
  void Clear() { pending_ = false; }

  void OnComplete(bool /*ok*/) override { due_(); }

 private:
  grpc::CompletionQueue& queue_;
  const std::function<void()> due_;
  std::optional<grpc::Alarm> alarm_;
  bool pending_ = false;
};

///   starting -> asking -> open -> ending -> gone
///      `----------`----------------^
///
/// While the stream is open there is a read on the queue, but when messages
/// have to wait at the peer: none is asked for (kWait), those that were kept
/// fill their room (kJoin), or there are so many that there is a pause.
class StreamCall final : public PendingCall {
 public:
  StreamCall(CallSite site, StreamEvents events, Unread unread)
      : site_(std::move(site)),
        events_(std::move(events)),
        unread_(unread),
        delivery_(site_.queue, [this] { OnDelivery(); }),
        pause_(site_.queue, [this] { OnPauseOver(); }) {}

  void Start(const CallRequest& request) override {
    Prepare(context_, request.options);
    request_ = ToByteBuffer(request.bytes);
    stream_ = site_.stub.PrepareCall(&context_, request.method, &site_.queue);
    stream_->StartCall(this);
  }

  void Fail(const grpc::Status& status) override {
    MutexLock lock(mutex_);
    step_ = Step::kEnding;
    status_ = status;
    alarm_.emplace();
    alarm_->Set(&site_.queue, gpr_now(GPR_CLOCK_MONOTONIC), this);
  }

  void Cancel() override {
    context_.TryCancel();
    MutexLock lock(mutex_);
    cancelled_ = true;
    // Nothing is on the queue that would end by it.
    if (step_ == Step::kOpen && !operating_) FinishLocked();
  }

  void ReadNext() override {
    MutexLock lock(mutex_);
    if (!IsOpenLocked() || wanted_) return;
    wanted_ = true;
    if (unread_.empty()) return ReadOnLocked();
    delivery_.Set(UnreadMessages::Duration::zero());
  }

  std::uint64_t Arrived() override {
    MutexLock lock(mutex_);
    return delivered_ + (unread_.empty() ? 0 : 1);
  }

  void OnComplete(bool ok) override {
    switch (Advance(ok)) {
      case Progress::kWaiting:
        return;
      case Progress::kMessage:
        return Deliver(std::exchange(direct_, {}));
      case Progress::kEnded:
        return End();
    }
  }

 private:
  enum class Step { kStarting, kAsking, kOpen, kEnding, kGone };
  enum class Progress { kWaiting, kMessage, kEnded };

  /// An operation is done: puts the next one on the queue, where there is one.
  Progress Advance(bool ok) DEVMGR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    operating_ = false;
    if (step_ == Step::kEnding) {
      step_ = Step::kGone;
      return IsOverLocked() ? Progress::kEnded : Progress::kWaiting;
    }
    if (!ok || cancelled_) {
      FinishLocked();
      return Progress::kWaiting;
    }
    if (step_ == Step::kOpen) return TakeInLocked();
    operating_ = true;
    if (step_ == Step::kStarting) {
      step_ = Step::kAsking;
      stream_->WriteLast(request_, grpc::WriteOptions(), this);
    } else {
      step_ = Step::kOpen;
      stream_->Read(&message_, this);
    }
    return Progress::kWaiting;
  }

  /// A message has come.
  Progress TakeInLocked() DEVMGR_REQUIRES(mutex_) {
    if (wanted_ && unread_.empty()) {
      wanted_ = false;
      ++delivered_;
      direct_.emplace_back().Swap(&message_);
      ReadOnLocked();
      return Progress::kMessage;
    }
    const auto pause = unread_.Put(message_, std::chrono::steady_clock::now());
    if (pause > UnreadMessages::Duration::zero()) pause_.Set(pause);
    ReadOnLocked();
    return Progress::kWaiting;
  }

  void ReadOnLocked() DEVMGR_REQUIRES(mutex_) {
    const bool has_room = !unread_.full() || (wanted_ && unread_.empty());
    if (operating_ || pause_.pending() || !has_room) return;
    operating_ = true;
    stream_->Read(&message_, this);
  }

  /// Messages that were kept are wanted now.
  void OnDelivery() DEVMGR_EXCLUDES(mutex_) {
    UnreadMessages::Messages messages;
    bool is_over = false;
    {
      MutexLock lock(mutex_);
      delivery_.Clear();
      is_over = IsOverLocked();
      if (IsOpenLocked()) {
        wanted_ = false;
        ++delivered_;
        messages = unread_.Take();
        ReadOnLocked();
      }
    }
    if (!messages.empty()) Deliver(messages);
    if (is_over) End();
  }

  void OnPauseOver() DEVMGR_EXCLUDES(mutex_) {
    bool is_over = false;
    {
      MutexLock lock(mutex_);
      pause_.Clear();
      is_over = IsOverLocked();
      if (IsOpenLocked()) ReadOnLocked();
    }
    if (is_over) End();
  }

  void Deliver(const UnreadMessages::Messages& messages)
      DEVMGR_EXCLUDES(mutex_) {
    // Large ones take a while, so not under the lock.
    std::string joined;
    for (const grpc::ByteBuffer& message : messages) {
      joined.empty() ? joined = ToString(message) : joined += ToString(message);
    }
    if (!IsCancelled()) events_.on_message(std::move(joined));
  }

  void End() DEVMGR_EXCLUDES(mutex_) {
    // Gone, with all they captured, before the connection may be.
    std::exchange(events_, {}).on_end(StatusOf(site_, context_, status_));
    const auto forget = std::move(site_.forget);
    forget();
  }

  bool IsCancelled() DEVMGR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return cancelled_;
  }
  bool IsOpenLocked() const DEVMGR_REQUIRES(mutex_) {
    return step_ == Step::kOpen && !cancelled_;
  }
  /// Nothing of this call is on the queue any more.
  bool IsOverLocked() const DEVMGR_REQUIRES(mutex_) {
    return step_ == Step::kGone && !delivery_.pending() && !pause_.pending();
  }

  void FinishLocked() DEVMGR_REQUIRES(mutex_) {
    step_ = Step::kEnding;
    operating_ = true;
    pause_.Hasten();
    stream_->Finish(&status_, this);
  }

  CallSite site_;
  // On the queue's thread only.
  StreamEvents events_;
  UnreadMessages::Messages direct_;  ///< About to be delivered.

  Mutex mutex_;
  Step step_ DEVMGR_GUARDED_BY(mutex_) = Step::kStarting;
  bool operating_ DEVMGR_GUARDED_BY(mutex_) = true;  ///< Alarms aside.
  bool cancelled_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool wanted_ DEVMGR_GUARDED_BY(mutex_) = true;
  std::uint64_t delivered_ DEVMGR_GUARDED_BY(mutex_) = 0;
  UnreadMessages unread_ DEVMGR_GUARDED_BY(mutex_);
  /// Pending while messages are both kept and wanted.
  StreamAlarm delivery_ DEVMGR_GUARDED_BY(mutex_);
  StreamAlarm pause_ DEVMGR_GUARDED_BY(mutex_);

  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  std::optional<grpc::Alarm> alarm_;
  /// Lives in the context's arena, so it goes first.
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace

std::shared_ptr<PendingCall> MakeStreamCall(CallSite site, StreamEvents events,
                                            Unread unread) {
  return std::make_shared<StreamCall>(std::move(site), std::move(events),
                                      unread);
}

}  // namespace devmgr::rpc
