// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's checkpoint files in a directory laid out as the kubelet's root:
//
//   DIR/device-plugins/kubelet_internal_checkpoint
//   DIR/dra_manager_state
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "migration/kubelet_export.h"
#include "migration/kubelet_import.h"

namespace devmgr::migration {

/// A file that cannot be used.
struct DamagedFile {
  std::filesystem::path path;
  absl::Status why;
  std::optional<std::string> bytes;  ///< Nothing when there are too many.
};

struct KubeletFiles {
  KubeletState state;
  // When the files were last written, in Unix time; nothing for a file that is
  // not there or is damaged.
  std::optional<std::int64_t> devices_ms;
  std::optional<std::int64_t> claims_ms;
  std::vector<DamagedFile> damaged;
  std::vector<std::string> notes;  ///< For people; nothing is lost by them.
};

/// Where the files are.
std::filesystem::path DevicesIn(const std::filesystem::path& directory);
std::filesystem::path ClaimsIn(const std::filesystem::path& directory);

/// NotFound: neither file is there.
absl::Status NoKubeletFilesError(const std::filesystem::path& directory);

/// Reads what is there. A kubelet replaces its files whole, so each is read as
/// it was at one moment; but not both at the same one unless it is stopped.
///   NotFound          neither file is there
///   PermissionDenied  one of them is not ours to read
///   Unavailable       as the kernel says
absl::StatusOr<KubeletFiles> ReadKubeletFiles(
    const std::filesystem::path& directory);

/// The bytes of a file; nothing when it is not there.
///   DataLoss                       it is no regular file, or too large
///   PermissionDenied, Unavailable  as the kernel says
absl::StatusOr<std::optional<std::string>> ReadFileIfAny(
    const std::filesystem::path& file);

/// Keeps `bytes` under the name `file` with `.mark-` and their checksum behind
/// it, so that they are kept once; returns that name.
absl::StatusOr<std::filesystem::path> KeepBytes(
    const std::string& bytes, const std::filesystem::path& file,
    std::string_view mark);

/// Keeps a copy of a damaged file in `directory` under a name that ends in
/// `.damaged-` and its checksum, so that one file is kept once; returns where.
/// Nothing for a file whose bytes were not read.
absl::StatusOr<std::optional<std::filesystem::path>> KeepCopy(
    const DamagedFile& file, const std::filesystem::path& directory);

/// Makes `directory` with both files in it, mode 0600, in one step: it is there
/// with all of them, on disk, when this returns OK, and else as it was. They
/// are made beside it, in `directory.partial`. What a writer that was killed
/// has left there is removed first: a directory with files of the names that
/// this writer gives them.
///   FailedPrecondition  there is something in it, or there is anything else at
///                       `directory.partial`, which is left as it is
///   InvalidArgument     a text is not UTF-8, or there are more bytes than
///                       ReadKubeletFiles reads
///   PermissionDenied, Unavailable  as the kernel says
absl::Status WriteKubeletFiles(const std::filesystem::path& directory,
                               const ExportPlan& plan);

}  // namespace devmgr::migration
