// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "http2/loop.h"
#include "rpc/handlers.h"
#include "rpc/server_client.h"
#include "rpc/unix_socket.h"

namespace devmgr::rpc {
namespace {

/// How long clients get to read answers when the server goes. A client that
/// behaves needs about a millisecond.
constexpr std::chrono::milliseconds kFarewell{100};

/// Connections accepted in one go, so that other descriptors get their turn;
/// and of a socket that is given up.
constexpr int kAcceptsAtOnce = 8;
constexpr int kLastAccepts = 128;

/// Of a process: its user and its number, 0 and 0 where they are not known.
using ProcessKey = std::pair<uid_t, pid_t>;

ProcessKey KeyOf(const Caller& caller) {
  return caller.has_value() ? ProcessKey{caller->uid, caller->pid}
                            : ProcessKey{};
}

class ServerImpl final : public Server, public http2::Readable {
 public:
  ServerImpl(ServerOptions options, std::unique_ptr<http2::Loop> loop)
      : path_(options.socket),
        mode_(options.mode),
        users_(options.users),
        on_listener_failed_(std::move(options.on_listener_failed)),
        on_turned_away_(std::move(options.on_turned_away)),
        max_connections_(options.max_connections),
        loop_(std::move(loop)),
        room_{*loop_,
              HandlersOf(options),
              static_cast<std::size_t>(options.max_calls),
              open_calls_,
              [this](const std::string& why) { TurnAway(why); },
              [this](ServerClient* over) { Remove(over); }} {}
  ~ServerImpl() override;

  absl::Status Run();
  bool IsReachable() const override DEVMGR_EXCLUDES(mutex_);
  absl::Status Relisten() override DEVMGR_EXCLUDES(mutex_);
  std::size_t accepted_connections() const override { return accepted_; }
  std::size_t turned_away() const override { return turned_away_; }
  std::size_t open_calls() const override { return open_calls_; }

  void OnReady(std::uint32_t events) override;

 private:
  using Clients = std::map<std::uint64_t, std::unique_ptr<ServerClient>>;

  absl::Status Listen() DEVMGR_EXCLUDES(mutex_);
  void CloseListener() DEVMGR_EXCLUDES(mutex_);
  void AcceptConnections(int at_most);
  bool AcceptConnection();
  void Adopt(UniqueFd fd);
  bool MakeRoom(const Caller& newcomer);
  Clients::iterator FindOneOfMany(const Caller& newcomer);
  void TurnAway(const std::string& why);
  void Remove(ServerClient* over);
  void StopAll();
  void StopOnceAllIsSent();

  const std::filesystem::path path_;
  const mode_t mode_;
  const std::vector<uid_t> users_;
  const std::function<void()> on_listener_failed_;
  const std::function<void(const std::string&)> on_turned_away_;
  const std::size_t max_connections_;
  std::atomic<std::size_t> accepted_{0};
  std::atomic<std::size_t> turned_away_{0};
  std::atomic<std::size_t> open_calls_{0};

  const std::unique_ptr<http2::Loop> loop_;
  ServerRoom room_;
  /// Of the loop's thread, as all that follows: in the order they came.
  Clients clients_;
  std::uint64_t last_client_ = 0;
  bool stopping_ = false;
  /// Given up for a moment when descriptors run out, see AcceptConnection.
  UniqueFd spare_fd_;

  mutable Mutex mutex_;
  /// Changed on the loop's thread only, null while nothing listens.
  std::unique_ptr<SocketFile> socket_ DEVMGR_GUARDED_BY(mutex_);
  int listener_ = -1;  ///< Its descriptor, for the loop's thread.

