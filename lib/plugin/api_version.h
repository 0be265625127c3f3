// SPDX-License-Identifier: Apache-2.0
//
// The versions of the device-plugin API that we can speak, one adapter each.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/allocate_answer.h"
#include "plugin/plugins.h"

namespace devmgr::plugin {

/// Messages in our words to bytes and back. What is decoded is bounded, and
/// checked where that says so.
struct ApiVersion {
  std::string_view name;     ///< As plugins give it: `v1beta1`.
  std::string_view service;  ///< Full name of the plugin's gRPC service.

  std::string (*encode_empty)();  ///< Asks for options, and for devices.
  std::string (*encode_allocate)(const std::vector<DeviceId>& ids);
  std::string (*encode_preferred)(const PreferredRequest& request);
  std::string (*encode_pre_start)(const std::vector<DeviceId>& ids);

  absl::StatusOr<PluginOptions> (*decode_options)(const std::string& bytes);
  /// Checked.
  absl::StatusOr<DeviceList> (*decode_list)(const std::string& bytes);
  /// Of the one container that was asked for. CheckEdits is to follow.
  absl::StatusOr<device::ContainerEdits> (*decode_allocate)(
      const std::string& bytes);
  absl::StatusOr<std::vector<DeviceId>> (*decode_preferred)(
      const std::string& bytes);

  std::string Method(std::string_view name) const;
};

inline constexpr std::string_view kOptionsMethod = "GetDevicePluginOptions";
inline constexpr std::string_view kListMethod = "ListAndWatch";
inline constexpr std::string_view kAllocateMethod = "Allocate";
inline constexpr std::string_view kPreferredMethod = "GetPreferredAllocation";
inline constexpr std::string_view kPreStartMethod = "PreStartContainer";

std::span<const ApiVersion> ApiVersions();

/// For a plugin that calls Register with one version.
///   InvalidArgument  we do not speak it; the message names both
absl::StatusOr<const ApiVersion*> FindApiVersion(const std::string& version);
/// For a plugin that lists its versions; our order of preference counts.
absl::StatusOr<const ApiVersion*> ChooseApiVersion(
    const std::vector<std::string>& versions);

/// What a plugin sends to the registry socket. Every version sends this.
struct RegisterRequest {
  std::string version;
  std::string endpoint;
  ResourceName resource;
};
inline constexpr char kRegisterMethod[] = "/v1beta1.Registration/Register";
absl::StatusOr<RegisterRequest> DecodeRegister(const std::string& bytes);
std::string EncodeRegistered();

}  // namespace devmgr::plugin
