// SPDX-License-Identifier: Apache-2.0
#include "http2/session.h"

#include <absl/container/inlined_vector.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace devmgr::http2 {
namespace {

/// The most that waits for a socket.
constexpr std::size_t kOutBytes = 64 * 1024;
/// Sent at once; then others of the loop have their turn.
constexpr std::size_t kFlushBytes = 256 * 1024;
/// Handed to the kernel in one go.
constexpr std::size_t kMaxPieces = 64;
constexpr std::uint32_t kFrameBytes = 64 * 1024;
constexpr std::int32_t kConnectionWindow = 64 << 20;
/// Frames that wait; then the other side is read no more.
constexpr std::size_t kMaxWaitingFrames = 4096;
/// Most lists have fewer. What holds them is small enough for the allocator's
/// quick way.
constexpr std::size_t kUsualHeaders = 14;
static_assert(kUsualHeaders * sizeof(Header) <= 1024);
/// Of headers in one direction, as ListBytes counts them.
constexpr std::size_t kMaxHeaderBlock = 4 << 20;
/// Callers cancel in bursts: nothing that we should punish.
constexpr std::uint64_t kResetBurst = 1'000'000;
constexpr std::uint64_t kResetsPerSecond = 100'000;

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};
struct CallbacksDeleter {
  void operator()(nghttp2_session_callbacks* callbacks) const {
    nghttp2_session_callbacks_del(callbacks);
  }
};

