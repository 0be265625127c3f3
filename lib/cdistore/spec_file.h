// SPDX-License-Identifier: Apache-2.0
//
// Looking at directories of spec files and at single ones, without being held
// up by what may lie there. Nothing here remembers.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace devmgr::cdistore {

/// `*.json` and `*.yaml`, case-sensitive; hidden files count.
bool IsSpecName(std::string_view name);

struct Listing {
  std::set<std::string> names;  ///< Spec names, in byte order.
  std::size_t left_out = 0;     ///< Beyond `most`, the last ones.
};

/// Names of the spec files in a directory, not below it.
///   NotFound          there is no such directory
///   PermissionDenied  no right to read it
///   Unavailable       anything else, such as a path that is no directory
absl::StatusOr<Listing> ListSpecs(const std::filesystem::path& directory,
                                  std::size_t most);

/// Tells two contents of a file apart as far as that is possible without
/// reading it; also that it became readable.
struct FileSignature {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint32_t mode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileSignature&, const FileSignature&) = default;
};

/// Follows links.
///   NotFound, PermissionDenied, Unavailable  as the kernel says
absl::StatusOr<FileSignature> SignatureOf(const std::filesystem::path& file);

struct Reading {
  std::string text;
  FileSignature signature;
  /// False: another write might show in the same signature, because the file
  /// is as young as the clock is coarse, or changed while it was read.
  bool settled = false;
};

/// Reads a regular file, through links.
///   NotFound, PermissionDenied, Unavailable  as the kernel says
///   InvalidArgument    it is a pipe, a directory, a device
///   ResourceExhausted  it has more than `max_bytes`
absl::StatusOr<Reading> ReadSpecText(const std::filesystem::path& file,
                                     std::size_t max_bytes);

}  // namespace devmgr::cdistore
