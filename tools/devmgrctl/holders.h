// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/inspection.h>

#include "session.h"

namespace devmgr::ctl {

/// get holders [ID]: containers that hold devices, those of pods and foreign
/// ones.
absl::Status GetHolders(const Session& session, Inspector& inspector);

}  // namespace devmgr::ctl
