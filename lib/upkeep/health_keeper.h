// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>
#include <devmgr/metrics.h>
#include <devmgr/options.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "device/health_policy.h"
#include "events/event_log.h"
#include "resources/device_book.h"
#include "state/state.h"
#include "upkeep/dra_health.h"

namespace devmgr::upkeep {

/// What follows when devices that pods hold stop working, or work again: which
/// observers hear of it, and, by policy, which pods are failed. Lives on the
/// manager's thread.
class HealthKeeper {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    const state::State& state;  ///< The durable projection on this thread.
    const resources::DeviceBook& devices;  ///< Those of device plugins.
    const DraHealth& dra_health;           ///< Those that claims hold.
    events::EventLog& events;
    std::map<std::string, HealthPolicy> policies;
    std::chrono::milliseconds unhealthy_for{30'000};
    /// Resources and drivers of which a device that is Unknown is Unhealthy.
    std::set<std::string> unknown_is_unhealthy;
    MetricsSink& metrics;
    std::function<std::int64_t()> now_ms;
    /// The health of what these pods hold is another.
    std::function<void(const std::vector<PodUid>&)> tell;
    std::function<void(const PodAction&)> act_on_pod;  ///< May be null.
  };
  explicit HealthKeeper(Parts parts) : parts_(std::move(parts)) {}
  ~HealthKeeper();

  /// Told once for all that happens until the thread is done with what it has.
  void OnHealth(const std::set<PodUid>& pods);

  /// Something about devices of the resource, or of the DRA driver, changed, or
  /// somebody holds less.
  void OnDevices(const std::string& name);

  /// May a container with these devices start?
  ///   FailedPrecondition  one is Unhealthy, and such pods are to fail
  absl::Status CheckStart(const state::PodRecord& pod,
                          const ContainerName& container) const;

  /// The resources of which the container holds devices that do not work, and
  /// that are to be replaced by others when it starts again.
  std::set<ResourceName> ToReplace(const state::PodRecord& pod,
                                   const ContainerName& container) const;
  /// The claims of which the same holds.
  std::set<ClaimUid> ClaimsToReplace(const state::PodRecord& pod,
                                     const ContainerName& container) const;

 private:
  /// Since when it does not work, and why.
  struct Fault {
    std::int64_t since_ms = 0;
    std::string why;
  };
  /// By who holds what.
  using Faults = std::map<std::pair<PodUid, std::string>, Fault>;

  void TellPending();
  // `name` is that of a resource or of a driver; no resource is called as a
  // driver is.
  void ReportFaults(const std::string& name, const Faults& now);
  /// Does a device that the pod holds work?
  bool Works(const std::string& name, const PodUid& pod,
             const std::string& id) const;
  void Judge(const std::string& name);
  void Fail(const std::string& name, const device::FaultyDevice& device);
  /// As it is now. What is not known to have begun began when it was seen.
  std::vector<device::FaultyDevice> FaultyOf(const std::string& name) const;
  std::size_t HeldCount(const std::string& name) const;
  bool Fails(const std::string& name) const;
  bool HasPolicy(const std::string& name, HealthPolicy policy) const;

  const Parts parts_;
  std::set<PodUid> pending_;
  std::map<std::string, Faults> faults_;
  std::map<std::string, device::HealthGuard> guards_;
  std::map<std::string, TimerId> timers_;
};

}  // namespace devmgr::upkeep
