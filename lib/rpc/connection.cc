// SPDX-License-Identifier: Apache-2.0
#include "rpc/connection.h"

#include <fcntl.h>
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <map>
#include <optional>
#include <utility>

#include "common/mutex.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "rpc/runtime.h"
#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// Error texts of drivers travel as metadata; gRPC's 8 KiB cut long ones off
/// by failing the whole call.
constexpr int kMaxMetadataBytes = 64 * 1024;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // A local socket needs no proxy, no probing for bandwidth or life, and calls
  // shall fail when they fail.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  return arguments;
}

class ConnectionImpl final : public Connection {
 public:
  ConnectionImpl(Runtime& runtime, const PeerCredentials& peer, UniqueFd fd,
                 UniqueFd hang_up_fd, std::string path,
                 std::function<void()> on_hang_up)
      : poller_(runtime.poller()),
        queue_(CallQueue(runtime)),
        peer_(peer),
        path_(std::move(path)),
        on_hang_up_(std::move(on_hang_up)),
        hang_up_fd_(std::move(hang_up_fd)),
        stub_(grpc::CreateCustomInsecureChannelFromFd("localhost", fd.Release(),
                                                      Arguments())) {}

  ~ConnectionImpl() override;

  /// Begins to wait for the peer's hang-up.
  absl::Status Watch();

  CallId Call(const std::string& method, std::string request,
              CallOptions options, CallDone done) override;
  void Cancel(CallId call) override;
  const PeerCredentials& peer() const override { return peer_; }
  bool over() const override { return over_; }

 private:
  class PendingCall;

  void OnHangUp();
  void Forget(CallId call);

  Poller& poller_;
  grpc::CompletionQueue& queue_;
  const PeerCredentials peer_;
  const std::string path_;
  const std::function<void()> on_hang_up_;
  /// A copy of the descriptor that gRPC owns and closes when it likes.
  const UniqueFd hang_up_fd_;
  grpc::GenericStub stub_;
  Poller::WatchId watch_ = 0;
  std::atomic<bool> over_{false};

  Mutex mutex_;
  CondVar forgotten_;
  CallId last_call_ DEVMGR_GUARDED_BY(mutex_) = 0;
  /// Shared with whoever cancels, and with the thread that starts the call.
  std::map<CallId, std::shared_ptr<PendingCall>> calls_
      DEVMGR_GUARDED_BY(mutex_);
};

class ConnectionImpl::PendingCall final : public Completion {
 public:
  PendingCall(ConnectionImpl& connection, CallDone done)
      : connection_(connection), done_(std::move(done)) {}

  void Start(CallId id, const std::string& method, const std::string& request,
             std::chrono::milliseconds timeout) {
    id_ = id;
    // Monotonic: a step of the wall clock must not end calls.
    context_.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(timeout.count(), GPR_TIMESPAN)));
    reader_ = connection_.stub_.PrepareUnaryCall(
        &context_, method, ToByteBuffer(request), &connection_.queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }

  /// Ends on the queue's thread like a call that gRPC failed.
  void Fail(CallId id, grpc::Status status) {
    id_ = id;
    status_ = std::move(status);
    alarm_.emplace();
    alarm_->Set(&connection_.queue_, gpr_now(GPR_CLOCK_MONOTONIC), this);
  }

  void Cancel() { context_.TryCancel(); }

  void OnComplete(bool /*ok*/) override {
    // Gone, with all it captured, before the connection may be.
    std::exchange(done_, nullptr)(Result());
    connection_.Forget(id_);
  }

 private:
  absl::StatusOr<std::string> Result() const {
    if (status_.ok()) return ToString(response_);
    return MakeStatus(static_cast<absl::StatusCode>(status_.error_code()),
                      status_.error_message());
  }

  ConnectionImpl& connection_;
  CallDone done_;
  CallId id_ = 0;
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::optional<grpc::Alarm> alarm_;
  /// Lives in the context's arena, so it goes first.
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

ConnectionImpl::~ConnectionImpl() {
  poller_.Unwatch(watch_);
  std::map<CallId, std::shared_ptr<PendingCall>> calls;
  {
    MutexLock lock(mutex_);
    calls = calls_;
  }
  for (const auto& [id, call] : calls) call->Cancel();
  calls.clear();
  {
    MutexLock lock(mutex_);
    while (!calls_.empty()) forgotten_.Wait(mutex_);
  }
  // The peer sees the end now, not when gRPC gets round to closing.
  shutdown(hang_up_fd_.get(), SHUT_RDWR);
}

absl::Status ConnectionImpl::Watch() {
  DEVMGR_ASSIGN_OR_RETURN(
      watch_, poller_.Watch(hang_up_fd_.get(), EPOLLRDHUP | EPOLLHUP | EPOLLET,
                            [this](std::uint32_t events) {
                              // Errors are reported unasked and end nothing by
                              // themselves.
                              if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0)
                                OnHangUp();
                            }));
  return absl::OkStatus();
}

void ConnectionImpl::OnHangUp() {
  // Half-closed and closed arrive one after the other.
  if (over_.exchange(true)) return;
  if (on_hang_up_) on_hang_up_();
}

Connection::CallId ConnectionImpl::Call(const std::string& method,
                                        std::string request,
                                        CallOptions options, CallDone done) {
  const auto call = std::make_shared<PendingCall>(*this, std::move(done));
  CallId id = 0;
  {
    MutexLock lock(mutex_);
    id = ++last_call_;
    calls_.emplace(id, call);
  }
  if (options.timeout <= std::chrono::milliseconds::zero()) {
    call->Fail(id, grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                fmt::format("'{}' was called without a timeout",
                                            method)));
  } else if (over_) {
    call->Fail(id,
               grpc::Status(grpc::StatusCode::UNAVAILABLE,
                            fmt::format("the peer at '{}' hung up", path_)));
  } else {
    call->Start(id, method, request, options.timeout);
  }
  return id;
}

void ConnectionImpl::Cancel(CallId call) {
  std::shared_ptr<PendingCall> pending;
  {
    MutexLock lock(mutex_);
    const auto it = calls_.find(call);
    if (it == calls_.end()) return;
    pending = it->second;
  }
  pending->Cancel();
}

void ConnectionImpl::Forget(CallId call) {
  std::shared_ptr<PendingCall> pending;  // destroyed after the lock
  MutexLock lock(mutex_);
  const auto it = calls_.find(call);
  pending = std::move(it->second);
  calls_.erase(it);
  // Under the lock: the destructor may be waiting to take all this down.
  forgotten_.NotifyAll();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Dial(
    Runtime& runtime, const std::filesystem::path& path,
    std::function<void()> on_hang_up) {
  DEVMGR_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(path));
  DEVMGR_ASSIGN_OR_RETURN(const PeerCredentials peer, CredentialsOf(fd.get()));
  UniqueFd hang_up_fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!hang_up_fd.valid()) {
    return ErrnoStatus(errno, "cannot duplicate a descriptor");
  }
  auto connection = std::make_unique<ConnectionImpl>(
      runtime, peer, std::move(fd), std::move(hang_up_fd), path.string(),
      std::move(on_hang_up));
  DEVMGR_RETURN_IF_ERROR(connection->Watch());
  return connection;
}

}  // namespace devmgr::rpc
