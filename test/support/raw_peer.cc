// SPDX-License-Identifier: Apache-2.0
#include "support/raw_peer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "rpc/unix_socket.h"

namespace devmgr::http2 {
namespace {

/// For 64 MiB on a machine that has much else to do.
constexpr std::chrono::seconds kLongPatience{120};

std::vector<nghttp2_nv> Nv(const RawHeaders& headers) {
  std::vector<nghttp2_nv> nv;
  for (const auto& [name, value] : headers) {
    const auto bytes = [](const std::string& text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    nv.push_back({bytes(name), bytes(value), name.size(), value.size(), 0});
  }
  return nv;
}

}  // namespace

struct RawCallbacks {
  static RawConnection& Of(void* self) {
    return *static_cast<RawConnection*>(self);
  }

  static int BeginHeaders(nghttp2_session*, const nghttp2_frame* frame,
                          void* self) {
    RawConnection& me = Of(self);
    const std::lock_guard lock(me.mutex_);
    me.received_[frame->hd.stream_id].headers.emplace_back();
    return 0;
  }

  static int Header(nghttp2_session*, const nghttp2_frame* frame,
                    const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size,
                    std::uint8_t, void* self) {
    RawConnection& me = Of(self);
    const std::lock_guard lock(me.mutex_);
    me.received_[frame->hd.stream_id].headers.back().emplace_back(
        std::string(reinterpret_cast<const char*>(name), name_size),
        std::string(reinterpret_cast<const char*>(value), value_size));
    return 0;
  }

  static int Data(nghttp2_session* session, std::uint8_t, std::int32_t stream,
                  const std::uint8_t* bytes, std::size_t size, void* self) {
    RawConnection& me = Of(self);
    nghttp2_session_consume_connection(session, size);
    const std::lock_guard lock(me.mutex_);
    RawMessage& message = me.received_[stream];
    if (me.options_.keeps_bodies) {
      message.body.append(reinterpret_cast<const char*>(bytes), size);
    }
    message.body_bytes += size;
    if (me.gives_window_) {
      nghttp2_session_consume_stream(session, stream, size);
    } else {
      me.unreturned_[stream] += size;
    }
    me.changed_.notify_all();
    return 0;
  }

  static int Frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    RawConnection& me = Of(self);
    const std::int32_t stream = frame->hd.stream_id;
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool message =
        frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    RawMessage event;
    {
      const std::lock_guard lock(me.mutex_);
      if (message && end) me.received_[stream].ended = true;
      if (frame->hd.type == NGHTTP2_PING) {
        ++((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 ? me.pongs_ : me.pings_);
      }
      if (frame->hd.type == NGHTTP2_GOAWAY) {
        me.goaway_ = frame->goaway.error_code;
      }
      const bool tells = frame->hd.type == NGHTTP2_HEADERS || end;
      if (message && tells && me.options_.on_event) {
        ++me.received_[stream].events;
        event = me.received_[stream];
      }
      me.changed_.notify_all();
    }
    if (message && me.options_.on_event &&
        (frame->hd.type == NGHTTP2_HEADERS || end)) {
      me.options_.on_event(me, stream, event);
    }
    return 0;
  }

  static int Close(nghttp2_session*, std::int32_t stream, std::uint32_t error,
                   void* self) {
    RawConnection& me = Of(self);
    me.sending_.erase(stream);
    const std::lock_guard lock(me.mutex_);
    me.received_[stream].closed = true;
    me.received_[stream].reset = error;
    me.changed_.notify_all();
    return 0;
  }

  static ssize_t Pad(nghttp2_session*, const nghttp2_frame* frame,
                     std::size_t most, void* self) {
    const std::size_t length = frame->hd.length;
    const bool pads = frame->hd.type == NGHTTP2_DATA;
    const std::size_t padding = pads ? Of(self).options_.padding : 0;
    return static_cast<ssize_t>(std::min(length + padding, most));
  }

