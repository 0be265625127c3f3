// SPDX-License-Identifier: Apache-2.0
//
// DRA drivers as the manager sees them: by name, in our words.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/driver_health.h"
#include "state/state.h"

namespace devmgr::dra {

/// A claim as drivers are told of it.
struct ClaimReference {
  ClaimUid uid;
  ObjectName name;
  // Of old APIs only.
  ResourceHandle handle = {};
  /// What the driver prepared, for unprepare.
  std::vector<std::string> cdi_device_ids = {};
};

/// The driver's word on each claim asked for, and on no other. When the call
/// as a whole failed, every claim has that error.
using PrepareAnswer =
    std::map<ClaimUid, absl::StatusOr<std::vector<state::PreparedDevice>>>;
using UnprepareAnswer = std::map<ClaimUid, absl::Status>;

/// Hears what drivers say of the health of their devices, on the executor of
/// the drivers.
class HealthListener {
 public:
  virtual ~HealthListener() = default;
  virtual void OnHealthReport(
      const std::string& driver,
      const std::vector<device::DeviceReport>& report) = 0;
  /// It tells no more for now; `why` is for people.
  virtual void OnHealthLost(const std::string& driver,
                            const std::string& why) = 0;
};

/// All drivers of the node. Lives on one executor: all calls come from there
/// and all completions run there. Errors name driver and claim.
///   Unavailable        not registered, or not connected; nothing was sent
///   ResourceExhausted  too many calls under way at this driver
///   others             as the driver answered, or DeadlineExceeded
class Drivers {
 public:
  virtual ~Drivers() = default;
  virtual bool IsRegistered(const std::string& driver) const = 0;
  /// One of its instances is connected.
  virtual bool IsConnected(const std::string& driver) const = 0;
  /// One call with all claims. `done` runs later, with what came; where the
  /// driver's API has a call for each claim, for each by itself as it is
  /// answered. In all, each claim is answered once.
  virtual void Prepare(const std::string& driver,
                       std::vector<ClaimReference> claims,
                       std::function<void(PrepareAnswer)> done) = 0;
  virtual void Unprepare(const std::string& driver,
                         std::vector<ClaimReference> claims,
                         std::function<void(UnprepareAnswer)> done) = 0;
  virtual std::vector<PluginInfo> Plugins() const = 0;
  /// Who is told of health; borrowed. To be called before any driver comes.
  virtual void WatchHealth(HealthListener&) {}
};

}  // namespace devmgr::dra
