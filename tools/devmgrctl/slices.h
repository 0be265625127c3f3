// SPDX-License-Identifier: Apache-2.0
//
// ResourceSlices, as `get` and `describe` show them.
#pragma once

#include <absl/status/status.h>

#include "session.h"

namespace devmgr::ctl {

absl::Status GetSlices(const Session& session, Inspector& inspector);
absl::Status DescribeSlice(const Session& session, Inspector& inspector);

}  // namespace devmgr::ctl
