// SPDX-License-Identifier: Apache-2.0
//
// The adapters of api_version.cc: between our words and the messages of each
// version. Included there only.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/old_handles.h"
#include "cdi/qualified_name.h"
#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha2/dra.pb.h"
#include "devmgr/wire/dra/v1alpha3/dra.pb.h"
#include "devmgr/wire/dra/v1beta1/dra.pb.h"
#include "dra/api_version.h"
#include "rpc/message.h"

namespace devmgr::dra {

// The messages of v1 and v1beta1 have the same shape, but for the share ID;
// those of v1alpha3 have handles in the request, and CDI names in the answer.
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
std::string EncodeClaims(const std::vector<ClaimReference>& claims) {
  Request request;
  for (const ClaimReference& claim : claims) {
    auto* wire = request.add_claims();
    wire->set_namespace_(claim.name.ns);
    wire->set_uid(claim.uid.value);
    wire->set_name(claim.name.name);
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

/// Of a claim's answer, or of that to a call for one claim.
template <typename Message>
void ReadDevices(const Message& wire, RawClaimAnswer* raw) {
  if constexpr (requires { wire.devices(); }) {
    for (const auto& device : wire.devices()) {
      raw->devices.push_back(DeviceOf(device));
    }
  } else {
    raw->only_cdi_ids = true;
    if (wire.cdi_devices().empty()) return;
    state::PreparedDevice& device = raw->devices.emplace_back();
    device.cdi_device_ids.assign(wire.cdi_devices().begin(),
                                 wire.cdi_devices().end());
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
  if constexpr (requires(Message m) { m.structured_resource_handle(); }) {
    return Handles::kStructured;
  } else if constexpr (requires(Message m) { m.resource_handle(); }) {
    return Handles::kText;
  } else {
    return Handles::kNone;
  }
}

template <typename V>
constexpr ApiVersion BatchedAdapter(std::string_view name,
                                    std::string_view announced,
                                    std::string_view service) {
  using Claim =
      std::decay_t<decltype(std::declval<typename V::PrepareRequest>().claims(
          0))>;
  return {name,
          announced,
          service,
          /*is_old=*/false,
          /*batched=*/true,
          HandlesIn<Claim>(),
          &EncodeClaims<typename V::PrepareRequest>,
          &EncodeClaims<typename V::UnprepareRequest>,
          &DecodePrepare<typename V::PrepareResponse>,
          &DecodeUnprepare<typename V::UnprepareResponse>};
}

template <typename V>
constexpr ApiVersion OneClaimAdapter(std::string_view name,
                                     std::string_view announced,
                                     std::string_view service) {
  return {name,
          announced,
          service,
          /*is_old=*/false,
          /*batched=*/false,
          HandlesIn<typename V::PrepareRequest>(),
          &EncodeClaim<typename V::PrepareRequest>,
          &EncodeClaim<typename V::UnprepareRequest>,
          &DecodePrepareOne<typename V::PrepareResponse>,
          &DecodeUnprepareOne<typename V::UnprepareResponse>};
}

constexpr ApiVersion Old(ApiVersion version) {
  version.is_old = true;
  return version;
}

/// An answer of v1alpha4 with devices, all of which have names. What v1alpha3
/// answers instead begins with a letter, which is the tag of no field of them.
inline bool HasNamedDevices(const std::string& bytes) {
  const auto response = rpc::Decode<V1Beta1::PrepareResponse>(bytes);
  if (!response.ok()) return false;
  for (const auto& [uid, claim] : response->claims()) {
    for (const auto& device : claim.devices()) {
      if (!device.device_name().empty()) return true;
    }
  }
  return false;
}

/// An answer of v1alpha3 with devices.
inline bool HasCdiNames(const std::string& bytes) {
  const auto response = rpc::Decode<V1Alpha3::PrepareResponse>(bytes);
  if (!response.ok()) return false;
  for (const auto& [uid, claim] : response->claims()) {
    for (const std::string& name : claim.cdi_devices()) {
      if (cdi::CheckQualifiedName(name).ok()) return true;
    }
  }
  return false;
}

}  // namespace devmgr::dra
