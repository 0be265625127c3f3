// SPDX-License-Identifier: Apache-2.0
#include "testing/registration_wire.h"

#include <devmgr/wire/pluginregistration/v1/registration.pb.h>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {

namespace registration = wire::pluginregistration::v1;

std::string EncodePluginInfo(const PluginInfo& info) {
  registration::PluginInfo message;
  message.set_type(info.type);
  message.set_name(info.name);
  message.set_endpoint(info.endpoint);
  for (const std::string& version : info.supported_versions) {
    message.add_supported_versions(version);
  }
  return rpc::Encode(message);
}

absl::StatusOr<RegistrationOutcome> DecodeRegistrationOutcome(
    const std::string& request) {
  DEVMGR_ASSIGN_OR_RETURN(
      const registration::RegistrationStatus message,
      rpc::Decode<registration::RegistrationStatus>(request));
  return RegistrationOutcome{message.plugin_registered(), message.error()};
}

std::string EncodeRegistrationResponse() {
  return rpc::Encode(registration::RegistrationStatusResponse());
}

}  // namespace devmgr::testing
