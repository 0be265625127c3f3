// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fsck/fsck.h"

namespace devmgr::fsck {

/// Of devices or pods, in a message.
inline constexpr std::size_t kMostNames = 16;

/// A check: what it finds in `input`, in any order.
using Check = std::vector<Finding> (*)(const Input& input);

// Findings that nothing can be done about but by hand.
Finding Error(std::string check, std::string object, std::string message,
              std::string hint);
Finding Warning(std::string check, std::string object, std::string message,
                std::string hint);

// Of the ledger by itself.
std::vector<Finding> CheckInvariants(const Input& input);
std::vector<Finding> CheckAnswers(const Input& input);

// Against the CDI directories.
std::vector<Finding> CheckUnreadableSpecs(const Input& input);
std::vector<Finding> CheckMissingSpecs(const Input& input);
std::vector<Finding> CheckOrphanedSpecs(const Input& input);
std::vector<Finding> CheckConflictingSpecs(const Input& input);

// Hardware with several names.
std::vector<Finding> CheckSharedHardware(const Input& input);

// Against the device plugins.
std::vector<Finding> CheckHeldDevices(const Input& input);
std::vector<Finding> CheckAbsentPlugins(const Input& input);

// Against the drivers and the source.
std::vector<Finding> CheckAbsentDrivers(const Input& input);
std::vector<Finding> CheckRefusals(const Input& input);
std::vector<Finding> CheckGonePods(const Input& input);

}  // namespace devmgr::fsck
