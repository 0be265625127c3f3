// SPDX-License-Identifier: Apache-2.0
//
// What a fake driver publishes, and what it has to write so that the API server
// has just that. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "source/api/object_store.h"

namespace devmgr::testing {

/// As many devices as a slice may have.
inline constexpr std::size_t kMaxSliceDevices = 128;

/// The devices of a driver on a node: `gpu-0` and so on, in the pool that has
/// the name of the node. Each has the attributes `type` (`gpu`), `index` and
/// `uuid`, and the capacity `memory`.
struct PublishedPool {
  std::string driver;
  std::string node_name;
  std::string node_uid;
  std::size_t devices = 0;
};

/// One request.
struct SliceWrite {
  enum class Kind { kCreate, kUpdate, kDelete };
  Kind kind = Kind::kCreate;
  std::string name;     ///< Empty for kCreate: the server chooses it.
  std::string content;  ///< JSON; of kDelete the preconditions.
};

struct SlicePlan {
  std::vector<SliceWrite> writes;  ///< Empty: the server has it all.
  std::int64_t generation = 0;
  std::size_t slices = 0;
};

/// What makes `existing`, all slices of the driver on the node, what `pool` is.
/// The generation rises when anything has to be written, as with the official
/// library: until all is written the pool is not complete.
SlicePlan PlanSlices(const PublishedPool& pool,
                     const apiserver::ObjectStore::Objects& existing);

}  // namespace devmgr::testing
