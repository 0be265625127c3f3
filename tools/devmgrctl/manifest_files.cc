// SPDX-License-Identifier: Apache-2.0
#include "manifest_files.h"

#include <devmgr/cel.h>
#include <fmt/core.h>

#include "environment.h"
#include "exit_code.h"

namespace devmgr::ctl {

absl::StatusOr<DecodedManifest> ReadManifest(const Session& session,
                                             const std::string& path) {
  const auto text = session.environment().read_file(path);
  if (!text.ok()) return text.status();
  DecodedManifest manifest = DecodeCheckedManifest(*text, path);
  for (const auto* problems : {&manifest.warnings, &manifest.errors}) {
    for (const ManifestProblem& problem : *problems) {
      session.Note(problem.ToString());
      if (!problem.excerpt.empty()) session.err() << problem.excerpt << "\n";
    }
  }
  if (manifest.errors.empty()) return manifest;
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("'{}' has {} error{}; none of it was used", path,
                               manifest.errors.size(),
                               manifest.errors.size() == 1 ? "" : "s"));
}

}  // namespace devmgr::ctl
