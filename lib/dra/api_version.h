// SPDX-License-Identifier: Apache-2.0
//
// The versions of the DRA service that we can speak, one adapter each.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dra/drivers.h"

namespace devmgr::dra {

/// A driver's answer for one claim, as it came: nothing is checked yet.
struct RawClaimAnswer {
  std::vector<state::PreparedDevice> devices;
  std::string error;
};
using RawAnswer = std::map<std::string, RawClaimAnswer>;  ///< By claim UID.

/// Messages in our words to bytes and back.
struct ApiVersion {
  std::string_view name;     ///< As drivers advertise it: `v1.DRAPlugin`.
  std::string_view service;  ///< Full name of the gRPC service.
  std::string (*encode_prepare)(const std::vector<ClaimReference>& claims);
  std::string (*encode_unprepare)(const std::vector<ClaimReference>& claims);
  absl::StatusOr<RawAnswer> (*decode_prepare)(const std::string& bytes);
  absl::StatusOr<RawAnswer> (*decode_unprepare)(const std::string& bytes);

  std::string PrepareMethod() const;
  std::string UnprepareMethod() const;
};

/// In our order of preference.
std::span<const ApiVersion> ApiVersions();

/// Our most preferred version among what a driver advertises.
///   InvalidArgument  none fits; the message names both lists
absl::StatusOr<const ApiVersion*> ChooseApiVersion(
    const std::vector<std::string>& advertised);

}  // namespace devmgr::dra
