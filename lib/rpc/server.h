// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "rpc/connection.h"

namespace devmgr::rpc {

/// Answers one call; copyable, callable once, from any thread, also after the
/// handler has returned and after the server is gone (then it does nothing).
using Respond = std::function<void(absl::StatusOr<std::string>)>;

/// Handles a unary call, on a thread of the server's; must not block for long.
using UnaryHandler = std::function<void(std::string request, Respond respond)>;

struct ServerOptions {
  std::filesystem::path socket;  ///< Any length.
  mode_t mode = 0600;
  std::map<std::string, UnaryHandler> methods;  ///< By full method path.
  /// Answers what `methods` lacks with `unknown service <s>` or
  /// `unknown method <m> for service <s>` and code Unimplemented.
  /// Names the owner in the error another opener gets; for example `devmgrd`.
};

/// A gRPC server on one Unix socket. The file appears in one step, already
/// listening and with its mode.
class Server {
 public:
  /// A socket file that nobody answers on is replaced.
  ///   FailedPrecondition  somebody listens there; the message names process
  ///                       and pid. Or a file that is not a socket is there.
  ///   PermissionDenied    the directory is not ours to write
  static absl::StatusOr<std::unique_ptr<Server>> Start(Runtime& runtime,
                                                       ServerOptions options);
  /// Removes the socket file if it is still ours, cancels calls, joins.
  virtual ~Server() = default;

  /// Connections accepted so far.
  virtual std::size_t accepted_connections() const = 0;
};

}  // namespace devmgr::rpc
