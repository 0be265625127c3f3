// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_driver_wire.h"

#include <devmgr/wire/dra/v1/dra.pb.h>
#include <devmgr/wire/dra/v1alpha1/dra.pb.h>
#include <devmgr/wire/dra/v1alpha2/dra.pb.h>
#include <devmgr/wire/dra/v1alpha3/dra.pb.h>
#include <devmgr/wire/dra/v1beta1/dra.pb.h>

#include <iterator>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::testing {
namespace {

namespace v1 = wire::dra::v1;
namespace v1alpha1 = wire::dra::v1alpha1;
namespace v1alpha2 = wire::dra::v1alpha2;
namespace v1alpha3 = wire::dra::v1alpha3;
namespace v1beta1 = wire::dra::v1beta1;

template <typename Message>
StructuredResourceHandle ReadStructured(const Message& wire) {
  StructuredResourceHandle handle;
  handle.vendor_class_parameters = wire.vendor_class_parameters().raw();
  handle.vendor_claim_parameters = wire.vendor_claim_parameters().raw();
  handle.node_name = wire.node_name();
  for (const auto& result : wire.results()) {
    handle.results.push_back(
        {result.vendor_request_parameters().raw(),
         result.allocation_result_model().named_resources().name()});
  }
  return handle;
}

/// What the message of a claim, or of a request for it, has beside its name.
template <typename Message>
void ReadHandle(const Message& wire, ClaimReference* claim) {
  if constexpr (requires { wire.resource_handle(); }) {
    claim->handle.data = wire.resource_handle();
  }
  if constexpr (requires { wire.structured_resource_handle(); }) {
    for (const auto& handle : wire.structured_resource_handle()) {
      claim->handle.structured = ReadStructured(handle);
    }
  }
  if constexpr (requires { wire.cdi_devices(); }) {
    claim->cdi_devices.assign(wire.cdi_devices().begin(),
                              wire.cdi_devices().end());
  }
}

template <typename Request>
absl::StatusOr<std::vector<ClaimReference>> DecodeClaimsOf(
    const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const Request request, rpc::Decode<Request>(bytes));
  std::vector<ClaimReference> claims;
  if constexpr (requires { request.claims(); }) {
    for (const auto& claim : request.claims()) {
      claims.push_back({{claim.namespace_(), claim.name()}, claim.uid()});
      ReadHandle(claim, &claims.back());
    }
  } else {
    claims.push_back(
        {{request.namespace_(), request.claim_name()}, request.claim_uid()});
    ReadHandle(request, &claims.back());
  }
  return claims;
}

template <typename Device>
void WriteDevice(const PreparedDevice& prepared, Device* device) {
  for (const std::string& name : prepared.requests) {
    device->add_request_names(name);
  }
  device->set_pool_name(prepared.pool);
  device->set_device_name(prepared.device);
  for (const std::string& id : prepared.cdi_ids) {
    device->add_cdi_device_ids(id);
  }
  if constexpr (requires { device->share_id(); }) {
    if (!prepared.share_id.empty()) device->set_share_id(prepared.share_id);
  }
}

/// To a claim's part of an answer, or to the answer to a call for one claim.
template <typename Message>
void WriteDevices(const ClaimAnswer& answer, Message* wire) {
  for (const PreparedDevice& prepared : answer.devices) {
    if constexpr (requires { wire->devices(); }) {
      WriteDevice(prepared, wire->add_devices());
    } else if constexpr (requires { wire->cdi_devices(); }) {
      for (const std::string& id : prepared.cdi_ids) wire->add_cdi_devices(id);
    }
  }
}

template <typename Response>
absl::StatusOr<std::string> Encode(const std::vector<ClaimAnswer>& answers) {
  Response response;
  if constexpr (requires { response.claims(); }) {
    for (const ClaimAnswer& answer : answers) {
      auto& entry = (*response.mutable_claims())[answer.uid];
      entry.Clear();
      entry.set_error(answer.error);
      WriteDevices(answer, &entry);
    }
  } else if (!answers.empty()) {
    if (const std::string& error = answers.front().error; !error.empty()) {
      return MakeStatus(absl::StatusCode::kUnknown, error);
    }
    WriteDevices(answers.front(), &response);
  }
  return rpc::Encode(response);
}

struct Codec {
  decltype(&DecodeClaimsOf<v1::NodePrepareResourcesRequest>) prepare;
  decltype(&DecodeClaimsOf<v1::NodePrepareResourcesRequest>) unprepare;
  decltype(&Encode<v1::NodePrepareResourcesResponse>) prepared;
  decltype(&Encode<v1::NodePrepareResourcesResponse>) unprepared;
};

template <typename Prepare, typename Unprepare, typename Prepared,
          typename Unprepared>
constexpr Codec CodecFor() {
  return {&DecodeClaimsOf<Prepare>, &DecodeClaimsOf<Unprepare>,
          &Encode<Prepared>, &Encode<Unprepared>};
}

constexpr Codec kV1Beta1 = CodecFor<v1beta1::NodePrepareResourcesRequest,
                                    v1beta1::NodeUnprepareResourcesRequest,
                                    v1beta1::NodePrepareResourcesResponse,
                                    v1beta1::NodeUnprepareResourcesResponse>();

/// In the order of kDraApis.
constexpr Codec kCodecs[] = {
    CodecFor<v1::NodePrepareResourcesRequest, v1::NodeUnprepareResourcesRequest,
             v1::NodePrepareResourcesResponse,
             v1::NodeUnprepareResourcesResponse>(),
    kV1Beta1,
    kV1Beta1,
    CodecFor<v1alpha3::NodePrepareResourcesRequest,
             v1alpha3::NodeUnprepareResourcesRequest,
             v1alpha3::NodePrepareResourcesResponse,
             v1alpha3::NodeUnprepareResourcesResponse>(),
    CodecFor<v1alpha2::NodePrepareResourceRequest,
             v1alpha2::NodeUnprepareResourceRequest,
             v1alpha2::NodePrepareResourceResponse,
             v1alpha2::NodeUnprepareResourceResponse>(),
    CodecFor<v1alpha1::NodePrepareResourceRequest,
             v1alpha1::NodeUnprepareResourceRequest,
             v1alpha1::NodePrepareResourceResponse,
             v1alpha1::NodeUnprepareResourceResponse>(),
};
static_assert(std::size(kCodecs) == std::size(kDraApis));

const Codec& CodecOf(const DraApi& api) {
  return kCodecs[std::distance(kDraApis, &api)];
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
  const Codec& codec = CodecOf(api);
  return method == ClaimMethod::kPrepare ? codec.prepare(request)
                                         : codec.unprepare(request);
}

absl::StatusOr<std::string> EncodeAnswer(
    const DraApi& api, ClaimMethod method,
    const std::vector<ClaimAnswer>& answers) {
  const Codec& codec = CodecOf(api);
  return method == ClaimMethod::kPrepare ? codec.prepared(answers)
                                         : codec.unprepared(answers);
}

}  // namespace devmgr::testing
