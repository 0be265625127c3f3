// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "common/back_off.h"
#include "common/executor.h"
#include "rpc/connection.h"
#include "watcher/directory_watcher.h"

namespace devmgr::testing {

/// The plugin's side of the registry socket: it calls Register, again and
/// again until that is accepted, and tells when there is a new registry. While
/// there is no socket it waits for one; while there is one it tries again with
/// a back-off from 100 ms to 30 s.
/// Lives on an executor, where everything is called.
class RegistryClient {
 public:
  struct Hooks {
    /// A registry socket is there that we have not called yet.
    std::function<void()> appeared;
    /// A file of the directory is gone.
    std::function<void()> vanished;
    /// The registry has answered, or none was there to do so.
    std::function<void(const absl::Status&)> answered;
    std::function<void(const absl::Status&)> away;
  };

  static absl::StatusOr<std::unique_ptr<RegistryClient>> Start(
      rpc::Runtime& runtime, Executor& executor,
      const std::filesystem::path& directory, Hooks hooks);
  /// No hook runs afterwards.
  ~RegistryClient();
  RegistryClient(const RegistryClient&) = delete;
  RegistryClient& operator=(const RegistryClient&) = delete;

  /// Begins to register, in place of what it was about to register so far.
  void Register(std::string request);
  /// Registers nothing any more.
  void Cancel();

 private:
  /// Device, inode and time of making: whether it was there before.
  using Identity = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;

  RegistryClient(rpc::Runtime& runtime, Executor& executor,
                 const std::filesystem::path& directory, Hooks hooks);
  std::optional<Identity> Look() const;
  void OnEvent(const watcher::DirectoryEvent& event);
  void LookForRegistry();
  void Try();
  void OnAnswer(const absl::Status& status);
  void TryLater();

  rpc::Runtime& runtime_;
  Executor& executor_;
  const std::filesystem::path socket_;
  const Hooks hooks_;
  /// Tasks on the executor hold it weakly: they may come when we are gone.
  std::shared_ptr<RegistryClient*> self_;
  std::unique_ptr<watcher::DirectoryWatcher> watcher_;

  std::optional<Identity>
      known_;  ///< The socket that was found or called last.
  std::optional<std::string> request_;  ///< Until it is accepted.
  std::unique_ptr<rpc::Connection> connection_;
  std::uint64_t attempt_ = 0;
  TimerId retry_ = 0;
  BackOff pause_;
};

}  // namespace devmgr::testing
