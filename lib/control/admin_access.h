// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/objects.h>

#include <map>
#include <string>

namespace devmgr::control {

/// Of a namespace whose claims may have admin access: the label with the value
/// `true`.
inline constexpr char kAdminAccessLabel[] =
    "resource.kubernetes.io/admin-access";

/// Does a request of the claim, or of the template, want admin access?
bool WantsAdminAccess(const ResourceClaimSpec& spec);

/// May a claim like this be in the namespace? Asked for a claim when it comes,
/// and for a template when a claim is made from it, as the namespace or the
/// gate may have changed since the template came. `is_enabled`: feature gate
/// DRAAdminAccess.
///   FailedPrecondition  the gate is off, or the namespace lacks the label
absl::Status CheckAdminAccess(
    const ResourceClaimSpec& spec, const std::string& ns,
    const std::map<std::string, std::string>& namespace_labels,
    bool is_enabled);

}  // namespace devmgr::control
