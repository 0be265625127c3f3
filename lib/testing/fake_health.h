// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/executor.h"
#include "rpc/server.h"

namespace devmgr::testing {

/// The health service of a fake driver: reports all prepared devices and those
/// it knows, at once, whenever something changes, and again and again.
/// Lives on its executor.
class FakeHealth {
 public:
  using PoolDevice = std::pair<std::string, std::string>;

  /// `version`: `v1`, `v1alpha1`; empty: there is no such service. `prepared`
  /// gives the devices that are prepared now.
  FakeHealth(Executor& executor, std::string_view version,
             std::chrono::seconds lease,
             std::function<std::set<PoolDevice>()> prepared);
  ~FakeHealth() { executor_.Cancel(again_); }

  static bool IsVersion(std::string_view version);
  /// As it is advertised; empty without the service.
  std::string Announced() const;
  /// For a server. Handlers may run on any thread.
  std::map<std::string, rpc::StreamHandler> Handlers();

  /// `health` is a word such as `Unhealthy`.
  void Set(const PoolDevice& device, std::string_view health,
           std::string_view message);
  /// Sends a report on all streams.
  void Tell();
  void Drop(const absl::Status& status);
  std::size_t open_streams() const { return streams_.size(); }

 private:
  struct Told {
    std::string health = "Healthy";
    std::string message;
  };
  void Open(std::shared_ptr<rpc::ServerStream> stream);
  std::string Report() const;

  Executor& executor_;
  const std::string version_;
  const std::chrono::seconds lease_;
  const std::function<std::set<PoolDevice>()> prepared_;
  std::map<PoolDevice, Told> told_;
  std::map<int, std::shared_ptr<rpc::ServerStream>> streams_;
  int last_stream_ = 0;
  TimerId again_ = 0;
};

}  // namespace devmgr::testing
