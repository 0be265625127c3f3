// SPDX-License-Identifier: Apache-2.0
//
// Device plugins as the manager sees them: by resource and connection, in our
// words.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/peer_status.h"
#include "device/device.h"
#include "device/device_list.h"
#include "device/inventory.h"
#include "peer/breaker.h"
#include "plugin/instance_machine.h"

namespace devmgr::plugin {

/// Of one connection to a plugin; 0 is none.
using device::Generation;
using device::ListProblems;

/// What a plugin answers to GetDevicePluginOptions.
struct PluginOptions {
  bool pre_start_required = false;
  bool preferred_allocation = false;
  friend bool operator==(const PluginOptions&, const PluginOptions&) = default;
};

/// For whom a call is made.
struct PodIdentity {
  std::string uid;
  std::string ns;
  std::string name;
  ContainerName container;
};

struct PreferredRequest {
  std::vector<DeviceId> available;  ///< Those of `must_include` too.
  std::vector<DeviceId> must_include;
  int size = 0;
};

using Via = PluginVia;

/// One instance of a plugin as it is now.
struct InstanceInfo {
  ResourceName resource;
  std::string endpoint;
  std::string version;  ///< Of the API: `v1beta1`.
  Via via = Via::kSocket;
  InstanceState state = InstanceState::kConnecting;
  Generation generation = 0;  ///< Of the connection, if there is one.
  PluginOptions options;      ///< As answered over it.
  std::size_t devices = 0;    ///< In its last list.
  peer::BreakerState breaker = peer::BreakerState::kClosed;
  /// It came and went too often and is not trusted with allocations until then.
  std::optional<WallTime> quarantined_until;
  int calls = 0;   ///< Under way.
  int queued = 0;  ///< Waiting for others to end.
  WallTime registered_since;
  std::string last_error;
};

/// As people see it.
PluginInfo PluginInfoOf(const InstanceInfo& instance);

/// Hears of plugins, on the executor, in order of change. May call Plugins
/// back, but not destroy it.
class PluginListener {
 public:
  virtual ~PluginListener() = default;
  /// A connection was made. Lists may follow, and OnGone will.
  virtual void OnConnected(const ResourceName& /*resource*/,
                           Generation /*generation*/,
                           const PluginOptions& /*options*/) {}
  /// The complete list, in the plugin's order. What cannot be a device is left
  /// out; IDs may still occur twice.
  virtual void OnList(const ResourceName& /*resource*/,
                      Generation /*generation*/,
                      std::vector<device::Device> /*devices*/,
                      const ListProblems& /*problems*/) {}
  virtual void OnGone(const ResourceName& /*resource*/,
                      Generation /*generation*/, const std::string& /*why*/) {}
  /// Something of what `info` shows is different: its state, the breaker, the
  /// quarantine. With state Closed: this instance is no more.
  virtual void OnState(const InstanceInfo& /*info*/) {}
  /// A plugin called Register, well or not; `invalid` for names that are none.
  virtual void OnRegistration(const ResourceName& /*resource*/) {}
};

/// All device plugins of the node. Lives on one executor: all calls come from
/// there and all completions run there, later. Errors name resource and socket.
///   Unavailable        nothing was sent: no such connection (any more), the
///                      breaker is open, or the plugin is in quarantine
///   ResourceExhausted  nothing was sent: too many calls wait for this plugin
///   DeadlineExceeded, Aborted   see OutcomeIsUnknown
///   InvalidArgument    the answer cannot be; the message names the culprit
///   any, IsFromPeer    as the plugin answered
class Plugins {
 public:
  using CurrentDone =
      std::function<void(const absl::Status& status, const std::string& late)>;

  virtual ~Plugins() = default;
  virtual void Allocate(
      const ResourceName& resource, Generation generation,
      const std::vector<DeviceId>& ids, const PodIdentity& pod,
      std::function<void(absl::StatusOr<device::ContainerEdits>)> done) = 0;
  /// Why Allocate would be refused now with nothing sent; OK when it would be
  /// sent. Asking changes nothing.
  virtual absl::Status CheckAllocate(const ResourceName& resource,
                                     Generation generation) const = 0;
  /// IDs as the plugin prefers them; they may be unknown, busy, too many.
  virtual void GetPreferredAllocation(
      const ResourceName& resource, Generation generation,
      const PreferredRequest& request, const PodIdentity& pod,
      std::function<void(absl::StatusOr<std::vector<DeviceId>>)> done) = 0;
  virtual void PreStartContainer(const ResourceName& resource,
                                 Generation generation,
                                 const std::vector<DeviceId>& ids,
                                 const PodIdentity& pod,
                                 std::function<void(absl::Status)> done) = 0;
  /// Runs `done` at a moment at which the listener knows of each list of these
  /// resources that has come: now, or from within OnList or OnGone. A list that
  /// comes while the plugin's budget of work is spent is known of later.
  ///   Unavailable  so it did not come to be for a while: the plugin of `late`
  ///                sends lists faster than they are taken in
  virtual void WhenCurrent(std::vector<ResourceName> resources,
                           CurrentDone done) = 0;
  /// By resource, then in the order of registration; `serves` says over which
  /// connection a resource is served. One that is as it was the last time is
  /// the same object.
  using Serves = std::function<bool(const ResourceName&, Generation)>;
  virtual std::vector<std::shared_ptr<const PluginInfo>> Shown(
      const Serves& serves) const = 0;
};

/// After a call that failed like this the plugin may or may not have acted:
/// it was silent, or went away during the call.
inline bool OutcomeIsUnknown(const absl::Status& status) {
  return (absl::IsDeadlineExceeded(status) || absl::IsAborted(status)) &&
         !IsFromPeer(status);
}

}  // namespace devmgr::plugin
