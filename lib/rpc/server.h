// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "rpc/connection.h"

namespace devmgr::rpc {

/// Answers one call; copyable, callable once, from any thread, also after the
/// handler has returned and after the server is gone (then it does nothing).
/// When the last copy goes without a call, the client gets Internal.
using Respond = std::function<void(absl::StatusOr<std::string>)>;

/// Handles a unary call, on a thread of the server's; must not block for long.
using UnaryHandler = std::function<void(std::string request, Respond respond)>;

struct ServerOptions {
  std::filesystem::path socket;  ///< Any length.
  mode_t mode = 0600;
  /// By full method path. What is missing here is answered with code
  /// Unimplemented and `unknown service <s>`, or `unknown method <m> for
  /// service <s>` where other methods of that service are known.
  std::map<std::string, UnaryHandler> methods;
};

/// A gRPC server on one Unix socket. The file appears in one step, already
/// listening and with its mode.
class Server {
 public:
  /// A socket file that nobody answers on is replaced.
  ///   FailedPrecondition  somebody listens there; the message names process
  ///                       and pid. Or a file that is not a socket is there.
  ///   NotFound            there is no such directory; it is not made
  ///   PermissionDenied    the directory is not ours to write
  static absl::StatusOr<std::unique_ptr<Server>> Start(Runtime& runtime,
                                                       ServerOptions options);
  /// Removes the socket file if it is still ours, answers calls under way with
  /// Unavailable, and joins: takes a moment (about 0.1 s at most) while clients
  /// read that. No handler runs afterwards. Not to be called from a handler.
  virtual ~Server() = default;

  /// Connections accepted so far.
  virtual std::size_t accepted_connections() const = 0;
};

}  // namespace devmgr::rpc