std::unique_ptr<nghttp2_option, OptionDeleter> MakeOptions() {
  nghttp2_option* option = nullptr;
  if (nghttp2_option_new(&option) != 0) throw std::bad_alloc();
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_auto_ping_ack(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_send_header_block_length(option, kMaxHeaderBlock);
  nghttp2_option_set_stream_reset_rate_limit(option, kResetBurst,
                                             kResetsPerSecond);
  return std::unique_ptr<nghttp2_option, OptionDeleter>(option);
}

using NameValues = absl::InlinedVector<nghttp2_nv, kUsualHeaders>;

NameValues ToNv(const Headers& headers) {
  NameValues nv;
  nv.reserve(headers.size());
  for (const Header& header : headers) {
    constexpr std::uint8_t kNeverIndex = NGHTTP2_NV_FLAG_NO_INDEX;
    constexpr std::uint8_t kPlain = NGHTTP2_NV_FLAG_NONE;
    // nghttp2 copies them and writes to none.
    const auto bytes = [](const std::string& text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    nv.push_back({bytes(header.name), bytes(header.value), header.name.size(),
                  header.value.size(),
                  header.never_index ? kNeverIndex : kPlain});
  }
  return nv;
}

std::string_view ToView(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

std::size_t BytesIn(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

/// What nghttp2 calls; `self` is the session.
struct SessionCallbacks {
  static Session& Of(void* self) { return *static_cast<Session*>(self); }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame,
                            void* self) {
    Session& me = Of(self);
    me.incoming_stream_ = frame->hd.stream_id;
    me.incoming_.clear();
    me.incoming_.reserve(kUsualHeaders);
    me.incoming_bytes_ = 0;
    return 0;
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame,
                      const std::uint8_t* name, std::size_t name_size,
                      const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t flags, void* self) {
    Session& me = Of(self);
    me.incoming_bytes_ += name_size + value_size + kHeaderOverhead;
    if (me.incoming_bytes_ > kMaxHeaderBlock) {
      // A few bytes on the wire can mean kilobytes each. nghttp2 goes on to
      // read the block for its table, without telling of it.
      me.incoming_stream_ = 0;
      me.incoming_ = {};
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                NGHTTP2_ENHANCE_YOUR_CALM);
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    me.incoming_.push_back({std::string(ToView(name, name_size)),
                            std::string(ToView(value, value_size)),
                            (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0});
    return 0;
  }

  static int OnData(nghttp2_session* session, std::uint8_t, StreamId stream,
                    const std::uint8_t* bytes, std::size_t size, void* self) {
    // The connection's window never holds one stream back for another.
    nghttp2_session_consume_connection(session, size);
    Of(self).events_->OnData(stream, ToView(bytes, size));
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    Session& me = Of(self);
    const StreamId stream = frame->hd.stream_id;
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (std::exchange(me.incoming_stream_, 0) == stream) {
          me.events_->OnHeaders(stream, std::exchange(me.incoming_, {}), end);
        }
        break;
      case NGHTTP2_DATA:
        // Padding is nobody's to pass on; nghttp2 gives its window back.
        if (end) me.events_->OnEndOfData(stream);
        break;
      case NGHTTP2_PING:
        me.events_->OnPing(std::to_array(frame->ping.opaque_data),
                           (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0);
        break;
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) me.events_->OnSettings();
        break;
      case NGHTTP2_GOAWAY:
        me.events_->OnGoaway(
            frame->goaway.last_stream_id, frame->goaway.error_code,
            ToView(frame->goaway.opaque_data, frame->goaway.opaque_data_len));
        break;
      default:
        break;
    }
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, StreamId stream,
                           std::uint32_t error, void* self) {
    Of(self).events_->OnStreamClosed(stream, error);
    return 0;
  }

  static int OnFrameSend(nghttp2_session*, const nghttp2_frame* frame,
                         void* self) {
    const bool carries_end =
        frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      Of(self).events_->OnEndSent(frame->hd.stream_id);
    }
    return 0;
  }

  static int OnFrameNotSend(nghttp2_session* session,
                            const nghttp2_frame* frame, int error, void*) {
    // Such as headers that are too large. A stream that could not even be
    // opened is closed by nghttp2; any other would hang.
    if (frame->hd.type == NGHTTP2_HEADERS &&
        frame->headers.cat != NGHTTP2_HCAT_REQUEST &&
        error != NGHTTP2_ERR_STREAM_CLOSED &&
        error != NGHTTP2_ERR_STREAM_CLOSING) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                NGHTTP2_INTERNAL_ERROR);
    }
    return 0;
  }

  static ssize_t ReadLength(nghttp2_session*, std::uint8_t, StreamId,
                            std::int32_t session_window,
                            std::int32_t stream_window, std::uint32_t max_frame,
                            void*) {
    const std::int64_t window = std::min(session_window, stream_window);
    return static_cast<ssize_t>(
        std::min<std::int64_t>({window, max_frame, kFrameBytes}));
  }

  static ssize_t ReadBody(nghttp2_session*, StreamId stream, std::uint8_t*,
                          std::size_t length, std::uint32_t* flags,
                          nghttp2_data_source*, void* self) {
    Session& me = Of(self);
    const std::optional<Body> body = me.events_->BodyOf(stream);
    if (!body) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::size_t count = std::min(length, body->queue->size());
    if (count == 0 && !body->ended) {
      me.events_->OnBodyWaits(stream);
      return NGHTTP2_ERR_DEFERRED;
    }
    if (count > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (body->ended && count == body->queue->size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (body->trailers != nullptr) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        me.SubmitTrailers(stream, *body->trailers);
      }
      me.events_->OnBodyEnds(stream);
    }
    return static_cast<ssize_t>(count);
  }

  static int SendData(nghttp2_session*, nghttp2_frame* frame,
                      const std::uint8_t* head, std::size_t length,
                      nghttp2_data_source*, void* self) {
    constexpr std::size_t kFrameHead = 9;
    Session& me = Of(self);
    if (me.out_.size() >= kOutBytes) return NGHTTP2_ERR_WOULDBLOCK;
    const StreamId stream = frame->hd.stream_id;
    const std::optional<Body> body = me.events_->BodyOf(stream);
    if (!body || body->queue->size() < length) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    me.out_.Append(ToView(head, kFrameHead));
    body->queue->MoveTo(me.out_, length);
    me.events_->OnBodySent(stream, length);
    return 0;
  }

  static std::unique_ptr<nghttp2_session_callbacks, CallbacksDeleter> Make() {
    nghttp2_session_callbacks* all = nullptr;
    if (nghttp2_session_callbacks_new(&all) != 0) throw std::bad_alloc();
    nghttp2_session_callbacks_set_on_begin_headers_callback(all,
                                                            OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(all, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, OnStreamClose);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, OnFrameSend);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(all,
                                                             OnFrameNotSend);
    nghttp2_session_callbacks_set_data_source_read_length_callback(all,
                                                                   ReadLength);
    nghttp2_session_callbacks_set_send_data_callback(all, SendData);
    return std::unique_ptr<nghttp2_session_callbacks, CallbacksDeleter>(all);
  }
};

