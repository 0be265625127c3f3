// SPDX-License-Identifier: Apache-2.0
//
// What an operator says of NUMA alignment (devmgr/topology.h), under the short
// names that this room uses, and the limit of nodes.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace devmgr::topology {

using Policy = TopologyPolicy;
using Scope = TopologyScope;
using Options = TopologyOptions;

inline std::string_view PolicyName(Policy policy) {
  return TopologyPolicyName(policy);
}
inline std::string_view ScopeName(Scope scope) {
  return TopologyScopeName(scope);
}
inline absl::StatusOr<Options> ParseOptions(
    std::string_view policy, std::string_view scope,
    const std::map<std::string, std::string>& options) {
  return ParseTopologyOptions(policy, scope, options);
}

/// Whether a machine with so many NUMA nodes is within the limit of `options`.
///   FailedPrecondition   it has more; the message has both numbers
absl::Status CheckNodeCount(const Options& options, std::int64_t nodes);

}  // namespace devmgr::topology
