// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <map>
#include <string>
#include <vector>

namespace devmgr::pods {

/// What pods may wait for that is different in `after`: claims whose objects
/// appeared, changed or went, or that cannot be read, or for another reason.
std::vector<WaitingFor> ChangedClaims(const ObjectSnapshot& before,
                                      const ObjectSnapshot& after);

/// The same for pods whose claims this node of that name allocates, with these
/// feature gates: classes, templates, quotas, devices that are published, and
/// devices that a claim held by its status.
std::vector<WaitingFor> ChangedDevices(
    const ObjectSnapshot& before, const ObjectSnapshot& after,
    const std::string& node_name,
    const std::map<std::string, bool>& feature_gates);

}  // namespace devmgr::pods
