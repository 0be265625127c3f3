// SPDX-License-Identifier: Apache-2.0
//
// NUMA alignment: its options, sets of NUMA nodes, hints, what is shown of it,
// and the seam through which an embedder has a say with resources of its own,
// such as CPUs and memory. The words and rules are those of the kubelet's
// pkg/kubelet/cm/topologymanager.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/types.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

struct Pod;

/// Which pods are admitted, and which devices they get. Stored: never renumber.
enum class TopologyPolicy {
  kNone = 0,            ///< No hints are asked for; all is admitted.
  kBestEffort = 1,      ///< The best hint counts; all is admitted.
  kRestricted = 2,      ///< Admits only what has a preferred hint.
  kSingleNumaNode = 3,  ///< Admits only what fits on one node.
};
/// As configuration has it: `single-numa-node`.
DEVMGR_EXPORT std::string_view TopologyPolicyName(TopologyPolicy policy);

/// Stored: never renumber.
enum class TopologyScope {
  kContainer = 0,  ///< One hint per container.
  kPod = 1,        ///< One hint for all containers of a pod.
};
/// `container`, `pod`.
DEVMGR_EXPORT std::string_view TopologyScopeName(TopologyScope scope);

/// The kubelet's default for `max-allowable-numa-nodes`, and the least value
/// that it may have.
inline constexpr std::int64_t kDefaultMaxNumaNodes = 8;

/// How the devices of a pod are aligned to NUMA nodes. With a policy other than
/// kNone the machine's nodes have to be known: else it does not start.
struct TopologyOptions {
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
  /// Among masks of one size the one with the least average distance is best.
  /// Without effect under kSingleNumaNode.
  bool prefer_closest = false;
  /// A machine with more nodes is refused. A merge of up to 64 nodes is bounded
  /// here, so that a high limit costs nothing while hints are few.
  std::int64_t max_numa_nodes = kDefaultMaxNumaNodes;
  friend bool operator==(const TopologyOptions&,
                         const TopologyOptions&) = default;
};

/// Reads what the kubelet's configuration has as topologyManagerPolicy,
/// topologyManagerScope and topologyManagerPolicyOptions. An empty policy is
/// `none`, an empty scope `container`. Under `none` scope and options are not
/// looked at, as at the kubelet.
///   InvalidArgument   policy, scope or an option is unknown, or the value of
///                     an option is none; the message quotes it
DEVMGR_EXPORT absl::StatusOr<TopologyOptions> ParseTopologyOptions(
    std::string_view policy, std::string_view scope,
    const std::map<std::string, std::string>& options);

/// A set of NUMA nodes by their ids, which are 0 to 63 as in the kubelet's
/// masks. A value of eight bytes.
class NumaMask {
 public:
  static constexpr int kMaxNodes = 64;

  constexpr NumaMask() = default;
  /// Bit i is node i.
  constexpr explicit NumaMask(std::uint64_t bits) : bits_(bits) {}
  /// `node` is 0 to 63.
  static constexpr NumaMask OfNode(int node) {
    return NumaMask(std::uint64_t{1} << node);
  }
  /// No value when one of `nodes` is not 0 to 63.
  static std::optional<NumaMask> OfNodes(
      const std::vector<std::int64_t>& nodes) {
    NumaMask mask;
    for (const std::int64_t node : nodes) {
      if (node < 0 || node >= kMaxNodes) return std::nullopt;
      mask = mask | OfNode(static_cast<int>(node));
    }
    return mask;
  }

  constexpr std::uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int Count() const { return std::popcount(bits_); }
  /// False for ids that no mask can have.
  constexpr bool Contains(std::int64_t node) const {
    return node >= 0 && node < kMaxNodes && (bits_ >> node & 1) != 0;
  }
  constexpr bool ContainsAll(NumaMask other) const {
    return (other.bits_ & ~bits_) == 0;
  }
  /// Ascending.
  std::vector<std::int64_t> Nodes() const {
    std::vector<std::int64_t> nodes;
    for (std::uint64_t left = bits_; left != 0; left &= left - 1) {
      nodes.push_back(std::countr_zero(left));
    }
    return nodes;
  }

  friend constexpr NumaMask operator&(NumaMask a, NumaMask b) {
    return NumaMask(a.bits_ & b.bits_);
  }
  friend constexpr NumaMask operator|(NumaMask a, NumaMask b) {
    return NumaMask(a.bits_ | b.bits_);
  }
  friend constexpr bool operator==(NumaMask, NumaMask) = default;

 private:
  std::uint64_t bits_ = 0;
};

/// NUMA nodes that could serve a request.
struct TopologyHint {
  std::optional<NumaMask> nodes;  ///< No value: any node will do.
  /// The request cannot be served by fewer nodes, not even on the empty
  /// machine.
  bool preferred = false;
  friend bool operator==(const TopologyHint&, const TopologyHint&) = default;
};

