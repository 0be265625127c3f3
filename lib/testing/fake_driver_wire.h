// SPDX-License-Identifier: Apache-2.0
//
// The DRA messages as the fake driver's own structs, for all API versions
// alike.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "testing/fake_driver_store.h"

namespace devmgr::testing {

/// One of the DRA services that a driver may serve.
struct DraApi {
  std::string_view name;       ///< `v1`
  std::string_view announced;  ///< `v1.DRAPlugin`
  std::string_view prepare_path;
  std::string_view unprepare_path;
  /// Claims come with their handles, and are answered by CDI names alone.
  bool by_handle = false;
};
inline constexpr DraApi kDraApis[] = {
    {"v1", "v1.DRAPlugin",
     "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
     "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"},
    {"v1beta1", "v1beta1.DRAPlugin",
     "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
     "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"},
    {"v1alpha4", "v1alpha3.NodeService", "/v1alpha3.Node/NodePrepareResources",
     "/v1alpha3.Node/NodeUnprepareResources"},
    {"v1alpha3", "1.0.0", "/v1alpha3.Node/NodePrepareResources",
     "/v1alpha3.Node/NodeUnprepareResources", true},
    {"v1alpha2", "1.0.0", "/v1alpha2.Node/NodePrepareResource",
     "/v1alpha2.Node/NodeUnprepareResource", true},
    {"v1alpha1", "1.0.0", "/v1alpha1.Node/NodePrepareResource",
     "/v1alpha1.Node/NodeUnprepareResource", true},
};

/// Null when there is no such version.
const DraApi* FindDraApi(std::string_view name);

enum class ClaimMethod { kPrepare, kUnprepare };

/// A claim as a request names it.
struct ClaimReference {
  ObjectName name;
  std::string uid;
  ResourceHandle handle = {};
  std::vector<std::string> cdi_devices = {};  ///< Of v1alpha1's unprepare.
};

/// What is said about one claim. `error` empty: it succeeded.
struct ClaimAnswer {
  std::string uid;
  std::string error;
  std::vector<PreparedDevice> devices;  ///< Only of prepare.
};

/// InvalidArgument when the bytes are not such a request.
absl::StatusOr<std::vector<ClaimReference>> DecodeClaims(
    const DraApi& api, ClaimMethod method, const std::string& request);

/// Share IDs are lost before v1, which has the first field for them. Where a
/// call is for one claim, the first answer counts, and its error is that of the
/// call.
absl::StatusOr<std::string> EncodeAnswer(
    const DraApi& api, ClaimMethod method,
    const std::vector<ClaimAnswer>& answers);

}  // namespace devmgr::testing
