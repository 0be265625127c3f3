// SPDX-License-Identifier: Apache-2.0
#include "registration/registrar.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <system_error>
#include <utility>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::registration {
namespace {

/// Of what plugins and the log get to read; plugins have their say in it.
constexpr std::size_t kMaxTextBytes = 4096;

std::int64_t Nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Registrar::Registrar(Executor& executor, std::filesystem::path directory,
                     PluginDialer dialer,
                     std::map<std::string, PluginHandler*> handlers_by_type,
                     LogSink log)
    : executor_(executor),
      directory_(std::move(directory)),
      dialer_(std::move(dialer)),
      handlers_(std::move(handlers_by_type)),
      log_(executor, std::move(log)) {}

Registrar::~Registrar() {
  for (auto& [name, entry] : entries_) executor_.Cancel(entry.retry);
}

void Registrar::OnDirectoryEvent(const watcher::DirectoryEvent& event) {
  DEVMGR_ASSERT_ON(executor_);
  using Kind = watcher::DirectoryEvent::Kind;
  switch (event.kind) {
    case Kind::kRescan:
      NoteWatching(event.problem);
      Rescan();
      return;
    case Kind::kAppeared:
    case Kind::kChanged:
    case Kind::kAttributes:
      Consider(event.name);
      return;
    case Kind::kVanished:
      // It may be there again already.
      Consider(event.name);
      return;
    case Kind::kWriting:
      return;
  }
}

std::vector<std::shared_ptr<const RegistrationSocketInfo>>
Registrar::Sockets() {
  DEVMGR_ASSERT_ON(executor_);
  std::vector<std::shared_ptr<const RegistrationSocketInfo>> sockets;
  for (auto& [name, entry] : entries_) {
    // While the handshake goes on, the plugin has not been notified.
    const bool registered =
        entry.registered.has_value() && entry.socket == nullptr;
    sockets.push_back(entry.shown.Of(registered, [&, &name = name] {
      return RegistrationSocketInfo{
          api::Readable((directory_ / name).string(), kMaxTextBytes),
          registered};
    }));
  }
  return sockets;
}

void Registrar::Log(LogLevel level, const std::string& name,
                    const std::string& text) {
  log_.Log(level, name, api::Readable(text, kMaxTextBytes));
}

void Registrar::NoteWatching(const std::string& problem) {
  if (problem == watch_problem_) return;
  watch_problem_ = problem;
  if (problem.empty()) {
    Log(LogLevel::kInfo, ".", "registration directory: watched again");
  } else {
    Log(LogLevel::kWarning, ".",
        "registration directory: plugins may go unnoticed for a while: " +
            problem);
  }
}

std::optional<Registrar::SocketFile> Registrar::SocketAt(
    const std::filesystem::path& path) {
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_SYNC_AS_STAT,
              STATX_BASIC_STATS | STATX_BTIME, &info) != 0) {
    return std::nullopt;
  }
  if (!S_ISSOCK(info.stx_mode)) return std::nullopt;
  const std::uint64_t device =
      (std::uint64_t{info.stx_dev_major} << 32) | info.stx_dev_minor;
  const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
  // The time of the last change is no part of what the file is.
  return SocketFile{
      {device, info.stx_ino, has_birth ? Nanoseconds(info.stx_btime) : 0},
      Nanoseconds(has_birth ? info.stx_btime : info.stx_ctime)};
}

void Registrar::Rescan() {
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_) names.insert(name);
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory_, error), end;
       !error && it != end; it.increment(error)) {
    names.insert(it->path().filename().string());
  }
  // A directory that cannot be listed has no sockets that could be dialled;
  // those known are looked at one by one.
  for (const std::string& name : names) Consider(name);
}

void Registrar::Consider(const std::string& name) {
  if (name.empty() || name.front() == '.') return;
  const auto file = SocketAt(directory_ / name);
  const auto known = entries_.find(name);
  if (known != entries_.end()) {
    if (file.has_value() && file->identity == known->second.file.identity) {
      return;
    }
    Drop(name);
  }
  if (!file.has_value()) return;
  entries_[name].file = *file;
  HandshakeOrWait(name);
}

void Registrar::HandshakeOrWait(const std::string& name) {
  const auto now = executor_.Now();
  const auto until = guards_.Of(name, "", now)->QuarantinedUntil(now);
  if (!until.has_value()) return Handshake(name);
  Entry& entry = entries_[name];
  entry.attempt = ++last_attempt_;
  entry.retry = executor_.PostAfter(
      std::chrono::duration_cast<std::chrono::milliseconds>(*until - now),
      [this, alive = std::weak_ptr<int>(alive_), name] {
        if (alive.expired() || !entries_.contains(name)) return;
        Handshake(name);
      });
}

