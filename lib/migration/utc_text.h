// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace devmgr::migration {

/// `2026-11-21T10:00:00Z`, of milliseconds of Unix time.
std::string UtcText(std::int64_t ms);

}  // namespace devmgr::migration
