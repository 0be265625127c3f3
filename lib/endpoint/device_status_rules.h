// SPDX-License-Identifier: Apache-2.0
//
// What drivers may say of the devices of claims: `status.devices`.
#pragma once

#include <vector>

#include "apistore/answer.h"

namespace devmgr::endpoint {

/// Removes the fields of entries that are not known.
void DropUnknownStatusFields(apistore::Json& claim);

/// What is wrong with entries that are not among those of `old`, null: none.
/// That each is of an allocated device, and the only one of it, is the store's
/// to check.
std::vector<apistore::Cause> CheckDeviceStatusRules(const apistore::Json& claim,
                                                    const apistore::Json* old);

}  // namespace devmgr::endpoint
