// SPDX-License-Identifier: Apache-2.0
//
// The server, and the handles that it gives out. All that sees Boost.
#include "http/server.h"

#include "http/session.h"

namespace devmgr::http {
namespace internal {

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

std::shared_ptr<Responder> MakeResponder(std::shared_ptr<Loop> loop,
                                         std::weak_ptr<Session> session,
                                         std::uint64_t generation) {
  return std::make_shared<RequestResponder>(std::move(loop), std::move(session),
                                            generation);
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
        tls_(std::make_shared<net::ssl::context>(
            net::ssl::context::tls_server)) {
    shared_->options = std::move(options);
    shared_->handler = std::move(handler);
  }
  ~Server() override { Stop(); }

  absl::Status Listen() {
    const Options& options = shared_->options;
    if (options.tls.has_value()) {
      DEVMGR_RETURN_IF_ERROR(SetUpTls(*options.tls, *tls_));
    }
    port_ = options.port;
    DEVMGR_RETURN_IF_ERROR(ListenAt(options.address, /*may_lack=*/false));
    for (const std::string& address : options.further_addresses) {
      DEVMGR_RETURN_IF_ERROR(ListenAt(address, /*may_lack=*/true));
    }
    for (const auto& acceptor : acceptors_) Accept(acceptor);
    loop_->Run();
    return absl::OkStatus();
  }

  absl::Status ReloadCertificate() override {
    if (!shared_->options.tls.has_value()) return absl::OkStatus();
    auto fresh =
        std::make_shared<net::ssl::context>(net::ssl::context::tls_server);
    DEVMGR_RETURN_IF_ERROR(SetUpTls(*shared_->options.tls, *fresh));
    // Sessions go on with the context that they began with.
    loop_->Post([this, fresh = std::move(fresh)] {
      old_tls_.push_back(std::exchange(tls_, fresh));
    });
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
      for (const auto& acceptor : acceptors_) acceptor->close(ignored);
      for (const auto& timer : timers_) timer->cancel(ignored);
      const auto sessions = shared_->sessions;
      for (const std::shared_ptr<Session>& session : sessions) {
        session->Close();
      }
    });
  }

 private:
  using AcceptorPtr = std::shared_ptr<Tcp::acceptor>;

  absl::Status ListenAt(const std::string& text, bool may_lack) {
    error_code error;
    const auto address = net::ip::make_address(text, error);
    if (error) return InvalidArgumentError("'{}' is no IP address", text);
    const Tcp::endpoint endpoint(address, port_);
    auto acceptor = std::make_shared<Tcp::acceptor>(loop_->io());
    acceptor->open(endpoint.protocol(), error);
    if (!error) acceptor->set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(Tcp::acceptor::max_listen_connections, error);
    if (may_lack && (error == net::error::address_family_not_supported ||
                     error == std::errc::address_not_available)) {
      return absl::OkStatus();
    }
    if (error) {
      return UnavailableError("cannot listen at {} port {}: {}", text, port_,
                              error.message());
    }
    port_ = acceptor->local_endpoint(error).port();
    acceptors_.push_back(std::move(acceptor));
    return absl::OkStatus();
  }

  void Accept(const AcceptorPtr& acceptor) {
    acceptor->async_accept(
        [this, acceptor](error_code error, Tcp::socket socket) {
          if (stopping_) return;
          if (!error) {
            Add(std::move(socket));
            Accept(acceptor);
            return;
          }
          // No descriptor is left, most likely.
          auto pause =
              std::make_shared<net::steady_timer>(loop_->io(), kAcceptPause);
          timers_.insert(pause);
          pause->async_wait([this, acceptor, pause](error_code) {
            timers_.erase(pause);
            if (!stopping_) Accept(acceptor);
          });
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
                                             std::move(socket), *tls_);
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
  std::vector<AcceptorPtr> acceptors_;
  std::shared_ptr<net::ssl::context> tls_;
  std::vector<std::shared_ptr<net::ssl::context>> old_tls_;
  std::uint16_t port_ = 0;
  bool stopping_ = false;
  std::set<std::shared_ptr<net::steady_timer>> timers_;
};

}  // namespace internal

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
  auto server = std::make_unique<internal::Server>(std::move(options),
                                                   std::move(handler));
  DEVMGR_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace devmgr::http
