// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/device_manager.h>
#include <devmgr/export.h>

#include <memory>

namespace devmgr {

struct ActuatorOptions {
  /// True: the pods of the manager's source are wanted, and a pod of the
  /// ledger that a complete snapshot lacks is released. False: only what
  /// `Want` and `Unwant` say; pods of the ledger stay wanted over a restart.
  bool follow_source = true;
  /// First delay before a failed step is tried again; doubles up to
  /// `max_retry`, with jitter. What was missing and appears cuts it short.
  std::chrono::milliseconds min_retry{1'000};
  std::chrono::milliseconds max_retry{60'000};
  /// This long after the objects or what pods may wait for changed, pods that
  /// are not where they should be are looked at once more, woken or not. While
  /// nothing changes there is no such look, and no timer.
  std::chrono::milliseconds sweep{60'000};
};

/// Drives wanted pods to Ready and unwanted ones to released: admits,
/// prepares, retries, unprepares. Level-triggered, on the manager's thread.
/// Thread-safe. Must be destroyed before the manager.
class DEVMGR_EXPORT Actuator {
 public:
  static std::unique_ptr<Actuator> Start(DeviceManager& manager,
                                         ActuatorOptions options = {});
  virtual ~Actuator() = default;

  virtual bool follows_source() const = 0;

  /// Wants this pod to be Ready. It must have a UID.
  virtual void Want(const Pod& pod) = 0;

  /// Wants this pod gone.
  virtual void Unwant(const PodUid& pod) = 0;
};

}  // namespace devmgr
