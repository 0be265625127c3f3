// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_driver_wire.h"

#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/dra/v1beta1/dra.pb.h>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {
namespace {

namespace v1 = wire::dra::v1;
namespace v1beta1 = wire::dra::v1beta1;

void SetShareId(const std::string& share_id, v1::Device* device) {
  if (!share_id.empty()) device->set_share_id(share_id);
}
void SetShareId(const std::string&, v1beta1::Device*) {}

template <typename Request>
absl::StatusOr<std::vector<ClaimReference>> DecodeClaimsOf(
    const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const Request request, rpc::Decode<Request>(bytes));
  std::vector<ClaimReference> claims;
  for (const auto& claim : request.claims()) {
    claims.push_back({{claim.namespace_(), claim.name()}, claim.uid()});
  }
  return claims;
}

template <typename Response>
std::string EncodePrepared(const std::vector<ClaimAnswer>& answers) {
  Response response;
  for (const ClaimAnswer& answer : answers) {
    auto& entry = (*response.mutable_claims())[answer.uid];
    entry.set_error(answer.error);
    entry.clear_devices();
    for (const PreparedDevice& prepared : answer.devices) {
      auto* device = entry.add_devices();
      for (const std::string& name : prepared.requests) {
        device->add_request_names(name);
      }
      device->set_pool_name(prepared.pool);
      device->set_device_name(prepared.device);
      for (const std::string& id : prepared.cdi_ids) {
        device->add_cdi_device_ids(id);
      }
      SetShareId(prepared.share_id, device);
    }
  }
  return rpc::Encode(response);
}

template <typename Response>
std::string EncodeUnprepared(const std::vector<ClaimAnswer>& answers) {
  Response response;
  for (const ClaimAnswer& answer : answers) {
    (*response.mutable_claims())[answer.uid].set_error(answer.error);
  }
  return rpc::Encode(response);
}

}  // namespace

const DraApi* FindDraApi(std::string_view name) {
  for (const DraApi& api : kDraApis) {
    if (api.name == name) return &api;
  }
  return nullptr;
}

absl::StatusOr<std::vector<ClaimReference>> DecodeClaims(
    const DraApi& api, ClaimMethod method, const std::string& request) {
  const bool prepare = method == ClaimMethod::kPrepare;
  if (api.name == "v1") {
    return prepare ? DecodeClaimsOf<v1::NodePrepareResourcesRequest>(request)
                   : DecodeClaimsOf<v1::NodeUnprepareResourcesRequest>(request);
  }
  return prepare
             ? DecodeClaimsOf<v1beta1::NodePrepareResourcesRequest>(request)
             : DecodeClaimsOf<v1beta1::NodeUnprepareResourcesRequest>(request);
}

std::string EncodeAnswer(const DraApi& api, ClaimMethod method,
                         const std::vector<ClaimAnswer>& answers) {
  const bool prepare = method == ClaimMethod::kPrepare;
  if (api.name == "v1") {
    return prepare
               ? EncodePrepared<v1::NodePrepareResourcesResponse>(answers)
               : EncodeUnprepared<v1::NodeUnprepareResourcesResponse>(answers);
  }
  return prepare
             ? EncodePrepared<v1beta1::NodePrepareResourcesResponse>(answers)
             : EncodeUnprepared<v1beta1::NodeUnprepareResourcesResponse>(
                   answers);
}

}  // namespace devmgr::testing
