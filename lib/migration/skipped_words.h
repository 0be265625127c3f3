// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "state/records.h"

namespace devmgr::migration {

/// Calls that a driver does not want, in the kubelet's words. Words that are
/// not known mean nothing, as to the kubelet.
state::SkippedOperations SkippedOf(const std::vector<std::string>& words);
std::vector<std::string> WordsOf(const state::SkippedOperations& skipped);

}  // namespace devmgr::migration
