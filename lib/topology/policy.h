// SPDX-License-Identifier: Apache-2.0
//
// What an operator says of NUMA alignment, in the words of the kubelet's
// configuration: topologyManagerPolicy, topologyManagerScope and
// topologyManagerPolicyOptions.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace devmgr::topology {

enum class Policy {
  kNone,            ///< No hints are asked for; all is admitted.
  kBestEffort,      ///< The best hint counts; all is admitted.
  kRestricted,      ///< Admits only what has a preferred hint.
  kSingleNumaNode,  ///< Admits only what fits on one node.
};
/// As configuration has it: `single-numa-node`.
std::string_view PolicyName(Policy policy);

enum class Scope {
  kContainer,  ///< One hint per container.
  kPod,        ///< One hint for all containers of a pod.
};
std::string_view ScopeName(Scope scope);

/// The kubelet's default for `max-allowable-numa-nodes`, and the least value
/// that it may have.
inline constexpr std::int64_t kDefaultMaxNumaNodes = 8;

struct Options {
  Policy policy = Policy::kNone;
  Scope scope = Scope::kContainer;
  /// Among masks of one size the one with the least average distance is best.
  /// Without effect under kSingleNumaNode.
  bool prefer_closest = false;
  std::int64_t max_numa_nodes = kDefaultMaxNumaNodes;
  friend bool operator==(const Options&, const Options&) = default;
};

/// Reads what is configured. An empty policy is `none`, an empty scope
/// `container`. Under `none` scope and options are not looked at, as at the
/// kubelet.
///   InvalidArgument   policy, scope or an option is unknown, or the value of
///                     an option is none; the message quotes it
absl::StatusOr<Options> ParseOptions(
    std::string_view policy, std::string_view scope,
    const std::map<std::string, std::string>& options);

/// Whether a machine with so many NUMA nodes is within the limit of `options`.
///   FailedPrecondition   it has more; the message has both numbers
absl::Status CheckNodeCount(const Options& options, std::int64_t nodes);

}  // namespace devmgr::topology