  static ssize_t Read(nghttp2_session* session, std::int32_t stream,
                      std::uint8_t* buffer, std::size_t length,
                      std::uint32_t* flags, nghttp2_data_source*, void* self) {
    RawConnection& me = Of(self);
    const auto it = me.sending_.find(stream);
    if (it == me.sending_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    RawConnection::Sending& sending = it->second;
    const std::size_t count = std::min(
        {length, sending.send.piece, sending.send.body.size() - sending.sent});
    std::copy_n(sending.send.body.data() + sending.sent, count, buffer);
    sending.sent += count;
    {
      const std::lock_guard lock(me.mutex_);
      me.sent_[stream] = sending.sent;
    }
    if (sending.sent < sending.send.body.size()) {
      return static_cast<ssize_t>(count);
    }
    if (sending.send.reset_after) {
      if (count == 0) {
        nghttp2_submit_rst_stream(session, 0, stream,
                                  *sending.send.reset_after);
        return NGHTTP2_ERR_DEFERRED;
      }
      return static_cast<ssize_t>(count);  // asked once more
    }
    if (sending.send.open_end) {
      return count == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED)
                        : static_cast<ssize_t>(count);
    }
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!sending.send.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const auto nv = Nv(sending.send.trailers);
      nghttp2_submit_trailer(session, stream, nv.data(), nv.size());
    }
    return static_cast<ssize_t>(count);
  }
};

RawConnection::RawConnection(UniqueFd fd, Options options)
    : options_(std::move(options)),
      fd_(std::move(fd)),
      wake_up_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      gives_window_(options_.gives_window) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, RawCallbacks::BeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks,
                                                   RawCallbacks::Header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                            RawCallbacks::Data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                       RawCallbacks::Frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                         RawCallbacks::Close);
  nghttp2_session_callbacks_set_select_padding_callback(callbacks,
                                                        RawCallbacks::Pad);
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_http_messaging(option, 1);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_send_header_block_length(option, 1 << 25);
  nghttp2_option_set_stream_reset_rate_limit(option, 1'000'000, 1'000'000);
  const auto make = options_.server ? nghttp2_session_server_new2
                                    : nghttp2_session_client_new2;
  make(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window}};
  if (options_.max_streams > 0) {
    settings.push_back(
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_streams});
  }
  nghttp2_submit_settings(session_, 0, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, 0, 0, 64 << 20);
  thread_ = std::thread([this] { Run(); });
}

RawConnection::~RawConnection() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_up_.get(), 1);
  thread_.join();
  nghttp2_session_del(session_);
}

void RawConnection::Post(std::function<void()> task) {
  if (std::this_thread::get_id() == thread_.get_id()) return task();
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  eventfd_write(wake_up_.get(), 1);
}

bool RawConnection::Flush() {
  for (;;) {
    while (out_.size() < 65536) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t count = nghttp2_session_mem_send(session_, &bytes);
      if (count < 0) return false;
      if (count == 0) break;
      out_.append(reinterpret_cast<const char*>(bytes),
                  static_cast<std::size_t>(count));
    }
    if (out_.empty()) return true;
    const ssize_t sent =
        send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EPIPE;
    out_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool RawConnection::Step() {
  if (!Flush()) return false;
  pollfd descriptors[2] = {
      {fd_.get(), static_cast<short>(POLLIN | (out_.empty() ? 0 : POLLOUT)), 0},
      {wake_up_.get(), POLLIN, 0}};
  poll(descriptors, 2, -1);
  if (descriptors[1].revents != 0) {
    eventfd_t times = 0;
    eventfd_read(wake_up_.get(), &times);
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    if (!fd_.valid()) return false;
  }
  if ((descriptors[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    std::uint8_t buffer[65536];
    const ssize_t count = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN;
    if (nghttp2_session_mem_recv(session_, buffer,
                                 static_cast<std::size_t>(count)) < 0) {
      return false;
    }
  }
  return nghttp2_session_want_read(session_) != 0 ||
         nghttp2_session_want_write(session_) != 0 || !out_.empty();
}

void RawConnection::Run() {
  while (Step()) {
  }
  fd_.Reset();
  const std::lock_guard lock(mutex_);
  over_ = true;
  for (auto& [stream, message] : received_) {
    if (!message.closed) message.lost = message.closed = true;
  }
  changed_.notify_all();
}

std::int32_t RawConnection::Request(RawSend send) {
  std::int32_t stream = 0;
  bool done = false;
  Post([&] {
    const auto nv = Nv(send.headers);
    nghttp2_data_provider provider{};
    provider.read_callback = RawCallbacks::Read;
    const std::int32_t id =
        nghttp2_submit_request(session_, nullptr, nv.data(), nv.size(),
                               send.has_body ? &provider : nullptr, nullptr);
    if (id > 0) sending_[id].send = std::move(send);
    const std::lock_guard lock(mutex_);
    if (id > 0) received_[id];
    stream = id;
    done = true;
    changed_.notify_all();
  });
  // A connection that is over runs no tasks any more.
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done || over_; });
  if (!done) tasks_.clear();
  return stream;
}

void RawConnection::Answer(std::int32_t stream, RawSend send) {
  Post([this, stream, send = std::move(send)]() mutable {
    const auto nv = Nv(send.headers);
    nghttp2_data_provider provider{};
    provider.read_callback = RawCallbacks::Read;
    const bool has_body = send.has_body;
    sending_[stream].send = std::move(send);
    nghttp2_submit_response(session_, stream, nv.data(), nv.size(),
                            has_body ? &provider : nullptr);
  });
}

void RawConnection::Reset(std::int32_t stream, std::uint32_t error) {
  Post([this, stream, error] {
    nghttp2_submit_rst_stream(session_, 0, stream, error);
  });
}

void RawConnection::Goaway(std::uint32_t error, bool notice) {
  Post([this, error, notice] {
    if (notice) {
      nghttp2_submit_shutdown_notice(session_);
    } else {
      nghttp2_submit_goaway(session_, 0,
                            nghttp2_session_get_last_proc_stream_id(session_),
                            error, nullptr, 0);
    }
  });
}

void RawConnection::Ping() {
  Post([this] { nghttp2_submit_ping(session_, 0, nullptr); });
}

void RawConnection::GiveWindow() {
  Post([this] {
    const std::lock_guard lock(mutex_);
    gives_window_ = true;
    for (const auto& [stream, count] : unreturned_) {
      nghttp2_session_consume_stream(session_, stream, count);
    }
    unreturned_.clear();
  });
}

void RawConnection::Cut() {
  Post([this] { fd_.Reset(); });
}

bool RawConnection::WaitUntil(const std::function<bool()>& holds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kLongPatience, holds);
}

