// SPDX-License-Identifier: Apache-2.0
//
// Objects as files: FOLDER/GROUP/RESOURCE/NAMESPACE/NAME. An empty group is
// `core`, an empty namespace `_`, which no object has.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace devmgr::endpoint {

/// Where revisions are kept beside objects, whose keys are longer.
inline constexpr char kLastRevision[] = "last-revision";
inline constexpr char kReservedRevision[] = "reserved-revision";

/// Whether a key (JournalEntry::key) has the parts of an object's.
///   InvalidArgument  it has not
absl::Status CheckObjectKey(const std::string& key);

/// Below the folder, of an object by its key. Nothing: a part of the key cannot
/// be the name of a file that is written in one step (WriteFileAtomically), as
/// it is too long, or looks like a temporary file.
std::optional<std::filesystem::path> ObjectPath(const std::string& key);
/// The other way; empty for the path of no object.
std::string ObjectKeyOf(const std::filesystem::path& path);

/// Calls `visit` for each file below `folder`, if there is one, until an error.
///   Unavailable  as the kernel says
absl::Status VisitFilesBelow(
    const std::filesystem::path& folder,
    const std::function<absl::Status(const std::filesystem::path&)>& visit);

absl::StatusOr<std::string> ReadObjectFile(const std::filesystem::path& file);

/// Not necessarily on disk on return. No file is fine.
absl::Status UnlinkFile(const std::filesystem::path& file);

/// A revision, a new line, and what follows it.
std::string WithRevision(std::uint64_t revision, std::string_view rest);
/// Takes the first line off `text`; false when it is no revision.
bool TakeRevision(std::string_view& text, std::uint64_t& revision);

}  // namespace devmgr::endpoint
