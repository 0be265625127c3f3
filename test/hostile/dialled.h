// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/executor.h"
#include "hostile/hostile_peer.h"
#include "rpc/connection.h"
#include "rpc/server.h"

namespace devmgr::hostile {

/// What the sockets of a kind have cost us so far.
struct Costs {
  std::atomic<int> dials{0};    ///< Of the hostile socket.
  std::atomic<int> reports{0};  ///< Each wakes pods, and may be an event.
  std::atomic<int> calls{0};    ///< To the hostile peer, well or not.
};

/// A kind of socket that we dial, with a neighbour of that kind that behaves,
/// and those who want something of both: whenever there is news, and often
/// besides, the hostile peer is called.
class Dialled {
 public:
  /// Deadline of calls.
  static constexpr std::chrono::milliseconds kCallTimeout{400};

  virtual ~Dialled() = default;
  /// The peer at `socket` registers, beside the neighbour.
  virtual void Register(const std::filesystem::path& socket) = 0;
  /// `done` runs once, on any thread.
  virtual void CallNeighbour(std::function<void(absl::Status)> done) = 0;
  /// Serves, at `socket`, what a well-behaved peer does, `delay` late.
  virtual std::unique_ptr<rpc::Server> Serve(
      const std::filesystem::path& socket, std::chrono::milliseconds delay) = 0;

  Costs& costs() { return costs_; }

 protected:
  Costs costs_;
};

/// `folder` is for sockets. Both are borrowed and outlive it.
std::unique_ptr<Dialled> DialledDrivers(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder);
std::unique_ptr<Dialled> DialledPlugins(rpc::Runtime& runtime,
                                        const std::filesystem::path& folder);

}  // namespace devmgr::hostile
