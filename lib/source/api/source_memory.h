// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace devmgr::apiserver {

/// What a source remembers of its server over a restart. Without it the latest
/// pods are asked for, and whatever UID the node has is taken for its own.
struct SourceMemory {
  std::string node_name;
  /// The version of the pods that was seen last.
  std::string pods_version;
  /// Of the Node object: another one belongs to another cluster, or the node
  /// was registered anew.
  std::string node_uid;
  friend bool operator==(const SourceMemory&, const SourceMemory&) = default;
};

/// Whether `text` can be a version or a UID that is remembered: up to 128
/// letters, digits, dots, dashes and underscores.
bool CanBeRemembered(std::string_view text);

/// As it stands in a file.
std::string FormatMemory(const SourceMemory& memory);

/// What such a file says of the node `node_name`; what it does not say, or what
/// cannot be read, is empty.
SourceMemory ParseMemory(std::string_view text, const std::string& node_name);

}  // namespace devmgr::apiserver
