// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "http2/session.h"

namespace devmgr::cri {

/// Pings of a caller to the runtime. Values in, values out.
///
/// A client pings after the data it gets, to learn how wide the way is, and
/// servers hang up on clients whose pings come while nothing is sent to them
/// (gRPC's proposal A8; grpc-go and gRPC C++ do at the third one within five
/// minutes). What the caller gets may have waited here for long: the runtime
/// must hear no more pings than it would from a caller of its own.
class Pings {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Way {
    kForward,  ///< To the runtime; `Answered` with its answer.
    kAnswer,   ///< It goes back at once.
    kWait,     ///< It is answered with the one that was forwarded.
  };

  /// A ping has come, while calls were open or not.
  Way Come(const http2::Ping& ping, bool calls_open, Clock::time_point now) {
    if (!under_way_.empty()) {
      under_way_.push_back(ping);
      return Way::kWait;
    }
    if (!calls_open || (!spoke_ && now < forwarded_ + kUnasked)) {
      return Way::kAnswer;
    }
    under_way_.push_back(ping);
    forwarded_ = now;
    return Way::kForward;
  }

  /// Headers or data of an answer have come.
  void RuntimeSpoke() { spoke_ = true; }

  /// The runtime has answered, or has gone. Returns all that are answered by
  /// that, in order.
  std::vector<http2::Ping> Answered() {
    // What was said before the answer was said before it saw the ping.
    spoke_ = false;
    return std::exchange(under_way_, {});
  }

  std::size_t under_way() const { return under_way_.size(); }

 private:
  /// So often a server has nothing against it, and a minute.
  static constexpr std::chrono::minutes kUnasked{6};

  std::vector<http2::Ping> under_way_;  ///< The first one was forwarded.
  bool spoke_ = true;                   ///< Since it answered the last one.
  Clock::time_point forwarded_{};
};

}  // namespace devmgr::cri
