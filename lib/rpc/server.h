// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/connection.h"

namespace devmgr::rpc {

/// Answers one call; copyable, callable once, from any thread, also after the
/// handler has returned and after the server is gone (then it does nothing).
/// When the last copy goes without a call, the client gets Internal.
using Respond = std::function<void(absl::StatusOr<std::string>)>;

/// Handles a unary call, on the server's thread; must not block.
using UnaryHandler = std::function<void(std::string request, Respond respond)>;

/// The process that has connected, as it was then; nothing once its connection
/// is over.
using Caller = std::optional<PeerCredentials>;

/// A UnaryHandler that has to know the caller.
using CallerHandler = std::function<void(const Caller& caller,
                                         std::string request, Respond respond)>;

/// The answering side of a call that gets any number of messages. Its methods
/// may be called from any thread, also when the stream or the server is over
/// (then they do nothing). When the last reference goes before Finish, the
/// client gets Internal.
class ServerStream {
 public:
  virtual ~ServerStream() = default;

  /// What the client sent along with the request; names in lower case.
  virtual const std::map<std::string, std::string>& metadata() const = 0;
  virtual const Caller& caller() const = 0;
  /// Sends `message` after those before it. It waits here until the client
  /// takes it: with 64 MiB waiting, the next one cancels the call instead. A
  /// long one is not copied, and kept until its last bytes are sent.
  virtual void Write(std::shared_ptr<const std::string> message) = 0;
  void Write(std::string message) {
    Write(std::make_shared<const std::string>(std::move(message)));
  }
  /// Ends the stream after all that was written.
  virtual void Finish(const absl::Status& status) = 0;
  /// `gone` runs once, on the server's thread, when the client ends the
  /// call before Finish; here and now if it has. To be called once.
  virtual void WhenClientGone(std::function<void()> gone) = 0;
  /// `taken` runs once, when nothing that was written waits here any more; here
  /// and now if nothing does, else on the server's thread. Replaces the
  /// one before; does not run once the call has ended.
  virtual void WhenTaken(std::function<void()> taken) = 0;
};

/// Handles a call with a stream of answers, as UnaryHandler one with one.
using StreamHandler = std::function<void(std::string request,
                                         std::shared_ptr<ServerStream> stream)>;

struct ServerOptions {
  std::filesystem::path socket;  ///< Any length.
  mode_t mode = 0600;
  /// Users that may connect besides, by an access control list of the file.
  std::vector<uid_t> users = {};
  /// By full method path. What is missing here is answered with code
  /// Unimplemented and `unknown service <s>`, or `unknown method <m> for
  /// service <s>` where other methods of that service are known.
  std::map<std::string, UnaryHandler> methods;
  /// Of these three one has a path.
  std::map<std::string, CallerHandler> caller_methods = {};
  std::map<std::string, StreamHandler> streams;
  /// Clients connected at a time. A further one takes the place of the one that
  /// has been there for longest without a call; without such, of one of the
  /// process with the most connections, if these are more than its own has;
  /// else it is hung up on.
  std::size_t max_connections = 256;
  /// Calls of one client that are handled at a time, until the handler has
  /// answered or let go. Further ones wait here. The settings that a client
  /// gets allow 512 open ones; more are refused, and a client that begins more
  /// after it has read them, or leaves 2,048 frames unread, is hung up on.
  int max_calls = 512;
  /// Runs on the server's thread when the listening socket fails, as it does
  /// when a process shuts it down; must not block. No client can connect until
  /// Relisten.
  std::function<void()> on_listener_failed;
  /// A client was not taken, lost its place, or was hung up on; the reason,
  /// with the limit. As often as that happens. Runs on the server's thread;
  /// must not block.
  std::function<void(const std::string& why)> on_turned_away = nullptr;
};

/// A gRPC server on one Unix socket, with a thread of its own. The file appears
/// in one step, already listening and with its mode.
///
/// It stands on HTTP/2 streams and not on gRPC's server, which reads all that a
/// client has sent before it turns to others: here each client is read a few
/// calls at a time, so that one with many at once holds up no other.
///
/// Requests may be compressed (gzip, deflate); answers are not. Of a call all
/// headers may have 16 KiB.
class Server {
 public:
  /// A socket file on which no process answers is replaced.
  ///   FailedPrecondition  somebody listens there; the message names process
  ///                       and pid. Or a file that is not a socket is there.
  ///   NotFound            there is no such directory; it is not made
  ///   PermissionDenied    the directory is not ours to write
  ///   Unimplemented       there are users, and the file system has no access
  ///                       control lists
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  /// Removes the socket file if it is still ours, answers calls under way with
  /// Unavailable, and joins: takes a moment (about 0.1 s at most) while clients
  /// read that. No handler runs afterwards. Not to be called from a handler.
  virtual ~Server() = default;

  /// The socket file is in place and is ours, and we listen.
  virtual bool IsReachable() const = 0;
  /// Makes the file appear anew. Connections and calls go on. Errors as of
  /// Start, after which no client can connect until this succeeds. Waits for
  /// the server's thread: not to be called on it, as from a handler.
  virtual absl::Status Relisten() = 0;

  /// Connections accepted so far.
  virtual std::size_t accepted_connections() const = 0;
  /// Those that were not taken, lost their place (`max_connections`), or were
  /// hung up on for what they left open or unread.
  virtual std::size_t turned_away() const = 0;
  /// Calls that have not ended: that are handled, or wait for their turn.
  virtual std::size_t open_calls() const = 0;
};

}  // namespace devmgr::rpc
