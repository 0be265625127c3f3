// SPDX-License-Identifier: Apache-2.0
//
// From slices to pools: which slices belong together, whether all of them are
// there, and whether they fit each other.
#pragma once

#include <devmgr/objects.h>

#include <string>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/features.h"
#include "allocator/refusals.h"

namespace devmgr::allocator {

/// A pool with at least one slice that the node reaches, at the newest
/// generation of these.
struct GatheredPool {
  enum class State {
    kUsable,
    kIncomplete,  ///< Slices are missing. Nothing is taken from it.
    kInvalid,     ///< Slices contradict each other. Nothing is taken from it.
  };

  PoolId id;
  State state = State::kUsable;
  std::string problem;  ///< For people: of a pool that is not usable.
  /// Slices that the node reaches, by name. Some may have counters.
  std::vector<const ResourceSlice*> slices;
  /// The other slices of the pool. Known only when those of the node are not
  /// all: else there are none, or ones of another generation.
  std::vector<const ResourceSlice*> elsewhere;
  /// A device of `slices` has binding conditions.
  bool has_binding_conditions = false;
};

/// Devices that the search does not come to see.
struct LeftOut {
  const ResourceSlice* slice = nullptr;
  const SliceDevice* device = nullptr;  ///< Null: all of the slice.
  Refusal reason = Refusal::kNotOnNode;
  std::string detail;
};

struct GatheredPools {
  /// In order of trial: by driver and name; those with binding conditions after
  /// all others.
  std::vector<GatheredPool> pools;
  std::vector<LeftOut> left_out;
};

/// The pools of `slices` that are usable on `node`. A pool of which a newer
/// generation has begun to appear for other nodes is left out, unless the old
/// one is complete by the slices for this node alone.
GatheredPools GatherPools(const std::vector<const ResourceSlice*>& slices,
                          const Node& node, const Features& features);

}  // namespace devmgr::allocator
