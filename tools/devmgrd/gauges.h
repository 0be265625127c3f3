// SPDX-License-Identifier: Apache-2.0
//
// Metrics that are read off what is shown, at the moment of a scrape.
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/pod_resources_server.h>
#include <devmgr/simulation.h>
#include <devmgr/source_info.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "devmgrd/control_metrics.h"

namespace devmgrd {

using Families = std::vector<prometheus::MetricFamily>;

Families FamiliesOf(const devmgr::NodeView& view);
Families FamiliesOf(const devmgr::SimulationCounts& counts);
Families FamiliesOf(const devmgr::PodResourcesCounters& counters);
/// Of what a control plane counts: claims, and pods that wait.
Families FamiliesOfControl(const devmgr::NodeView& view,
                           const devmgr::ObjectSnapshot& objects,
                           MetricNames names);
/// Of sources that are servers.
Families FamiliesOf(const std::vector<devmgr::SourceInfo>& infos);

}  // namespace devmgrd
