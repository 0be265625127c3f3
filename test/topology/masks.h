// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/topology.h>

#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "topology/merge.h"

namespace devmgr {

/// For gtest.
inline void PrintTo(const NumaMask& mask, std::ostream* out) {
  *out << "{";
  for (const auto node : mask.Nodes()) *out << " " << node;
  *out << " }";
}
inline void PrintTo(const TopologyHint& hint, std::ostream* out) {
  if (hint.nodes) {
    PrintTo(*hint.nodes, out);
  } else {
    *out << "any";
  }
  *out << (hint.preferred ? "p" : "n");
}

}  // namespace devmgr

namespace devmgr::topology {

inline NumaMask MaskOf(std::initializer_list<int> nodes) {
  NumaMask mask;
  for (const int node : nodes) mask = mask | NumaMask::OfNode(node);
  return mask;
}

/// Nodes 0 to `count` - 1.
inline NumaMask FirstNodes(int count) {
  NumaMask mask;
  for (int node = 0; node < count; ++node) {
    mask = mask | NumaMask::OfNode(node);
  }
  return mask;
}

/// A preferred hint, and one that is not.
inline TopologyHint P(std::initializer_list<int> nodes) {
  return {MaskOf(nodes), true};
}
inline TopologyHint N(std::initializer_list<int> nodes) {
  return {MaskOf(nodes), false};
}
inline const TopologyHint kAnyP = {std::nullopt, true};
inline const TopologyHint kAnyN = {std::nullopt, false};

/// Lists of resources `r0`, `r1` and so on, each of a provider of its own.
inline std::vector<ResourceHints> ListsOf(std::vector<TopologyHintList> lists) {
  std::vector<ResourceHints> hints;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::string number = std::to_string(i);
    hints.push_back({"p" + number, "r" + number, std::move(lists[i])});
  }
  return hints;
}

/// Four nodes: 10 local, 11 within 0-1 and 2-3, 12 across.
inline NumaDistances FourNodes() {
  NumaDistances distances;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      distances.Set(a, b, a == b ? 10 : a / 2 == b / 2 ? 11 : 12);
    }
  }
  return distances;
}

}  // namespace devmgr::topology
