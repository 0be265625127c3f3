// SPDX-License-Identifier: Apache-2.0
//
// Quotas: what they count of devices and claims.
#pragma once

#include <devmgr/quota_objects.h>

#include <string>
#include <string_view>

#include "api/field.h"

namespace devmgr::api {

/// The number of claims.
inline constexpr char kClaimCountQuota[] =
    "count/resourceclaims.resource.k8s.io";

/// Devices that claims ask for of a class.
std::string ClassQuota(std::string_view device_class);
/// What pods request of a resource by its explicit or implicit name, and what
/// claims ask for of its class.
std::string ResourceQuotaKey(std::string_view resource);

/// Is the key of `spec.hard` one of these?
bool IsDeviceQuota(std::string_view key);

/// Reads a quota. One that has scopes limits some pods only, and no claim: it
/// limits nothing here, with a warning.
ResourceQuota DecodeResourceQuota(const Field& root);

}  // namespace devmgr::api
