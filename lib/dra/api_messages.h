// SPDX-License-Identifier: Apache-2.0
//
// The adapters of the API versions: between our words and the messages of each.
// Included by api_version.cc and by those of the old versions (compat/) only.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "dra/api_version.h"
#include "rpc/message.h"

namespace devmgr::dra {

// The messages of v1 and v1beta1 have the same shape, but for the share ID.
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

template <typename Claim>
void WriteName(const ClaimReference& claim, Claim* wire) {
  wire->set_namespace_(claim.name.ns);
  wire->set_uid(claim.uid.value);
  wire->set_name(claim.name.name);
}

template <typename Request>
std::string EncodeClaims(const std::vector<ClaimReference>& claims) {
  Request request;
  for (const ClaimReference& claim : claims) {
    WriteName(claim, request.add_claims());
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

/// Of a claim's answer. The old versions, which have other messages, add their
/// own.
template <typename Claim>
requires requires(const Claim& wire) { wire.devices(); }
void ReadDevices(const Claim& wire, RawClaimAnswer* raw) {
  for (const auto& device : wire.devices()) {
    raw->devices.push_back(DeviceOf(device));
  }
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodePrepare(const std::string& bytes,
                                        const std::vector<ClaimReference>&) {
  DEVMGR_ASSIGN_OR_RETURN(const Response response,
                          rpc::Decode<Response>(bytes));
  RawAnswer answer;
  for (const auto& [uid, claim] : response.claims()) {
    RawClaimAnswer& raw = answer[uid];
    raw.error = claim.error();
    ReadDevices(claim, &raw);
  }
  return answer;
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodeUnprepare(const std::string& bytes,
                                          const std::vector<ClaimReference>&) {
  DEVMGR_ASSIGN_OR_RETURN(const Response response,
                          rpc::Decode<Response>(bytes));
  RawAnswer answer;
  for (const auto& [uid, claim] : response.claims()) {
    answer[uid].error = claim.error();
  }
  return answer;
}

/// `V`: its messages, with all claims in one call.
template <typename V>
constexpr ApiVersion Adapter(std::string_view name, std::string_view announced,
                             std::string_view service) {
  return {name,
          announced,
          service,
          /*is_old=*/false,
          /*batched=*/true,
          Handles::kNone,
          &EncodeClaims<typename V::PrepareRequest>,
          &EncodeClaims<typename V::UnprepareRequest>,
          &DecodePrepare<typename V::PrepareResponse>,
          &DecodeUnprepare<typename V::UnprepareResponse>};
}

}  // namespace devmgr::dra
