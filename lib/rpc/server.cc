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
#include "rpc/call_turns.h"
#include "rpc/client_lines.h"
#include "rpc/handlers.h"
#include "rpc/pending_answer.h"
#include "rpc/runtime.h"
#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// How long clients get to read answers when the server goes. A client that
/// behaves needs about a millisecond.
constexpr std::chrono::milliseconds kFarewell{100};

/// Calls that a client is said to may have open. One has begun calls before it
/// reads that; when they are more, gRPC ends its connection with all of them.
/// So this is far above what clients do that behave, and CallTurns holds back
/// what is beyond max_calls. Half of the limit, because a client can begin a
/// call before the end of the one before has come out of the queue here.
constexpr int kAnnouncedCalls = ClientLines::kMaxOpen / 2;

/// Connections accepted in one go, so that other descriptors get their turn.
constexpr int kMaxAcceptsAtOnce = 64;

absl::Status ClosingError() {
  return UnavailableError("the server is shutting down");
}

class ServerImpl;

/// One call, from the offer to take one until its end:
///
///   expected -> waiting -> reading -> answering -> gone
///      |  `--------------^               ^
///      `------------`--------------------'
///
/// Expected and reading have an operation on the queue. In waiting the end of
/// another call of the client comes next, or that of the server; in answering
/// the pending answer decides what does, on any thread.
class ServerCall final : public Completion {
 public:
  explicit ServerCall(ServerImpl& server) : server_(server) {}

  void Expect();
  void OnComplete(bool ok) override;

  /// After waiting: it is its turn.
  void Proceed();
  /// In place of that.
  void Refuse(const grpc::Status& status);

  const std::shared_ptr<PendingAnswer>& pending() const { return pending_; }
  ClientLines::Id line() const { return line_; }
  bool has_turn() const { return has_turn_; }
  void set_has_turn() { has_turn_ = true; }

 private:
  enum class Step { kExpected, kWaiting, kReading, kAnswering };

  /// gRPC's word that the call is over, for whatever reason.
  class Over final : public Completion {
   public:
    explicit Over(ServerCall& call) : call_(call) {}
    void OnComplete(bool /*ok*/) override {
      call_.pending_->OnClientGone();
      call_.Leave();
    }

   private:
    ServerCall& call_;
  };

  void Begin();
  void Handle();
  /// One of what is to come has come; with the last the call goes.
  void Leave();

  ServerImpl& server_;
  const std::shared_ptr<PendingAnswer> pending_ =
      std::make_shared<PendingAnswer>();
  Over over_{*this};
  // On the queue's thread only, but for the stream as said above.
  Step step_ = Step::kExpected;
  int to_come_ = 1;
  ClientLines::Id line_ = 0;
  Caller caller_;
  bool has_turn_ = false;  ///< Among the calls of its line.
  const Handler* handler_ = nullptr;
  grpc::ByteBuffer request_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
};

class ServerImpl final : public Server {
 public:
  ServerImpl(Runtime& runtime, ServerOptions options)
      : poller_(runtime.poller()),
        path_(options.socket),
        mode_(options.mode),
        users_(options.users),
        has_streams_(!options.streams.empty()),
        on_listener_failed_(std::move(options.on_listener_failed)),
        on_turned_away_(std::move(options.on_turned_away)),
        max_connections_(options.max_connections),
        max_calls_(options.max_calls),
        handlers_(HandlersOf(std::move(options))),
        turns_(static_cast<std::size_t>(max_calls_)),
        lines_(poller_, max_connections_,
               [this](ClientLines::Id line) { RefuseWaiting(line); }) {}
  ~ServerImpl() override;

  absl::Status Run();
  bool IsReachable() const override {
    return socket_ != nullptr && !listener_failed_ && socket_->InPlace();
  }
  absl::Status Relisten() override;
  std::size_t accepted_connections() const override { return accepted_; }
  std::size_t turned_away() const override { return lines_.turned_away(); }
  std::size_t open_calls() const override DEVMGR_EXCLUDES(mutex_);

 private:
  friend class ServerCall;

