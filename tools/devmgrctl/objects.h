// SPDX-License-Identifier: Apache-2.0
//
// The shape of JSON and YAML output. Member names are a promise within an
// apiVersion; what is not known is absent.
#pragma once

#include <devmgr/container_devices.h>
#include <devmgr/fsck.h>
#include <devmgr/status_types.h>

#include "output.h"

namespace devmgr::ctl {

Json ItemOf(const PodInfo& pod);
Json ItemOf(const ClaimInfo& claim);
Json ItemOf(const PluginInfo& plugin);
Json ItemOf(const DeviceInfo& device);
Json ItemOf(const DeviceClassInfo& device_class);
Json ItemOf(const EventInfo& event);
Json ItemOf(const DecisionInfo& decision);
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
