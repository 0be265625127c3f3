// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi.h>
#include <devmgr/container_devices.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/executor.h"
#include "device/hardware.h"
#include "state/state.h"
#include "upkeep/spec_keeper.h"

namespace devmgr::upkeep {

/// What the host says of device nodes.
struct HardwareHost {
  CdiHost nodes;
  /// Directory of a node's device, below /sys: `/devices/...`; empty when there
  /// is none. `type` is `c` or `b`.
  std::function<std::string(std::string_view type, std::int64_t major,
                            std::int64_t minor)>
      sysfs_device;
};

/// The host that this process sees. Blocks for the file system.
HardwareHost SystemHardwareHost();

/// Nodes that a container is to get: those of plugins, and those behind the
/// names of CDI devices.
struct NodeQuestion {
  std::vector<DeviceNode> devices;
  std::vector<std::string> cdi_devices;
  bool empty() const { return devices.empty() && cdi_devices.empty(); }
};

/// Looks at the nodes of `question`, on the caller's thread. What cannot be
/// looked at is left out: it is for the runtime to say that it is missing.
/// `registry` may be null.
std::vector<device::NodeFacts> LookAtNodes(const NodeQuestion& question,
                                           const CdiRegistry* registry,
                                           const HardwareHost& host);

/// Looks at device nodes on a thread that may block, which sleeps in between.
/// Lives on the manager's thread.
class HardwareLook {
 public:
  /// Has the CDI specs read, and calls `done` on the thread that read; false
  /// when there are none to read.
  using ReadSpecs =
      std::function<bool(std::function<void(const CdiRegistry&)>)>;
  using Facts = std::vector<std::vector<device::NodeFacts>>;

  /// Borrowed things must outlive this.
  struct Parts {
    Executor& executor;
    const state::State& state;  ///< The durable projection on this thread.
    HardwareOptions options;
    HardwareHost host;
    ReadSpecs read_specs;  ///< Null: there are none.
  };
  explicit HardwareLook(Parts parts);
  ~HardwareLook() { Stop(); }

  /// `done` gets the facts for each question, on the manager's thread; at once
  /// when all questions are empty.
  void Look(std::vector<NodeQuestion> questions,
            std::function<void(const Facts&)> done);

  /// Fills in which hardware a driver's answer is: of devices that the claim
  /// has for itself.
  void Identify(const std::string& driver, SpecKeeper::PreparedClaims prepared,
                const std::function<void(SpecKeeper::PreparedClaims)>& done);

  /// No look begins from now on.
  void Close() { closed_ = true; }
  /// Waits for the look that is under way; no `done` is called from now on. To
  /// be called after Close, and not on the manager's thread.
  void Stop();

 private:
  const Parts parts_;
  bool closed_ = false;
  std::unique_ptr<Executor> disk_;  ///< Null until it is needed.
};

}  // namespace devmgr::upkeep
