// SPDX-License-Identifier: Apache-2.0
//
// Looking at a directory and its files without being held up or led astray by
// what may lie there. Nothing here watches or remembers.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr::source {

/// True for names of manifests: `*.yaml`, `*.yml`, `*.json`, not hidden.
bool IsManifestName(const std::string& name);

struct DirectoryListing {
  UniqueFd directory;  ///< Files are opened through it: one directory, even
                       ///< when the path leads elsewhere a moment later.
  std::set<std::string> names;  ///< Manifest names; sub-directories among them.
  std::size_t left_out = 0;     ///< Manifest names beyond `limit`, the last.
};

/// Reads the whole directory, or fails.
///   NotFound          the path leads nowhere
///   PermissionDenied  no right to read it
///   Unavailable       anything else, such as a path that is no directory
absl::StatusOr<DirectoryListing> ListManifests(
    const std::filesystem::path& directory, std::size_t limit);

/// Tells apart two contents of a file as far as that is possible without
/// reading it. Changes within one tick of the clock that keep the size are not
/// seen; the watcher's events are there for those.
struct FileSignature {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileSignature&, const FileSignature&) = default;
};

struct FileReading {
  enum class Kind {
    kText,       ///< `text` is all of the file.
    kUnchanged,  ///< It still has the known signature and was not read.
    kIgnored,    ///< A directory.
    kGone,       ///< Not there any more.
    kDangling,   ///< A symbolic link without a target.
    kUnusable,   ///< Not a file, or too large: `problem`. Events tell when
                 ///< that changes.
    kUnsettled,  ///< It changed whenever we looked: `problem`.
    kFailed,     ///< Could not be opened or read: `problem`. No event tells
                 ///< when that changes.
  };
  Kind kind = Kind::kGone;
  FileSignature signature;  ///< With kText and kUnchanged.
  std::string text;
  std::string problem;
};

/// Reads `name` in `directory`, through symbolic links, unless it still has
/// the `known` signature. Opens regular files only, of up to `max_bytes`.
FileReading ReadManifest(int directory, const std::string& name,
                         const std::optional<FileSignature>& known,
                         std::size_t max_bytes);

/// Returns after every rename in `directory` that has begun to show has also
/// been reported to its watchers.
void AwaitRenames(int directory);

/// A place where a file's content can be changed: an entry of a directory.
struct FilePlace {
  std::filesystem::path directory;  ///< As the link spells it, made absolute.
  std::string name;
};

/// Where `directory_path`/`name` leads if it is a symbolic link: one place for
/// each link on the way, up to `kMaxLinks`. Empty for all else.
std::vector<FilePlace> FollowLinks(int directory,
                                   const std::filesystem::path& directory_path,
                                   const std::string& name);
inline constexpr int kMaxLinks = 8;

/// True when `text` holds nothing at all: no comment, no document. That is how
/// a file looks before its writer has begun.
bool IsBlank(std::string_view text);

}  // namespace devmgr::source
