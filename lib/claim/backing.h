// SPDX-License-Identifier: Apache-2.0
//
// What serves an extended resource by its name on this node, a device plugin or
// a device class: a fact of the ledger, changed by a recorded hand-over. What a
// plugin counts and what a claim names may be one piece of hardware, so no
// name changes hands while a pod holds devices by it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "device/endpoint_machine.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// Of a name: one owner at any time, or, as with the kubelet, the one that has
/// it at the moment.
enum class Sharing { kOneOwner, kAsItComes };

/// What could serve a name now.
struct Candidates {
  bool plugin = false;          ///< One is connected.
  bool plugin_awaited = false;  ///< It has gone and may come back.
  bool device_class = false;    ///< A class has this name.
};

/// `state`: of the name's plugin.
Candidates CandidatesOf(const ResourceName& resource,
                        device::EndpointState state,
                        const ObjectMap<DeviceClass>& classes);

/// A pod that wants the resource is to have it through a claim.
bool IsServedByClass(const state::State& state, const ResourceName& resource,
                     const Candidates& candidates, Sharing sharing);

/// Records what serves the name from now on: the plugin that comes first; a
/// class once no plugin is awaited and no pod holds devices of one; a plugin
/// again once it is there and no pod holds claims for the name. A name of a
/// class is forgotten when nothing could serve it and no pod holds claims for
/// it. Nothing when all stays as it is. With Sharing::kAsItComes no holding
/// counts. What an operator has said stands.
state::Decision DecideBacking(const state::State& state,
                              const ResourceName& resource,
                              const Candidates& candidates, Sharing sharing,
                              std::int64_t now_ms);

/// An operator gives the name to `to`, in any case; without `to` he takes
/// that back.
///   InvalidArgument  no reason, or the name is that of no extended resource
///   NotFound         to be taken back, and nothing serves the name
absl::StatusOr<state::Decision> HandOverByOperator(
    const state::State& state, const ResourceName& resource,
    std::optional<state::Backing> to, const std::string& reason,
    std::int64_t now_ms);

/// Why the device plugin of the resource gives no devices by an operator's
/// word; empty: none was said.
std::string TakenFromPlugin(const state::State& state,
                            const ResourceName& resource);

/// Why no device plugin serves the name, for people; empty: one does.
/// `resource`: what the ledger has of it, or null. `has_plugin`: one is
/// connected.
std::string WhyNotServed(const state::ResourceRecord* resource,
                         bool has_plugin);

/// Nothing serves the name any more. Nothing while a pod holds devices by it.
state::Decision ForgetResource(const state::State& state,
                               const ResourceName& resource);

/// May a pod take devices of the plugin of `resource`?
///   Aborted  another pod holds a claim for it, or an operator gave the name to
///            a device class
absl::Status CheckNoClaims(const state::State& state,
                           const ResourceName& resource, const PodUid& pod);

/// May a pod take claims for `resource`? Waits for the pods that hold devices
/// of its plugin.
Verdict CheckNoPluginDevices(const state::State& state,
                             const ResourceName& resource, const PodUid& pod);

}  // namespace devmgr::claim
