// SPDX-License-Identifier: Apache-2.0
//
// Standing between a CRI client and a container runtime: a proxy that changes
// nothing of what passes, but for the calls that it has to ask about.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devmgr {

/// A call that is held until the interceptor has decided about it.
struct CriCall {
  /// Distinct among all calls of a proxy.
  std::uint64_t id = 0;
  /// Full path: `/runtime.v1.RuntimeService/CreateContainer`.
  std::string method;
  /// All headers but those that begin with a colon, in the order they came,
  /// names in lower case; values of `-bin` names as on the wire.
  std::vector<std::pair<std::string, std::string>> metadata;
  /// When the caller stops waiting; none: never.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Without a decision by then the caller gets DeadlineExceeded:
  /// CriProxyOptions::decision_budget from now on, or 5 s before `deadline`,
  /// whichever comes first (half of the time, if less than 10 s are left).
  std::chrono::steady_clock::time_point decide_by;
  /// The request, serialised; uncompressed if it came compressed.
  std::string message;
};

/// What becomes of a held call.
class CriDecision {
 public:
  enum class Kind {
    kForward,  ///< As it came, to the byte.
    kReplace,  ///< With `message` for its request, all else as it came.
    kFail,     ///< Not at all: the caller gets `status`.
  };

  static CriDecision Forward() { return CriDecision(Kind::kForward); }
  static CriDecision Replace(std::string message) {
    CriDecision decision(Kind::kReplace);
    decision.message_ = std::move(message);
    return decision;
  }
  /// `status`: not OK; code and message go to the caller as they are.
  static CriDecision Fail(absl::Status status) {
    CriDecision decision(Kind::kFail);
    decision.status_ = std::move(status);
    return decision;
  }

  Kind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const absl::Status& status() const { return status_; }

 private:
  explicit CriDecision(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::string message_;
  absl::Status status_;
};

/// How a call ended that CriInterceptor::OnCall heard of.
struct CriOutcome {
  /// What the caller got. Cancelled: it gave up, or the proxy stops.
  absl::Status status;
  /// The runtime was called; otherwise it has heard nothing of the call.
  bool forwarded = false;
  /// The runtime itself said `status`; otherwise, if it was called, it is not
  /// known what it did.
  bool answered = false;
  /// Its answer, serialised and uncompressed, when `status` is OK. Empty too
  /// when it was above CriProxyOptions::max_held_bytes or unreadable.
  std::string message;
};

/// Decides about calls. The methods but OnCall have empty defaults.
///
/// Thread: one, the proxy's own.
/// Locks: none is held.
/// Limits: do not block or throw; all traffic waits meanwhile. Methods of the
/// proxy may be called, but it must not be destroyed here.
class DEVMGR_EXPORT CriInterceptor {
 public:
  /// Copyable; callable from any thread, also within OnCall (the fastest way)
  /// and after the call or the proxy is over (then it does nothing). Of
  /// several calls the first counts. If the last copy goes without a call, the
  /// caller gets Internal.
  using Decide = std::function<void(CriDecision)>;

  virtual ~CriInterceptor() = default;

  /// A call of a method of CriProxyOptions::intercept. It is held until
  /// `decide` is called, and only it.
  virtual void OnCall(CriCall call, Decide decide) = 0;
  /// Once for every OnCall, when the call is over, however it ended; a caller
  /// that gives up while it is held is heard of here, too. The answer is on
  /// its way to the caller already.
  virtual void OnEnd(std::uint64_t /*call*/, const CriOutcome& /*outcome*/) {}
  /// A call of an intercepted method was passed on unread: too large, beyond
  /// what is kept of all calls, or not
  /// one message that we can read. `why` has the details.
  virtual void OnPassedUnread(const std::string& /*method*/,
                              const std::string& /*why*/) {}
  /// A connection to the runtime that had served calls broke. What it was
  /// doing has an unknown outcome: compare before anything exclusive is given
  /// away again. Connections are made anew when a call needs one.
  virtual void OnBackendLost(const absl::Status& /*why*/) {}
  /// Our socket could not be given the rights that the runtime's has; a user
  /// that may connect there perhaps cannot connect here.
  virtual void OnRightsNotTaken(const absl::Status& /*why*/) {}
  /// A caller was not taken, or lost its place to another one
  /// (CriProxyOptions::max_connections; out of descriptors). As often as that
  /// happens; `why` has the limit.
  virtual void OnTurnedAway(const std::string& /*why*/) {}
  /// The runtime can be reached: first of all, and after OnBackendLost.
  virtual void OnBackendConnected() {}
};

struct CriProxyOptions {
  /// Where callers connect; any length. A stale socket is replaced.
  std::filesystem::path listen;
  /// Where the runtime listens; it need not be there yet.
  std::filesystem::path backend;
  /// Permissions of the socket, such as 0600; none: that of the runtime's
  /// socket with its owner and group, also when that comes later or comes back
  /// with others; 0660 until it is there.
  std::optional<std::uint32_t> mode;

