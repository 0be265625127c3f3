// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "rpc/runtime.h"
#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// How long clients get to read answers when the server goes. A client that
/// behaves needs about a millisecond.
constexpr std::chrono::milliseconds kFarewell{100};

/// Calls under way per connection; more wait in the client.
constexpr int kMaxStreams = 1024;

/// Connections accepted in one go, so that other descriptors get their turn.
constexpr int kMaxAcceptsAtOnce = 64;

/// `unknown service <s>` or `unknown method <m> for service <s>`, as servers
/// written in Go answer: clients look for these words.
grpc::Status UnknownMethod(const std::map<std::string, UnaryHandler>& methods,
                           const std::string& method) {
  const std::size_t slash = method.rfind('/');
  if (!method.starts_with('/') || slash == 0) {
    return {grpc::StatusCode::UNIMPLEMENTED,
            fmt::format("malformed method name: \"{}\"", method)};
  }
  const std::string prefix = method.substr(0, slash + 1);
  const std::string service = method.substr(1, slash - 1);
  const auto known = methods.lower_bound(prefix);
  if (known != methods.end() && known->first.starts_with(prefix)) {
    return {grpc::StatusCode::UNIMPLEMENTED,
            fmt::format("unknown method {} for service {}",
                        method.substr(slash + 1), service)};
  }
  return {grpc::StatusCode::UNIMPLEMENTED,
          fmt::format("unknown service {}", service)};
}

grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), MessageOf(status)};
}

absl::Status ClosingError() {
  return UnavailableError("the server is shutting down");
}

class ServerImpl final : public Server {
 public:
  ServerImpl(Runtime& runtime, std::map<std::string, UnaryHandler> methods)
      : poller_(runtime.poller()), methods_(std::move(methods)) {}
  ~ServerImpl() override;

  absl::Status Run(const ServerOptions& options);
  std::size_t accepted_connections() const override { return accepted_; }

 private:
  class ServerCall;

  absl::Status StartGrpc();
  void AcceptConnections();
  bool AcceptConnection();
  void ExpectCall();
  bool closing() const DEVMGR_EXCLUDES(mutex_);
  void Forget(ServerCall* call);

  Poller& poller_;
  const std::map<std::string, UnaryHandler> methods_;
  std::unique_ptr<SocketFile> socket_;
  Poller::WatchId watch_ = 0;
  /// Given up for a moment when descriptors run out, see AcceptConnection.
  UniqueFd spare_fd_;
  std::atomic<std::size_t> accepted_{0};

  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::thread thread_;

  mutable Mutex mutex_;
  bool closing_ DEVMGR_GUARDED_BY(mutex_) = false;
  CondVar forgotten_;
  std::map<ServerCall*, std::unique_ptr<ServerCall>> calls_
      DEVMGR_GUARDED_BY(mutex_);
};

/// One call, from the offer to take one until its end:
///
///   expected -> reading -> answering -> gone
///         `------------------^
///
/// In the first two the call has an operation on the queue. In answering it
/// gets its last one, from whoever comes first: the handler, on any thread, or
/// the end of the server.
class ServerImpl::ServerCall final : public Completion {
 public:
  /// What handlers hold of a call. It does not keep the call.
  class Gate {
   public:
    void Open(ServerCall* call) {
      MutexLock lock(mutex_);
      call_ = call;
    }
    /// Answers if the gate is open, and closes it.
    void Answer(const absl::StatusOr<std::string>& answer) {
      // Locked while the answer goes to the queue (which does not block): with
      // that the call may end.
      MutexLock lock(mutex_);
      if (call_ != nullptr) std::exchange(call_, nullptr)->Send(answer);
    }

   private:
    Mutex mutex_;
    ServerCall* call_ DEVMGR_GUARDED_BY(mutex_) = nullptr;
  };

  explicit ServerCall(ServerImpl& server) : server_(server) {}

  void Expect() {
    server_.service_.RequestCall(&context_, &stream_, server_.queue_.get(),
                                 server_.queue_.get(), this);
  }

  void OnComplete(bool ok) override {
    switch (step_) {
      case Step::kExpected:
        if (!ok) return server_.Forget(this);  // shutting down
        server_.ExpectCall();
        return Begin();
      case Step::kReading:
        if (ok) return Handle();
        return Refuse({grpc::StatusCode::INTERNAL, "the call has no request"});
      case Step::kAnswering:
        return server_.Forget(this);
    }
  }

  const std::shared_ptr<Gate>& gate() const { return gate_; }

 private:
  enum class Step { kExpected, kReading, kAnswering };

  /// Speaks up for a handler that lets go of its call.
  class Answerer {
   public:
    explicit Answerer(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
    ~Answerer() {
      gate_->Answer(InternalError("the call was dropped unanswered"));
    }
    Answerer(const Answerer&) = delete;
    Answerer& operator=(const Answerer&) = delete;

    Gate& gate() const { return *gate_; }

   private:
    const std::shared_ptr<Gate> gate_;
  };

