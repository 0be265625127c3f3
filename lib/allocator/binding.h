// SPDX-License-Identifier: Apache-2.0
//
// Binding conditions (KEP-5007): what a driver has to report of an allocated
// device before a pod may use it.
#pragma once

#include <devmgr/objects.h>

#include <cstdint>
#include <string>

namespace devmgr::allocator {

enum class Binding : std::uint8_t {
  kReady,    ///< All conditions are true, or there are none.
  kWaiting,  ///< One is not true yet.
  kFailed,   ///< A failure condition is true: the claim has to be allocated
             ///< anew.
};

struct BindingState {
  Binding binding = Binding::kReady;
  std::string detail;  ///< The condition and its device; empty when ready.
};

/// Of the devices that `claim` has, by its status. A status is that of the
/// share with its ID: two shares of a device have conditions of their own.
BindingState BindingOf(const ResourceClaim& claim);

}  // namespace devmgr::allocator
