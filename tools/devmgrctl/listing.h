// SPDX-License-Identifier: Apache-2.0
//
// Lists of one kind of thing, as `get` shows them.
#pragma once

#include <devmgr/status_types.h>

#include <vector>

#include "session.h"

namespace devmgr::ctl {

/// In the order to show them: by name, numbers in names as numbers.
void Sort(std::vector<PodInfo>& pods);
void Sort(std::vector<ClaimInfo>& claims);
void Sort(std::vector<DeviceInfo>& devices);

/// A table, or one name per line; an empty list is told on stderr.
void PrintList(const Session& session, const std::vector<PodInfo>& pods);
void PrintList(const Session& session, const std::vector<ClaimInfo>& claims);
void PrintList(const Session& session, const std::vector<DeviceInfo>& devices);

}  // namespace devmgr::ctl
