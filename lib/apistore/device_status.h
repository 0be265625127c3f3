// SPDX-License-Identifier: Apache-2.0
//
// `status.devices` of a claim: what drivers say about devices that they gave.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "apistore/answer.h"

namespace devmgr::apistore {

/// Driver, pool, device and shareID of an entry, as one text.
using DeviceKey = std::string;
/// Which field manager applied an entry. Entries that no manager applied, but
/// a put brought, are missing.
using DeviceOwners = std::map<DeviceKey, std::string>;

/// Entries for devices that the claim has no allocation of, doubles, and what
/// is no list of entries.
std::vector<Cause> CheckDeviceStatus(const Json& claim);

struct DeviceApply {
  std::string manager;
  bool force = false;
};

/// Server-side apply in its minimal form. Entries that the same manager
/// applied before and now leaves out are removed, others stay; conditions are
/// merged by type. `body` may hold nothing but `status.devices`, beside what
/// names the claim: Invalid causes otherwise. An entry of another manager is
/// taken over with `force`; without it the answer is a list of
/// FieldManagerConflict causes.
struct ApplyRefusal {
  bool conflict = false;  ///< 409; else 422.
  std::vector<Cause> causes;
};
using ApplyResult = std::variant<std::monostate, ApplyRefusal>;
ApplyResult ApplyDeviceStatus(Json& claim, const Json& body,
                              const DeviceApply& apply, DeviceOwners& owners);

/// Forgets owners of entries that the claim no longer has.
void DropLostOwners(const Json& claim, DeviceOwners& owners);

}  // namespace devmgr::apistore