Session::Session(Role role, UniqueFd fd, Loop& loop, SessionEvents* events,
                 Readable* ready)
    : role_(role),
      fd_(std::move(fd)),
      loop_(loop),
      events_(events),
      ready_(ready) {
  const auto options = MakeOptions();
  const auto callbacks = SessionCallbacks::Make();
  const auto make = role == Role::kServer ? nghttp2_session_server_new2
                                          : nghttp2_session_client_new2;
  if (make(&session_, callbacks.get(), this, options.get()) != 0) {
    throw std::bad_alloc();
  }
}

Session::~Session() {
  Close();
  nghttp2_session_del(session_);
}

absl::Status Session::Watch() {
  watched_ = WantedEvents();
  return loop_.Watch(fd_.get(), watched_, ready_);
}

void Session::SetReading(bool reading) {
  reading_ = reading;
  UpdateWatch();
}

std::uint32_t Session::WantedEvents() const {
  std::uint32_t wanted = 0;
  if (reading_) wanted |= EPOLLIN;
  if (socket_full_) wanted |= EPOLLOUT;
  return wanted;
}

void Session::UpdateWatch() {
  const std::uint32_t wanted = WantedEvents();
  if (closed() || wanted == watched_) return;
  watched_ = wanted;
  loop_.Rewatch(fd_.get(), wanted, ready_);
}

void Session::Close() {
  if (closed()) return;
  loop_.Unwatch(fd_.get());
  fd_.Reset();
}

Session::ReadResult Session::Receive(char* buffer, std::size_t size,
                                     std::size_t* got) {
  *got = 0;
  const ssize_t count = recv(fd_.get(), buffer, size, 0);
  if (count == 0) return ReadResult::kEnd;
  if (count < 0) {
    const bool nothing = errno == EAGAIN || errno == EINTR;
    return nothing ? ReadResult::kMore : ReadResult::kBroken;
  }
  *got = static_cast<std::size_t>(count);
  return ReadResult::kMore;
}

Session::ReadResult Session::Read(std::size_t at_most) {
  // A loop's sessions share it.
  static thread_local const auto buffer =
      std::make_unique<std::array<char, kMaxReadBytes>>();
  const ReadResult result =
      Receive(buffer->data(), std::min(at_most, buffer->size()), &last_read_);
  return last_read_ > 0 ? Handle({buffer->data(), last_read_}) : result;
}

Session::ReadResult Session::Keep(std::size_t enough) {
  const std::size_t before = kept_.size();
  kept_.resize(std::max(before, enough));
  std::size_t got = 0;
  const ReadResult result =
      Receive(kept_.data() + before, kept_.size() - before, &got);
  kept_.resize(before + got);
  return result;
}

Session::ReadResult Session::FeedKept() {
  return Handle(std::exchange(kept_, {}));
}

Session::ReadResult Session::Handle(std::string_view bytes) {
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
      bytes.size());
  // What nghttp2 finds wrong it tells the peer (GOAWAY); see finished().
  if (used < 0) broken_ = true;
  return used < 0 ? ReadResult::kBroken : ReadResult::kMore;
}

bool Session::Fill() {
  bool any = false;
  while (out_.size() < kOutBytes) {
    const std::uint8_t* bytes = nullptr;
    const std::size_t before = out_.size();
    const ssize_t count = nghttp2_session_mem_send(session_, &bytes);
    if (count < 0) broken_ = true;
    if (count > 0) out_.Append(ToView(bytes, static_cast<std::size_t>(count)));
    any = any || out_.size() > before;
    if (count <= 0) break;
  }
  return any;
}

