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
#include "plugin/breaker.h"
#include "rpc/connection.h"

namespace devmgr::plugin {

struct LaneOptions {
  int max_calls = 64;    ///< Under way at once.
  int max_queued = 256;  ///< Waiting for those to end.
  BreakerOptions breaker;
};

/// The calls to one instance of a plugin: so many at once, so many waiting, and
/// a breaker. Whatever the plugin does, every call ends, at its deadline or a
/// little later. Lives on its executor; owned by shared_ptr, which completions
/// hold weakly.
class CallLane : public std::enable_shared_from_this<CallLane> {
 public:
  struct Request {
    std::string method;
    std::string bytes;
    std::chrono::milliseconds timeout{0};
    std::vector<std::pair<std::string, std::string>> metadata;
  };
  using Done = std::function<void(absl::StatusOr<std::string>)>;

  /// `peer` names the plugin in errors. `on_change` runs when the breaker
  /// moves.
  CallLane(Executor& executor, LaneOptions options, std::string peer,
           std::function<void()> on_change);
  ~CallLane();

  /// Calls go over `connection` (borrowed) until Disconnect.
  void Connect(rpc::Connection& connection);
  /// To be called before the connection is closed. Calls under way end with
  /// Aborted when it is, those that wait with Unavailable now, and so do new
  /// ones.
  void Disconnect(const std::string& why);

  /// Why Call would refuse now; OK when the call would be sent or queued.
  absl::Status CheckCall() const;
  /// `done` runs once, later, on the executor. Errors as of Plugins.
  void Call(Request request, Done done);

  const Breaker& breaker() const { return breaker_; }
  int calls() const { return calls_; }
  int queued() const { return static_cast<int>(queue_.size()); }

 private:
  struct Waiting {
    Request request;
    Done done;
    std::chrono::steady_clock::time_point deadline;
  };

  absl::Status WhyGone() const;
  absl::Status WhyLeftAlone() const;
  void Send(Request request, Done done);
  void OnCallOver(absl::StatusOr<std::string>& answer);
  /// Tells the breaker, and acts on what it makes of that.
  void Judge(const absl::Status& status);
  void Refuse(const Done& done, const absl::Status& status);
  void RefuseQueue(const absl::Status& status);
  void Pump();

  Executor& executor_;
  const LaneOptions options_;
  const std::string peer_;
  const std::function<void()> on_change_;

  rpc::Connection* connection_ = nullptr;
  std::uint64_t epoch_ = 0;  ///< Of the connection.
  std::string why_gone_ = "it is not connected yet";
  Breaker breaker_;
  TimerId cool_down_ = 0;
  int calls_ = 0;  ///< Over this connection.
  std::deque<Waiting> queue_;
};

}  // namespace devmgr::plugin
