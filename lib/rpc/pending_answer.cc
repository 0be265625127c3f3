// SPDX-License-Identifier: Apache-2.0
#include "rpc/pending_answer.h"

#include <utility>

#include "common/status.h"

namespace devmgr::rpc {
namespace {

/// What waits for a client that does not read.
constexpr std::size_t kMaxWaitingBytes = 64 * 1024 * 1024;

}  // namespace

void PendingAnswer::Open(std::map<std::string, std::string> metadata,
                         Caller caller, std::shared_ptr<void> turn) {
  metadata_ = std::move(metadata);
  caller_ = caller;
  MutexLock lock(mutex_);
  turn_ = std::move(turn);
}

void PendingAnswer::Write(std::shared_ptr<const std::string> message) {
  MutexLock lock(mutex_);
  PushLocked(std::move(message));
}

void PendingAnswer::Finish(const absl::Status& status) {
  std::shared_ptr<void> turn;
  MutexLock lock(mutex_);
  handler_ended_ = true;
  turn = TakeTurnLocked();
  if (end_) return;
  end_ = status;
  WakeLocked();
}

void PendingAnswer::Answer(absl::StatusOr<std::string> answer) {
  const absl::Status status = answer.status();
  std::shared_ptr<const std::string> message;
  if (answer.ok()) {
    message = std::make_shared<const std::string>(*std::move(answer));
  }
  std::shared_ptr<void> turn;
  MutexLock lock(mutex_);
  handler_ended_ = true;
  turn = TakeTurnLocked();
  if (end_) return;
  if (message != nullptr) PushLocked(std::move(message));
  end_ = status;
  WakeLocked();
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
    if (end_) return;
    if (sending_ || !waiting_.empty()) {
      when_taken_.swap(taken);  // the one before goes after the lock
      return;
    }
  }
  taken();
}

PendingAnswer::Next PendingAnswer::TakeNext() {
  MutexLock lock(mutex_);
  Next next;
  if (!waiting_.empty()) {
    next.message = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= next.message->size();
    sending_ = true;
  }
  if (waiting_.empty()) next.end = end_;
  return next;
}

bool PendingAnswer::overflown() {
  MutexLock lock(mutex_);
  return overflown_;
}

void PendingAnswer::OnSent() {
  std::function<void()> when_taken;
  {
    MutexLock lock(mutex_);
    if (!waiting_.empty()) return;
    sending_ = false;
    if (!end_) when_taken.swap(when_taken_);
  }
  if (when_taken) when_taken();
}

void PendingAnswer::Abort(const absl::Status& status) {
  MutexLock lock(mutex_);
  // One that has ended, and whose last message is on its way, ends as it did.
  if (!end_ || !waiting_.empty()) end_ = status;
  waiting_.clear();
  waiting_bytes_ = 0;
}

void PendingAnswer::OnOver() {
  sender_ = nullptr;
  // Destroyed after the lock.
  std::shared_ptr<void> turn;
  std::function<void()> when_gone;
  std::function<void()> when_taken;
  std::deque<std::shared_ptr<const std::string>> unsent;
  bool ended = false;
  {
    MutexLock lock(mutex_);
    over_ = true;
    turn = TakeTurnLocked();
    ended = end_.has_value();
    if (!ended) {
      client_gone_ = true;
      end_ = CancelledError("the client is gone");
    }
    unsent.swap(waiting_);
    waiting_bytes_ = 0;
    when_gone.swap(when_gone_);
    when_taken.swap(when_taken_);
  }
  if (!ended && when_gone) when_gone();
}

void PendingAnswer::PushLocked(std::shared_ptr<const std::string> message) {
  if (over_ || end_) return;
  if (waiting_bytes_ >= kMaxWaitingBytes) {
    overflown_ = true;
  } else {
    waiting_bytes_ += message->size();
    waiting_.push_back(std::move(message));
  }
  WakeLocked();
}

std::shared_ptr<void> PendingAnswer::TakeTurnLocked() {
  if (!over_ || !handler_ended_) return nullptr;
  return std::exchange(turn_, nullptr);
}

void PendingAnswer::WakeLocked() {
  if (over_ || std::exchange(woken_, true)) return;
  loop_->Post([self = shared_from_this()] {
    {
      MutexLock lock(self->mutex_);
      self->woken_ = false;
    }
    if (self->sender_ != nullptr) self->sender_->OnAnswer();
  });
}

}  // namespace devmgr::rpc
