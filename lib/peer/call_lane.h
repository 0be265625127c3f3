// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "peer/breaker.h"
#include "rpc/connection.h"

namespace devmgr::peer {

struct LaneOptions {
  int max_calls = 64;    ///< Under way at once.
  int max_queued = 256;  ///< Waiting for those to end.
  BreakerOptions breaker;
};

/// The calls to one peer: so many at once, so many waiting, and a breaker.
/// Whatever the peer does, every call ends, at its deadline or a little later.
/// Lives on its executor; owned by shared_ptr, which completions hold weakly.
class CallLane : public std::enable_shared_from_this<CallLane> {
 public:
  struct Request {
    std::string method;
    std::string bytes;
    std::chrono::milliseconds timeout{0};
    std::vector<std::pair<std::string, std::string>> metadata;
  };
  using Done = std::function<void(absl::StatusOr<std::string>)>;

  struct Parts {
    /// Names the peer in errors: `plugin of 'r' at '/s'`.
    std::string peer;
    /// What is the case without a connection; the reason follows.
    std::string when_gone;
    /// Runs when the breaker moves.
    std::function<void()> on_change;
    /// A call without any effect, which tries a peer that was left alone. Null:
    /// then the next call does.
    std::function<Request()> probe = nullptr;
    /// A call that was sent is over, with this; not the probe. May be null.
    std::function<void(const std::string& method, const absl::Status& status,
                       std::chrono::nanoseconds took)>
        on_call = nullptr;
  };

  CallLane(Executor& executor, LaneOptions options, Parts parts);
  ~CallLane();

  /// Calls go over `connection` (borrowed) until Disconnect.
  void Connect(rpc::Connection& connection);
  /// To be called before the connection is closed. Calls under way end with
  /// Aborted when it is, those that wait with Unavailable now, and so do new
  /// ones. Without a connection it changes the reason that they are given.
  void Disconnect(const std::string& why);

  /// Why Call would refuse now; OK when the call would be sent or queued.
  absl::Status CheckCall() const;
  /// `done` runs once, later, on the executor, with what the peer answered, or
  /// an error that is not marked as its own (common/peer_status.h):
  ///   Unavailable        nothing was sent: no connection, or left alone
  ///   ResourceExhausted  nothing was sent: too many wait
  ///   DeadlineExceeded, Aborted  silent, or gone during the call: the peer may
  ///                              or may not have acted
  void Call(Request request, Done done);

  /// Sends the probe, whether or not the breaker lets calls out, and tells it
  /// what came of that. `done` runs once, later; Aborted when the connection
  /// ended first. There has to be a connection.
  void Probe(std::function<void(absl::Status)> done);

  const Breaker& breaker() const { return breaker_; }
  int calls() const { return calls_; }
  int queued() const { return static_cast<int>(queue_.size()); }

 private:
  struct Waiting {
    Request request;
    Done done;
    std::chrono::steady_clock::time_point deadline;
  };
  enum class Kind { kCall, kProbe };

  absl::Status WhyGone() const;
  absl::Status WhyLeftAlone() const;
  void Send(Kind kind, Request request, Done done);
  void OnCallOver(Kind kind, std::chrono::milliseconds timeout,
                  absl::StatusOr<std::string>& answer);
  /// Tells the breaker, and acts on what it makes of that.
  void Judge(Kind kind, std::chrono::milliseconds timeout,
             const absl::Status& status);
  void OnCooledDown();
  void Refuse(const Done& done, const absl::Status& status);
  void RefuseQueue(const absl::Status& status);
  void Pump();

  Executor& executor_;
  const LaneOptions options_;
  const Parts parts_;

  rpc::Connection* connection_ = nullptr;
  std::uint64_t epoch_ = 0;  ///< Of the connection.
  std::string why_gone_ = "it is not connected yet";
  Breaker breaker_;
  /// How long the last call had that was not answered.
  std::chrono::milliseconds silent_for_{0};
  TimerId cool_down_ = 0;
  int calls_ = 0;  ///< Over this connection.
  std::deque<Waiting> queue_;
};

}  // namespace devmgr::peer
