// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/host.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/executor.h"
#include "hostile/costs.h"
#include "rpc/server.h"

namespace devmgr::hostile {

/// The methods of a DRA driver that prepares every claim, and those of the
/// registration under `name`, on one socket; each answers `delay` late.
std::map<std::string, rpc::UnaryHandler> DriverMethods(
    Executor& executor, const std::function<std::string()>& name,
    std::chrono::milliseconds delay = std::chrono::milliseconds(0));

/// A whole manager with its sockets below `folder`, and a driver that behaves.
/// Counts the manager's log lines and events.
class Node : private DeviceManagerObserver {
 public:
  /// All borrowed.
  Node(const std::filesystem::path& folder, Costs& costs);
  ~Node() override;

  std::filesystem::path registrations() const { return folder_ / "reg"; }
  std::filesystem::path device_plugins() const { return folder_ / "dp"; }
  DeviceManager& manager() { return *manager_; }

  /// A pod comes, is prepared by the driver, and goes. `done` runs once, on any
  /// thread. One at a time.
  void LivePod(std::function<void(absl::Status)> done);
  /// A pod wants its claim prepared by kBadDriver, whatever comes of it.
  void WantBadPod();

 private:
  /// What happens to the good pod is none of the peer's doing.
  void OnEvent(const EventInfo& event) override {
    if (event.object.name != "good") ++costs_.events;
  }

  const std::filesystem::path folder_;
  Costs& costs_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<MemoryObjectSource> source_;
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<rpc::Server> driver_;
};

}  // namespace devmgr::hostile
