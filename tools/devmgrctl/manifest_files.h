// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/manifests.h>

#include <string>

#include "session.h"

namespace devmgr::ctl {

/// The objects of a file, YAML or JSON. Each problem is a note on stderr.
///   FailedPrecondition  the file has an error, so that none of it is used
///   errors of Environment::read_file
absl::StatusOr<DecodedManifest> ReadManifest(const Session& session,
                                             const std::string& path);

}  // namespace devmgr::ctl
