// SPDX-License-Identifier: Apache-2.0
//
// Claims as calls to drivers carry them, and what drivers answer for each.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/objects.h>
#include <devmgr/types.h>

#include <map>
#include <string>
#include <vector>

#include "state/records.h"

namespace devmgr::dra {

/// A claim as it is sent to drivers.
struct ClaimReference {
  ClaimUid uid;
  ObjectName name;
  // Of old APIs only.
  ResourceHandle handle = {};
  /// What the driver prepared, for unprepare.
  std::vector<std::string> cdi_device_ids = {};
};

/// The driver's word on each claim asked for, and on no other. When the call
/// as a whole failed, every claim has that error.
using PrepareAnswer =
    std::map<ClaimUid, absl::StatusOr<std::vector<state::PreparedDevice>>>;
using UnprepareAnswer = std::map<ClaimUid, absl::Status>;

}  // namespace devmgr::dra
