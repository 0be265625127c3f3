// SPDX-License-Identifier: Apache-2.0
//
// The status of a Node object, as far as it is about devices: what it says, and
// the patch that makes it say something else. Pure.
#pragma once

#include <devmgr/host.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr::apiserver {

/// A part of the status: `capacity` or `allocatable` and the name of a
/// resource, or `declaredFeatures` and the name of a feature.
using NodeField = std::pair<std::string, std::string>;

/// `status.capacity[example.com/gpu]`
std::string DescribeField(const NodeField& field);

/// What a Node object says.
struct NodeStatusView {
  std::string uid;
  /// Amounts as they are written; of a declared feature `true`.
  std::map<NodeField, std::string> fields;

  /// Nothing where it says nothing of the field.
  std::optional<std::string> Find(const NodeField& field) const;
};

/// Reads a Node object. Nothing when it is none, or has no UID.
std::optional<NodeStatusView> ParseNodeStatus(std::string_view text);

/// How fields are to be; nothing: not there. Of all others nothing is wanted.
using WantedFields = std::map<NodeField, std::optional<std::string>>;

/// Features of nodes that are not about devices are none of them.
WantedFields FieldsOf(const NodeDeviceStatus& status);

/// Whether both say the same, as quantities where they are such.
bool IsSameValue(const std::optional<std::string>& one,
                 const std::optional<std::string>& other);

/// Those of `wanted` that the node says otherwise.
WantedFields ChangesOf(const NodeStatusView& node, const WantedFields& wanted);

/// The strategic merge patch that makes these changes, with the UID of the
/// node.
std::string NodeStatusPatch(const NodeStatusView& node,
                            const WantedFields& changes);

}  // namespace devmgr::apiserver
