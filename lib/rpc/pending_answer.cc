// SPDX-License-Identifier: Apache-2.0
#include "rpc/pending_answer.h"

#include <utility>

#include "common/status.h"

namespace devmgr::rpc {
namespace {

/// What waits for a client that does not read.
constexpr std::size_t kMaxWaitingBytes = 64 * 1024 * 1024;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

void PendingAnswer::Open(const Way& way,
                         std::map<std::string, std::string> metadata,
                         Caller caller) {
  metadata_ = std::move(metadata);
  caller_ = caller;
  MutexLock lock(mutex_);
  way_.emplace(way);
  AdvanceLocked();
}

void PendingAnswer::Write(std::shared_ptr<const std::string> message) {
  MutexLock lock(mutex_);
  PushLocked(std::move(message));
  AdvanceLocked();
}

void PendingAnswer::Finish(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (!end_) end_ = status;
  AdvanceLocked();
}

void PendingAnswer::Answer(absl::StatusOr<std::string> answer) {
  const absl::Status status = answer.status();
  std::shared_ptr<const std::string> message;
  if (answer.ok()) {
    message = std::make_shared<const std::string>(*std::move(answer));
  }
  MutexLock lock(mutex_);
  if (message != nullptr) PushLocked(std::move(message));
  if (!end_) end_ = status;
  AdvanceLocked();
}

void PendingAnswer::WhenClientGone(std::function<void()> gone) {
  {
    MutexLock lock(mutex_);
    if (!client_gone_) {
      if (!end_) when_gone_ = std::move(gone);
      return;
    }
  }
  gone();
}

void PendingAnswer::WhenTaken(std::function<void()> taken) {
  {
    MutexLock lock(mutex_);
    if (end_ || !way_) return;
    if (sending_ || !waiting_.empty()) {
      when_taken_.swap(taken);  // the one before goes after the lock
      return;
    }
  }
  taken();
}

void PendingAnswer::Abort(const absl::Status& status) {
  MutexLock lock(mutex_);
  // One that has ended, and whose last message is on its way, ends as it did.
  if (!end_ || !waiting_.empty()) end_ = status;
  waiting_.clear();
  AdvanceLocked();
}

bool PendingAnswer::OnSent(bool ok) {
  std::function<void()> when_gone;  // destroyed after the lock
  std::function<void()> when_taken;
  {
    MutexLock lock(mutex_);
    if (!way_) {
      when_gone = std::move(when_gone_);
      when_taken.swap(when_taken_);
      return false;
    }
    sending_ = false;
    // If not, the call is over, and OnClientGone comes.
    if (!ok) waiting_.clear();
    AdvanceLocked();
    if (ok && way_ && !end_ && !sending_) when_taken.swap(when_taken_);
  }
  if (when_taken) when_taken();
  return true;
}

void PendingAnswer::OnClientGone() {
  std::function<void()> when_gone;
  {
    MutexLock lock(mutex_);
    if (end_) return AdvanceLocked();
    client_gone_ = true;
    end_ = CancelledError("the client is gone");
    waiting_.clear();
    when_gone = std::move(when_gone_);
    AdvanceLocked();
  }
  if (when_gone) when_gone();
}

void PendingAnswer::PushLocked(std::shared_ptr<const std::string> message) {
  if (!way_ || end_) return;
  if (waiting_bytes_ >= kMaxWaitingBytes) return way_->context.TryCancel();
  waiting_bytes_ += message->size();
  waiting_.push_back(ToByteBuffer(std::move(message)));
}

void PendingAnswer::AdvanceLocked() {
  if (!way_ || sending_) return;
  if (waiting_.empty()) {
    if (!end_) return;
    const Way way = TakeWayLocked();
    return way.stream.Finish(ToGrpc(*end_), way.tag);
  }
  const grpc::ByteBuffer message = waiting_.front();
  waiting_.pop_front();
  waiting_bytes_ -= message.Length();
  if (waiting_.empty() && end_ && end_->ok()) {
    const Way way = TakeWayLocked();
    return way.stream.WriteAndFinish(message, grpc::WriteOptions(),
                                     grpc::Status::OK, way.tag);
  }
  sending_ = true;
  way_->stream.Write(message, way_->tag);
}

PendingAnswer::Way PendingAnswer::TakeWayLocked() {
  const Way way = *way_;
  way_.reset();
  return way;
}

}  // namespace devmgr::rpc
