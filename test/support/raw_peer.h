// SPDX-License-Identifier: Apache-2.0
//
// HTTP/2 peers that are not gRPC's, so that a test can send what gRPC would
// not, and see what came as it came. On nghttp2, one thread each.
#pragma once

#include <nghttp2/nghttp2.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr::http2 {

using RawHeaders = std::vector<std::pair<std::string, std::string>>;

/// What came on one stream.
struct RawMessage {
  std::vector<RawHeaders> headers;  ///< All blocks, in order.
  std::string body;                 ///< Unless the stream is only counted.
  std::uint64_t body_bytes = 0;
  bool ended = false;       ///< END_STREAM came.
  bool closed = false;      ///< Nothing more happens.
  std::uint32_t reset = 0;  ///< Error the stream was closed with.
  bool lost = false;        ///< The connection went first.
  int events = 0;           ///< How often `on_event` heard of it.
};

/// What is sent on one stream.
struct RawSend {
  RawHeaders headers;
  std::string body;
  /// Sent in DATA frames of at most so many bytes.
  std::size_t piece = 16384;
  RawHeaders trailers;
  bool has_body = true;   ///< Otherwise the headers end the stream.
  bool open_end = false;  ///< Nothing ends it.
  std::optional<std::uint32_t> reset_after;  ///< RST_STREAM once all is sent.
};

/// One connection, on a thread of its own.
class RawConnection {
 public:
  struct Options {
    bool server = false;
    std::uint32_t stream_window = 1U << 20;
    std::uint32_t max_streams = 0;  ///< 0: not said.
    bool gives_window = true;       ///< What comes may be followed by more.
    bool keeps_bodies = true;
    std::size_t padding = 0;  ///< Of each DATA frame, at most 256.
    /// Server: what to answer when headers (then `ended` may be false) and
    /// when the end of a request have come. Runs on the connection's thread.
    std::function<void(RawConnection&, std::int32_t, const RawMessage&)>
        on_event;
  };

  RawConnection(UniqueFd fd, Options options);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  /// Client: begins a stream.
  std::int32_t Request(RawSend send);
  /// Server: answers; may be called within `on_event`.
  void Answer(std::int32_t stream, RawSend send);
  void Reset(std::int32_t stream, std::uint32_t error);
  void Goaway(std::uint32_t error, bool notice);
  void Ping();
  /// Client with `gives_window` false: takes what is there from now on.
  void GiveWindow();
  /// Closes the socket at once.
  void Cut();

  /// Waits for it; false after two minutes.
  bool WaitFor(std::int32_t stream,
               const std::function<bool(const RawMessage&)>& holds);
  bool WaitClosed(std::int32_t stream) {
    return WaitFor(stream, [](const RawMessage& m) { return m.closed; });
  }
  bool WaitUntil(const std::function<bool()>& holds);
  RawMessage Received(std::int32_t stream);
  /// Removes what is known of it, for tests with many streams.
  RawMessage Take(std::int32_t stream);
  bool over();
  /// Of the body of `stream`.
  std::size_t sent(std::int32_t stream);
  int pings();  ///< Those that came.
  int pongs();
  std::optional<std::uint32_t> goaway();
  std::uint32_t peer_max_streams();

 private:
  friend struct RawCallbacks;
  friend class RawServer;
  struct Sending {
    RawSend send;
    std::size_t sent = 0;
  };

  void Run();
  bool Step();
  void Post(std::function<void()> task);
  bool Flush();

  const Options options_;
  UniqueFd fd_;
  UniqueFd wake_up_;
  nghttp2_session* session_ = nullptr;
  std::string out_;
  std::map<std::int32_t, Sending> sending_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> tasks_;
  bool stopping_ = false;
  bool over_ = false;
  bool gives_window_;
  std::map<std::int32_t, std::size_t> sent_;
  int pings_ = 0;
  int pongs_ = 0;
  std::optional<std::uint32_t> goaway_;
  std::map<std::int32_t, RawMessage> received_;
  std::map<std::int32_t, std::size_t> unreturned_;
  std::thread thread_;
};

/// Listens and makes a RawConnection of each caller.
class RawServer {
 public:
  RawServer(std::filesystem::path path, RawConnection::Options options);
  ~RawServer();

  /// As when the process dies: all sockets close.
  void Kill();
  std::size_t connections();
  /// Streams of all connections that are not closed.
  std::size_t open_streams();
  void ForEach(const std::function<void(RawConnection&)>& act);

 private:
  const std::filesystem::path path_;
  const RawConnection::Options options_;
  UniqueFd listener_;
  UniqueFd stop_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RawConnection>> connections_;
  std::thread thread_;
};

std::unique_ptr<RawConnection> RawConnect(const std::filesystem::path& path,
                                          RawConnection::Options options = {});

/// The headers of a gRPC call, as gRPC C++ sends them.
RawHeaders CallHeaders(const std::string& method, const RawHeaders& more = {});
/// A gRPC message with its prefix.
std::string Message(const std::string& bytes, bool compressed = false);

}  // namespace devmgr::http2
