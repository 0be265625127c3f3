// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/objects.h>

#include <string_view>

namespace devmgr::control {

/// The claim of a pod for an entry of its spec that names this template: with
/// the template's spec, labels and annotations, owned by the pod, not
/// allocated. `suffix`: NameSuffix() of a number that no other claim had.
/// Whether it may be made at all says CheckAdminAccess().
ResourceClaim GenerateClaim(const Pod& pod, const PodResourceClaim& entry,
                            const ResourceClaimTemplate& source,
                            std::string_view suffix);

}  // namespace devmgr::control
