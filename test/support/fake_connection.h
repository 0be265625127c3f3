// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/connection.h"

namespace devmgr {

/// The far end of connections without sockets: dials, answers and hang-ups are
/// in the test's hands. Lives on one thread, where completions run, too.
class FakePeer {
 public:
  struct Call {
    std::size_t connection = 0;  ///< Index into the dials that succeeded.
    std::string method;
    std::string request;
    std::chrono::milliseconds timeout{0};
    rpc::CallDone done;  ///< Empty once it ran.
    std::vector<std::pair<std::string, std::string>> metadata;
    rpc::StreamEvents stream = {};  ///< Of a stream; empty once it ended.
    bool reading = false;           ///< Of a stream: a message may come.
    rpc::Unread unread = rpc::Unread::kWait;
    std::uint64_t delivered = 0;
    std::optional<std::string> kept = {};  ///< Came while it was not reading.
  };

  /// What the next dials answer: OK connects.
  void set_dial_status(absl::Status status) {
    dial_status_ = std::move(status);
  }

  /// From now on calls with an empty request, such as a probe sends, are
  /// answered like this at once, and not recorded.
  void AnswerProbes(absl::StatusOr<std::string> answer) {
    probe_answer_ = std::move(answer);
  }
  /// Probes are calls like others again.
  void RecordProbes() { probe_answer_.reset(); }

  /// As a dialer: `[&](auto& path, auto f) { return peer.Dial(path, f); }`.
  absl::StatusOr<std::unique_ptr<rpc::Connection>> Dial(
      const std::filesystem::path& socket, std::function<void()> on_hang_up) {
    dialed_.push_back(socket.string());
    if (!dial_status_.ok()) return dial_status_;
    lines_.push_back(std::make_shared<Line>());
    lines_.back()->on_hang_up = std::move(on_hang_up);
    return std::make_unique<Connection>(*this, lines_.size() - 1);
  }

  /// Sockets dialed so far, failed dials included.
  const std::vector<std::string>& dialed() const { return dialed_; }
  /// Connections that were made and not closed by our side.
  int open() const {
    return static_cast<int>(
        std::count_if(lines_.begin(), lines_.end(),
                      [](const auto& line) { return !line->closed; }));
  }
  const std::vector<Call>& calls() const { return calls_; }

  void Answer(std::size_t call, absl::StatusOr<std::string> answer) {
    const rpc::CallDone done = std::exchange(calls_.at(call).done, nullptr);
    if (done) done(std::move(answer));
  }

  /// A stream's next message, which has to have been asked for, unless the
  /// stream keeps what was not.
  void SendMessage(std::size_t call, std::string message) {
    Call& stream = calls_.at(call);
    if (std::exchange(stream.reading, false)) {
      ++stream.delivered;
      const auto on_message = stream.stream.on_message;
      on_message(std::move(message));
    } else if (stream.unread == rpc::Unread::kWait) {
      std::abort();
    } else if (stream.unread == rpc::Unread::kJoin && stream.kept.has_value()) {
      *stream.kept += message;
    } else {
      stream.kept = std::move(message);
    }
  }
  void EndStream(std::size_t call, absl::Status status) {
    const auto events = std::exchange(calls_.at(call).stream, {});
    if (events.on_end) events.on_end(std::move(status));
  }

  /// The peer hangs up; the other side sees it in `over()`, and is told when
  /// TellHangUp follows.
  void HangUpSilently(std::size_t connection) {
    lines_.at(connection)->over = true;
  }
  void TellHangUp(std::size_t connection) {
    lines_.at(connection)->on_hang_up();
  }
  void HangUp(std::size_t connection) {
    HangUpSilently(connection);
    TellHangUp(connection);
  }

 private:
  struct Line {
    std::function<void()> on_hang_up;
    bool over = false;
    bool closed = false;
  };

  class Connection final : public rpc::Connection {
   public:
    Connection(FakePeer& peer, std::size_t index)
        : peer_(peer), index_(index), line_(peer.lines_.at(index)) {}
    ~Connection() override {
      line_->closed = true;
      for (std::size_t i = 0; i < peer_.calls_.size(); ++i) {
        if (peer_.calls_[i].connection != index_) continue;
        peer_.Answer(i, absl::CancelledError("connection closed"));
        peer_.EndStream(i, absl::CancelledError("connection closed"));
      }
    }

    CallId Call(const std::string& method, std::string request,
                CallOptions options, rpc::CallDone done) override {
      if (request.empty() && peer_.probe_answer_.has_value()) {
        done(*peer_.probe_answer_);
        return 0;
      }
      peer_.calls_.push_back({index_, method, std::move(request),
                              options.timeout, std::move(done),
                              options.metadata});
      return peer_.calls_.size();
    }
    CallId Stream(const std::string& method, std::string request,
                  CallOptions options, rpc::StreamEvents events) override {
      peer_.calls_.push_back({index_, method, std::move(request),
                              options.timeout, nullptr, options.metadata,
                              std::move(events), true, options.unread});
      return peer_.calls_.size();
    }
    void ReadNext(CallId stream) override {
      auto& state = peer_.calls_.at(stream - 1);
      state.reading = true;
      if (!state.kept.has_value()) return;
      peer_.SendMessage(stream - 1, *std::exchange(state.kept, std::nullopt));
    }
    std::uint64_t Arrived(CallId stream) override {
      const auto& state = peer_.calls_.at(stream - 1);
      return state.delivered + (state.kept.has_value() ? 1 : 0);
    }
    void Cancel(CallId call) override {
      peer_.Answer(call - 1, absl::CancelledError("cancelled"));
      peer_.EndStream(call - 1, absl::CancelledError("cancelled"));
    }
    const rpc::PeerCredentials& peer() const override { return credentials_; }
    bool over() const override { return line_->over; }

   private:
    FakePeer& peer_;
    const std::size_t index_;
    const std::shared_ptr<Line> line_;
    const rpc::PeerCredentials credentials_;
  };

  absl::Status dial_status_;
  std::optional<absl::StatusOr<std::string>> probe_answer_;
  std::vector<std::string> dialed_;
  std::vector<std::shared_ptr<Line>> lines_;
  std::vector<Call> calls_;
};

}  // namespace devmgr
