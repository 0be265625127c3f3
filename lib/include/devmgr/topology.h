// SPDX-License-Identifier: Apache-2.0
//
// NUMA alignment: sets of NUMA nodes, hints, and the seam through which an
// embedder has a say with resources of its own, such as CPUs and memory. The
// words and rules are those of the kubelet's pkg/kubelet/cm/topologymanager.
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

/// A source of hints that the embedder has for resources of its own. Stateless
/// as the manager sees it: equal questions may be asked any number of times,
/// and a hint that is given reserves nothing. No manager asks for them yet.
class DEVMGR_EXPORT TopologyHintProvider {
 public:
  virtual ~TopologyHintProvider() = default;

  /// Names the provider in messages and in what is shown of a pod: `cpu`.
  virtual std::string_view name() const = 0;

  /// Hints by resource. An empty map is no opinion on any. Masks name nodes of
  /// the machine only, and are not empty; a list has at most
  /// kMaxHintsOfProvider hints. Must not block, throw or call back.
  ///   any error   admission fails with it, under the name of the provider
  virtual absl::StatusOr<std::map<std::string, TopologyHintList>> HintsOf(
      const TopologyRequest& request) const = 0;
};

/// All sets of nodes of a machine of 16 nodes.
inline constexpr std::size_t kMaxHintsOfProvider = 65'536;

}  // namespace devmgr
