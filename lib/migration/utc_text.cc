// SPDX-License-Identifier: Apache-2.0
#include "migration/utc_text.h"

#include <fmt/chrono.h>

#include <ctime>

namespace devmgr::migration {

std::string UtcText(std::int64_t ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(ms / 1'000)));
}

}  // namespace devmgr::migration
