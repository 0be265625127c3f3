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

#include "dra/claims.h"

namespace devmgr::dra {

/// A driver's answer for one claim, as it came: nothing is checked yet.
struct RawClaimAnswer {
  std::vector<state::PreparedDevice> devices = {};
  std::string error = {};
  /// The API knows CDI names alone: there is one device without any other name.
  bool only_cdi_ids = false;
};
using RawAnswer = std::map<std::string, RawClaimAnswer>;  ///< By claim UID.

/// What a driver is sent of a claim's allocation.
enum class Handles {
  kNone,        ///< Nothing: the driver reads the claim itself.
  kText,        ///< What a controller wrote.
  kStructured,  ///< That, or what was allocated by structured parameters.
};

/// Messages in our words to bytes and back.
struct ApiVersion {
  std::string_view name;       ///< `v1`
  std::string_view announced;  ///< As drivers list it: `v1.DRAPlugin`.
  std::string_view service;    ///< Full name of the gRPC service.
  bool is_old;   ///< Of Kubernetes 1.33 or before: see ApiOptions.
  bool batched;  ///< Claims go in one call, otherwise each in one of its own.
  Handles handles;
  std::string (*encode_prepare)(const std::vector<ClaimReference>& claims);
  std::string (*encode_unprepare)(const std::vector<ClaimReference>& claims);
  // `asked` is whom an answer without UIDs is about.
  absl::StatusOr<RawAnswer> (*decode_prepare)(
      const std::string& bytes, const std::vector<ClaimReference>& asked);
  absl::StatusOr<RawAnswer> (*decode_unprepare)(
      const std::string& bytes, const std::vector<ClaimReference>& asked);

  std::string PrepareMethod() const;
  std::string UnprepareMethod() const;
};

/// In our order of preference.
std::span<const ApiVersion> ApiVersions();

/// Null when there is none of that name.
const ApiVersion* FindApiVersion(std::string_view name);

struct ApiOptions {
  bool compat = false;  ///< Speak the old versions, too.
  /// By driver: the version to speak, whatever it announces.
  std::map<std::string, std::string> by_driver = {};
};

///   InvalidArgument  a version that is not known, or is old without `compat`
absl::Status CheckApiOptions(const ApiOptions& options);

/// What to speak with a driver by what it advertises: our most preferred
/// version. Old names do not tell for sure, and a plain version number, as
/// drivers had it up to Kubernetes 1.31, tells nothing: then several, to be
/// tried in this order.
///   InvalidArgument  none fits; the message names both lists
absl::StatusOr<std::vector<const ApiVersion*>> ChooseApiVersions(
    const std::string& driver, const std::vector<std::string>& advertised,
    const ApiOptions& options);

}  // namespace devmgr::dra
