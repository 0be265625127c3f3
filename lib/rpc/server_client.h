// SPDX-License-Identifier: Apache-2.0
//
// Inside of this room: one client of a server, and its calls.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "http2/loop.h"
#include "http2/session.h"
#include "rpc/handlers.h"
#include "rpc/server.h"

namespace devmgr::rpc {

class ServerCall;
class ServerClient;

/// What the clients of one server share. Outlives them.
struct ServerRoom {
  http2::Loop& loop;
  const Handlers handlers;
  /// Calls of one client that are handled at a time.
  const std::size_t max_calls;
  std::atomic<std::size_t>& open_calls;
  /// A client was hung up on; why.
  const std::function<void(const std::string& why)> hung_up;
  /// The client's connection is over; it destroys it at the end of the round.
  const std::function<void(ServerClient*)> over;
};

/// One connection of a client. All of it belongs to the loop's thread.
///
/// A client that sends much at once is read a little at a time: what it causes
/// is done before the loop turns to the others, and they to theirs.
class ServerClient final : public http2::SessionEvents,
                           public http2::Readable,
                           public http2::Buried {
 public:
  ServerClient(UniqueFd fd, Caller caller, ServerRoom& room);
  ~ServerClient() override;

  /// Begins to serve. An error: nothing was begun.
  absl::Status Start();
  /// Answers all calls that have no end yet with `why`, and says goodbye.
  void Stop(const absl::Status& why);
  /// Nothing is left to send.
  bool idle() const { return session_.idle(); }
  /// Hangs up.
  void End();

  const Caller& caller() const { return caller_; }
  bool has_called() const { return has_called_; }
  std::size_t open_calls() const { return calls_.size(); }

  void OnReady(std::uint32_t events) override;

  void OnHeaders(http2::StreamId stream, http2::Headers headers,
                 bool end) override;
  void OnData(http2::StreamId stream, std::string_view bytes) override;
  void OnEndOfData(http2::StreamId stream) override;
  void OnStreamClosed(http2::StreamId stream, std::uint32_t error) override;
  void OnPing(const http2::Ping& ping, bool ack) override;
  void OnSettings() override {}
  void OnGoaway(http2::StreamId, std::uint32_t, std::string_view) override {}
  std::optional<http2::Body> BodyOf(http2::StreamId stream) override;
  void OnBodyEnds(http2::StreamId) override {}
  void OnBodyWaits(http2::StreamId stream) override;
  void OnBodySent(http2::StreamId stream, std::size_t count) override;
  void OnEndSent(http2::StreamId stream) override;

 private:
  friend class ServerCall;

  ServerCall* Find(http2::StreamId stream);
  /// Sends what was submitted, once what else is to be done now has been.
  void FlushSoon();
  void Settle();
  void HangUp(const std::string& why);
  void TakeTurn(ServerCall& call);
  /// Goes when the turn is over, on any thread.
  std::shared_ptr<void> MakeTurn();
  void OnTurnOver();
  void NextTurns();

  ServerRoom& room_;
  const Caller caller_;
  http2::Session session_;
  bool ended_ = false;
  bool flush_posted_ = false;
  bool has_called_ = false;
  /// What is read in one turn.
  std::size_t turn_bytes_;
  std::size_t begun_ = 0;  ///< Calls so far.
  std::map<http2::StreamId, std::unique_ptr<ServerCall>> calls_;
  /// Goes with the client: turns may end later.
  const std::shared_ptr<std::function<void()>> turn_over_ =
      std::make_shared<std::function<void()>>([this] { OnTurnOver(); });
  std::size_t handled_ = 0;  ///< Turns that are not over.
  std::deque<http2::StreamId> waiting_;
  http2::Loop::TimerId turns_timer_ = 0;
};

}  // namespace devmgr::rpc
