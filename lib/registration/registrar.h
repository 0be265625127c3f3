// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/remembered.h"
#include "peer/flap_guard.h"
#include "peer/log_fold.h"
#include "registration/plugin.h"
#include "watcher/directory_watcher.h"

namespace devmgr::registration {

/// Takes plugins in whose sockets stand in the registration directory, as the
/// kubelet's plugin watcher does (pkg/kubelet/pluginmanager): handshake,
/// handler by type, word back to the plugin. Whatever fails is tried again
/// with a back-off per socket; a socket that is re-created starts anew, unless
/// that happens time and again.
/// Lives on `executor`: construct, call and destroy it there.
class Registrar {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{500};
  static constexpr std::chrono::milliseconds kLastRetry{120'000};

  /// `executor` and the handlers are borrowed and must outlive the registrar.
  Registrar(Executor& executor, std::filesystem::path directory,
            PluginDialer dialer,
            std::map<std::string, PluginHandler*> handlers_by_type,
            LogSink log);
  ~Registrar();

  /// What the directory watcher tells.
  void OnDirectoryEvent(const watcher::DirectoryEvent& event);

  /// Those that are there, by name. One that is as it was the last time is the
  /// same object.
  std::vector<std::shared_ptr<const RegistrationSocketInfo>> Sockets();

 private:
  /// Tells a re-created file from a known one: device, inode, birth time.
  using FileIdentity = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;

  struct SocketFile {
    FileIdentity identity;
    std::int64_t born_ns = 0;  ///< As Plugin::socket_born_ns.
  };

  struct Entry {
    SocketFile file;
    std::uint64_t attempt = 0;  ///< Completions of older attempts are dropped.
    std::unique_ptr<PluginSocket> socket;  ///< During a handshake.
    std::optional<Plugin> registered;      ///< Or about to be.
    TimerId retry = 0;
    BackOff back_off{kFirstRetry, kLastRetry};
    Remembered<bool, RegistrationSocketInfo> shown;
  };

  /// `name` is the socket's; `.`: of the directory.
  void Log(LogLevel level, const std::string& name, const std::string& text);
  void NoteWatching(const std::string& problem);
  void Rescan();
  void Consider(const std::string& name);
  void Drop(const std::string& name);
  /// When its socket was made anew too often: waits before the handshake.
  void HandshakeOrWait(const std::string& name);
  void Handshake(const std::string& name);
  void OnInfo(const std::string& name, absl::StatusOr<Plugin> info);
  void TakeIn(const std::string& name, const Plugin& plugin);
  void OnTakenIn(const std::string& name, const absl::Status& taken);
  void OnNotified(const std::string& name, const std::string& refusal,
                  const absl::Status& status);
  void RetryLater(const std::string& name, const absl::Status& cause);
  /// Runs `next` on the executor if the attempt is still the current one.
  template <typename Result, typename Next>
  std::function<void(Result)> Resume(const std::string& name, Next next);
  static std::optional<SocketFile> SocketAt(const std::filesystem::path& path);

  Executor& executor_;
  const std::filesystem::path directory_;
  const PluginDialer dialer_;
  const std::map<std::string, PluginHandler*> handlers_;
  peer::LogFold log_;
  std::map<std::string, Entry> entries_;  ///< By file name.
  /// By file name: twenty sockets in ten seconds are no plugin that restarts.
  peer::FlapGuards guards_{{20, std::chrono::seconds(10),
                            std::chrono::seconds(1), std::chrono::seconds(10)}};
  std::uint64_t last_attempt_ = 0;
  std::string watch_problem_;  ///< Why plugins may come unnoticed.
  /// Expires with this object; posted completions hold it weakly.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace devmgr::registration
