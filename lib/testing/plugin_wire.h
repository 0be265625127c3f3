// SPDX-License-Identifier: Apache-2.0
//
// The messages of the device-plugin API as the fake plugin's own structs.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/testing.h>

#include <string>
#include <string_view>
#include <vector>

namespace devmgr::testing {

inline constexpr std::string_view kRegisterPath =
    "/v1beta1.Registration/Register";
inline constexpr std::string_view kOptionsPath =
    "/v1beta1.DevicePlugin/GetDevicePluginOptions";
inline constexpr std::string_view kListPath =
    "/v1beta1.DevicePlugin/ListAndWatch";
inline constexpr std::string_view kPreferredPath =
    "/v1beta1.DevicePlugin/GetPreferredAllocation";
inline constexpr std::string_view kAllocatePath =
    "/v1beta1.DevicePlugin/Allocate";
inline constexpr std::string_view kPreStartPath =
    "/v1beta1.DevicePlugin/PreStartContainer";

using DeviceIds = std::vector<std::string>;

struct PluginCapabilities {
  bool pre_start = false;
  bool preferred = false;
};
std::string EncodeOptions(const PluginCapabilities& capabilities);

struct RegisterRequest {
  std::string version;
  std::string endpoint;
  std::string resource;
  PluginCapabilities capabilities;
};
std::string EncodeRegister(const RegisterRequest& request);

std::string EncodeList(const std::vector<FakeDevicePlugin::Device>& devices);

struct PreferenceRequest {
  DeviceIds available;
  DeviceIds must_include;
  int size = 0;
};
/// Requests and answers have one entry for each container.
absl::StatusOr<std::vector<PreferenceRequest>> DecodePreferred(
    const std::string& request);
std::string EncodePreferred(const std::vector<DeviceIds>& answers);

/// What Allocate puts into a container.
struct Edits {
  std::vector<NamedValue> env;
  std::vector<DeviceMount> mounts;
  std::vector<DeviceNode> devices;
  DeviceIds cdi_devices;
};
absl::StatusOr<std::vector<DeviceIds>> DecodeAllocate(
    const std::string& request);
std::string EncodeAllocate(const std::vector<Edits>& answers);

absl::StatusOr<DeviceIds> DecodePreStart(const std::string& request);
std::string EncodePreStart();

}  // namespace devmgr::testing
