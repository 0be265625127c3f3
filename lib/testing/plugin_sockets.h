// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "rpc/server.h"

namespace devmgr::testing {

/// A plugin process as the manager sees it; in a rolling upgrade there are two.
struct PluginInstance {
  int number = 0;  ///< Never used again.
  std::filesystem::path socket;
  /// In the registration directory. Empty: none; the same: one for all.
  std::filesystem::path registration;
  std::unique_ptr<rpc::Server> server;  ///< Null while its socket is dropped.
  std::unique_ptr<rpc::Server> registrar;  ///< Null without one of its own.

  bool common() const { return registration == socket; }
};

/// The sockets of a fake device plugin:
///
///     <root>/device-plugins/<name>.sock        with the registry socket
///     <root>/plugins_registry/<name>-reg.sock  with both ways
///     <root>/plugins_registry/<name>.sock      with the directory only
///
/// Thread-bound.
class PluginSockets {
 public:
  using Handlers = std::map<std::string, rpc::StreamHandler>;
  /// What an instance answers as a plugin, and in the handshake.
  struct Services {
    std::function<Handlers(int instance)> plugin;
    std::function<Handlers(int instance)> handshake;
  };

  /// `name` is that of all sockets, without ending.
  PluginSockets(const std::filesystem::path& root, std::string name,
                FakeDevicePluginOptions::Way way, Services services);

  /// Opens a new instance at the path of the last one. Errors as of
  /// `rpc::Server::Start`.
  absl::Status Open();
  /// The same beside that one: at a path of its own, or at the same, from
  /// which it takes the files away.
  absl::Status OpenSuccessor(bool same_path);
  /// Serves again where Drop has ended that.
  absl::Status OpenServer(PluginInstance* instance);
  /// Makes the registration socket anew; a common one with all on it.
  absl::Status ReopenRegistration(PluginInstance* instance);
  void Drop(PluginInstance* instance);
  void Remove(int number);
  void RemoveAll();

  /// The newest is last.
  const std::list<PluginInstance>& instances() const { return instances_; }
  /// Null when there is none.
  PluginInstance* Newest();
  PluginInstance* Find(int number);
  /// True when somebody has removed a socket that we serve.
  bool SomeFileIsGone() const;
  /// Of all service sockets, ever.
  std::size_t accepted_connections() const;

 private:
  absl::Status OpenAt(const std::string& name, bool take_over);
  absl::Status OpenRegistrar(PluginInstance* instance);

  const std::filesystem::path plugins_dir_;
  const std::filesystem::path registration_dir_;
  const std::string first_name_;
  const FakeDevicePluginOptions::Way way_;
  const Services services_;

  std::string name_;  ///< Of the newest instance.
  int last_number_ = 0;
  std::list<PluginInstance> instances_;
  std::size_t closed_connections_ = 0;  ///< Of servers gone by now.
};

}  // namespace devmgr::testing
