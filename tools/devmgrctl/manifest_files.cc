// SPDX-License-Identifier: Apache-2.0
#include "manifest_files.h"

#include <fmt/core.h>

#include "environment.h"
#include "exit_code.h"

namespace devmgr::ctl {

absl::StatusOr<DecodedManifest> ReadManifest(const Session& session,
                                             const std::string& path) {
  const auto text = session.environment().read_file(path);
  if (!text.ok()) return text.status();
  DecodedManifest manifest = DecodeManifest(*text, path);
  for (const ManifestProblem& warning : manifest.warnings) {
    session.Note(warning.ToString());
  }
  for (const ManifestProblem& error : manifest.errors) {
    session.Note(error.ToString());
  }
  if (manifest.errors.empty()) return manifest;
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("'{}' has {} error{}; none of it was used", path,
                               manifest.errors.size(),
                               manifest.errors.size() == 1 ? "" : "s"));
}

}  // namespace devmgr::ctl
