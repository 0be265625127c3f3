// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/poller.h"
#include "common/unique_fd.h"
#include "rpc/connection.h"

namespace devmgr::rpc {

/// The connections of one server's clients: so many at a time, with so many
/// calls each. At the limit the one that has been there for longest without a
/// call is hung up on, so that clients which connect and say nothing keep
/// no client out. Where all have called, it is one of the process that has the
/// most, if these are more than the newcomer's process has. Thread-safe.
class ClientLines {
 public:
  using Id = std::uint64_t;  ///< 0 is never a connection.

  /// Calls that may be open on a connection, in its gRPC's own time: one that
  /// reads no answers does not end them. With more it is hung up on.
  static constexpr std::size_t kMaxOpen = 1024;

  /// `poller` is borrowed. `on_gone` is called once for each connection that
  /// was known and is over, on the thread that noticed it, and not after the
  /// destructor has returned, which waits for it.
  ClientLines(Poller& poller, std::size_t max_connections,
              std::function<void(Id)> on_gone)
      : poller_(poller),
        max_connections_(max_connections),
        on_gone_(std::move(on_gone)) {}
  ~ClientLines();
  ClientLines(const ClientLines&) = delete;
  ClientLines& operator=(const ClientLines&) = delete;

  struct Added {
    bool taken = false;
    bool was_full = false;  ///< One was hung up on: another one, if taken.
  };
  /// A client has connected; `fd` stays the caller's. It is not taken where
  /// there is no room and none gives way to it, or no descriptor.
  Added Add(int fd);

  struct Call {
    Id line = 0;  ///< 0: the connection is not known (any more).
    /// It is beyond kMaxOpen, so that the connection was hung up on.
    bool too_many = false;
    bool hung_up = false;  ///< It is the first of these.
    std::optional<PeerCredentials> caller = {};
  };
  /// A call has come from this peer, as gRPC names connections that it was
  /// given: `fd:7`.
  Call Begin(std::string_view peer);
  /// It is over.
  void End(Id line);

  std::size_t size() const;
  /// Connections that were hung up on or not taken, so far.
  std::size_t turned_away() const;

 private:
  struct Line {
    Id id = 0;
    int fd = -1;    ///< gRPC's, and so its name.
    UniqueFd copy;  ///< To notice and to make its end.
    std::optional<PeerCredentials> peer;
    Poller::WatchId watch = 0;
    bool has_called = false;
    std::size_t open_calls = 0;
  };
  using Lines = std::map<Id, Line>;  ///< In the order they came.

  void OnGone(Id line);
  using Peer = std::optional<PeerCredentials>;
  /// Hangs up on one that gives way to `newcomer`, if one does. What is put to
  /// `over` in these two is for Close.
  void MakeRoomLocked(const Peer& newcomer, std::vector<Line>& over)
      DEVMGR_REQUIRES(mutex_);
  /// Of the process with the most connections the oldest one, an idle one
  /// first; none if `newcomer` has as many.
  Lines::iterator FindOneOfManyLocked(const Peer& newcomer)
      DEVMGR_REQUIRES(mutex_);
  /// False: it cannot be watched.
  bool PutLocked(int fd, UniqueFd copy, std::vector<Line>& over)
      DEVMGR_REQUIRES(mutex_);
  /// Takes it out, for Close, which has to follow.
  Line TakeLocked(Lines::iterator line) DEVMGR_REQUIRES(mutex_);
  /// Without the lock: waits for the poller.
  void Close(const Line& line) DEVMGR_EXCLUDES(mutex_);

  Poller& poller_;
  const std::size_t max_connections_;
  const std::function<void(Id)> on_gone_;
  mutable Mutex mutex_;
  CondVar closed_;
  std::size_t closing_ DEVMGR_GUARDED_BY(mutex_) = 0;  ///< Taken out.
  Id last_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::size_t turned_away_ DEVMGR_GUARDED_BY(mutex_) = 0;
  Lines lines_ DEVMGR_GUARDED_BY(mutex_);
  std::map<int, Id> by_fd_ DEVMGR_GUARDED_BY(mutex_);
  /// Connections that had too many calls open, until the number is in use anew:
  /// gRPC hands out further calls that it had read from them.
  std::set<int> hung_up_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::rpc
