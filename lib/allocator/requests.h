// SPDX-License-Identifier: Apache-2.0
//
// The requests of all claims by number, and what can be said of them before any
// device is tried.
#pragma once

#include <absl/status/status.h>
#include <devmgr/objects.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "allocator/constraints.h"
#include "allocator/inventory.h"
#include "allocator/selector_table.h"

namespace devmgr::allocator {

/// Of a request, or of one alternative of it.
using RequestNumber = std::uint32_t;

/// The most devices that a claim can have.
inline constexpr std::int64_t kMostDevices = 32;
/// The same of a claim with structured parameters of Kubernetes 1.30, which had
/// no limit: what its record can hold.
inline constexpr std::int64_t kMostNamedResources = 256;

/// What one request, or one alternative of it, asks for.
struct Request {
  std::uint32_t claim = 0;  ///< The place of its claim.
  std::string main_name;
  std::string name;  ///< `req` or `req/sub`.
  const DeviceSubRequest* spec = nullptr;
  const DeviceClass* device_class = nullptr;
  std::vector<SelectorNumber> class_selectors;
  std::vector<SelectorNumber> selectors;
  struct Constrained {
    std::uint32_t constraint;  ///< Its place.
    /// What of a device it looks at: the attribute, or what is derived for it.
    std::size_t attribute;
  };
  std::vector<Constrained> constraints;  ///< Those that apply.
  bool wants_all = false;
  bool has_admin_access = false;
  std::int64_t wanted = 0;  ///< Devices.
  /// With `wants_all`: these, in order.
  std::vector<DeviceNumber> all;
};

/// A request of a claim: its alternatives in order, or the only one.
struct MainRequest {
  RequestNumber first = 0;
  std::uint32_t count = 1;
  bool has_alternatives = false;
};

struct Claim {
  const ResourceClaim* claim = nullptr;
  std::vector<MainRequest> requests;
  std::vector<Constraint> constraints;  ///< No device is chosen.
  std::int64_t most_devices = kMostDevices;

  std::string Text() const;  ///< `namespace/name`.
};

struct Requests {
  std::vector<Claim> claims;
  std::vector<Request> requests;
};

/// Reads all of `claims`. `wanted` is still missing where all devices are
/// wanted.
///   InvalidArgument  something is missing or not known here, or needs a
///   feature
///                    that is off; the message names claim, request and what it
///                    is
absl::Status ReadRequests(std::span<const ResourceClaim* const> claims,
                          std::span<const DeviceClass* const> classes,
                          const Features& features, SelectorTable& selectors,
                          AttributeTable& attributes, Requests& requests);

/// Whether each claim could do with as many devices as a claim can have.
///   InvalidArgument  one could not, even with its smallest alternatives
absl::Status CheckCounts(const Requests& requests);

}  // namespace devmgr::allocator
