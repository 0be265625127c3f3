// SPDX-License-Identifier: Apache-2.0
#include "testing/registry_client.h"

#include <sys/stat.h>

#include <utility>

#include "common/status.h"
#include "testing/plugin_wire.h"

namespace devmgr::testing {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{30'000};
/// The manager dials back meanwhile, for up to 10 s.
constexpr std::chrono::milliseconds kRegisterTimeout{15'000};
constexpr char kRegistrySocket[] = "kubelet.sock";

}  // namespace

RegistryClient::RegistryClient(rpc::Runtime& runtime, Executor& executor,
                               const std::filesystem::path& directory,
                               Hooks hooks)
    : runtime_(runtime),
      executor_(executor),
      socket_(directory / kRegistrySocket),
      hooks_(std::move(hooks)),
      self_(std::make_shared<RegistryClient*>(this)),
      pause_(kFirstPause, kLongestPause) {}

absl::StatusOr<std::unique_ptr<RegistryClient>> RegistryClient::Start(
    rpc::Runtime& runtime, Executor& executor,
    const std::filesystem::path& directory, Hooks hooks) {
  std::unique_ptr<RegistryClient> client(
      new RegistryClient(runtime, executor, directory, std::move(hooks)));
  const std::weak_ptr<RegistryClient*> weak = client->self_;
  DEVMGR_ASSIGN_OR_RETURN(
      client->watcher_,
      watcher::DirectoryWatcher::Start(
          runtime.poller(), directory,
          [weak, &executor](const watcher::DirectoryEvent& event) {
            executor.Post([weak, event] {
              if (const auto self = weak.lock()) (*self)->OnEvent(event);
            });
          }));
  return client;
}

RegistryClient::~RegistryClient() { Cancel(); }

void RegistryClient::Register(std::string request) {
  Cancel();
  request_ = std::move(request);
  pause_.Reset();
  Try();
}

void RegistryClient::Cancel() {
  request_.reset();
  ++attempt_;
  connection_.reset();
  executor_.Cancel(retry_);
}

std::optional<RegistryClient::Identity> RegistryClient::Look() const {
  struct stat status {};
  if (::lstat(socket_.c_str(), &status) != 0) return std::nullopt;
  return Identity(status.st_dev, status.st_ino,
                  std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 +
                      status.st_mtim.tv_nsec);
}

void RegistryClient::OnEvent(const watcher::DirectoryEvent& event) {
  using Kind = watcher::DirectoryEvent::Kind;
  const bool about_registry = event.name == kRegistrySocket;
  switch (event.kind) {
    case Kind::kVanished:
      // The next one may get its number.
      if (about_registry) known_.reset();
      return hooks_.vanished();
    case Kind::kAppeared:
      if (about_registry) LookForRegistry();
      return;
    case Kind::kRescan:
      LookForRegistry();
      return hooks_.vanished();
    default:
      return;
  }
}

void RegistryClient::LookForRegistry() {
  const std::optional<Identity> found = Look();
  if (found == known_) return;
  known_ = found;
  if (found) hooks_.appeared();
}

void RegistryClient::Try() {
  const std::uint64_t attempt = ++attempt_;
  known_ = Look();
  auto connection = rpc::Dial(runtime_, socket_, [] {});
  if (!connection.ok()) {
    TryLater();
    return hooks_.away(
        WithContext(connection.status(), "'{}'", socket_.string()));
  }
  connection_ = *std::move(connection);
  const std::weak_ptr<RegistryClient*> weak = self_;
  Executor& executor = executor_;
  connection_->Call(
      std::string(kRegisterPath), request_.value_or(""), {kRegisterTimeout},
      [weak, attempt, &executor](const absl::StatusOr<std::string>& answer) {
        executor.Post([weak, attempt, status = answer.status()] {
          const auto self = weak.lock();
          if (self && (*self)->attempt_ == attempt) (*self)->OnAnswer(status);
        });
      });
}

void RegistryClient::OnAnswer(const absl::Status& status) {
  connection_.reset();
  if (status.ok()) {
    request_.reset();
  } else {
    TryLater();
  }
  // What gRPC says when the other end goes in the middle.
  const bool away = status.code() == absl::StatusCode::kUnavailable;
  (away ? hooks_.away : hooks_.answered)(status);
}

void RegistryClient::TryLater() {
  if (!known_) return;
  retry_ = executor_.PostAfter(pause_.Next(), [this] { Try(); });
}

}  // namespace devmgr::testing
