// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "state/decision.h"

namespace devmgr::checkpoint {

/// A ledger in which every field of every record is set somewhere, and every
/// kind of change and decision occurs. The golden records are made of it, so
/// it changes only together with the format.
std::vector<state::Batch> FullLedger();

/// What of it there was in older formats.
std::vector<state::Batch> FullLedgerOfFormat1();
std::vector<state::Batch> FullLedgerOfFormat2();
std::vector<state::Batch> FullLedgerOfFormat(int format);

}  // namespace devmgr::checkpoint