/// Hints of one resource. No value: no opinion. An empty list: no set of nodes
/// can serve the request.
using TopologyHintList = std::optional<std::vector<TopologyHint>>;

/// What hints are asked for.
struct TopologyRequest {
  const Pod& pod;  ///< Borrowed for the call.
  /// Empty: for all containers together, which is the scope `pod`.
  ContainerName container = {};
};

/// A source of hints that the embedder has for resources of its own, such as
/// CPUs and memory (Host::topology_providers). Stateless as the manager sees
/// it: equal questions may be asked any number of times, and a hint that is
/// given reserves nothing. What the hints of a pod came to is to be read off
/// NodeView::AlignmentOf once the pod is admitted.
///
/// Thread: the manager's own. Locks: none is held. Limits: do not block, throw,
/// or call methods of the manager.
/// Lifetime: borrowed; must outlive the manager.
class DEVMGR_EXPORT TopologyHintProvider {
 public:
  virtual ~TopologyHintProvider() = default;

  /// Names the provider in messages and in what is shown of a pod: `cpu`.
  virtual std::string_view name() const = 0;

  /// Hints by resource. An empty map is no opinion on any. Masks name nodes of
  /// the machine only, and are not empty; a list has at most
  /// kMaxHintsOfProvider hints. Asked for each container of a pod in its order,
  /// or once for the pod, before any device is reserved, and again whenever the
  /// pod is judged again. Not asked about pods that hold devices already.
  ///   any error   admission fails with it, under the name of the provider, and
  ///               is tried again
  virtual absl::StatusOr<std::map<std::string, TopologyHintList>> HintsOf(
      const TopologyRequest& request) const = 0;
};

/// All sets of nodes of a machine of 16 nodes.
inline constexpr std::size_t kMaxHintsOfProvider = 65'536;

/// Devices of one resource of a plugin, or of one DRA driver, on a NUMA node.
struct NumaDevicesInfo {
  std::string name;  ///< Of the resource or the driver.
  bool is_driver = false;
  std::int64_t devices = 0;
  std::int64_t used = 0;     ///< Held by pods or claims.
  std::int64_t healthy = 0;  ///< Of device plugins: they work.
  friend bool operator==(const NumaDevicesInfo&,
                         const NumaDevicesInfo&) = default;
};

struct NumaNodeInfo {
  std::int64_t id = 0;
  std::vector<std::int64_t> cpus;  ///< Ascending; empty: it has memory only.
  std::optional<std::uint64_t> memory_bytes;  ///< No value: not known.
  /// To each node, in the order of NumaInfo::nodes; 10 is local. Empty: not
  /// known.
  std::vector<std::uint32_t> distances;
  /// By name. A device on several nodes is one of each of them.
  std::vector<NumaDevicesInfo> devices;
  friend bool operator==(const NumaNodeInfo&, const NumaNodeInfo&) = default;
};

/// The NUMA nodes of the machine, and how pods are aligned to them.
struct NumaInfo {
  TopologyOptions options;
  std::vector<NumaNodeInfo> nodes;       ///< Ascending by ID.
  std::vector<NumaDevicesInfo> nowhere;  ///< Devices that are on no node.
  /// The kernel has no NUMA nodes: the one node stands for the machine.
  bool synthetic = false;
  /// Why nodes or distances are not known, and what is odd.
  std::vector<std::string> problems;
};

/// Hints of one resource, as they were merged.
struct TopologyHintsInfo {
  static constexpr std::size_t kMaxHints = 64;
  std::string provider;  ///< `device`, `claim`, or that of an embedder.
  std::string resource;
  /// No value: no opinion. Else the first kMaxHints of `count`.
  TopologyHintList hints;
  std::uint64_t count = 0;
  bool truncated = false;    ///< The search for them ended at its limit.
  bool informative = false;  ///< They were not merged.
  friend bool operator==(const TopologyHintsInfo&,
                         const TopologyHintsInfo&) = default;
};

struct ContainerAlignmentInfo {
  ContainerName container;
  std::vector<TopologyHintsInfo> resources;
  TopologyHint merged;
  bool admitted = true;
  bool proven = true;  ///< No other combination of the hints is better.
  friend bool operator==(const ContainerAlignmentInfo&,
                         const ContainerAlignmentInfo&) = default;
};

/// What the hints of a pod came to when it was judged last.
struct PodAlignmentInfo {
  TopologyOptions options;
  bool admitted = true;
  std::string message;  ///< Why it is not admitted, for people.
  /// In the order of the pod. When it is not admitted the last one is refused,
  /// and those after it were not looked at. Under TopologyScope::kPod each has
  /// the same hints.
  std::vector<ContainerAlignmentInfo> containers;
  friend bool operator==(const PodAlignmentInfo&,
                         const PodAlignmentInfo&) = default;
};

}  // namespace devmgr
