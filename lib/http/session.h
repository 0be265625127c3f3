// SPDX-License-Identifier: Apache-2.0
//
// One connection of the server. Part of server.cc alone, so that Boost is
// compiled once. Asio 1.74 uses std::exchange without its header.
#pragma once

#include <utility>
// Boost behind it.
#include <openssl/ssl.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <cstdio>
#include <deque>
#include <set>
#include <thread>

#include "common/mutex.h"
#include "common/status.h"
#include "http/server.h"

namespace devmgr::http::internal {

namespace net = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using Tcp = net::ip::tcp;
using Milliseconds = std::chrono::milliseconds;

inline constexpr std::size_t kReadBytes = 16u << 10;
/// What a client may send while it is being answered. Beyond it, it is read
/// again when the answer has ended.
inline constexpr std::size_t kMaxReadAhead = 64u << 10;
inline constexpr Milliseconds kAcceptPause{100};

/// The thread, and what keeps handles that outlive the server harmless.
class Loop {
 public:
  net::io_context& io() { return io_; }

  void Run() {
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "devmgr-http");
      io_.run();
    });
  }
  void Post(std::function<void()> task) DEVMGR_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!stopped_) net::post(io_, std::move(task));
  }
  /// `last` runs on the thread, which ends when nothing is left to do.
  void Stop(std::function<void()> last) DEVMGR_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (stopped_) return;
      stopped_ = true;
      net::post(io_, std::move(last));
    }
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }

 private:
  net::io_context io_{1};
  net::executor_work_guard<net::io_context::executor_type> work_{
      io_.get_executor()};
  std::thread thread_;
  Mutex mutex_;
  bool stopped_ DEVMGR_GUARDED_BY(mutex_) = false;
};

class Session;

/// What server and sessions share; lives on the loop's thread.
struct Shared {
  Options options;
  Handler handler;
  std::set<std::shared_ptr<Session>> sessions;
  std::atomic<std::size_t> connections{0};
};

using Done = std::function<void(error_code, std::size_t)>;

/// How far a streamed answer got, for its writer.
struct StreamState {
  std::atomic<std::size_t> pending{0};
  std::atomic<bool> over{false};
};

inline std::string HeadText(int status, const std::vector<Header>& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  const auto reason =
      beast_http::obsolete_reason(static_cast<beast_http::status>(status));
  text.append(reason.data(), reason.size());
  text += "\r\n";
  for (const auto& [name, value] : headers) {
    text.append(name).append(": ").append(value).append("\r\n");
  }
  return text;
}

inline std::string ChunkText(const std::string& data) {
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", data.size());
  return size + data + "\r\n";
}

/// One connection. Everything happens on the loop's thread. One read is always
/// pending, so that a client that leaves is noticed.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Loop> loop, std::shared_ptr<Shared> shared,
          std::string peer)
      : shared_(std::move(shared)),
        loop_(std::move(loop)),
        peer_(std::move(peer)),
        deadline_(loop_->io()) {}
  virtual ~Session() = default;

  virtual void Begin() = 0;
  void Close();

  // For handles. A generation is that of a request; what is late does nothing.
  void Respond(std::uint64_t generation, Response response);
  void StartStream(std::uint64_t generation, int status,
                   std::vector<Header> headers, StreamEvents events,
                   std::shared_ptr<StreamState> state);
  void WriteChunk(std::uint64_t generation, std::string chunk);
  void EndStream(std::uint64_t generation, bool cut);
  void FallSilent(std::uint64_t generation);

 protected:
  virtual void ReadSome(net::mutable_buffer into, Done done) = 0;
  virtual void WriteAll(net::const_buffer from, Done done) = 0;
  virtual Tcp::socket& socket() = 0;
  virtual std::optional<ClientCertificate> Certificate() {
    return std::nullopt;
  }
  void ReadRequest(Milliseconds timeout);
  void SetDeadline(Milliseconds timeout);

 private:
  enum class Phase {
    kReading,
    kHandling,
    kStreaming,
    kEnding,
    kDraining,
    kSilent,
    kClosed
  };
  using Parser = beast_http::request_parser<beast_http::string_body>;

  void StartRead();
  void OnRead(error_code error, std::size_t bytes);
  void Parse();
  void RefuseInput(error_code error);
  void Handle();
  /// `counted`: how much of it the writer of a stream waits for.
  void Send(std::string text, std::size_t counted = 0);
  void StartWrite();
  void OnWritten(error_code error, std::size_t bytes);
  void AfterAnswer();
  void StreamOver();

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Loop> loop_;
  const std::string peer_;
  net::steady_timer deadline_;
  std::uint64_t deadline_number_ = 0;

  Phase phase_ = Phase::kReading;
  std::uint64_t generation_ = 0;
  std::optional<Parser> parser_;
  bool continue_sent_ = false;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool chunked_ = true;
  bool cut_ = false;  ///< Close as soon as all is written.

  bool reading_ = false;
  std::string input_;
  std::string read_buffer_ = std::string(kReadBytes, '\0');
  bool writing_ = false;
  struct Output {
    std::string text;
    std::size_t counted = 0;
  };
  std::deque<Output> output_;

  StreamEvents events_;
  std::shared_ptr<StreamState> state_;
};