  absl::Status StartGrpc();
  void OnListenerReady(std::uint32_t events);
  void AcceptConnections();
  bool AcceptConnection();
  void TellTurnedAway(const std::string& why) const {
    if (on_turned_away_) on_turned_away_(why);
  }
  void ExpectCall();
  /// False: so many calls of the client are handled that this one waits.
  bool MayGoOn(ServerCall& call) DEVMGR_EXCLUDES(mutex_);
  /// The client is gone.
  void RefuseWaiting(ClientLines::Id line) DEVMGR_EXCLUDES(mutex_);
  bool closing() const DEVMGR_EXCLUDES(mutex_);
  void Forget(ServerCall* call);

  Poller& poller_;
  const std::filesystem::path path_;
  const mode_t mode_;
  const std::vector<uid_t> users_;
  const bool has_streams_;
  const std::function<void()> on_listener_failed_;
  const std::function<void(const std::string&)> on_turned_away_;
  const std::size_t max_connections_;
  const int max_calls_;
  const Handlers handlers_;
  std::unique_ptr<SocketFile> socket_;
  std::atomic<Poller::WatchId> watch_{0};
  std::atomic<bool> listener_failed_{false};
  /// Given up for a moment when descriptors run out, see AcceptConnection.
  UniqueFd spare_fd_;
  std::atomic<std::size_t> accepted_{0};

  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> grpc_server_;
  std::thread thread_;

  mutable Mutex mutex_;
  bool closing_ DEVMGR_GUARDED_BY(mutex_) = false;
  CallTurns<ServerCall> turns_ DEVMGR_GUARDED_BY(mutex_);
  CondVar forgotten_;
  std::map<ServerCall*, std::unique_ptr<ServerCall>> calls_
      DEVMGR_GUARDED_BY(mutex_);
  /// Last: it calls back until it is gone.
  ClientLines lines_;
};

void ServerCall::Expect() {
  // Asked for by streams alone, and needed by them alone: who only waits to
  // be written to is not heard of otherwise.
  if (server_.has_streams_) context_.AsyncNotifyWhenDone(&over_);
  server_.service_.RequestCall(&context_, &stream_, server_.queue_.get(),
                               server_.queue_.get(), this);
}

void ServerCall::OnComplete(bool ok) {
  switch (step_) {
    case Step::kExpected:
      if (!ok) return server_.Forget(this);  // shutting down
      if (server_.has_streams_) ++to_come_;
      server_.ExpectCall();
      return Begin();
    case Step::kWaiting:
      return;  // Nothing is on the queue.
    case Step::kReading:
      if (ok) return Handle();
      return Refuse({grpc::StatusCode::INTERNAL, "the call has no request"});
    case Step::kAnswering:
      if (!pending_->OnSent(ok)) Leave();
  }
}

void ServerCall::Begin() {
  const ClientLines::Call call = server_.lines_.Begin(context_.peer());
  line_ = call.line;
  caller_ = call.caller;
  if (call.hung_up) {
    server_.TellTurnedAway(
        fmt::format("a client left more than {} calls open and was hung up on",
                    ClientLines::kMaxOpen));
  }
  if (call.too_many) {
    return Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls"});
  }
  const auto method = server_.handlers_.find(context_.method());
  if (method == server_.handlers_.end()) {
    return Refuse(UnknownMethod(server_.handlers_, context_.method()));
  }
  handler_ = &method->second;
  step_ = Step::kWaiting;
  if (server_.MayGoOn(*this)) Proceed();
}

void ServerCall::Proceed() {
  step_ = Step::kReading;
  stream_.Read(&request_, this);
}

void ServerCall::Handle() {
  step_ = Step::kAnswering;
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : context_.client_metadata()) {
    metadata.emplace(std::string(name.data(), name.size()),
                     std::string(value.data(), value.size()));
  }
  pending_->Open({context_, stream_, this}, std::move(metadata), caller_);
  // The end of the server aborts the answers that are pending by then; those
  // that come here later have to look themselves.
  if (server_.closing()) return pending_->Abort(ClosingError());
  std::string request = ToString(request_);
  (*handler_)(std::move(request), std::make_shared<Answerer>(pending_));
}

void ServerCall::Refuse(const grpc::Status& status) {
  step_ = Step::kAnswering;
  stream_.Finish(status, this);
}

