// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "http2/byte_queue.h"
#include "http2/grpc_message.h"
#include "http2/loop.h"

namespace devmgr::http2 {

using StreamId = std::int32_t;
/// What a ping carries, and its answer.
using Ping = std::array<std::uint8_t, 8>;

/// Window of each stream, in bytes: what may wait per call and direction.
inline constexpr std::uint32_t kStreamWindow = 1U << 20;
/// Read at once.
inline constexpr std::size_t kMaxReadBytes = 256 * 1024;

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
class Session {
 public:
  enum class Role { kServer, kClient };

  /// `events` and `loop` are borrowed.
  Session(Role role, UniqueFd fd, Loop& loop, SessionEvents* events,
          Readable* ready);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Begins to hear of the socket.
  absl::Status Watch();
  /// Stops (or begins again) hearing of bytes that came.
  void SetReading(bool reading);
  /// Closes the socket; nothing happens any more.
  void Close();
  bool closed() const { return !fd_.valid(); }
  int fd() const { return fd_.get(); }

  enum class ReadResult { kMore, kEnd, kBroken };
  /// Reads once, `at_most` so much, and handles it. kEnd: the peer hung up.
  /// kBroken: it does not speak HTTP/2, or the socket failed.
  ReadResult Read(std::size_t at_most = kMaxReadBytes);
  /// Reads, and keeps for FeedKept, until `enough` is kept: for a peer that has
  /// to say something before anything is done for it.
  ReadResult Keep(std::size_t enough);
  std::string_view kept() const { return kept_; }
  /// Handles what was kept.
  ReadResult FeedKept();
  /// Bytes that the last Read got.
  std::size_t last_read() const { return last_read_; }
  /// Sends what there is until nothing is left, the socket is full, or much was
  /// sent; the rest goes when the socket is ready. False when nothing was done.
  bool Flush();
  /// The socket can take more again.
  void SocketHasRoom() { socket_full_ = false; }
  /// Nothing is left to send, for now.
  bool idle() const { return broken_ || !HasToWrite(); }
  /// Neither side has anything left to say.
  bool finished() const;
  /// Frames that wait, without those of data.
  std::size_t waiting_frames() const;
  /// So much waits that nothing more should be caused.
  bool congested() const;

  void SubmitSettings(std::optional<std::uint32_t> max_streams,
                      std::optional<std::uint32_t> max_header_list,
                      std::uint32_t stream_window = kStreamWindow);
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

  ReadResult Receive(char* buffer, std::size_t size, std::size_t* got);
  ReadResult Handle(std::string_view bytes);
  bool Fill();
  /// Bytes that the socket took.
  std::size_t Write();
  bool HasToWrite() const;
  std::uint32_t WantedEvents() const;
  void UpdateWatch();

  const Role role_;
  UniqueFd fd_;
  Loop& loop_;
  SessionEvents* const events_;
  Readable* const ready_;
  nghttp2_session* session_ = nullptr;

  std::string kept_;
  ByteQueue out_;  ///< Waits for the socket.
  bool socket_full_ = false;
  bool reading_ = true;
  bool broken_ = false;  ///< nghttp2 gave up on it.
  std::uint32_t watched_ = 0;
  std::size_t last_read_ = 0;
  /// Headers that are coming in. One list at a time: HTTP/2 lets nothing come
  /// between its frames.
  StreamId incoming_stream_ = 0;
  Headers incoming_;
  std::size_t incoming_bytes_ = 0;  ///< Its ListBytes.
};

}  // namespace devmgr::http2
