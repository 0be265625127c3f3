// SPDX-License-Identifier: Apache-2.0
//
// The pods of a manifest with all that it says of them. `Pod` keeps what device
// management needs; a program that runs containers needs commands, variables
// and volumes besides, and reads them from here.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// A pod as its manifest has it: nothing is added, nothing is checked.
struct PodText {
  ObjectName name;   ///< In the namespace `default` when it names none.
  int line = 0;      ///< Where it begins, from 1.
  std::string json;  ///< One object on one line, its keys in byte order.
};

/// The pods (`v1`) of `text`, YAML or JSON as DecodeManifest reads it, lists
/// included, in the order in which they stand there. Of two with one name the
/// first; those without a name are left out. Whether the pods are valid is what
/// DecodeManifest says. Pure and reentrant; never throws.
///   InvalidArgument  the text has a syntax error, or is beyond the limits of
///                    manifests; the message names file and line
DEVMGR_EXPORT absl::StatusOr<std::vector<PodText>> PodTextsOf(
    std::string_view text, std::string_view file_name);

/// The pod of this name in a directory that WatchManifests watches: of two
/// files that have it the first one by name counts. Files that cannot be read
/// now are passed over, since the source reports them; it may still have what
/// they were. Reads up to all files of the directory.
///   NotFound     no file has it
///   Unavailable  the directory cannot be read
/// and the errors of the file system.
DEVMGR_EXPORT absl::StatusOr<PodText> FindPodText(
    const std::filesystem::path& directory, const ObjectName& pod);

}  // namespace devmgr
