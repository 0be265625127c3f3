// SPDX-License-Identifier: Apache-2.0
//
// The calling side of a call that is answered by a stream of messages.
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <utility>

#include "common/mutex.h"
#include "rpc/pending_call.h"

namespace devmgr::rpc {
namespace {

///   starting -> asking -> reading <-> idle     ReadNext
///      `----------`---------`----------`------> ending
class StreamCall final : public PendingCall {
 public:
  StreamCall(CallSite site, StreamEvents events)
      : site_(std::move(site)), events_(std::move(events)) {}

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
    if (step_ == Step::kIdle) FinishLocked();
  }

  void ReadNext() override {
    MutexLock lock(mutex_);
    if (step_ != Step::kIdle) return;
    step_ = Step::kReading;
    stream_->Read(&message_, this);
  }

  void OnComplete(bool ok) override {
    switch (Advance(ok)) {
      case Progress::kWaiting:
        return;
      case Progress::kMessage:
        return Deliver();
      case Progress::kEnded:
        // Gone, with all they captured, before the connection may be.
        std::exchange(events_, {}).on_end(StatusOf(site_, context_, status_));
        const auto forget = std::move(site_.forget);
        forget();
        return;
    }
  }

 private:
  enum class Step { kStarting, kAsking, kReading, kIdle, kEnding };
  enum class Progress { kWaiting, kMessage, kEnded };

  /// An operation is done: puts the next one on the queue, where there is one.
  Progress Advance(bool ok) DEVMGR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (step_ == Step::kEnding) return Progress::kEnded;
    if (!ok) {
      FinishLocked();
      return Progress::kWaiting;
    }
    if (step_ == Step::kReading) return Progress::kMessage;
    if (step_ == Step::kStarting) {
      step_ = Step::kAsking;
      stream_->WriteLast(request_, grpc::WriteOptions(), this);
    } else {
      step_ = Step::kReading;
      stream_->Read(&message_, this);
    }
    return Progress::kWaiting;
  }

  void Deliver() DEVMGR_EXCLUDES(mutex_) {
    // A large one takes a while, so not under the lock.
    std::string message = ToString(message_);
    message_.Clear();
    {
      MutexLock lock(mutex_);
      if (cancelled_) return FinishLocked();
      step_ = Step::kIdle;
    }
    events_.on_message(std::move(message));
  }

  void FinishLocked() DEVMGR_REQUIRES(mutex_) {
    step_ = Step::kEnding;
    stream_->Finish(&status_, this);
  }

  CallSite site_;
  StreamEvents events_;  ///< On the queue's thread only.
  Mutex mutex_;
  Step step_ DEVMGR_GUARDED_BY(mutex_) = Step::kStarting;
  bool cancelled_ DEVMGR_GUARDED_BY(mutex_) = false;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  std::optional<grpc::Alarm> alarm_;
  /// Lives in the context's arena, so it goes first.
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace

std::shared_ptr<PendingCall> MakeStreamCall(CallSite site,
                                            StreamEvents events) {
  return std::make_shared<StreamCall>(std::move(site), std::move(events));
}

}  // namespace devmgr::rpc
