// SPDX-License-Identifier: Apache-2.0
#include "shim/container_config.h"

#include <devmgr/cdi.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/status.h"
#include "cri/runtime_fields.h"
#include "cri/wire.h"
#include "shim/json_member.h"

namespace devmgr::shim {
namespace {

/// From containerd's copy of the request.
std::vector<std::string> NamesInRequest(const Json& info) {
  std::vector<std::string> names;
  for (const Json& device : MemberOf(info, "config", "CDI_devices")) {
    const Json& name = MemberOf(device, "name");
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace

std::string ContainerStatusRequest(const std::string& id, bool verbose) {
  namespace f = cri::field::container_status_request;
  std::string request;
  cri::AppendBytesField(&request, f::kContainerId, id);
  if (verbose) cri::AppendVarintField(&request, f::kVerbose, 1);
  return request;
}

absl::StatusOr<RuntimeContainerConfig> ConfigIn(cri::ContainerStatus status) {
  const auto info = status.info.find("info");
  if (info == status.info.end()) {
    return FailedPreconditionError(
        "a verbose ContainerStatus has no 'info', where the OCI configuration "
        "would be");
  }
  const auto json = ParseJson(info->second);
  if (!json.ok()) {
    return FailedPreconditionError("'info' of a verbose ContainerStatus {}",
                                   MessageOf(json.status()));
  }
  const Json& spec = MemberOf(*json, "runtimeSpec");
  if (!spec.is_object()) {
    return FailedPreconditionError(
        "'info' of a verbose ContainerStatus has no 'runtimeSpec', the OCI "
        "configuration");
  }
  RuntimeContainerConfig config;
  config.oci = spec.dump(-1, ' ', false, Json::error_handler_t::replace);
  DEVMGR_ASSIGN_OR_RETURN(config.cdi_devices, CdiNamesOf(NamesInRequest(*json),
                                                         status.annotations));
  config.annotations = std::move(status.annotations);
  return config;
}

}  // namespace devmgr::shim
