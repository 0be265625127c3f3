// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with CDI spec files and directories.
#pragma once

#include <devmgr/cdi_cache.h>
#include <devmgr/cdi_registry.h>

#include <string>
#include <vector>

#include "session.h"

namespace devmgr::ctl {

/// What is wrong with a file or directory; nothing: all is well. Its messages
/// do not repeat `path`.
struct Verdict {
  std::string path;  ///< Empty: the messages name it.
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

/// A message about `path`, for a place that names it already: without it.
std::string WithoutPath(std::string message, const std::string& path);

/// Of all files and of the directories that have a problem, in their order. A
/// directory that does not exist is a warning.
std::vector<Verdict> JudgeDirectories(const CdiCache& cache,
                                      const CdiRegistry& registry);

/// Of one file, by itself.
Verdict JudgeFile(const Session& session, const std::string& path);

/// One line each, beside what the registry calls unread: files that are no
/// valid specs, and directories that do not exist.
std::vector<std::string> UnusedParts(const CdiCache& cache,
                                     const CdiRegistry& registry);

}  // namespace devmgr::ctl