/// What answers the request of that number. In server.cc.
std::shared_ptr<Responder> MakeResponder(std::shared_ptr<Loop> loop,
                                         std::weak_ptr<Session> session,
                                         std::uint64_t generation);

inline void Session::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  error_code ignored;
  deadline_.cancel(ignored);
  socket().close(ignored);
  StreamOver();
  if (shared_->sessions.erase(shared_from_this()) != 0) {
    --shared_->connections;
  }
}

inline void Session::StreamOver() {
  if (state_ == nullptr) return;
  state_->over = true;
  state_.reset();
  const StreamEvents events = std::exchange(events_, {});
  if (events.closed) events.closed();
}

inline void Session::SetDeadline(Milliseconds timeout) {
  const std::uint64_t number = ++deadline_number_;
  deadline_.expires_after(timeout);
  deadline_.async_wait([self = shared_from_this(), number](error_code error) {
    if (!error && number == self->deadline_number_) self->Close();
  });
}

inline void Session::ReadRequest(Milliseconds timeout) {
  phase_ = Phase::kReading;
  parser_.emplace();
  parser_->header_limit(shared_->options.max_header_bytes);
  parser_->body_limit(shared_->options.max_body_bytes);
  parser_->eager(true);
  continue_sent_ = false;
  SetDeadline(timeout);
  Parse();
}

inline void Session::StartRead() {
  if (reading_ || phase_ == Phase::kClosed || phase_ == Phase::kSilent) return;
  if (input_.size() >= kMaxReadAhead && phase_ != Phase::kReading) return;
  reading_ = true;
  ReadSome(net::buffer(read_buffer_),
           [self = shared_from_this()](error_code error, std::size_t bytes) {
             self->reading_ = false;
             self->OnRead(error, bytes);
           });
}

inline void Session::OnRead(error_code error, std::size_t bytes) {
  if (phase_ == Phase::kClosed || phase_ == Phase::kSilent) return;
  if (error) {
    Close();
    return;
  }
  if (phase_ == Phase::kDraining) {
    StartRead();
    return;
  }
  input_.append(read_buffer_, 0, bytes);
  if (phase_ == Phase::kReading) {
    Parse();
  } else {
    StartRead();
  }
}

