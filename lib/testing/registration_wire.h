// SPDX-License-Identifier: Apache-2.0
//
// The plugin's side of the handshake in the registration directory.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace devmgr::testing {

inline constexpr std::string_view kGetInfoPath =
    "/pluginregistration.Registration/GetInfo";
inline constexpr std::string_view kNotifyPath =
    "/pluginregistration.Registration/NotifyRegistrationStatus";

struct PluginInfo {
  std::string type;  ///< `DRAPlugin` or `DevicePlugin`.
  std::string name;
  std::string endpoint;
  std::vector<std::string> supported_versions;
};
std::string EncodePluginInfo(const PluginInfo& info);

struct RegistrationOutcome {
  bool registered = false;
  std::string error;
};
absl::StatusOr<RegistrationOutcome> DecodeRegistrationOutcome(
    const std::string& request);
std::string EncodeRegistrationResponse();

}  // namespace devmgr::testing
