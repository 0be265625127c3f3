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
};
inline constexpr DraApi kDraApis[] = {
    {"v1", "v1.DRAPlugin",
     "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
     "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"},
    {"v1beta1", "v1beta1.DRAPlugin",
     "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
     "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"},
};

/// Null when there is no such version.
const DraApi* FindDraApi(std::string_view name);

enum class ClaimMethod { kPrepare, kUnprepare };

/// A claim as a request names it.
struct ClaimReference {
  ObjectName name;
  std::string uid;
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

/// Share IDs are lost on v1beta1, which has no field for them.
std::string EncodeAnswer(const DraApi& api, ClaimMethod method,
                         const std::vector<ClaimAnswer>& answers);

}  // namespace devmgr::testing
