// SPDX-License-Identifier: Apache-2.0
//
// All that sees Boost. Asio 1.74 uses std::exchange without its header.
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

namespace devmgr::http {
namespace {

namespace net = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using Tcp = net::ip::tcp;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kReadBytes = 16u << 10;
/// What a client may send while it is being answered. Beyond it, it is read
/// again when the answer has ended.
constexpr std::size_t kMaxReadAhead = 64u << 10;
constexpr Milliseconds kAcceptPause{100};

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

std::string HeadText(int status, const std::vector<Header>& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " ";
  const auto reason =
      beast_http::obsolete_reason(static_cast<beast_http::status>(status));
  text.append(reason.data(), reason.size());
  text += "\r\n";
  for (const auto& [name, value] : headers) {
    text += name + ": " + value + "\r\n";
  }
  return text;
}

std::string ChunkText(const std::string& data) {
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

class Writer : public StreamWriter {
 public:
  Writer(std::shared_ptr<Loop> loop, std::weak_ptr<Session> session,
         std::uint64_t generation, std::shared_ptr<StreamState> state)
      : loop_(std::move(loop)),
        session_(std::move(session)),
        generation_(generation),
        state_(std::move(state)) {}

  bool Write(std::string chunk) override {
    if (state_->over || session_.expired()) return false;
    if (chunk.empty()) return true;  // That would be the last chunk.
    state_->pending += chunk.size();
    Do([generation = generation_, text = std::move(chunk)](Session& session) {
      session.WriteChunk(generation, text);
    });
    return true;
  }
  std::size_t pending() const override { return state_->pending; }
  void End() override {
    Do([generation = generation_](Session& session) {
      session.EndStream(generation, /*cut=*/false);
    });
  }
  void Cut() override {
    Do([generation = generation_](Session& session) {
      session.EndStream(generation, /*cut=*/true);
    });
  }
  void FallSilent() override {
    Do([generation = generation_](Session& session) {
      session.FallSilent(generation);
    });
  }

 private:
  void Do(std::function<void(Session&)> what) {
    loop_->Post([session = session_, what = std::move(what)] {
      if (const auto alive = session.lock()) what(*alive);
    });
  }

  const std::shared_ptr<Loop> loop_;
  const std::weak_ptr<Session> session_;
  const std::uint64_t generation_;
  const std::shared_ptr<StreamState> state_;
};

class RequestResponder : public Responder {
 public:
  RequestResponder(std::shared_ptr<Loop> loop, std::weak_ptr<Session> session,
                   std::uint64_t generation)
      : loop_(std::move(loop)),
        session_(std::move(session)),
        generation_(generation) {}
  ~RequestResponder() override {
    if (!answered_) Respond({500, {}, "the request was not answered\n", {}});
  }

  void Respond(Response response) override {
    if (answered_.exchange(true)) return;
    loop_->Post([session = session_, generation = generation_,
                 response = std::move(response)]() mutable {
      if (const auto alive = session.lock()) {
        alive->Respond(generation, std::move(response));
      }
    });
  }
  std::shared_ptr<StreamWriter> Stream(int status, std::vector<Header> headers,
                                       StreamEvents events) override {
    auto state = std::make_shared<StreamState>();
    if (answered_.exchange(true)) {
      state->over = true;
    } else {
      loop_->Post([session = session_, generation = generation_, status,
                   headers = std::move(headers), events = std::move(events),
                   state]() mutable {
        const auto alive = session.lock();
        if (alive != nullptr) {
          alive->StartStream(generation, status, std::move(headers),
                             std::move(events), state);
        } else {
          state->over = true;
          if (events.closed) events.closed();
        }
      });
    }
    return std::make_shared<Writer>(loop_, session_, generation_,
                                    std::move(state));
  }
  void FallSilent() override {
    if (answered_.exchange(true)) return;
    loop_->Post([session = session_, generation = generation_] {
      if (const auto alive = session.lock()) alive->FallSilent(generation);
    });
  }
  bool connected() const override { return !session_.expired(); }

 private:
  const std::shared_ptr<Loop> loop_;
  const std::weak_ptr<Session> session_;
  const std::uint64_t generation_;
  std::atomic<bool> answered_{false};
};

void Session::Close() {
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

void Session::StreamOver() {
  if (state_ == nullptr) return;
  state_->over = true;
  state_.reset();
  const StreamEvents events = std::exchange(events_, {});
  if (events.closed) events.closed();
}

void Session::SetDeadline(Milliseconds timeout) {
  const std::uint64_t number = ++deadline_number_;
  deadline_.expires_after(timeout);
  deadline_.async_wait([self = shared_from_this(), number](error_code error) {
    if (!error && number == self->deadline_number_) self->Close();
  });
}

void Session::ReadRequest(Milliseconds timeout) {
  phase_ = Phase::kReading;
  parser_.emplace();
  parser_->header_limit(shared_->options.max_header_bytes);
  parser_->body_limit(shared_->options.max_body_bytes);
  parser_->eager(true);
  continue_sent_ = false;
  SetDeadline(timeout);
  Parse();
}

void Session::StartRead() {
  if (reading_ || phase_ == Phase::kClosed || phase_ == Phase::kSilent) return;
  if (input_.size() >= kMaxReadAhead && phase_ != Phase::kReading) return;
  reading_ = true;
  ReadSome(net::buffer(read_buffer_),
           [self = shared_from_this()](error_code error, std::size_t bytes) {
             self->reading_ = false;
             self->OnRead(error, bytes);
           });
}

void Session::OnRead(error_code error, std::size_t bytes) {
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

void Session::Parse() {
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

void Session::RefuseInput(error_code error) {
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

void Session::Handle() {
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
  shared_->handler(
      std::move(request),
      std::make_shared<RequestResponder>(loop_, weak_from_this(), generation));
}

void Session::Respond(std::uint64_t generation, Response response) {
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

void Session::StartStream(std::uint64_t generation, int status,
                          std::vector<Header> headers, StreamEvents events,
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

void Session::WriteChunk(std::uint64_t generation, std::string chunk) {
  if (generation != generation_ || phase_ != Phase::kStreaming) return;
  const std::size_t size = chunk.size();
  Send(chunked_ ? ChunkText(chunk) : std::move(chunk), size);
}

void Session::EndStream(std::uint64_t generation, bool cut) {
  if (generation != generation_ || phase_ != Phase::kStreaming) return;
  cut_ = cut;
  phase_ = Phase::kEnding;
  SetDeadline(shared_->options.drain_timeout);
  Send(!cut && chunked_ ? "0\r\n\r\n" : "");
}

void Session::FallSilent(std::uint64_t generation) {
  if (generation != generation_) return;
  if (phase_ != Phase::kHandling && phase_ != Phase::kStreaming) return;
  phase_ = Phase::kSilent;
  StreamOver();
}

void Session::Send(std::string text, std::size_t counted) {
  output_.push_back({std::move(text), counted});
  if (!writing_) StartWrite();
}

void Session::StartWrite() {
  writing_ = true;
  WriteAll(net::buffer(output_.front().text),
           [self = shared_from_this()](error_code error, std::size_t bytes) {
             self->writing_ = false;
             self->OnWritten(error, bytes);
           });
}

void Session::OnWritten(error_code error, std::size_t) {
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

void Session::AfterAnswer() {
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

class PlainSession : public Session {
 public:
  PlainSession(std::shared_ptr<Loop> loop, std::shared_ptr<Shared> shared,
               std::string peer, Tcp::socket socket)
      : Session(std::move(loop), shared, std::move(peer)),
        header_timeout_(shared->options.header_timeout),
        socket_(std::move(socket)) {}

  void Begin() override { ReadRequest(header_timeout_); }

 protected:
  void ReadSome(net::mutable_buffer into, Done done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void WriteAll(net::const_buffer from, Done done) override {
    net::async_write(socket_, from, std::move(done));
  }
  Tcp::socket& socket() override { return socket_; }

 private:
  const Milliseconds header_timeout_;
  Tcp::socket socket_;
};

class TlsSession : public Session {
 public:
  TlsSession(std::shared_ptr<Loop> loop, std::shared_ptr<Shared> shared,
             std::string peer, Tcp::socket socket, net::ssl::context& context)
      : Session(std::move(loop), shared, std::move(peer)),
        header_timeout_(shared->options.header_timeout),
        stream_(std::move(socket), context) {}

  void Begin() override {
    SetDeadline(header_timeout_);
    stream_.async_handshake(
        net::ssl::stream_base::server,
        [self = shared_from_this(), this](error_code error) {
          if (error) {
            Close();
          } else {
            ReadRequest(header_timeout_);
          }
        });
  }

 protected:
  void ReadSome(net::mutable_buffer into, Done done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void WriteAll(net::const_buffer from, Done done) override {
    net::async_write(stream_, from, std::move(done));
  }
  Tcp::socket& socket() override { return stream_.next_layer(); }
  std::optional<ClientCertificate> Certificate() override {
    SSL* ssl = stream_.native_handle();
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return std::nullopt;
    ClientCertificate result;
    BIO* text = BIO_new(BIO_s_mem());
    X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0,
                       XN_FLAG_RFC2253);
    char* data = nullptr;
    const long size = BIO_get_mem_data(text, &data);
    result.subject.assign(data, static_cast<std::size_t>(size));
    result.verified = SSL_get_verify_result(ssl) == X509_V_OK;
    BIO_free(text);
    X509_free(certificate);
    return result;
  }

 private:
  const Milliseconds header_timeout_;
  net::ssl::stream<Tcp::socket> stream_;
};

absl::Status SetUpTls(const Tls& tls, net::ssl::context& context) {
  using net::ssl::context_base;
  error_code error;
  context.set_options(context_base::no_sslv2 | context_base::no_sslv3 |
                      context_base::no_tlsv1 | context_base::no_tlsv1_1);
  context.use_certificate_chain_file(tls.certificate.string(), error);
  if (error) {
    return InvalidArgumentError("certificate '{}': {}",
                                tls.certificate.string(), error.message());
  }
  context.use_private_key_file(tls.key.string(), net::ssl::context::pem, error);
  if (error) {
    return InvalidArgumentError("key '{}': {}", tls.key.string(),
                                error.message());
  }
  if (!tls.client_authority.empty()) {
    context.load_verify_file(tls.client_authority.string(), error);
    if (error) {
      return InvalidArgumentError(
          "authority '{}': {}", tls.client_authority.string(), error.message());
    }
  }
  // Asked for, reported, and never required. What a certificate is worth is
  // for the handler to say.
  context.set_verify_mode(net::ssl::verify_peer);
  context.set_verify_callback(
      [](bool, net::ssl::verify_context&) { return true; });
  static constexpr unsigned char kName[] = "devmgr";
  SSL_CTX_set_session_id_context(context.native_handle(), kName,
                                 sizeof(kName) - 1);
  return absl::OkStatus();
}

class Server : public HttpServer {
 public:
  Server(Options options, Handler handler)
      : shared_(std::make_shared<Shared>()),
        loop_(std::make_shared<Loop>()),
        acceptor_(loop_->io()),
        accept_pause_(loop_->io()),
        tls_(net::ssl::context::tls_server) {
    shared_->options = std::move(options);
    shared_->handler = std::move(handler);
  }
  ~Server() override { Stop(); }

  absl::Status Listen() {
    const Options& options = shared_->options;
    if (options.tls.has_value()) {
      DEVMGR_RETURN_IF_ERROR(SetUpTls(*options.tls, tls_));
    }
    error_code error;
    const auto address = net::ip::make_address(options.address, error);
    if (error) {
      return InvalidArgumentError("'{}' is no IP address", options.address);
    }
    const Tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(Tcp::acceptor::max_listen_connections, error);
    if (error) {
      return UnavailableError("cannot listen at {} port {}: {}",
                              options.address, options.port, error.message());
    }
    port_ = acceptor_.local_endpoint(error).port();
    Accept();
    loop_->Run();
    return absl::OkStatus();
  }

  std::uint16_t port() const override { return port_; }
  std::size_t connections() const override { return shared_->connections; }
  void Post(std::function<void()> task) override {
    loop_->Post(std::move(task));
  }
  void PostAfter(Milliseconds delay, std::function<void()> task) override {
    loop_->Post([this, delay, task = std::move(task)]() mutable {
      auto timer = std::make_shared<net::steady_timer>(loop_->io(), delay);
      timers_.insert(timer);
      timer->async_wait(
          [this, timer, task = std::move(task)](error_code error) {
            timers_.erase(timer);
            if (!error) task();
          });
    });
  }
  void Stop() override {
    loop_->Stop([this] {
      stopping_ = true;
      error_code ignored;
      acceptor_.close(ignored);
      accept_pause_.cancel(ignored);
      for (const auto& timer : timers_) timer->cancel(ignored);
      const auto sessions = shared_->sessions;
      for (const std::shared_ptr<Session>& session : sessions) {
        session->Close();
      }
    });
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](error_code error, Tcp::socket socket) {
      if (stopping_) return;
      if (error) {
        // No descriptor is left, most likely.
        accept_pause_.expires_after(kAcceptPause);
        accept_pause_.async_wait([this](error_code) {
          if (!stopping_) Accept();
        });
        return;
      }
      Add(std::move(socket));
      Accept();
    });
  }

  void Add(Tcp::socket socket) {
    error_code error;
    const Tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;
    if (shared_->connections >= shared_->options.max_connections) return;
    socket.set_option(Tcp::no_delay(true), error);
    std::string name =
        peer.address().to_string() + ":" + std::to_string(peer.port());
    std::shared_ptr<Session> session;
    if (shared_->options.tls.has_value()) {
      session = std::make_shared<TlsSession>(loop_, shared_, std::move(name),
                                             std::move(socket), tls_);
    } else {
      session = std::make_shared<PlainSession>(loop_, shared_, std::move(name),
                                               std::move(socket));
    }
    shared_->sessions.insert(session);
    ++shared_->connections;
    session->Begin();
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Loop> loop_;
  Tcp::acceptor acceptor_;
  net::steady_timer accept_pause_;
  net::ssl::context tls_;
  std::uint16_t port_ = 0;
  bool stopping_ = false;
  std::set<std::shared_ptr<net::steady_timer>> timers_;
};

}  // namespace

std::string_view Request::Find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() &&
        std::equal(key.begin(), key.end(), name.begin(), [](char a, char b) {
          return std::tolower(static_cast<unsigned char>(a)) ==
                 std::tolower(static_cast<unsigned char>(b));
        })) {
      return value;
    }
  }
  return {};
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options,
                                                              Handler handler) {
  auto server =
      std::make_unique<Server>(std::move(options), std::move(handler));
  DEVMGR_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace devmgr::http
