// SPDX-License-Identifier: Apache-2.0
//
// The marker: a small hidden file in a directory of manifests that carries an
// ID of the ledger, so that the directory is recognised after a restart. Inode
// and device numbers would not do: they are others after a reboot, or the same
// for another file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace devmgr::source {

inline constexpr char kMarkerName[] = ".devmgr-source";

struct Marker {
  std::string id;       ///< Empty: there is none that can be used.
  std::string problem;  ///< Why it could not be read or written; else empty.
};

/// Tells a directory from others while this process runs.
struct DirectoryId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const DirectoryId&, const DirectoryId&) = default;
};
DirectoryId DirectoryIdOf(int directory);

/// The marker in an open directory; what is no marker counts as none.
Marker ReadMarker(int directory);

/// Writes a marker so that it is whole or not there, if `path` still leads to
/// `directory`. Returns what is there then.
Marker WriteMarker(const std::filesystem::path& path,
                   const DirectoryId& directory, const std::string& id);

}  // namespace devmgr::source