void ServerCall::Leave() {
  if (--to_come_ == 0) server_.Forget(this);
}

ServerImpl::~ServerImpl() {
  poller_.Unwatch(watch_);
  socket_.reset();
  if (!grpc_server_) return;
  std::vector<std::shared_ptr<PendingAnswer>> answers;
  std::vector<ServerCall*> waiting;
  {
    MutexLock lock(mutex_);
    closing_ = true;
    for (const auto& [call, owned] : calls_) answers.push_back(call->pending());
    waiting = turns_.TakeWaiting();
  }
  for (ServerCall* call : waiting) call->Refuse(ToGrpc(ClosingError()));
  for (const auto& answer : answers) answer->Abort(ClosingError());
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

absl::Status ServerImpl::Run() {
  spare_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  DEVMGR_RETURN_IF_ERROR(StartGrpc());
  // Last: from here on the file is there, and somebody may connect.
  return Relisten();
}

absl::Status ServerImpl::Relisten() {
  poller_.Unwatch(watch_.exchange(0));
  if (socket_ != nullptr) AcceptConnections();  // They found us before.
  socket_.reset();
  DEVMGR_ASSIGN_OR_RETURN(socket_, SocketFile::Listen(path_, mode_, users_));
  listener_failed_ = false;
  DEVMGR_ASSIGN_OR_RETURN(watch_, poller_.Watch(socket_->fd(), EPOLLIN,
                                                [this](std::uint32_t events) {
                                                  OnListenerReady(events);
                                                }));
  return absl::OkStatus();
}

void ServerImpl::OnListenerReady(std::uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) == 0) return AcceptConnections();
  // It would wake us without end. Without a watch yet it does so once more.
  poller_.Unwatch(watch_);
  if (listener_failed_.exchange(true)) return;
  if (on_listener_failed_) on_listener_failed_();
}

absl::Status ServerImpl::StartGrpc() {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kAnnouncedCalls);
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
    const ClientLines::Added added = lines_.Add(fd.get());
    if (added.was_full) {
      TellTurnedAway(
          fmt::format("{} clients are connected, which is the limit; one was "
                      "hung up on",
                      max_connections_));
    } else if (!added.taken) {
      TellTurnedAway("a client was hung up on: no descriptor is left for it");
    }
    if (!added.taken) return true;  // hung up on
    grpc::AddInsecureChannelFromFd(grpc_server_.get(), fd.Release());
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    TellTurnedAway("a client was hung up on: " + ErrnoText(errno));
    // Left in the queue, it would wake us without end.
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

bool ServerImpl::MayGoOn(ServerCall& call) {
  MutexLock lock(mutex_);
  // When the server ends, none may begin to wait.
  if (closing_ || call.line() == 0) return true;
  call.set_has_turn();
  return turns_.Begin(call.line(), &call);
}

void ServerImpl::RefuseWaiting(ClientLines::Id line) {
  std::vector<ServerCall*> waiting;
  {
    MutexLock lock(mutex_);
    waiting = turns_.TakeWaiting(line);
  }
  for (ServerCall* call : waiting) {
    call->Refuse({grpc::StatusCode::CANCELLED, "the client is gone"});
  }
}

std::size_t ServerImpl::open_calls() const {
  MutexLock lock(mutex_);
  return calls_.empty() ? 0 : calls_.size() - 1;  // One is expected.
}

void ServerImpl::Forget(ServerCall* call) {
  lines_.End(call->line());
  std::unique_ptr<ServerCall> owned;  // destroyed after the lock
  ServerCall* next = nullptr;
  {
    MutexLock lock(mutex_);
    if (call->has_turn()) next = turns_.End(call->line());
    const auto it = calls_.find(call);
    owned = std::move(it->second);
    calls_.erase(it);
    forgotten_.NotifyAll();
  }
  if (next != nullptr) next->Proceed();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Runtime& runtime,
                                                      ServerOptions options) {
  auto server = std::make_unique<ServerImpl>(runtime, std::move(options));
  DEVMGR_RETURN_IF_ERROR(server->Run());
  return server;
}

}  // namespace devmgr::rpc