std::size_t Session::Write() {
  if (out_.empty()) return 0;
  std::array<iovec, kMaxPieces> pieces;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = out_.Peek(pieces);
  const ssize_t count =
      sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) {
    // Without memory for buffers the kernel has no room either.
    socket_full_ = errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
                   errno == ENOMEM;
    // A peer that is gone is noticed by reading: it may have left something.
    if (!socket_full_) out_.Clear();
    return 0;
  }
  const auto sent = static_cast<std::size_t>(count);
  out_.Skip(sent);
  socket_full_ = sent < BytesIn({pieces.data(), message.msg_iovlen});
  return sent;
}

bool Session::HasToWrite() const {
  return !out_.empty() || nghttp2_session_want_write(session_) != 0;
}

bool Session::Flush() {
  bool any = false;
  std::size_t sent = 0;
  while (HasToWrite() && !closed() && !socket_full_) {
    const bool filled = !broken_ && Fill();
    const std::size_t written = Write();
    any = any || filled || written > 0;
    sent += written;
    if (!filled && written == 0) break;
    // As if it were: it will be ready when its turn comes again.
    if (sent >= kFlushBytes) socket_full_ = HasToWrite();
  }
  UpdateWatch();
  return any;
}

bool Session::finished() const {
  return broken_ || (!HasToWrite() && nghttp2_session_want_read(session_) == 0);
}

std::size_t Session::waiting_frames() const {
  return nghttp2_session_get_outbound_queue_size(session_);
}

bool Session::congested() const { return waiting_frames() > kMaxWaitingFrames; }

void Session::SubmitSettings(std::optional<std::uint32_t> max_streams,
                             std::optional<std::uint32_t> max_header_list,
                             std::uint32_t stream_window) {
  std::vector<nghttp2_settings_entry> entries;
  if (role_ == Role::kClient) {
    entries.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  }
  entries.push_back({NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window});
  entries.push_back({NGHTTP2_SETTINGS_MAX_FRAME_SIZE, kFrameBytes});
  if (max_streams) {
    entries.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, *max_streams});
  }
  if (max_header_list) {
    entries.push_back(
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, *max_header_list});
  }
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries.data(),
                          entries.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        kConnectionWindow);
}

std::uint32_t Session::PeerSetting(nghttp2_settings_id id) const {
  return nghttp2_session_get_remote_settings(session_, id);
}

std::optional<StreamId> Session::SubmitRequest(const Headers& headers,
                                               bool has_body) {
  const NameValues nv = ToNv(headers);
  nghttp2_data_provider provider{};
  provider.read_callback = SessionCallbacks::ReadBody;
  const StreamId stream =
      nghttp2_submit_request(session_, nullptr, nv.data(), nv.size(),
                             has_body ? &provider : nullptr, nullptr);
  if (stream < 0) return std::nullopt;
  return stream;
}

void Session::SubmitResponse(StreamId stream, const Headers& headers,
                             bool has_body) {
  const NameValues nv = ToNv(headers);
  nghttp2_data_provider provider{};
  provider.read_callback = SessionCallbacks::ReadBody;
  nghttp2_submit_response(session_, stream, nv.data(), nv.size(),
                          has_body ? &provider : nullptr);
}

void Session::SubmitTrailers(StreamId stream, const Headers& trailers) {
  const NameValues nv = ToNv(trailers);
  nghttp2_submit_trailer(session_, stream, nv.data(), nv.size());
}

void Session::SubmitReset(StreamId stream, std::uint32_t error) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, error);
}

void Session::SubmitPing(const Ping& ping, bool ack) {
  nghttp2_submit_ping(session_, ack ? NGHTTP2_FLAG_ACK : NGHTTP2_FLAG_NONE,
                      ping.data());
}

void Session::SubmitGoaway(std::uint32_t error, std::string_view debug) {
  nghttp2_submit_goaway(
      session_, NGHTTP2_FLAG_NONE,
      nghttp2_session_get_last_proc_stream_id(session_), error,
      reinterpret_cast<const std::uint8_t*>(debug.data()), debug.size());
}

void Session::SubmitShutdownNotice() {
  nghttp2_submit_shutdown_notice(session_);
}

void Session::ResumeBody(StreamId stream) {
  nghttp2_session_resume_data(session_, stream);
}

void Session::Consumed(StreamId stream, std::size_t count) {
  nghttp2_session_consume_stream(session_, stream, count);
}

}  // namespace devmgr::http2
