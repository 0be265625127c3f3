// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/back_off.h"
#include "common/executor.h"
#include "peer/log_fold.h"
#include "plugin/api_version.h"
#include "rpc/connection.h"
#include "rpc/server.h"
#include "watcher/directory_watcher.h"

namespace devmgr::plugin {

struct RegistrySocketOptions {
  /// Where plugins have their sockets. Made if it is not there.
  std::filesystem::path directory;
  std::string name = "kubelet.sock";
  mode_t mode = 0600;  ///< Of the socket.
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds last_retry{30'000};
  LogSink log;
};

/// Serves the socket that plugins call Register on, and sees to it that it
/// stays there: when the file is deleted or replaced, or the listener fails, it
/// is made again. Lives on its executor.
class RegistrySocket {
 public:
  using Answer = std::function<void(absl::Status)>;
  /// Runs on the executor; `answer` once, from within or later.
  using OnRegister = std::function<void(const RegisterRequest&, Answer answer)>;

  /// Removes the sockets of plugins that are left in the directory (that tells
  /// plugins to register again) and nothing else there, then listens. May block
  /// for the disk. `executor` and `runtime` are borrowed.
  ///   InvalidArgument     the path is not absolute
  ///   FailedPrecondition  somebody listens there; nothing was removed
  ///   others              a socket could not be removed, the file not be made
  static absl::StatusOr<std::unique_ptr<RegistrySocket>> Start(
      Executor& executor, rpc::Runtime& runtime, RegistrySocketOptions options,
      OnRegister on_register);
  /// Removes the file. Registrations under way are answered Unavailable.
  ~RegistrySocket();

  /// Of the probe `device-plugin`: empty while plugins can register, else why
  /// they cannot.
  const std::string& problem() const { return problem_; }

 private:
  RegistrySocket(Executor& executor, RegistrySocketOptions options,
                 OnRegister on_register);

  absl::Status Run(rpc::Runtime& runtime);
  void OnRequest(const std::string& bytes, const rpc::Respond& respond);
  void OnEvent(const watcher::DirectoryEvent& event);
  void Check();
  void Log(LogLevel level, const std::string& subject, const std::string& text);

  Executor& executor_;
  const RegistrySocketOptions options_;
  const OnRegister on_register_;
  peer::LogFold log_;
  std::string problem_;
  TimerId retry_ = 0;
  BackOff back_off_;
  /// Expires with this object; posted tasks hold it weakly.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<watcher::DirectoryWatcher> watcher_;
};

}  // namespace devmgr::plugin