  std::thread thread_;
};

ServerImpl::~ServerImpl() {
  if (thread_.joinable()) {
    loop_->mailbox()->Post([this] { StopAll(); });
    thread_.join();
  }
  // Answers may still come, from any thread.
  loop_->mailbox()->Close();
}

absl::Status ServerImpl::Run() {
  spare_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  DEVMGR_RETURN_IF_ERROR(Listen());
  thread_ = std::thread([this] { loop_->Run(); });
  pthread_setname_np(thread_.native_handle(), "rpc-server");
  return absl::OkStatus();
}

bool ServerImpl::IsReachable() const {
  MutexLock lock(mutex_);
  return socket_ != nullptr && socket_->InPlace();
}

absl::Status ServerImpl::Relisten() {
  std::promise<absl::Status> listens;
  loop_->mailbox()->Post([this, &listens] {
    if (listener_ >= 0)
      AcceptConnections(kLastAccepts);  // They found us before.
    CloseListener();
    listens.set_value(Listen());
  });
  return listens.get_future().get();
}

absl::Status ServerImpl::Listen() {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<SocketFile> socket,
                          SocketFile::Listen(path_, mode_, users_));
  DEVMGR_RETURN_IF_ERROR(loop_->Watch(socket->fd(), EPOLLIN, this));
  listener_ = socket->fd();
  MutexLock lock(mutex_);
  socket_ = std::move(socket);
  return absl::OkStatus();
}

void ServerImpl::CloseListener() {
  if (listener_ < 0) return;
  loop_->Unwatch(std::exchange(listener_, -1));
  std::unique_ptr<SocketFile> socket;  // destroyed after the lock
  MutexLock lock(mutex_);
  socket.swap(socket_);
}

void ServerImpl::OnReady(std::uint32_t events) {
  if (listener_ < 0) return;
  if ((events & (EPOLLHUP | EPOLLERR)) == 0) {
    return AcceptConnections(kAcceptsAtOnce);
  }
  CloseListener();  // It would wake us without end.
  if (on_listener_failed_) on_listener_failed_();
}

void ServerImpl::AcceptConnections(int at_most) {
  for (int i = 0; i < at_most && AcceptConnection(); ++i) {
  }
}

bool ServerImpl::AcceptConnection() {
  const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  UniqueFd fd(accept4(listener_, nullptr, nullptr, flags));
  if (fd.valid()) {
    ++accepted_;
    Adopt(std::move(fd));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    TurnAway("a client was hung up on: " + ErrnoText(errno));
    // Left in the queue, it would wake us without end.
    spare_fd_.Reset();
    fd.Reset(accept4(listener_, nullptr, nullptr, flags));
    fd.Reset();
    spare_fd_.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return false;
  }
  return errno == ECONNABORTED || errno == EINTR;
}

void ServerImpl::Adopt(UniqueFd fd) {
  const auto peer = CredentialsOf(fd.get());
  const Caller caller = peer.ok() ? Caller(*peer) : std::nullopt;
  if (clients_.size() >= max_connections_) {
    TurnAway(
        fmt::format("{} clients are connected, which is the limit; one was "
                    "hung up on",
                    max_connections_));
    if (!MakeRoom(caller)) return;
  }
  auto client = std::make_unique<ServerClient>(std::move(fd), caller, room_);
  if (const absl::Status started = client->Start(); !started.ok()) {
    return TurnAway("a client was hung up on: " + MessageOf(started));
  }
  clients_.emplace(++last_client_, std::move(client));
}

bool ServerImpl::MakeRoom(const Caller& newcomer) {
  auto found = std::find_if(
      clients_.begin(), clients_.end(),
      [](const auto& client) { return !client.second->has_called(); });
  if (found == clients_.end()) found = FindOneOfMany(newcomer);
  if (found == clients_.end()) return false;
  found->second->End();
  return true;
}

ServerImpl::Clients::iterator ServerImpl::FindOneOfMany(
    const Caller& newcomer) {
  std::map<ProcessKey, std::size_t> counts;
  for (const auto& [id, client] : clients_) ++counts[KeyOf(client->caller())];
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto own = counts.find(KeyOf(newcomer));
  const std::size_t has = own != counts.end() ? own->second : 0;
  auto found = clients_.end();
  if (most == counts.end() || most->second <= std::max<std::size_t>(has, 1)) {
    return found;
  }
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (KeyOf(client->second->caller()) != most->first) continue;
    if (client->second->open_calls() == 0) return client;
    if (found == clients_.end()) found = client;
  }
  return found;
}

void ServerImpl::TurnAway(const std::string& why) {
  ++turned_away_;
  if (on_turned_away_) on_turned_away_(why);
}

void ServerImpl::Remove(ServerClient* over) {
  const auto found = std::find_if(
      clients_.begin(), clients_.end(),
      [over](const auto& one) { return one.second.get() == over; });
  if (found == clients_.end()) return;
  loop_->Bury(std::move(found->second));
  clients_.erase(found);
  if (stopping_ && clients_.empty()) loop_->Stop();
}

void ServerImpl::StopAll() {
  CloseListener();
  stopping_ = true;
  std::vector<ServerClient*> clients;
  clients.reserve(clients_.size());
  for (const auto& [id, client] : clients_) clients.push_back(client.get());
  for (ServerClient* client : clients) {
    client->Stop(UnavailableError("the server is shutting down"));
  }
  loop_->At(http2::Loop::Clock::now() + kFarewell, [this] { loop_->Stop(); });
  StopOnceAllIsSent();
}

void ServerImpl::StopOnceAllIsSent() {
  constexpr std::chrono::milliseconds kLookAgain{1};
  if (std::all_of(clients_.begin(), clients_.end(),
                  [](const auto& client) { return client.second->idle(); })) {
    return loop_->Stop();
  }
  loop_->At(http2::Loop::Clock::now() + kLookAgain,
            [this] { StopOnceAllIsSent(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<http2::Loop> loop,
                          http2::Loop::Make());
  auto server =
      std::make_unique<ServerImpl>(std::move(options), std::move(loop));
  DEVMGR_RETURN_IF_ERROR(server->Run());
  return server;
}

}  // namespace devmgr::rpc
