// SPDX-License-Identifier: Apache-2.0
#include "plugin/registry_socket.h"

#include <system_error>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "rpc/unix_socket.h"

namespace devmgr::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTextBytes = 4096;
/// Of one client; further calls wait in its connection. A plugin registers a
/// few resources, and what one client asks for at once is worked on before what
/// others ask for.
constexpr int kMaxCalls = 8;

absl::Status MakeDirectory(const fs::path& directory) {
  std::error_code error;
  const bool made = fs::create_directories(directory, error);
  if (made) {
    fs::permissions(directory, fs::perms(0750), error);
  }
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(),
                     fmt::format("cannot make '{}'", directory.string()));
}

/// Removes the sockets in `directory`. Links are not followed.
absl::Status RemoveSockets(const fs::path& directory) {
  std::vector<std::string> errors;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code entry_error;
    if (it->symlink_status(entry_error).type() != fs::file_type::socket) {
      continue;
    }
    fs::remove(it->path(), entry_error);
    if (entry_error) {
      errors.push_back(fmt::format("cannot remove '{}': {}",
                                   it->path().string(),
                                   ErrnoText(entry_error.value())));
    }
  }
  if (error) {
    return ErrnoStatus(error.value(),
                       fmt::format("cannot list '{}'", directory.string()));
  }
  if (errors.empty()) return absl::OkStatus();
  return UnavailableError("{} sockets of plugins are in the way: {}",
                          errors.size(), errors.front());
}

/// The kubelet's servers answer so, whatever the error.
absl::Status AsUnknown(const absl::Status& status) {
  if (status.ok()) return status;
  return MakeStatus(absl::StatusCode::kUnknown,
                    api::Readable(MessageOf(status), kMaxTextBytes));
}

}  // namespace

RegistrySocket::RegistrySocket(Executor& executor,
                               RegistrySocketOptions options,
                               OnRegister on_register)
    : executor_(executor),
      options_(std::move(options)),
      on_register_(std::move(on_register)),
      log_(executor, options_.log),
      back_off_(options_.first_retry, options_.last_retry) {}

RegistrySocket::~RegistrySocket() { executor_.Cancel(retry_); }

absl::StatusOr<std::unique_ptr<RegistrySocket>> RegistrySocket::Start(
    Executor& executor, rpc::Runtime& runtime, RegistrySocketOptions options,
    OnRegister on_register) {
  std::unique_ptr<RegistrySocket> socket(
      new RegistrySocket(executor, std::move(options), std::move(on_register)));
  DEVMGR_RETURN_IF_ERROR(socket->Run(runtime));
  return socket;
}

absl::Status RegistrySocket::Run(rpc::Runtime& runtime) {
  if (!options_.directory.is_absolute() || options_.name.empty()) {
    return InvalidArgumentError(
        "bad socketPath, must be an absolute path: {}",
        options_.directory.empty()
            ? ""
            : (options_.directory / options_.name).string());
  }
  const fs::path path = options_.directory / options_.name;
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(options_.directory));
  // Another manager's plugins are none of ours.
  if (rpc::ConnectUnix(path).ok()) {
    return FailedPreconditionError("another process listens on '{}' already",
                                   path.string());
  }
  DEVMGR_RETURN_IF_ERROR(RemoveSockets(options_.directory));

  const std::weak_ptr<int> alive = alive_;
  rpc::ServerOptions server;
  server.socket = path;
  server.mode = options_.mode;
  server.max_calls = kMaxCalls;
  server.on_turned_away = [this, alive](const std::string& why) {
    executor_.Post([this, alive, why] {
      if (alive.expired()) return;
      Log(LogLevel::kWarning, "clients", "registry socket: " + why);
    });
  };
  server.methods[kRegisterMethod] = [this, alive](const std::string& bytes,
                                                  const rpc::Respond& respond) {
    executor_.Post([this, alive, bytes, respond] {
      if (!alive.expired()) OnRequest(bytes, respond);
    });
  };
  server.on_listener_failed = [this, alive] {
    executor_.Post([this, alive] {
      if (!alive.expired()) Check();
    });
  };
  DEVMGR_ASSIGN_OR_RETURN(server_, rpc::Server::Start(std::move(server)));
  DEVMGR_ASSIGN_OR_RETURN(
      watcher_, watcher::DirectoryWatcher::Start(
                    runtime.poller(), options_.directory,
                    [this, alive](const watcher::DirectoryEvent& event) {
                      executor_.Post([this, alive, event] {
                        if (!alive.expired()) OnEvent(event);
                      });
                    }));
  return absl::OkStatus();
}

void RegistrySocket::OnRequest(const std::string& bytes,
                               const rpc::Respond& respond) {
  const auto request = DecodeRegister(bytes);
  if (!request.ok()) return respond(AsUnknown(request.status()));
  on_register_(*request, [this, alive = std::weak_ptr<int>(alive_), respond,
                          resource = request->resource](absl::Status status) {
    if (!status.ok() && !alive.expired()) {
      Log(LogLevel::kWarning, resource,
          fmt::format("device plugin of {} not registered: {}",
                      api::Quoted(resource), MessageOf(status)));
    }
    if (!status.ok()) return respond(AsUnknown(status));
    respond(EncodeRegistered());
  });
}

void RegistrySocket::OnEvent(const watcher::DirectoryEvent& event) {
  using Kind = watcher::DirectoryEvent::Kind;
  if (event.kind == Kind::kRescan || event.name == options_.name) Check();
}

void RegistrySocket::Check() {
  if (retry_ != 0) {
    executor_.Cancel(std::exchange(retry_, 0));
  }
  absl::Status status;
  if (!server_->IsReachable()) {
    status = MakeDirectory(options_.directory);
    if (status.ok()) status = server_->Relisten();
    if (status.ok()) {
      Log(LogLevel::kWarning, options_.name,
          "registry socket: it was gone; listening again");
    }
  }
  problem_ = MessageOf(status);
  if (status.ok()) {
    back_off_.Reset();
    return;
  }
  Log(LogLevel::kError, options_.name,
      fmt::format("registry socket: plugins cannot register; next try in {} "
                  "ms: {}",
                  back_off_.next().count(), problem_));
  retry_ = executor_.PostAfter(back_off_.Next(),
                               [this, alive = std::weak_ptr<int>(alive_)] {
                                 if (alive.expired()) return;
                                 retry_ = 0;
                                 Check();
                               });
}

void RegistrySocket::Log(LogLevel level, const std::string& subject,
                         const std::string& text) {
  log_.Log(level, subject, api::Readable(text, kMaxTextBytes));
}

}  // namespace devmgr::plugin
