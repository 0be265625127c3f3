// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace devmgr::registration {

/// What a plugin says of itself in the handshake.
struct Plugin {
  std::string type;
  std::string name;
  std::string endpoint;  ///< Never empty: defaults to the registration socket.
  std::vector<std::string> supported_versions;
  std::filesystem::path socket;  ///< The registration socket.
  /// When the file of that socket was made; where the file system does not
  /// keep that, when it was last touched. Nanoseconds since 1970.
  std::int64_t socket_born_ns = 0;
  /// Who listens on it, if that is known.
  std::optional<uid_t> socket_owner = std::nullopt;
  /// Which registration this is: no other one has this number, not even of the
  /// same plugin by the same socket.
  std::uint64_t registration = 0;
};

/// What happens to plugins of one type. All calls come on the registrar's
/// executor.
class PluginHandler {
 public:
  virtual ~PluginHandler() = default;
  /// Changes nothing. An error is sent to the plugin as it is.
  virtual absl::Status Validate(const Plugin& plugin) = 0;
  /// Takes the plugin in. Checks again what Validate checks. `done` runs once,
  /// from within or later, with what the plugin gets as answer.
  virtual void Register(const Plugin& plugin,
                        std::function<void(absl::Status)> done) = 0;
  /// Lets go of what this registration brought, and of nothing that another one
  /// did, be it of the same name and endpoint. One that was refused is fine,
  /// and so is one whose Register is not done yet.
  virtual void Deregister(const Plugin& plugin) = 0;
};

/// A registration socket that is connected: the two calls of the handshake.
/// Completions run on any thread; none runs after the destructor.
class PluginSocket {
 public:
  virtual ~PluginSocket() = default;
  /// The user at the other end, if that is known.
  virtual std::optional<uid_t> owner() const { return std::nullopt; }
  virtual void GetInfo(std::function<void(absl::StatusOr<Plugin>)> done) = 0;
  /// An empty error tells that the plugin is registered.
  virtual void NotifyStatus(const std::string& error,
                            std::function<void(absl::Status)> done) = 0;
};

using PluginDialer =
    std::function<absl::StatusOr<std::unique_ptr<PluginSocket>>(
        const std::filesystem::path& socket)>;

}  // namespace devmgr::registration
