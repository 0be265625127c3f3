// SPDX-License-Identifier: Apache-2.0
//
// DRA drivers as the manager sees them: by name, in our words.
#pragma once

#include <devmgr/status_types.h>

#include <functional>
#include <string>
#include <vector>

#include "dra/claims.h"

namespace devmgr::dra {

class HealthListener;

/// All drivers of the node. Lives on one executor: all calls come from there
/// and all completions run there. Errors name driver and claim.
///   any, IsFromPeer    as the driver answered (common/peer_status.h), for the
///                      call or for the claim
///   Unavailable        nothing was sent: not registered, not connected, or
///                      left alone because it is silent; or it hung up during
///                      the call
///   ResourceExhausted  nothing was sent: too many calls wait for this driver
///   DeadlineExceeded   the driver was silent; it may or may not have acted
///   others             the call cannot be said to it, or its answer cannot be
///                      right
class Drivers {
 public:
  virtual ~Drivers() = default;
  virtual bool IsRegistered(const std::string& driver) const = 0;
  /// One of its instances answers, or has just been asked for the first time.
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
  /// By driver, then in the order of age. One that is as it was the last time
  /// is the same object.
  virtual std::vector<std::shared_ptr<const PluginInfo>> Plugins() const = 0;
  /// The listener that hears of health; borrowed. To be called before any
  /// driver comes.
  virtual void WatchHealth(HealthListener&) {}
};

}  // namespace devmgr::dra
