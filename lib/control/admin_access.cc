// SPDX-License-Identifier: Apache-2.0
#include "control/admin_access.h"

#include <algorithm>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::control {
namespace {

const DeviceRequest* AdminRequest(const ResourceClaimSpec& spec) {
  const auto found =
      std::find_if(spec.requests.begin(), spec.requests.end(),
                   [](const auto& request) { return request.admin_access; });
  return found != spec.requests.end() ? &*found : nullptr;
}

}  // namespace

bool WantsAdminAccess(const ResourceClaimSpec& spec) {
  return AdminRequest(spec) != nullptr;
}

absl::Status CheckAdminAccess(
    const ResourceClaimSpec& spec, const std::string& ns,
    const std::map<std::string, std::string>& namespace_labels,
    bool is_enabled) {
  const DeviceRequest* request = AdminRequest(spec);
  if (request == nullptr) return absl::OkStatus();
  if (!is_enabled) {
    return FailedPreconditionError(
        "request {} wants adminAccess: the DRAAdminAccess feature gate is "
        "disabled",
        api::Quoted(request->name));
  }
  const auto label = namespace_labels.find(kAdminAccessLabel);
  if (label != namespace_labels.end() && label->second == "true") {
    return absl::OkStatus();
  }
  return FailedPreconditionError(
      "request {} wants adminAccess: admin access to devices requires the "
      "`{}: true` label on the containing namespace {}",
      api::Quoted(request->name), kAdminAccessLabel, api::Quoted(ns));
}

}  // namespace devmgr::control
