// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: how a call that we serve is answered.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "http2/loop.h"
#include "rpc/server.h"

namespace devmgr::rpc {

/// What sends an answer, on the loop of its server.
class AnswerSender {
 public:
  /// There is more to send, or the end.
  virtual void OnAnswer() = 0;

 protected:
  ~AnswerSender() = default;
};

/// Where answers to a call come together: from its handler, on any thread, from
/// the end of the client, from the end of the server. What waits here is taken
/// by the loop, one message at a time, as the client reads.
class PendingAnswer : public std::enable_shared_from_this<PendingAnswer> {
 public:
  PendingAnswer(AnswerSender* sender, std::shared_ptr<http2::Mailbox> loop)
      : sender_(sender), loop_(std::move(loop)) {}

  // Any thread, but for the first one, which comes before all of them.
  /// `turn` goes once the call is over and its handler has ended it as well: a
  /// client that calls and cancels has no more handlers at work than others.
  void Open(std::map<std::string, std::string> metadata, Caller caller,
            std::shared_ptr<void> turn);
  const Caller& caller() const { return caller_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  void Write(std::shared_ptr<const std::string> message);
  void Finish(const absl::Status& status);
  /// Both at once.
  void Answer(absl::StatusOr<std::string> answer);
  void WhenClientGone(std::function<void()> gone);
  void WhenTaken(std::function<void()> taken);

  // The loop's thread.
  struct Next {
    /// Null: none waits.
    std::shared_ptr<const std::string> message;
    /// What ends the call after that.
    std::optional<absl::Status> end;
  };
  Next TakeNext();
  /// The client has left so much unread that the call is to be given up.
  bool overflown();
  /// All that was taken is on its way.
  void OnSent();
  /// Ends a call that has not ended, without what still waits.
  void Abort(const absl::Status& status);
  /// No more is taken: the call is over, before its end or after.
  void OnOver();

 private:
  void PushLocked(std::shared_ptr<const std::string> message)
      DEVMGR_REQUIRES(mutex_);
  void WakeLocked() DEVMGR_REQUIRES(mutex_);
  /// The turn, if it is over: to be destroyed after the lock.
  std::shared_ptr<void> TakeTurnLocked() DEVMGR_REQUIRES(mutex_);

  AnswerSender* sender_;  ///< The loop's; null once the call is over.
  const std::shared_ptr<http2::Mailbox> loop_;
  // Constant once open.
  std::map<std::string, std::string> metadata_;
  Caller caller_;

  Mutex mutex_;
  std::shared_ptr<void> turn_ DEVMGR_GUARDED_BY(mutex_);
  bool handler_ended_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool over_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool woken_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool sending_ DEVMGR_GUARDED_BY(mutex_) = false;
  bool overflown_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<const std::string>> waiting_
      DEVMGR_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ DEVMGR_GUARDED_BY(mutex_) = 0;
  /// Set: nothing more is taken in.
  std::optional<absl::Status> end_ DEVMGR_GUARDED_BY(mutex_);
  bool client_gone_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::function<void()> when_gone_ DEVMGR_GUARDED_BY(mutex_);
  std::function<void()> when_taken_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::rpc