inline void Session::Parse() {
  while (phase_ == Phase::kReading && !input_.empty()) {
    const bool had_header = parser_->is_header_done();
    error_code error;
    const std::size_t taken = parser_->put(net::buffer(input_), error);
    input_.erase(0, taken);
    if (error == beast_http::error::need_more) {
      // The limit holds for headers that never end, too.
      error = {};
      if (taken == 0) break;
    }
    if (error) {
      RefuseInput(error);
      return;
    }
    if (!had_header && parser_->is_header_done()) {
      SetDeadline(shared_->options.body_timeout);
    }
    if (parser_->is_done()) {
      Handle();
      return;
    }
  }
  if (phase_ == Phase::kReading && parser_->is_header_done() &&
      !continue_sent_ &&
      parser_->get()[beast_http::field::expect] == "100-continue") {
    continue_sent_ = true;
    Send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  StartRead();
}

inline void Session::RefuseInput(error_code error) {
  int status = 400;
  if (error == beast_http::error::body_limit) status = 413;
  if (error == beast_http::error::header_limit) status = 431;
  const std::string text = error.message();
  Response response{status, {}, text + "\n", {}};
  if (shared_->options.refusal) {
    response = shared_->options.refusal(status, text);
  }
  // What follows cannot be understood.
  keep_alive_ = false;
  is_head_ = false;
  input_.clear();
  ++generation_;
  phase_ = Phase::kHandling;
  Respond(generation_, std::move(response));
}

inline void Session::Handle() {
  beast_http::request<beast_http::string_body> message = parser_->release();
  keep_alive_ = message.keep_alive();
  is_head_ = message.method() == beast_http::verb::head;
  chunked_ = message.version() >= 11;
  Request request;
  const auto method = message.method_string();
  request.method.assign(method.data(), method.size());
  const auto target = message.target();
  request.target.assign(target.data(), target.size());
  for (const auto& field : message) {
    const auto name = field.name_string();
    const auto value = field.value();
    request.headers.emplace_back(std::string(name.data(), name.size()),
                                 std::string(value.data(), value.size()));
  }
  request.body = std::move(message.body());
  request.peer = peer_;
  request.certificate = Certificate();
  phase_ = Phase::kHandling;
  ++deadline_number_;
  deadline_.cancel();
  const std::uint64_t generation = ++generation_;
  StartRead();
  shared_->handler(std::move(request),
                   MakeResponder(loop_, weak_from_this(), generation));
}

inline void Session::Respond(std::uint64_t generation, Response response) {
  if (generation != generation_ || phase_ != Phase::kHandling) return;
  response.headers.emplace_back("Content-Length",
                                std::to_string(response.body.size()));
  if (!keep_alive_) response.headers.emplace_back("Connection", "close");
  std::string text = HeadText(response.status, response.headers) + "\r\n";
  if (!is_head_) text += response.body;
  if (response.cut_after.has_value()) {
    text.resize(std::min(text.size(), *response.cut_after));
    cut_ = true;
  }
  phase_ = Phase::kEnding;
  SetDeadline(shared_->options.drain_timeout);
  Send(std::move(text));
}

inline void Session::StartStream(std::uint64_t generation, int status,
                                 std::vector<Header> headers,
                                 StreamEvents events,
                                 std::shared_ptr<StreamState> state) {
  if (generation != generation_ || phase_ != Phase::kHandling) {
    state->over = true;
    if (events.closed) events.closed();
    return;
  }
  if (chunked_) {
    headers.emplace_back("Transfer-Encoding", "chunked");
  } else {
    keep_alive_ = false;
  }
  if (!keep_alive_) headers.emplace_back("Connection", "close");
  events_ = std::move(events);
  state_ = std::move(state);
  phase_ = Phase::kStreaming;
  Send(HeadText(status, headers) + "\r\n");
}

inline void Session::WriteChunk(std::uint64_t generation, std::string chunk) {
  if (generation != generation_ || phase_ != Phase::kStreaming) return;
  const std::size_t size = chunk.size();
  Send(chunked_ ? ChunkText(chunk) : std::move(chunk), size);
}

inline void Session::EndStream(std::uint64_t generation, bool cut) {
  if (generation != generation_ || phase_ != Phase::kStreaming) return;
  cut_ = cut;
  phase_ = Phase::kEnding;
  SetDeadline(shared_->options.drain_timeout);
  Send(!cut && chunked_ ? "0\r\n\r\n" : "");
}

inline void Session::FallSilent(std::uint64_t generation) {
  if (generation != generation_) return;
  if (phase_ != Phase::kHandling && phase_ != Phase::kStreaming) return;
  phase_ = Phase::kSilent;
  StreamOver();
}

inline void Session::Send(std::string text, std::size_t counted) {
  output_.push_back({std::move(text), counted});
  if (!writing_) StartWrite();
}

inline void Session::StartWrite() {
  writing_ = true;
  WriteAll(net::buffer(output_.front().text),
           [self = shared_from_this()](error_code error, std::size_t bytes) {
             self->writing_ = false;
             self->OnWritten(error, bytes);
           });
}

inline void Session::OnWritten(error_code error, std::size_t) {
  if (phase_ == Phase::kClosed || phase_ == Phase::kSilent) return;
  if (error) {
    Close();
    return;
  }
  if (state_ != nullptr) state_->pending -= output_.front().counted;
  output_.pop_front();
  if (!output_.empty()) {
    StartWrite();
    return;
  }
  if (phase_ == Phase::kEnding) {
    AfterAnswer();
  } else if (phase_ == Phase::kStreaming) {
    const std::function<void()> drained = events_.drained;
    if (drained) drained();
  }
}

inline void Session::AfterAnswer() {
  if (cut_) {
    Close();
    return;
  }
  StreamOver();
  if (keep_alive_) {
    ReadRequest(shared_->options.idle_timeout);
    return;
  }
  // Closing at once would take the answer away from a client that still sends.
  phase_ = Phase::kDraining;
  error_code ignored;
  socket().shutdown(Tcp::socket::shutdown_send, ignored);
  StartRead();
}

}  // namespace devmgr::http::internal
