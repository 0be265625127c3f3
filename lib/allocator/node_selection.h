// SPDX-License-Identifier: Apache-2.0
//
// Which slices and devices a node reaches, and which nodes reach the devices of
// an allocation.
#pragma once

#include <devmgr/objects.h>

#include <optional>
#include <string>
#include <vector>

namespace devmgr::allocator {

/// Whether `selector` matches, as for node affinity: one of its terms does,
/// which has all its requirements fulfilled, and at least one. What is
/// malformed matches nothing.
bool Matches(const NodeSelector& selector, const Node& node);

/// The same for a selector of a slice or device, which has exactly one term; of
/// one that has not, no node is taken to reach the device.
bool Reaches(const NodeSelector& selector, const Node& node);

/// Whether the slice says in a way known here where its devices are.
bool HasKnownSelection(const ResourceSlice& slice);
/// Whether `node` reaches the devices of `slice`, or some of them where each
/// device says where it is.
bool Reaches(const ResourceSlice& slice, const Node& node);
/// Whether `node` reaches `device` of `slice`, which it reaches.
bool Reaches(const ResourceSlice& slice, const SliceDevice& device,
             const Node& node);

/// The nodes that reach all devices of an allocation: collected device by
/// device.
class NodeSelection {
 public:
  explicit NodeSelection(std::string node_name)
      : node_name_(std::move(node_name)) {}

  void Add(const ResourceSlice& slice, const SliceDevice& device);

  /// The node alone, once a device is on one node or binds to it; else one
  /// term with the requirements of all selectors; nothing when all nodes do.
  std::optional<NodeSelector> Selector() const;
  bool IsOneNode() const { return is_one_node_; }

 private:
  std::string node_name_;
  bool is_one_node_ = false;
  NodeSelectorTerm term_;
};

}  // namespace devmgr::allocator
