// SPDX-License-Identifier: Apache-2.0
#include "rpc/connection.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "common/counted.h"
#include "common/mutex.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "rpc/pending_call.h"
#include "rpc/runtime.h"
#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// Error texts of drivers travel as metadata; gRPC's 8 KiB cut long ones off
/// by failing the whole call.
constexpr int kMaxMetadataBytes = 64 * 1024;

grpc::ChannelArguments Arguments(const DialOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(options.max_receive_bytes);
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

/// Now, whether or not anybody was told yet.
bool HungUp(int fd) {
  pollfd state{fd, POLLRDHUP, 0};
  return poll(&state, 1, 0) == 1 &&
         (state.revents & (POLLRDHUP | POLLHUP)) != 0;
}

class ConnectionImpl final : public Connection {
 public:
  ConnectionImpl(Runtime& runtime, const PeerCredentials& peer, UniqueFd fd,
                 UniqueFd hang_up_fd, std::function<void()> on_hang_up,
                 const DialOptions& options)
      : poller_(runtime.poller()),
        queue_(CallQueue(runtime)),
        peer_(peer),
        on_hang_up_(std::move(on_hang_up)),
        hang_up_fd_(std::move(hang_up_fd)),
        stub_(grpc::CreateCustomInsecureChannelFromFd("localhost", fd.Release(),
                                                      Arguments(options))) {}

  ~ConnectionImpl() override;

  /// Begins to wait for the peer's hang-up.
  absl::Status Watch();

  CallId Call(const std::string& method, std::string request,
              CallOptions options, CallDone done) override;
  CallId Stream(const std::string& method, std::string request,
                CallOptions options, StreamEvents events) override;
  void ReadNext(CallId stream) override;
  std::uint64_t Arrived(CallId stream) override;
  void Cancel(CallId call) override;
  const PeerCredentials& peer() const override { return peer_; }
  bool over() const override { return over_ || HungUp(hang_up_fd_.get()); }

 private:
  void OnHangUp();
  /// Why a call cannot go out; OK when it can.
  grpc::Status CheckCall(const std::string& method, const CallOptions& options,
                         bool needs_timeout) const;
  template <typename Make>
  CallId Begin(const grpc::Status& refusal, const CallRequest& request,
               Make make);
  std::shared_ptr<PendingCall> Find(CallId call);
  void Forget(CallId call);

  Poller& poller_;
  grpc::CompletionQueue& queue_;
  const PeerCredentials peer_;
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

grpc::Status ConnectionImpl::CheckCall(const std::string& method,
                                       const CallOptions& options,
                                       bool needs_timeout) const {
  const auto none = std::chrono::milliseconds::zero();
  if (options.timeout < none || (needs_timeout && options.timeout == none)) {
    return {grpc::StatusCode::INVALID_ARGUMENT,
            fmt::format("'{}' was called without a timeout", method)};
  }
  for (const auto& [name, value] : options.metadata) {
    if (IsLegalMetadata(name, value)) continue;
    return {grpc::StatusCode::INVALID_ARGUMENT,
            fmt::format("'{}' was called with metadata that cannot be sent: {}",
                        method, name)};
  }
  if (over()) {
    return {grpc::StatusCode::UNAVAILABLE, "the peer hung up"};
  }
  return grpc::Status::OK;
}

/// Neither gRPC's own words for a deadline say after how long, nor those of a
/// peer that gave up when we did.
CallDone TellingHowLong(CallDone done, std::chrono::milliseconds timeout) {
  static constexpr std::string_view kOwnWords = "Deadline Exceeded";
  return [done = std::move(done), timeout](absl::StatusOr<std::string> answer) {
    const absl::Status& status = answer.status();
    if (absl::IsDeadlineExceeded(status) && !IsFromPeer(status)) {
      const std::string words = MessageOf(status);
      const bool none = words.empty() || words == kOwnWords;
      answer = DeadlineExceededError("no answer within {}{}", SpanText(timeout),
                                     none ? "" : ": " + words);
    }
    done(std::move(answer));
  };
}

template <typename Make>
Connection::CallId ConnectionImpl::Begin(const grpc::Status& refusal,
                                         const CallRequest& request,
                                         Make make) {
  std::shared_ptr<PendingCall> call;
  CallId id = 0;
  {
    MutexLock lock(mutex_);
    id = ++last_call_;
    call = make(CallSite{stub_, queue_, [this] { return over(); },
                         [this, id] { Forget(id); }});
    calls_.emplace(id, call);
  }
  if (refusal.ok()) {
    call->Start(request);
  } else {
    call->Fail(refusal);
  }
  return id;
}

Connection::CallId ConnectionImpl::Call(const std::string& method,
                                        std::string request,
                                        CallOptions options, CallDone done) {
  return Begin(CheckCall(method, options, /*needs_timeout=*/true),
               {method, request, options}, [&](CallSite site) {
                 return MakeUnaryCall(
                     std::move(site),
                     TellingHowLong(std::move(done), options.timeout));
               });
}

Connection::CallId ConnectionImpl::Stream(const std::string& method,
                                          std::string request,
                                          CallOptions options,
                                          StreamEvents events) {
  return Begin(CheckCall(method, options, /*needs_timeout=*/false),
               {method, request, options}, [&](CallSite site) {
                 return MakeStreamCall(std::move(site), std::move(events),
                                       options.unread);
               });
}

std::shared_ptr<PendingCall> ConnectionImpl::Find(CallId call) {
  MutexLock lock(mutex_);
  const auto it = calls_.find(call);
  return it == calls_.end() ? nullptr : it->second;
}

void ConnectionImpl::ReadNext(CallId stream) {
  if (const auto pending = Find(stream)) pending->ReadNext();
}

std::uint64_t ConnectionImpl::Arrived(CallId stream) {
  const auto pending = Find(stream);
  return pending != nullptr ? pending->Arrived() : 0;
}

void ConnectionImpl::Cancel(CallId call) {
  if (const auto pending = Find(call)) pending->Cancel();
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
    std::function<void()> on_hang_up, DialOptions options) {
  DEVMGR_ASSIGN_OR_RETURN(UniqueFd fd, ConnectUnix(path));
  DEVMGR_ASSIGN_OR_RETURN(const PeerCredentials peer, CredentialsOf(fd.get()));
  UniqueFd hang_up_fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!hang_up_fd.valid()) {
    return ErrnoStatus(errno, "cannot duplicate a descriptor");
  }
  auto connection = std::make_unique<ConnectionImpl>(
      runtime, peer, std::move(fd), std::move(hang_up_fd),
      std::move(on_hang_up), options);
  DEVMGR_RETURN_IF_ERROR(connection->Watch());
  return connection;
}

}  // namespace devmgr::rpc
