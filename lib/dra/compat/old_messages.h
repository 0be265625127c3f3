// SPDX-License-Identifier: Apache-2.0
//
// The adapters of the API versions of Kubernetes 1.26 to 1.33. Included by
// api_version.cc and old_versions.cc only.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/old_handles.h"
#include "common/status.h"
#include "devmgr/wire/dra/v1alpha1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha2/dra.pb.h"
#include "devmgr/wire/dra/v1alpha3/dra.pb.h"
#include "dra/api_messages.h"
#include "dra/api_version.h"
#include "rpc/message.h"

namespace devmgr::dra {

// v1alpha4 has the messages of v1beta1; those of v1alpha3 have handles in the
// request, and CDI names in the answer.
struct V1Alpha3 {
  using PrepareRequest = wire::dra::v1alpha3::NodePrepareResourcesRequest;
  using PrepareResponse = wire::dra::v1alpha3::NodePrepareResourcesResponse;
  using UnprepareRequest = wire::dra::v1alpha3::NodeUnprepareResourcesRequest;
  using UnprepareResponse = wire::dra::v1alpha3::NodeUnprepareResourcesResponse;
};

// One claim in each call.
struct V1Alpha2 {
  using PrepareRequest = wire::dra::v1alpha2::NodePrepareResourceRequest;
  using PrepareResponse = wire::dra::v1alpha2::NodePrepareResourceResponse;
  using UnprepareRequest = wire::dra::v1alpha2::NodeUnprepareResourceRequest;
  using UnprepareResponse = wire::dra::v1alpha2::NodeUnprepareResourceResponse;
};

struct V1Alpha1 {
  using PrepareRequest = wire::dra::v1alpha1::NodePrepareResourceRequest;
  using PrepareResponse = wire::dra::v1alpha1::NodePrepareResourceResponse;
  using UnprepareRequest = wire::dra::v1alpha1::NodeUnprepareResourceRequest;
  using UnprepareResponse = wire::dra::v1alpha1::NodeUnprepareResourceResponse;
};

// What is empty is written, too, as upstream does.
template <typename Message>
void WriteStructured(const StructuredResourceHandle& handle, Message* wire) {
  const auto set_raw = [](const std::string& json, auto* raw) {
    if (!json.empty()) raw->set_raw(json);
  };
  set_raw(handle.vendor_class_parameters,
          wire->mutable_vendor_class_parameters());
  set_raw(handle.vendor_claim_parameters,
          wire->mutable_vendor_claim_parameters());
  wire->set_node_name(handle.node_name);
  for (const StructuredResourceHandle::Result& result : handle.results) {
    auto* part = wire->add_results();
    set_raw(result.vendor_request_parameters,
            part->mutable_vendor_request_parameters());
    part->mutable_allocation_result_model()
        ->mutable_named_resources()
        ->set_name(result.named_resource);
  }
}

/// What else the message of a claim, or of a call for it, has room for.
template <typename Message>
void WriteHandle(const ClaimReference& claim, Message* wire) {
  const bool is_sayable = api::WhyNotSayable(claim.handle).empty();
  if constexpr (requires { wire->resource_handle(); }) {
    if (is_sayable) wire->set_resource_handle(claim.handle.data);
  }
  if constexpr (requires { wire->structured_resource_handle(); }) {
    if (is_sayable && claim.handle.structured.has_value()) {
      WriteStructured(*claim.handle.structured,
                      wire->add_structured_resource_handle());
    }
  }
  if constexpr (requires { wire->cdi_devices(); }) {
    for (const std::string& id : claim.cdi_device_ids) {
      wire->add_cdi_devices(id);
    }
  }
}

template <typename Request>
std::string EncodeClaimsWithHandles(const std::vector<ClaimReference>& claims) {
  Request request;
  for (const ClaimReference& claim : claims) {
    auto* wire = request.add_claims();
    WriteName(claim, wire);
    WriteHandle(claim, wire);
  }
  return rpc::Encode(request);
}

/// The first one.
template <typename Request>
std::string EncodeClaim(const std::vector<ClaimReference>& claims) {
  Request request;
  if (!claims.empty()) {
    const ClaimReference& claim = claims.front();
    request.set_namespace_(claim.name.ns);
    request.set_claim_uid(claim.uid.value);
    request.set_claim_name(claim.name.name);
    WriteHandle(claim, &request);
  }
  return rpc::Encode(request);
}

/// Of a claim's answer, or of that to a call for one claim.
template <typename Message>
requires requires(const Message& wire) { wire.cdi_devices(); }
void ReadDevices(const Message& wire, RawClaimAnswer* raw) {
  raw->only_cdi_ids = true;
  if (wire.cdi_devices().empty()) return;
  state::PreparedDevice& device = raw->devices.emplace_back();
  device.cdi_device_ids.assign(wire.cdi_devices().begin(),
                               wire.cdi_devices().end());
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodePrepareOne(
    const std::string& bytes, const std::vector<ClaimReference>& asked) {
  DEVMGR_ASSIGN_OR_RETURN(const Response response,
                          rpc::Decode<Response>(bytes));
  RawAnswer answer;
  for (const ClaimReference& claim : asked) {
    ReadDevices(response, &answer[claim.uid.value]);
  }
  return answer;
}

template <typename Response>
absl::StatusOr<RawAnswer> DecodeUnprepareOne(
    const std::string& bytes, const std::vector<ClaimReference>& asked) {
  DEVMGR_RETURN_IF_ERROR(rpc::Decode<Response>(bytes).status());
  RawAnswer answer;
  for (const ClaimReference& claim : asked) answer[claim.uid.value] = {};
  return answer;
}

template <typename Message>
constexpr Handles HandlesIn() {
  return requires(Message m) { m.structured_resource_handle(); }
  ? Handles::kStructured : Handles::kText;
}

/// Of Kubernetes 1.33 or before.
constexpr ApiVersion Old(ApiVersion version) {
  version.is_old = true;
  return version;
}

/// Claims go in one call, with their handles.
template <typename V>
constexpr ApiVersion HandlesAdapter(std::string_view name,
                                    std::string_view announced,
                                    std::string_view service) {
  ApiVersion version = Old(Adapter<V>(name, announced, service));
  version.handles = Handles::kStructured;
  version.encode_prepare = &EncodeClaimsWithHandles<typename V::PrepareRequest>;
  version.encode_unprepare =
      &EncodeClaimsWithHandles<typename V::UnprepareRequest>;
  return version;
}

template <typename V>
constexpr ApiVersion OneClaimAdapter(std::string_view name,
                                     std::string_view announced,
                                     std::string_view service) {
  return {name,
          announced,
          service,
          /*is_old=*/true,
          /*batched=*/false,
          HandlesIn<typename V::PrepareRequest>(),
          &EncodeClaim<typename V::PrepareRequest>,
          &EncodeClaim<typename V::UnprepareRequest>,
          &DecodePrepareOne<typename V::PrepareResponse>,
          &DecodeUnprepareOne<typename V::UnprepareResponse>};
}

/// In our order of preference.
inline constexpr std::array<ApiVersion, 4> kOldVersions = {
    Old(Adapter<V1Beta1>("v1alpha4", "v1alpha3.NodeService", "v1alpha3.Node")),
    HandlesAdapter<V1Alpha3>("v1alpha3", "v1alpha3.NodeService",
                             "v1alpha3.Node"),
    OneClaimAdapter<V1Alpha2>("v1alpha2", "v1alpha2.NodeService",
                              "v1alpha2.Node"),
    OneClaimAdapter<V1Alpha1>("v1alpha1", "v1alpha1.NodeService",
                              "v1alpha1.Node"),
};

}  // namespace devmgr::dra
