// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cri/held_calls.h"
#include "http2/byte_queue.h"
#include "http2/grpc_message.h"
#include "http2/session.h"

namespace devmgr::cri {

/// What goes from one side of a call to the other.
struct Flow {
  http2::ByteQueue queue;
  http2::MessageBoundary boundary;  ///< Of all that came, sent or not.
  std::size_t prepaid = 0;  ///< Bytes whose window was given back already.
  bool ended = false;       ///< Nothing more comes.
  std::optional<http2::Headers> trailers;
  /// Passed on when all before has gone.
  std::optional<std::uint32_t> reset;
  bool waits = false;     ///< The receiving session wants ResumeBody.
  bool finished = false;  ///< The end is as good as sent.
  bool end_sent = false;
};

/// One call. It goes when both sides are closed.
struct Stream {
  http2::StreamId client = 0;
  bool client_open = true;
  http2::StreamId backend = 0;  ///< 0: the runtime has not been called.
  bool backend_open = false;
  http2::Headers request;  ///< Until the runtime is called.
  bool answered = false;   ///< The client has the first headers of an answer.
  Flow up;                 ///< Client to backend.
  Flow down;
  std::unique_ptr<HeldCall> held;
  /// Of the request, also when it was passed on: it may still be here.
  std::optional<HeldBytes> kept;
  std::optional<http2::Loop::Clock::time_point>
      patience;  ///< It waits for a runtime.
};

}  // namespace devmgr::cri
