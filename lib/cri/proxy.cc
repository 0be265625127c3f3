// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "cri/held_calls.h"
#include "cri/link.h"
#include "http2/loop.h"
#include "rpc/unix_socket.h"

namespace devmgr {
namespace cri {
namespace {

constexpr mode_t kUsualMode = 0660;
/// How often we look for the rights of the runtime's socket: while it is not
/// there, and a while after it has changed, since runtimes make it first and
/// set its rights then.
constexpr std::chrono::milliseconds kFirstLook{100};
constexpr std::chrono::milliseconds kLastLook{3'000};
/// Connections accepted in one go, so that other callers get their turn.
constexpr int kAcceptsAtOnce = 8;
/// Out of descriptors: when to try again.
constexpr std::chrono::milliseconds kAcceptAgain{100};
/// Messages are below this on the wire.
constexpr std::size_t kMaxMessageBytes = 0xffff'ffff;

absl::Status Check(const CriProxyOptions& options) {
  std::string wrong;
  const auto require = [&](bool holds, std::string_view what) {
    if (!holds) wrong += (wrong.empty() ? "" : "; ") + std::string(what);
  };
  require(!options.listen.empty(), "listen is missing");
  require(!options.backend.empty(), "backend is missing");
  require(options.listen != options.backend, "listen and backend are the same");
  require(options.intercept.empty() || options.interceptor != nullptr,
          "methods are intercepted, but there is no interceptor");
  require(
      options.max_held_bytes > 0 && options.max_held_bytes < kMaxMessageBytes,
      "max_held_bytes is out of range");
  require(options.max_total_held_bytes > 0, "max_total_held_bytes is 0");
  require(options.decision_budget.count() > 0, "decision_budget is not > 0");
  require(options.version_patience.count() >= 0, "version_patience is < 0");
  require(options.max_connections > 0, "max_connections is 0");
  if (wrong.empty()) return absl::OkStatus();
  return InvalidArgumentError("options of the proxy: {}", wrong);
}

/// Listens with the rights that the runtime's socket has, if it is there.
absl::StatusOr<std::unique_ptr<rpc::SocketFile>> Listen(
    const CriProxyOptions& options) {
  if (options.mode) {
    return rpc::SocketFile::Listen(options.listen, *options.mode);
  }
  const auto like = rpc::RightsOf(options.backend);
  DEVMGR_ASSIGN_OR_RETURN(
      std::unique_ptr<rpc::SocketFile> socket,
      rpc::SocketFile::Listen(options.listen, like ? like->mode : kUsualMode));
  if (like) DEVMGR_RETURN_IF_ERROR(socket->Give(*like));
  return socket;
}

/// Has our socket follow the rights of the runtime's, which may come later, or
/// come back with others. Belongs to the loop's thread.
class FollowedRights {
 public:
  /// All borrowed. `failed` hears of each failure that is another than the
  /// last one.
  FollowedRights(http2::Loop& loop, const rpc::SocketFile& socket,
                 const std::filesystem::path& like,
                 std::function<void(const absl::Status&)> failed)
      : loop_(loop), socket_(socket), like_(like), failed_(std::move(failed)) {}
  ~FollowedRights() { loop_.Cancel(timer_); }
  FollowedRights(const FollowedRights&) = delete;
  FollowedRights& operator=(const FollowedRights&) = delete;

  /// They may be others now.
  void Look() {
    delay_ = kFirstLook;
    Take();
  }

 private:
  void Take() {
    loop_.Cancel(timer_);
    timer_ = 0;
    const auto rights = rpc::RightsOf(like_);
    if (rights && rights != taken_) {
      taken_ = rights;
      delay_ = kFirstLook;
      absl::Status given = socket_.Give(*rights);
      if (!given.ok() && given != last_failure_) failed_(given);
      last_failure_ = std::move(given);
    } else if (rights && delay_ == kLastLook) {
      return;  // They stay what they are, until the runtime goes.
    }
    timer_ = loop_.At(http2::Loop::Clock::now() + delay_, [this] { Take(); });
    delay_ = std::min(2 * delay_, kLastLook);
  }

  http2::Loop& loop_;
  const rpc::SocketFile& socket_;
  const std::filesystem::path like_;
  const std::function<void(const absl::Status&)> failed_;
  std::optional<rpc::SocketRights> taken_;
  absl::Status last_failure_;
  std::chrono::milliseconds delay_{kFirstLook};
  http2::Loop::TimerId timer_ = 0;
};

class CriProxyImpl final : public CriProxy, public http2::Readable {
 public:
  CriProxyImpl(CriProxyOptions options, std::unique_ptr<http2::Loop> loop,
               std::unique_ptr<rpc::SocketFile> socket)
      : options_(std::move(options)),
        loop_(std::move(loop)),
        socket_(std::move(socket)),
        held_calls_(options_, *loop_, counters_) {}

  ~CriProxyImpl() override {
    if (thread_.joinable()) {
      loop_->mailbox()->Post([this] { StopAll(); });
      thread_.join();
    }
    // Decisions may still come, from any thread.
    loop_->mailbox()->Close();
  }

  absl::Status Run() {
    DEVMGR_RETURN_IF_ERROR(loop_->Watch(socket_->fd(), EPOLLIN, this));
    if (!options_.mode) FollowRights();
    thread_ = std::thread([this] { loop_->Run(); });
    pthread_setname_np(thread_.native_handle(), "devmgr-cri");
    return absl::OkStatus();
  }

  CriProxyStats Stats() const override {
    CriProxyStats stats;
    stats.connections = counters_.connections;
    stats.calls = counters_.calls;
    stats.held = counters_.held;
    stats.total_connections = counters_.total_connections;
    stats.total_calls = counters_.total_calls;
    stats.intercepted = counters_.intercepted;
    stats.passed_unread = counters_.passed_unread;
    stats.backend_connects = counters_.backend_connects;
    stats.backend_losses = counters_.backend_losses;
    stats.turned_away = counters_.turned_away;
    return stats;
  }

  /// A caller, or several, want in.
  void OnReady(std::uint32_t) override {
    if (socket_ == nullptr) return;
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      UniqueFd caller(accept4(socket_->fd(), nullptr, nullptr,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (caller.valid()) {
        if (HasRoom()) Adopt(std::move(caller));
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) AcceptLater();
      return;
    }
  }

 private:
  void FollowRights() {
    rights_ = std::make_unique<FollowedRights>(
        *loop_, *socket_, options_.backend, [this](const absl::Status& why) {
          if (options_.interceptor == nullptr) return;
          options_.interceptor->OnRightsNotTaken(
              WithContext(why, "the rights of '{}' are not those of '{}'",
                          options_.listen.string(), options_.backend.string()));
        });
    held_calls_.OnBackendChange([this] {
      if (rights_ != nullptr) rights_->Look();
    });
    loop_->mailbox()->Post([this] {
      if (rights_ != nullptr) rights_->Look();
    });
  }

  /// At the limit the caller that has been there for longest without a call
  /// goes: those that connect and say nothing keep nobody out.
  bool HasRoom() {
    if (links_.size() < options_.max_connections) return true;
    TellTurnedAway(fmt::format(
        "{} callers are connected, which is the limit; one was hung up on",
        options_.max_connections));
    const auto silent = std::find_if(
        by_age_.begin(), by_age_.end(),
        [](const auto& link) { return !link.second->has_called(); });
    if (silent == by_age_.end()) return false;
    silent->second->Stop(UnavailableError("too many callers"));
    return true;
  }

  void TellTurnedAway(const std::string& why) {
    counters_.turned_away++;
    if (options_.interceptor != nullptr) {
      options_.interceptor->OnTurnedAway(why);
    }
  }

  void Adopt(UniqueFd caller) {
    auto link = std::make_unique<Link>(std::move(caller), held_calls_,
                                       [this](Link* over) { Remove(over); });
    if (const absl::Status status = link->Start(); !status.ok()) {
      return TellTurnedAway("a caller was hung up on: " + MessageOf(status));
    }
    counters_.connections++;
    counters_.total_connections++;
    Link* key = link.get();
    by_age_.emplace(++last_link_, key);
    links_.emplace(key, Known{last_link_, std::move(link)});
  }

  void Remove(Link* link) {
    const auto it = links_.find(link);
    loop_->Bury(std::move(it->second.link));
    by_age_.erase(it->second.number);
    links_.erase(it);
    counters_.connections--;
  }

  /// Such as without descriptors: the listener would only keep us awake.
  void AcceptLater() {
    loop_->Rewatch(socket_->fd(), 0, this);
    loop_->At(http2::Loop::Clock::now() + kAcceptAgain, [this] {
      if (socket_ != nullptr) loop_->Rewatch(socket_->fd(), EPOLLIN, this);
    });
  }

  void StopAll() {
    loop_->Unwatch(socket_->fd());
    rights_.reset();
    socket_.reset();
    std::vector<Link*> links;
    links.reserve(links_.size());
    for (const auto& [number, link] : by_age_) links.push_back(link);
    for (Link* link : links) link->Stop(UnavailableError("the proxy stops"));
    loop_->Stop();
  }

  const CriProxyOptions options_;
  Counters counters_;
  const std::unique_ptr<http2::Loop> loop_;
  std::unique_ptr<rpc::SocketFile> socket_;
  std::unique_ptr<FollowedRights> rights_;  ///< Null: they were given.
  HeldCalls held_calls_;
  struct Known {
    std::uint64_t number = 0;
    std::unique_ptr<Link> link;
  };
  std::unordered_map<Link*, Known> links_;
  std::map<std::uint64_t, Link*> by_age_;  ///< By number.
  std::uint64_t last_link_ = 0;
  std::thread thread_;
};

}  // namespace
}  // namespace cri

absl::StatusOr<std::unique_ptr<CriProxy>> CriProxy::Start(
    const CriProxyOptions& options) {
  DEVMGR_RETURN_IF_ERROR(cri::Check(options));
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<http2::Loop> loop,
                          http2::Loop::Make());
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::SocketFile> socket,
                          cri::Listen(options));
  auto proxy = std::make_unique<cri::CriProxyImpl>(options, std::move(loop),
                                                   std::move(socket));
  DEVMGR_RETURN_IF_ERROR(proxy->Run());
  return proxy;
}

}  // namespace devmgr