  /// Full paths of unary methods that `interceptor` decides about.
  std::set<std::string> intercept;
  /// Borrowed: must outlive the proxy. May be null if `intercept` is empty.
  CriInterceptor* interceptor = nullptr;

  /// Limit of a request that is held, and of an answer that is observed, in
  /// bytes. Larger ones, and requests that cannot be read (not one message,
  /// an unknown encoding), are passed on with OnPassedUnread, or refused:
  std::size_t max_held_bytes = std::size_t{16} << 20;
  /// Limit of what the proxy keeps for all of these calls together, headers
  /// included, until they are over. A request beyond it is treated as one that
  /// is too large, an answer is not observed.
  std::size_t max_total_held_bytes = std::size_t{256} << 20;
  bool refuse_unreadable = false;
  /// See CriCall::decide_by.
  std::chrono::milliseconds decision_budget{110'000};

  /// So long waits a call of `/runtime.v1.RuntimeService/Version` for a
  /// runtime that is not there; all others get Unavailable at once.
  std::chrono::milliseconds version_patience{10'000};
  /// Callers connected at a time. A further one takes the place of the one that
  /// has been there for longest without a call; without such it is hung up on.
  std::size_t max_connections = 512;
};

/// What passes now and what has passed.
struct CriProxyStats {
  std::uint64_t connections = 0;  ///< Callers that are connected.
  std::uint64_t calls = 0;        ///< Calls under way.
  std::uint64_t held = 0;         ///< Of them: waiting for a decision.
  std::uint64_t total_connections = 0;
  std::uint64_t total_calls = 0;
  std::uint64_t intercepted = 0;       ///< Calls that OnCall heard of.
  std::uint64_t passed_unread = 0;     ///< OnPassedUnread.
  std::uint64_t backend_connects = 0;  ///< Connections to the runtime made.
  std::uint64_t backend_losses = 0;    ///< OnBackendLost.
  std::uint64_t turned_away = 0;       ///< OnTurnedAway.
};

/// A proxy for gRPC between two Unix sockets. Everything passes as it came:
/// unknown methods and services, headers and trailers in their order, messages
/// of any size and encoding, half-closes, resets, pings, deadlines. Nothing is
/// buffered but what flow control permits (1 MiB per call and direction).
/// Each caller has a connection to the runtime of its own, so a bad one hurts
/// itself. While the runtime is away, calls get Unavailable, and the next one
/// tries to connect again.
///
/// One thread of its own (`devmgr-cri`), which does not wake up while nothing
/// passes. Thread-safe.
class DEVMGR_EXPORT CriProxy {
 public:
  /// Listens from here on.
  ///   InvalidArgument     an option is out of range or missing
  ///   FailedPrecondition  a process listens on `listen` already (the message
  ///                       names the process), or a file that is no socket is
  ///                       there
  ///   NotFound            there is no directory for it
  ///   PermissionDenied    the directory is not ours to write
  static absl::StatusOr<std::unique_ptr<CriProxy>> Start(
      const CriProxyOptions& options);
  /// Stops within a second: removes the socket, answers calls under way with
  /// Unavailable, hangs up, joins. No method of the interceptor runs
  /// afterwards; OnEnd runs for all calls before.
  virtual ~CriProxy() = default;

  virtual CriProxyStats Stats() const = 0;
};

}  // namespace devmgr
