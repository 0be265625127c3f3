// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "hostile/costs.h"
#include "hostile/hostile_client.h"
#include "rpc/connection.h"

namespace devmgr::hostile {

/// A kind of socket that we serve, with a client that behaves.
class Served {
 public:
  virtual ~Served() = default;
  virtual std::filesystem::path socket() const = 0;
  /// A call that a client may make: see HostileClient.
  virtual RawCall CallOf(int name) const = 0;
  /// The neighbour connects, and makes one call. `done` runs once, on any
  /// thread. One at a time.
  virtual void CallNeighbour(std::function<void(absl::Status)> done) = 0;

  Costs& costs() { return costs_; }

 protected:
  Costs costs_;
};

/// Calls over a connection of its own each time.
class FreshCaller {
 public:
  /// `runtime` is borrowed.
  FreshCaller(rpc::Runtime& runtime, std::filesystem::path socket)
      : runtime_(runtime), socket_(std::move(socket)) {}
  void Call(const RawCall& call, rpc::CallDone done);

 private:
  rpc::Runtime& runtime_;
  const std::filesystem::path socket_;
  std::unique_ptr<rpc::Connection> connection_;
};

/// `folder` is for sockets. Both are borrowed and outlive it.
std::unique_ptr<Served> ServedInspection(rpc::Runtime& runtime,
                                         const std::filesystem::path& folder);
std::unique_ptr<Served> ServedProxy(rpc::Runtime& runtime,
                                    const std::filesystem::path& folder);
std::unique_ptr<Served> ServedRegistry(rpc::Runtime& runtime,
                                       const std::filesystem::path& folder);

}  // namespace devmgr::hostile
