// SPDX-License-Identifier: Apache-2.0
#include "reconnect.h"

namespace devmgr::ctl {
namespace {

/// Between two attempts to find the daemon again.
constexpr std::chrono::milliseconds kReconnectPause{500};

}  // namespace

bool IsLost(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded;
}

absl::StatusOr<std::unique_ptr<Inspector>> Reconnect(const Session& session,
                                                     WallTime* started) {
  for (;;) {
    session.environment().pause(kReconnectPause);
    auto inspector = session.Open();
    absl::Status status = inspector.status();
    if (status.ok()) {
      const auto node = (*inspector)->Node();
      if (node.ok()) *started = node->started;
      status = node.status();
    }
    if (status.ok()) return inspector;
    if (!IsLost(status)) return status;
  }
}

}  // namespace devmgr::ctl
