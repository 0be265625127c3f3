// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30 as they are read. What the allocator
// makes of them is in allocator/named_resources.h.
#pragma once

#include <devmgr/objects.h>

#include "api/field.h"

namespace devmgr::api {

ResourceClass DecodeResourceClass(const Field& root);
ResourceClassParameters DecodeClassParameters(const Field& root);
ResourceClaimParameters DecodeClaimParameters(const Field& root);
/// `spec` of a ResourceClaim.
OldClaimSpec DecodeOldClaimSpec(const Field& spec);

/// A ResourceSlice with `namedResources` as a slice of today: of the pool that
/// is named like the node, in generation 1, of as many slices as there are.
/// Quantities are capacities. Names of devices and attributes may be longer
/// than today's, and lists empty.
ResourceSlice DecodeNamedResources(const Field& root);

}  // namespace devmgr::api
