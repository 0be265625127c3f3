// SPDX-License-Identifier: Apache-2.0
#include "topology/policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::topology {
namespace {

using api::Quoted;

constexpr std::string_view kPreferClosest = "prefer-closest-numa-nodes";
constexpr std::string_view kMaxNodesOption = "max-allowable-numa-nodes";

constexpr std::array kPolicies = {Policy::kNone, Policy::kBestEffort,
                                  Policy::kRestricted, Policy::kSingleNumaNode};
constexpr std::array kScopes = {Scope::kContainer, Scope::kPod};

/// The spellings that Go's strconv.ParseBool takes.
std::optional<bool> ParseBool(std::string_view text) {
  for (const auto* yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const auto* no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

absl::Status SetMaxNodes(std::string_view value, Options& options) {
  std::string_view digits = value;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return InvalidArgumentError(
        "unable to convert policy option to integer \"{}\": {}",
        kMaxNodesOption, Quoted(value));
  }
  if (number < kDefaultMaxNumaNodes) {
    return InvalidArgumentError(
        "the minimum value of \"{}\" should not be less than {}, and it is {}",
        kMaxNodesOption, kDefaultMaxNumaNodes, number);
  }
  options.max_numa_nodes = number;
  return absl::OkStatus();
}

absl::Status SetOption(std::string_view name, std::string_view value,
                       Options& options) {
  if (name == kPreferClosest) {
    const auto parsed = ParseBool(value);
    if (!parsed) {
      return InvalidArgumentError(
          "bad value for option \"{}\": {} is neither true nor false", name,
          Quoted(value));
    }
    options.prefer_closest = *parsed;
    return absl::OkStatus();
  }
  if (name == kMaxNodesOption) return SetMaxNodes(value, options);
  return InvalidArgumentError("unknown Topology Manager Policy option: {}",
                              Quoted(name));
}

}  // namespace

absl::Status CheckNodeCount(const Options& options, std::int64_t nodes) {
  if (options.policy == Policy::kNone || nodes <= options.max_numa_nodes) {
    return absl::OkStatus();
  }
  return FailedPreconditionError(
      "topology policy \"{}\" is unsupported on machines with more than {} "
      "NUMA Nodes, and this machine has {}: raise the option \"{}\"",
      PolicyName(options.policy), options.max_numa_nodes, nodes,
      kMaxNodesOption);
}

}  // namespace devmgr::topology

namespace devmgr {

std::string_view TopologyPolicyName(TopologyPolicy policy) {
  switch (policy) {
    case TopologyPolicy::kNone:
      return "none";
    case TopologyPolicy::kBestEffort:
      return "best-effort";
    case TopologyPolicy::kRestricted:
      return "restricted";
    case TopologyPolicy::kSingleNumaNode:
      return "single-numa-node";
  }
  return "";
}

std::string_view TopologyScopeName(TopologyScope scope) {
  return scope == TopologyScope::kPod ? "pod" : "container";
}

absl::StatusOr<TopologyOptions> ParseTopologyOptions(
    std::string_view policy, std::string_view scope,
    const std::map<std::string, std::string>& options) {
  TopologyOptions parsed;
  if (!policy.empty()) {
    const auto* found =
        std::find_if(topology::kPolicies.begin(), topology::kPolicies.end(),
                     [&](TopologyPolicy known) {
                       return TopologyPolicyName(known) == policy;
                     });
    if (found == topology::kPolicies.end()) {
      return InvalidArgumentError("unknown policy: {}", api::Quoted(policy));
    }
    parsed.policy = *found;
  }
  if (parsed.policy == TopologyPolicy::kNone) return parsed;
  if (!scope.empty()) {
    const auto* found = std::find_if(
        topology::kScopes.begin(), topology::kScopes.end(),
        [&](TopologyScope known) { return TopologyScopeName(known) == scope; });
    if (found == topology::kScopes.end()) {
      return InvalidArgumentError("unknown scope: {}", api::Quoted(scope));
    }
    parsed.scope = *found;
  }
  for (const auto& [name, value] : options) {
    DEVMGR_RETURN_IF_ERROR(topology::SetOption(name, value, parsed));
  }
  return parsed;
}

}  // namespace devmgr
