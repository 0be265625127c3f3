// SPDX-License-Identifier: Apache-2.0
#include "dra/api_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "rpc/message.h"

namespace devmgr::dra {
namespace {

/// The messages of v1 and v1beta1: the same shape, but for the share ID.
struct V1 {
  using PrepareRequest = wire::dra::v1::NodePrepareResourcesRequest;
  using PrepareResponse = wire::dra::v1::NodePrepareResourcesResponse;
  using UnprepareRequest = wire::dra::v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = wire::dra::v1::NodeUnprepareResourcesResponse;
};

struct V1Beta1 {
  using PrepareRequest = wire::dra::v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = wire::dra::v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = wire::dra::v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = wire::dra::v1beta1::NodeUnprepareResourcesResponse;
};

template <typename Request>
std::string EncodeClaims(const std::vector<ClaimReference>& claims) {
  Request request;
  for (const ClaimReference& claim : claims) {
    auto* wire = request.add_claims();
    wire->set_namespace_(claim.name.ns);
    wire->set_uid(claim.uid.value);
    wire->set_name(claim.name.name);
  }
  return rpc::Encode(request);
}

template <typename Device>
state::PreparedDevice DeviceOf(const Device& wire) {
  state::PreparedDevice device;
  device.request_names.assign(wire.request_names().begin(),
                              wire.request_names().end());
  device.pool = wire.pool_name();
  device.device = wire.device_name();
  device.cdi_device_ids.assign(wire.cdi_device_ids().begin(),
                               wire.cdi_device_ids().end());
  if constexpr (requires { wire.share_id(); })
    device.share_id = wire.share_id();
  return device;
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodePrepare(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const Response response,
                          rpc::Decode<Response>(bytes));
  RawAnswer answer;
  for (const auto& [uid, claim] : response.claims()) {
    RawClaimAnswer& raw = answer[uid];
    raw.error = claim.error();
    for (const auto& device : claim.devices()) {
      raw.devices.push_back(DeviceOf(device));
    }
  }
  return answer;
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodeUnprepare(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const Response response,
                          rpc::Decode<Response>(bytes));
  RawAnswer answer;
  for (const auto& [uid, claim] : response.claims()) {
    answer[uid].error = claim.error();
  }
  return answer;
}

template <typename V>
constexpr ApiVersion Adapter(std::string_view name, std::string_view service) {
  return {name,
          service,
          &EncodeClaims<typename V::PrepareRequest>,
          &EncodeClaims<typename V::UnprepareRequest>,
          &DecodePrepare<typename V::PrepareResponse>,
          &DecodeUnprepare<typename V::UnprepareResponse>};
}

constexpr std::array kVersions = {
    Adapter<V1>("v1.DRAPlugin", "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"),
    Adapter<V1Beta1>("v1beta1.DRAPlugin",
                     "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
};

}  // namespace

std::string ApiVersion::PrepareMethod() const {
  return fmt::format("/{}/NodePrepareResources", service);
}

std::string ApiVersion::UnprepareMethod() const {
  return fmt::format("/{}/NodeUnprepareResources", service);
}

std::span<const ApiVersion> ApiVersions() { return kVersions; }

absl::StatusOr<const ApiVersion*> ChooseApiVersion(
    const std::vector<std::string>& advertised) {
  if (advertised.empty()) {
    return InvalidArgumentError(
        "empty list of supported gRPC services (aka supported versions)");
  }
  for (const ApiVersion& version : kVersions) {
    if (std::find(advertised.begin(), advertised.end(), version.name) !=
        advertised.end()) {
      return &version;
    }
  }
  std::vector<std::string_view> ours;
  for (const ApiVersion& version : kVersions) ours.push_back(version.name);
  return InvalidArgumentError(
      "none of services supported by the plugin ([{}]) are supported by this "
      "manager ([{}])",
      fmt::join(advertised, " "), fmt::join(ours, " "));
}

}  // namespace devmgr::dra
