// SPDX-License-Identifier: Apache-2.0
#include "allocator/refusals.h"

#include <array>

namespace devmgr::allocator {

std::string_view RefusalName(Refusal refusal) {
  constexpr auto kNames = std::to_array<std::string_view>({
      "none",
      "not-on-node",
      "pool-incomplete",
      "pool-invalid",
      "feature-off",
      "class-selector",
      "request-selector",
      "cel-error",
      "busy",
      "taken-in-this-run",
      "counter",
      "compatibility-group",
      "taint",
      "constraint",
      "capacity",
      "numa",
  });
  return kNames[static_cast<std::size_t>(refusal)];
}

}  // namespace devmgr::allocator
