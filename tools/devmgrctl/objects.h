// SPDX-License-Identifier: Apache-2.0
//
// The shape of JSON and YAML output. Member names are a promise within an
// apiVersion; what is not known is absent.
#pragma once

#include <devmgr/container_devices.h>
#include <devmgr/device_changes.h>
#include <devmgr/device_holders.h>
#include <devmgr/fsck.h>
#include <devmgr/source_info.h>
#include <devmgr/status_types.h>

#include "output.h"

namespace devmgr::ctl {

/// `RESOURCE/ID`, or `DRIVER/POOL/DEVICE`: no other device has it.
std::string NameOf(const DeviceInfo& device);

/// Empty when it is not set.
template <typename Open>
std::string WordOf(const std::optional<Open>& value) {
  return value ? std::string(value->name()) : "";
}

/// Empty where it is not known.
std::string AuthorityText(const NodeInfo& node);
std::string ProfileText(const NodeInfo& node);

/// `Complete`, `Incomplete`, `Invalid`, `Obsolete` or `Hidden`: only devices of
/// the first are allocated.
std::string SliceStateOf(const SliceInfo& slice);
/// Why its devices are not allocated; empty where they are.
std::string WhyOf(const SliceInfo& slice);

/// What a foreign holder has: `RESOURCE/ID`, then CDI names.
std::string DevicesText(const ForeignHolder& holder);
/// Of a container of a pod: `RESOURCE/ID`, of claims `DRIVER/POOL/DEVICE`.
std::string DevicesText(const DeviceHolderInfo& holder);

/// Nothing is known of figures unless its plugin was here since the daemon
/// started.
bool HasFigures(const ResourceInfo& resource);

/// The devices of a plugin whose answer put something into this container.
std::vector<DeviceId> DevicesOf(const ContainerDevices& container,
                                const ResourceName& resource);

Json ItemOf(const PodInfo& pod);
Json ItemOf(const ClaimInfo& claim);
Json ItemOf(const DebtInfo& debt);
Json ItemOf(const PluginInfo& plugin);
Json ItemOf(const ResourceInfo& resource);
Json ItemOf(const DeviceInfo& device);
Json ItemOf(const DeviceClassInfo& device_class);
Json ItemOf(const SliceInfo& slice);
Json ItemOf(const ForeignHolderInfo& info);
Json ItemOf(const DeviceHolderInfo& info);
Json ItemOf(const SourceInfo& info);
Json ItemOf(const RuntimeSourceInfo& runtime);
Json ItemOf(const EventInfo& event);
Json ItemOf(const DecisionInfo& decision);
Json ItemOf(const DeviceChange& change);
Json ItemOf(const NodeInfo& node);
Json ItemOf(const LedgerView& view);
Json ItemOf(const LedgerChange& change);

/// Which moment a view is of, and no more.
Json MomentItemOf(const LedgerView& view);

/// Of kind `FsckReport`.
Json ItemOf(const FsckReport& report);

/// Of kind `PodDevices`, without apiVersion and kind.
Json ItemOf(const PodDevices& devices);

}  // namespace devmgr::ctl
