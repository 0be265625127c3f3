// SPDX-License-Identifier: Apache-2.0
//
// What kAllocationAnnotation says of a container: what it was given by which
// party, as digests that can be compared without asking the runtime more than
// for a list.
#pragma once

#include <devmgr/container_devices.h>

#include <string>
#include <string_view>
#include <vector>

namespace devmgr::shim {

/// Of what the source of devices gives to a container (null: nothing): 16
/// hexadecimal digits, equal for equal devices.
std::string AllocationDigest(const ContainerDevices* devices);

/// Of CDI names, in their order: the same form.
std::string NamesDigest(const std::vector<std::string>& names);

struct Stamp {
  std::string ledger;  ///< AllocationDigest.
  std::string client;  ///< NamesDigest of what the client named; or empty.
};

/// `LEDGER`, or `LEDGER.CLIENT`.
std::string WriteStamp(const Stamp& stamp);
/// Any text has a meaning; what the shim did not write is equal to no digest.
Stamp ReadStamp(std::string_view text);

}  // namespace devmgr::shim
