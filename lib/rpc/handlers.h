// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: which function handles which call, and what a handler
// gets of it.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "rpc/pending_answer.h"
#include "rpc/server.h"

namespace devmgr::rpc {

/// What a handler holds of its call. It does not keep the call.
class Answerer final : public ServerStream {
 public:
  explicit Answerer(std::shared_ptr<PendingAnswer> pending)
      : pending_(std::move(pending)) {}
  /// Speaks up for a handler that lets go of its call.
  ~Answerer() override {
    pending_->Finish(InternalError("the call was dropped unanswered"));
  }
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  const std::map<std::string, std::string>& metadata() const override {
    return pending_->metadata();
  }
  const Caller& caller() const override { return pending_->caller(); }
  using ServerStream::Write;
  void Write(std::shared_ptr<const std::string> message) override {
    pending_->Write(std::move(message));
  }
  void Finish(const absl::Status& status) override { pending_->Finish(status); }
  void WhenClientGone(std::function<void()> gone) override {
    pending_->WhenClientGone(std::move(gone));
  }
  void WhenTaken(std::function<void()> taken) override {
    pending_->WhenTaken(std::move(taken));
  }
  void Answer(absl::StatusOr<std::string> answer) const {
    pending_->Answer(std::move(answer));
  }

 private:
  const std::shared_ptr<PendingAnswer> pending_;
};

/// How calls are handled inside: a unary one is a stream of one message.
using Handler =
    std::function<void(std::string request, std::shared_ptr<Answerer>)>;
using Handlers = std::map<std::string, Handler>;

Handlers HandlersOf(ServerOptions options);

/// `unknown service <s>` or `unknown method <m> for service <s>`, as servers
/// written in Go answer: clients look for these words.
absl::Status UnknownMethod(const Handlers& methods, const std::string& method);

}  // namespace devmgr::rpc