void Registrar::Drop(const std::string& name) {
  Entry entry = std::move(entries_[name]);
  entries_.erase(name);
  executor_.Cancel(entry.retry);
  const auto now = executor_.Now();
  const auto guard = guards_.Of(name, "", now);
  const bool was_quiet = !guard->QuarantinedUntil(now).has_value();
  guard->OnLost(now);
  if (was_quiet && guard->QuarantinedUntil(now).has_value()) {
    // Not among those lines, which are too many.
    Log(LogLevel::kWarning, ".",
        fmt::format("registration socket {} is made anew again and again; its "
                    "plugin is asked less often from now on",
                    api::Quoted(name)));
  }
  if (!entry.registered.has_value()) return;
  handlers_.at(entry.registered->type)->Deregister(*entry.registered);
  Log(LogLevel::kInfo, name,
      fmt::format("plugin '{}' deregistered: socket {} is gone",
                  entry.registered->name, api::Quoted(name)));
}

template <typename Result, typename Next>
std::function<void(Result)> Registrar::Resume(const std::string& name,
                                              Next next) {
  const std::uint64_t attempt = entries_[name].attempt;
  return [this, alive = std::weak_ptr<int>(alive_), &executor = executor_, name,
          attempt, next](Result result) {
    executor.Post([this, alive, name, attempt, next,
                   result = std::move(result)]() mutable {
      if (alive.expired()) return;
      const auto entry = entries_.find(name);
      if (entry == entries_.end() || entry->second.attempt != attempt) return;
      next(std::move(result));
    });
  };
}

void Registrar::Handshake(const std::string& name) {
  Entry& entry = entries_[name];
  entry.attempt = ++last_attempt_;
  entry.retry = 0;
  auto socket = dialer_(directory_ / name);
  if (!socket.ok()) {
    RetryLater(name, socket.status());
    return;
  }
  entry.socket = *std::move(socket);
  entry.socket->GetInfo(Resume<absl::StatusOr<Plugin>>(
      name, [this, name](absl::StatusOr<Plugin> info) {
        OnInfo(name, std::move(info));
      }));
}

void Registrar::OnInfo(const std::string& name, absl::StatusOr<Plugin> info) {
  if (!info.ok()) {
    RetryLater(name, WithContext(info.status(), "GetInfo"));
    return;
  }
  Entry& entry = entries_[name];
  info->socket = directory_ / name;
  info->socket_born_ns = entry.file.born_ns;
  info->socket_owner = entry.socket->owner();
  info->registration = entry.attempt;
  if (info->endpoint.empty()) info->endpoint = info->socket.string();
  // Entered before the handler acts, so that a socket that goes meanwhile is
  // deregistered.
  entry.registered = *info;
  TakeIn(name, *info);
}

void Registrar::TakeIn(const std::string& name, const Plugin& plugin) {
  const auto handler = handlers_.find(plugin.type);
  if (handler == handlers_.end()) {
    OnTakenIn(name, NotFoundError("no handler registered for plugin type: {} "
                                  "at socket {}",
                                  plugin.type, plugin.socket.string()));
    return;
  }
  if (absl::Status status = handler->second->Validate(plugin); !status.ok()) {
    OnTakenIn(name, status);
    return;
  }
  handler->second->Register(
      plugin,
      Resume<absl::Status>(name, [this, name](const absl::Status& taken) {
        OnTakenIn(name, WithContext(taken,
                                    "RegisterPlugin error -- plugin "
                                    "registration failed with err"));
      }));
}

void Registrar::OnTakenIn(const std::string& name, const absl::Status& taken) {
  Entry& entry = entries_[name];
  if (!taken.ok()) entry.registered.reset();
  const std::string refusal =
      taken.ok() ? "" : api::Readable(MessageOf(taken), kMaxTextBytes);
  entry.socket->NotifyStatus(
      refusal, Resume<absl::Status>(
                   name, [this, name, refusal](const absl::Status& status) {
                     OnNotified(name, refusal, status);
                   }));
}

void Registrar::OnNotified(const std::string& name, const std::string& refusal,
                           const absl::Status& status) {
  Entry& entry = entries_[name];
  if (!refusal.empty()) {
    RetryLater(name, FailedPreconditionError("refused: {}", refusal));
    return;
  }
  if (!status.ok()) {
    handlers_.at(entry.registered->type)->Deregister(*entry.registered);
    entry.registered.reset();
    RetryLater(name, WithContext(status, "NotifyRegistrationStatus"));
    return;
  }
  entry.socket.reset();
  entry.back_off.Reset();
  Log(LogLevel::kInfo, name,
      fmt::format("plugin '{}' registered: type {}, endpoint '{}'",
                  entry.registered->name, entry.registered->type,
                  entry.registered->endpoint));
}

void Registrar::RetryLater(const std::string& name, const absl::Status& cause) {
  Entry& entry = entries_[name];
  entry.socket.reset();
  entry.attempt = ++last_attempt_;
  const std::chrono::milliseconds delay = entry.back_off.Next();
  Log(LogLevel::kWarning, name,
      fmt::format("registration socket {}: next try in {} ms: {}",
                  api::Quoted(name), delay.count(), MessageOf(cause)));
  entry.retry = executor_.PostAfter(
      delay, [this, alive = std::weak_ptr<int>(alive_), name] {
        if (alive.expired() || !entries_.contains(name)) return;
        Handshake(name);
      });
}

}  // namespace devmgr::registration
