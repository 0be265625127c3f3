// SPDX-License-Identifier: Apache-2.0
//
// Calling gRPC services on Unix sockets. Messages are bytes here: what they
// mean is known by the protocols above (registration, dra).
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/poller.h"

namespace devmgr::rpc {

/// Who is at the other end of a Unix socket.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// The threads that calls run on: our own completion queue, and the poller that
/// notices hang-ups. Share one; must outlive what uses it. Servers have their
/// own.
/// gRPC's callback API is not used: its threads wake late after idleness.
class Runtime {
 public:
  static absl::StatusOr<std::unique_ptr<Runtime>> Start();
  virtual ~Runtime() = default;
  virtual Poller& poller() = 0;
};

/// Answer of a call, or the status it failed with: the peer's, code and text
/// unchanged and marked (common/peer_status.h), or without the mark that of the
/// transport and of our side: Unavailable, DeadlineExceeded, Cancelled, others.
using CallDone = std::function<void(absl::StatusOr<std::string>)>;

/// What becomes of a stream's messages while the last one is still worked on,
/// that is until ReadNext.
enum class Unread {
  /// They stay at the peer.
  kWait,
  /// Each message says all there is to say: they are read, and the newest is
  /// kept. Older ones are dropped undecoded.
  kKeepNewest,
  /// They are read and kept joined, which protobuf decodes as one message with
  /// the lists of all; up to 256 KiB, the rest stays at the peer.
  kJoin,
};

/// What comes of a call that is answered by a stream. Both run on a thread of
/// the runtime and must not block.
struct StreamEvents {
  /// The next message; another one comes after ReadNext only. What was kept
  /// when the stream ends is lost.
  std::function<void(std::string message)> on_message;
  /// The end, once: OK when the peer was done. It may be noticed only by
  /// ReadNext. Messages that were not read by then are lost.
  std::function<void(absl::Status)> on_end;
};

/// One connected socket: one generation of a peer. It never reconnects; when
/// the peer hangs up it is over, and a new one must be dialled.
/// Thread-safe.
class Connection {
 public:
  /// Options of one call.
  struct CallOptions {
    /// Required and positive; 0 is for streams, and means none.
    std::chrono::milliseconds timeout{0};
    /// Sent along: names of a-z, 0-9, `-`, `_`, `.`, values of printable ASCII.
    std::vector<std::pair<std::string, std::string>> metadata = {};
    /// Of streams. What is read without being asked for is bounded in work per
    /// second: a peer that floods is read at a tenth of a processor.
    Unread unread = Unread::kWait;
  };
  using CallId = std::uint64_t;

  /// Cancels calls under way and closes the socket. No `done` and no
  /// `on_hang_up` runs after this returns; those pending run before it does,
  /// with Cancelled. Not to be called from one of them.
  virtual ~Connection() = default;

  /// Calls `method` (`/package.Service/Method`, authority `localhost`) with a
  /// serialised request. `done` runs exactly once, on a thread of the runtime;
  /// it must not block.
  virtual CallId Call(const std::string& method, std::string request,
                      CallOptions options, CallDone done) = 0;

  /// The same for a method that answers with a stream. The first message is
  /// read at once.
  virtual CallId Stream(const std::string& method, std::string request,
                        CallOptions options, StreamEvents events) = 0;

  /// Reads on in a stream, after a message. One that is over is fine.
  virtual void ReadNext(CallId stream) = 0;

  /// How many messages of the stream `on_message` was or is being called with,
  /// and one more when others have come and are kept. Of a stream that is over:
  /// 0. Who has dealt with so many knows of all that has come.
  virtual std::uint64_t Arrived(CallId stream) = 0;

  virtual void Cancel(CallId call) = 0;

  virtual const PeerCredentials& peer() const = 0;
  /// True once the peer hung up.
  virtual bool over() const = 0;
};

/// Upper limit of a received message, in bytes.
inline constexpr int kMaxReceiveBytes = 16 * 1024 * 1024;

struct DialOptions {
  int max_receive_bytes = kMaxReceiveBytes;
};

/// Connects to the socket at `path` (any length). Does not wait: a Unix
/// connect ends at once. `on_hang_up` runs once, on the runtime's poller
/// thread, when the peer closes.
///   NotFound          there is no such file
///   PermissionDenied  we may not connect
///   Unavailable       no process listens there (a stale socket), or its queue
///   is
///                     full; the message tells which
///   FailedPrecondition  the file is not a socket
/// None of the messages, and none of the calls' errors, names the path: the
/// caller that dials says of which peer it is.
absl::StatusOr<std::unique_ptr<Connection>> Dial(
    Runtime& runtime, const std::filesystem::path& path,
    std::function<void()> on_hang_up, DialOptions options = {});

}  // namespace devmgr::rpc
