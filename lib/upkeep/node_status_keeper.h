// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "events/event_log.h"

namespace devmgr::upkeep {

/// Sets the status of the node as its devices are: the amounts of resources
/// that device plugins serve, and what the node can do with devices. Changes
/// within a second are one. What the sink finds wrong becomes an event. Lives
/// on its executor.
class NodeStatusKeeper {
 public:
  static constexpr std::chrono::milliseconds kPause{1'000};

  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    events::EventLog& events;
    ObjectSink* sink = nullptr;  ///< Null: nothing is ever done.
    std::string node_name;
    std::vector<std::string> features;  ///< Ascending.
    /// Names of plugins that have not come back stay, with zeroes.
    bool keeps_zeroes = false;
    std::function<std::vector<ResourceInfo>()> resources;
  };
  explicit NodeStatusKeeper(Parts parts);
  ~NodeStatusKeeper();

  void Start();
  /// Amounts or owners of resources may be others.
  void OnResources();

 private:
  /// Through which problems come, from any thread and at any time.
  struct Gate {
    Mutex mutex;
    Executor* executor DEVMGR_GUARDED_BY(mutex);  ///< Null: it has ended.
  };

  void Set();
  NodeDeviceStatus Now() const;

  const Parts parts_;
  std::optional<NodeDeviceStatus> last_;
  TimerId timer_ = 0;
  const std::shared_ptr<Gate> gate_;
};

}  // namespace devmgr::upkeep