  void Begin() {
    const auto method = server_.methods_.find(context_.method());
    if (method == server_.methods_.end()) {
      return Refuse(UnknownMethod(server_.methods_, context_.method()));
    }
    handler_ = &method->second;
    step_ = Step::kReading;
    stream_.Read(&request_, this);
  }

  void Handle() {
    step_ = Step::kAnswering;
    gate_->Open(this);
    // The end of the server answers at gates that are open by then; those that
    // come here later have to look themselves.
    if (server_.closing()) return gate_->Answer(ClosingError());
    std::string request = ToString(request_);
    const auto answerer = std::make_shared<Answerer>(gate_);
    (*handler_)(std::move(request),
                [answerer](const absl::StatusOr<std::string>& answer) {
                  answerer->gate().Answer(answer);
                });
  }

  void Refuse(const grpc::Status& status) {
    step_ = Step::kAnswering;
    stream_.Finish(status, this);
  }

  void Send(const absl::StatusOr<std::string>& answer) {
    if (answer.ok()) {
      stream_.WriteAndFinish(ToByteBuffer(*answer), grpc::WriteOptions(),
                             grpc::Status::OK, this);
    } else {
      stream_.Finish(ToGrpc(answer.status()), this);
    }
  }

  ServerImpl& server_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  // On the queue's thread only, but for the stream as said above.
  Step step_ = Step::kExpected;
  const UnaryHandler* handler_ = nullptr;
  grpc::ByteBuffer request_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
};

ServerImpl::~ServerImpl() {
  poller_.Unwatch(watch_);
  socket_.reset();
  if (!grpc_server_) return;
  std::vector<std::shared_ptr<ServerCall::Gate>> gates;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    for (const auto& [call, owned] : calls_) gates.push_back(call->gate());
  }
  for (const auto& gate : gates) gate->Answer(ClosingError());
  grpc_server_->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_millis(kFarewell.count(), GPR_TIMESPAN)));
  {
    // gRPC waits for connections, not for calls: one may have ended with its
    // connection while its answer is still on the way to the queue.
    MutexLock lock(mutex_);
    while (!calls_.empty()) forgotten_.Wait(mutex_);
  }
  queue_->Shutdown();
  thread_.join();
}

absl::Status ServerImpl::Run(const ServerOptions& options) {
  spare_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  DEVMGR_RETURN_IF_ERROR(StartGrpc());
  // Last: from here on the file is there, and somebody may connect.
  DEVMGR_ASSIGN_OR_RETURN(socket_,
                          SocketFile::Listen(options.socket, options.mode));
  DEVMGR_ASSIGN_OR_RETURN(
      watch_,
      poller_.Watch(socket_->fd(), EPOLLIN,
                    [this](std::uint32_t /*events*/) { AcceptConnections(); }));
  return absl::OkStatus();
}

absl::Status ServerImpl::StartGrpc() {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  // Clients may ask for a sign of life as often as they like; we never do.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  grpc_server_ = builder.BuildAndStart();
  if (!grpc_server_) {
    queue_->Shutdown();
    DrainCompletions(*queue_);
    return InternalError("gRPC did not start a server");
  }
  thread_ = std::thread([this] { DrainCompletions(*queue_); });
  pthread_setname_np(thread_.native_handle(), "rpc-server");
  ExpectCall();
  return absl::OkStatus();
}

void ServerImpl::AcceptConnections() {
  for (int i = 0; i < kMaxAcceptsAtOnce && AcceptConnection(); ++i) {
  }
}

bool ServerImpl::AcceptConnection() {
  const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  UniqueFd fd(accept4(socket_->fd(), nullptr, nullptr, flags));
  if (fd.valid()) {
    ++accepted_;
    grpc::AddInsecureChannelFromFd(grpc_server_.get(), fd.Release());
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    // Turn the client away: left in the queue, it would wake us without end.
    spare_fd_.Reset();
    fd.Reset(accept4(socket_->fd(), nullptr, nullptr, flags));
    fd.Reset();
    spare_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return false;
  }
  return errno == ECONNABORTED || errno == EINTR;
}

void ServerImpl::ExpectCall() {
  auto owned = std::make_unique<ServerCall>(*this);
  ServerCall* const call = owned.get();
  {
    MutexLock lock(mutex_);
    if (closing_) return;
    calls_.emplace(call, std::move(owned));
  }
  // Not after the queue's end: that waits for this call.
  call->Expect();
}

bool ServerImpl::closing() const {
  MutexLock lock(mutex_);
  return closing_;
}

void ServerImpl::Forget(ServerCall* call) {
  std::unique_ptr<ServerCall> owned;  // destroyed after the lock
  MutexLock lock(mutex_);
  const auto it = calls_.find(call);
  owned = std::move(it->second);
  calls_.erase(it);
  forgotten_.NotifyAll();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Runtime& runtime,
                                                      ServerOptions options) {
  auto server =
      std::make_unique<ServerImpl>(runtime, std::move(options.methods));
  DEVMGR_RETURN_IF_ERROR(server->Run(options));
  return server;
}

}  // namespace devmgr::rpc
