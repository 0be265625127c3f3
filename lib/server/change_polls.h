// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>

#include "common/executor.h"
#include "rpc/server.h"
#include "server/convert.h"

namespace devmgr::server {

/// Clients that wait for changes of devices. They keep their places themselves,
/// so that one which does not come back leaves nothing here. Lives on an
/// executor.
class ChangePolls {
 public:
  /// Both are borrowed. The executor has stopped before this goes.
  ChangePolls(DeviceManager& manager, Executor& executor)
      : manager_(manager), executor_(executor) {}
  ChangePolls(const ChangePolls&) = delete;
  ChangePolls& operator=(const ChangePolls&) = delete;

  /// Answers at once if there are changes, else when there are, or after the
  /// time that the client grants, `most` at most.
  void Poll(const pb::ChangesRequest& request, std::chrono::milliseconds most,
            rpc::Respond respond);

  /// The manager has more; on any thread, only posts, and that once until it is
  /// looked at.
  void Note();

 private:
  struct Poller {
    ChangeToken after;
    rpc::Respond respond;
    TimerId timer = 0;
  };

  void Look();
  void End(std::uint64_t id);

  DeviceManager& manager_;
  Executor& executor_;
  std::atomic<bool> noted_ = false;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Poller> pollers_;
};

}  // namespace devmgr::server
