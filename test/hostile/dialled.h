// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "common/executor.h"
#include "common/mutex.h"
#include "hostile/costs.h"
#include "hostile/hostile_peer.h"
#include "rpc/connection.h"
#include "rpc/server.h"

namespace devmgr::hostile {

inline constexpr char kPrepareMethod[] =
    "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources";
inline constexpr char kGoodDriver[] = "good.example.com";
inline constexpr char kBadDriver[] = "bad.example.com";

/// What a second with a hostile peer may cost.
struct Bounds {
  /// A back-off from 50 ms makes five dials, calls make one more, some sockets
  /// are registered twice, and after a connection that stood for a moment the
  /// back-off begins anew. What does not back off dials a hundred times.
  int dials = 24;
  int reports = 24;
  int calls_at_least = 10;  ///< Else it was not tried.
  int log_lines = 24;
  int events = 24;
};

/// A peer that writes to a stream each beat, in a thread of its own: what it
/// does itself is to take no time of our threads.
class Flood {
 public:
  using Stream = std::shared_ptr<rpc::ServerStream>;

  explicit Flood(std::function<void(rpc::ServerStream& stream, int beat)> write)
      : beat_([this, write = std::move(write)](int beat) {
          if (const Stream stream = Now()) write(*stream, beat);
        }) {}

  void Put(Stream stream) {
    const MutexLock lock(mutex_);
    stream_ = std::move(stream);
  }

 private:
  Stream Now() const {
    const MutexLock lock(mutex_);
    return stream_;
  }

  mutable Mutex mutex_;
  Stream stream_ DEVMGR_GUARDED_BY(mutex_);
  Beat beat_;
};

/// A kind of socket that we dial, with a neighbour of that kind that behaves,
/// and those who want something of both: whenever there is news, and often
/// besides, the hostile peer is called.
class Dialled {
 public:
  /// Deadline of calls.
  static constexpr std::chrono::milliseconds kCallTimeout{400};

  virtual ~Dialled() = default;

  /// A peer at `socket` that speaks gRPC, and misbehaves in what it says. Only
  /// for misbehaviours that are of that sort here; null for all others, which
  /// are a HostilePeer's.
  virtual std::unique_ptr<rpc::Server> Serve(
      const std::filesystem::path& socket, Misbehaviour misbehaviour) = 0;

  /// Where the hostile socket is to be.
  virtual std::filesystem::path SocketIn(
      const std::filesystem::path& folder) const {
    return folder / "bad.sock";
  }
  /// The peer at `socket` makes itself known, beside the neighbour.
  virtual void Register(const std::filesystem::path& socket) = 0;
  /// It does so again, and again, every few milliseconds: `name` is 0 for the
  /// same name as before, and another number for each other name. `server` is
  /// what Serve returned. Comes from any thread, one at a time.
  virtual void RegisterAgain(const std::filesystem::path& socket,
                             rpc::Server& server, int name) = 0;

  /// `done` runs once, on any thread.
  virtual void CallNeighbour(std::function<void(absl::Status)> done) = 0;

  virtual Bounds bounds(Misbehaviour) const { return {}; }
  Costs& costs() { return costs_; }

 protected:
  static std::unique_ptr<rpc::Server> Start(rpc::ServerOptions options);

  Costs costs_;
};

/// `folder` is for sockets. Both are borrowed and outlive it.
std::unique_ptr<Dialled> DialledDrivers(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledHealth(rpc::Runtime& runtime,
                                       const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledInspections(
    rpc::Runtime& runtime, const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledPlugins(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledRegistrations(
    rpc::Runtime& runtime, const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledRuntimes(rpc::Runtime& runtime,
                                         const std::filesystem::path& folder);

}  // namespace devmgr::hostile