bool RawConnection::WaitFor(
    std::int32_t stream, const std::function<bool(const RawMessage&)>& holds) {
  return WaitUntil([&] { return holds(received_[stream]); });
}

RawMessage RawConnection::Received(std::int32_t stream) {
  const std::lock_guard lock(mutex_);
  return received_[stream];
}

RawMessage RawConnection::Take(std::int32_t stream) {
  const std::lock_guard lock(mutex_);
  auto node = received_.extract(stream);
  return node.empty() ? RawMessage{} : std::move(node.mapped());
}

bool RawConnection::over() {
  const std::lock_guard lock(mutex_);
  return over_;
}

std::size_t RawConnection::sent(std::int32_t stream) {
  const std::lock_guard lock(mutex_);
  return sent_[stream];
}

int RawConnection::pings() {
  const std::lock_guard lock(mutex_);
  return pings_;
}

int RawConnection::pongs() {
  const std::lock_guard lock(mutex_);
  return pongs_;
}

std::optional<std::uint32_t> RawConnection::goaway() {
  const std::lock_guard lock(mutex_);
  return goaway_;
}

std::uint32_t RawConnection::peer_max_streams() {
  return nghttp2_session_get_remote_settings(
      session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

RawServer::RawServer(std::filesystem::path path, RawConnection::Options options)
    : path_(std::move(path)),
      options_([&] {
        options.server = true;
        return options;
      }()),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  unlink(path_.c_str());
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(listener_.get(), 1024) != 0) {
    std::abort();
  }
  thread_ = std::thread([this] {
    for (;;) {
      pollfd descriptors[2] = {{listener_.get(), POLLIN, 0},
                               {stop_.get(), POLLIN, 0}};
      poll(descriptors, 2, -1);
      if (descriptors[1].revents != 0) return;
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.valid()) continue;
      const std::lock_guard lock(mutex_);
      connections_.push_back(
          std::make_unique<RawConnection>(std::move(fd), options_));
    }
  });
}

RawServer::~RawServer() { Kill(); }

void RawServer::Kill() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  listener_.Reset();
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

std::size_t RawServer::connections() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& one) { return !one->over(); }));
}

std::size_t RawServer::open_streams() {
  const std::lock_guard lock(mutex_);
  std::size_t open = 0;
  for (const auto& one : connections_) {
    const std::lock_guard inner(one->mutex_);
    for (const auto& [stream, message] : one->received_) {
      if (!message.closed) ++open;
    }
  }
  return open;
}

void RawServer::ForEach(const std::function<void(RawConnection&)>& act) {
  const std::lock_guard lock(mutex_);
  for (const auto& one : connections_) act(*one);
}

std::unique_ptr<RawConnection> RawConnect(const std::filesystem::path& path,
                                          RawConnection::Options options) {
  absl::StatusOr<UniqueFd> fd = rpc::ConnectUnix(path);
  if (!fd.ok()) return nullptr;
  return std::make_unique<RawConnection>(*std::move(fd), std::move(options));
}

RawHeaders CallHeaders(const std::string& method, const RawHeaders& more) {
  RawHeaders headers = {
      {":method", "POST"},
      {":scheme", "http"},
      {":path", method},
      {":authority", "localhost"},
      {"te", "trailers"},
      {"content-type", "application/grpc"},
      {"user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"},
      {"grpc-accept-encoding", "identity, deflate, gzip"}};
  headers.insert(headers.end(), more.begin(), more.end());
  return headers;
}

std::string Message(const std::string& bytes, bool compressed) {
  std::string message(5, '\0');
  message[0] = compressed ? 1 : 0;
  for (int i = 0; i < 4; ++i) {
    message[4 - i] = static_cast<char>(bytes.size() >> (8 * i) & 0xff);
  }
  return message + bytes;
}

}  // namespace devmgr::http2
