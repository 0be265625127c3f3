// SPDX-License-Identifier: Apache-2.0
//
// Why a request got no device: for each device the first reason, in the order
// of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/allocated_state.h"

namespace devmgr::allocator {

enum class Refusal : std::uint8_t {
  kNone,  ///< The device would do; it is others that are missing.
  kNotOnNode,
  kPoolIncomplete,
  kPoolInvalid,
  kFeatureOff,
  kClassSelector,
  kRequestSelector,
  kCelError,
  kBusy,            ///< Another claim holds it.
  kTakenInThisRun,  ///< Another request of these claims has it.
  kCounter,
  kCompatibilityGroup,
  kTaint,
  kConstraint,
  kCapacity,
  kNuma,  ///< Options::admits refuses it: it is on the wrong NUMA nodes.
};

/// `not-on-node`, `pool-incomplete` and so on.
std::string_view RefusalName(Refusal refusal);

struct DeviceRefusal {
  PoolDevice device;
  Refusal reason = Refusal::kNone;
  /// What about it: the holder, the counter with its need and what is free, the
  /// key of the taint, the expression with the attribute that is missing.
  std::string detail;
};

/// Of one request, or one alternative of it.
struct RequestRefusals {
  std::string claim;    ///< `namespace/name`.
  std::string request;  ///< `req` or `req/sub`.
  std::int64_t wanted = 0;
  std::int64_t found = 0;  ///< In the attempt that got furthest.
  /// In order of trial, up to kMostListed; further ones are only counted.
  std::vector<DeviceRefusal> devices;
  std::map<Refusal, std::size_t> counts;  ///< Of all devices.

  static constexpr std::size_t kMostListed = 1000;
};

}  // namespace devmgr::allocator
