// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "cri/byte_queue.h"
#include "cri/grpc_message.h"
#include "cri/loop.h"
#include "cri/pings.h"

namespace devmgr::cri {

using StreamId = std::int32_t;

/// Window of each stream, in bytes: what may wait per call and direction.
inline constexpr std::uint32_t kStreamWindow = 1U << 20;

/// What a session asks for the body of a message it sends.
struct Body {
  ByteQueue* queue = nullptr;  ///< What is there now.
  bool ended = false;          ///< Nothing more will come.
  /// Then these, if there are any, end the stream.
  const Headers* trailers = nullptr;
};

/// What a session tells. All of it runs while the session is reading or
/// writing, so nothing here may read, write or destroy a session; submitting
/// is fine.
class SessionEvents {
 public:
  virtual void OnHeaders(StreamId stream, Headers headers, bool end) = 0;
  /// The window of the stream is given back with Consumed.
  virtual void OnData(StreamId stream, std::string_view bytes) = 0;
  /// The peer ended its side after data.
  virtual void OnEndOfData(StreamId stream) = 0;
  /// Both sides ended (NO_ERROR), or it was reset, by either side.
  virtual void OnStreamClosed(StreamId stream, std::uint32_t error) = 0;
  virtual void OnPing(const Ping& ping, bool ack) = 0;
  virtual void OnSettings() = 0;
  virtual void OnGoaway(StreamId last, std::uint32_t error,
                        std::string_view debug) = 0;

  /// The body being sent on `stream`; nothing: there is no such stream.
  virtual std::optional<Body> BodyOf(StreamId stream) = 0;
  /// The end of the stream is as good as sent: no more is asked.
  virtual void OnBodyEnds(StreamId stream) = 0;
  /// No more is asked until ResumeBody.
  virtual void OnBodyWaits(StreamId stream) = 0;
  /// `count` bytes of it are on their way.
  virtual void OnBodySent(StreamId stream, std::size_t count) = 0;
  /// The last frame of our side of `stream` is on its way.
  virtual void OnEndSent(StreamId stream) = 0;

 protected:
  ~SessionEvents() = default;
};

/// One side of HTTP/2 on one socket. Headers go through unjudged and in order.
/// Reads and writes only on demand; never destroyed by its own events.
class Http2Session {
 public:
  enum class Role { kServer, kClient };

  /// `events` and `loop` are borrowed.
  Http2Session(Role role, UniqueFd fd, Loop& loop, SessionEvents* events,
               Readable* ready);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// Begins to hear of the socket.
  absl::Status Watch();
  /// Stops (or begins again) hearing of bytes that came.
  void SetReading(bool reading);
  /// Closes the socket; nothing happens any more.
  void Close();
  bool closed() const { return !fd_.valid(); }
  int fd() const { return fd_.get(); }

  enum class ReadResult { kMore, kEnd, kBroken };
  /// Reads once and handles it. kEnd: the peer hung up. kBroken: it does not
  /// speak HTTP/2, or the socket failed.
  ReadResult Read();
  /// Sends what there is until nothing is left or the socket is full. False
  /// when nothing was done.
  bool Flush();
  /// The socket can take more again.
  void SocketHasRoom() { socket_full_ = false; }
  /// Gives memory back; for when no stream is open.
  void Trim();
  /// Neither side has anything left to say.
  bool finished() const;
  /// So much waits that nothing more should be caused.
  bool congested() const;

  void SubmitSettings(std::optional<std::uint32_t> max_streams,
                      std::optional<std::uint32_t> max_header_list);
  std::uint32_t PeerSetting(nghttp2_settings_id id) const;

  /// A new stream; nothing when there can be none any more.
  std::optional<StreamId> SubmitRequest(const Headers& headers, bool has_body);
  void SubmitResponse(StreamId stream, const Headers& headers, bool has_body);
  /// Headers that end the stream, right away.
  void SubmitTrailers(StreamId stream, const Headers& trailers);
  void SubmitReset(StreamId stream, std::uint32_t error);
  void SubmitPing(const Ping& ping, bool ack);
  void SubmitGoaway(std::uint32_t error, std::string_view debug);
  void SubmitShutdownNotice();
  void ResumeBody(StreamId stream);
  /// The peer may send so many bytes more on `stream`.
  void Consumed(StreamId stream, std::size_t count);

 private:
  friend struct SessionCallbacks;

  bool Fill();
  bool Write();
  bool HasToWrite() const;
  std::uint32_t WantedEvents() const;
  void UpdateWatch();

  const Role role_;
  UniqueFd fd_;
  Loop& loop_;
  SessionEvents* const events_;
  Readable* const ready_;
  nghttp2_session* session_ = nullptr;

  std::string out_;           ///< Waits for the socket.
  std::size_t out_sent_ = 0;  ///< Of it.
  bool socket_full_ = false;
  bool reading_ = true;
  bool broken_ = false;  ///< nghttp2 gave up on it.
  std::uint32_t watched_ = 0;
  /// Headers that are coming in. One list at a time: HTTP/2 lets nothing come
  /// between its frames.
  StreamId incoming_stream_ = 0;
  Headers incoming_;
  std::size_t incoming_bytes_ = 0;  ///< Its ListBytes.
};

}  // namespace devmgr::cri
