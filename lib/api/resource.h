// SPDX-License-Identifier: Apache-2.0
//
// Objects of the group resource.k8s.io, and nodes: read, converted to the shape
// of v1, and checked in one pass, since a rule that is broken is an error of
// the file here.
#pragma once

#include <devmgr/objects.h>

#include <string>
#include <string_view>

#include "api/field.h"

namespace devmgr::api {

/// Versions of resource.k8s.io that are read. v1beta2 has the shape of v1.
/// v1alpha2 and v1alpha1 have another model of allocation, whose objects are
/// read by api/structured_parameters.h; claims say what was allocated, and what
/// drivers are handed.
enum class ResourceVersion {
  kV1,
  kV1Beta2,
  kV1Beta1,
  kV1Alpha3,
  kV1Alpha2,
  kV1Alpha1,
};
constexpr bool HasResourceHandles(ResourceVersion version) {
  return version == ResourceVersion::kV1Alpha2 ||
         version == ResourceVersion::kV1Alpha1;
}
/// Requests and devices as v1beta1 and v1alpha3 write them.
constexpr bool HasFlatRequests(ResourceVersion version) {
  return version == ResourceVersion::kV1Beta1 ||
         version == ResourceVersion::kV1Alpha3;
}

ResourceClaim DecodeResourceClaim(const Field& root, ResourceVersion version);
ResourceClaimTemplate DecodeResourceClaimTemplate(const Field& root,
                                                  ResourceVersion version);
DeviceClass DecodeDeviceClass(const Field& root);
DeviceTaintRule DecodeDeviceTaintRule(const Field& root);
/// `node_name` names the pool of a slice that says neither pool nor node.
ResourceSlice DecodeResourceSlice(const Field& root, ResourceVersion version,
                                  std::string_view node_name);
Node DecodeNode(const Field& root);

/// The allocation of a claim up to v1alpha2, by its `status`.
AllocationResult DecodeResourceHandles(const Field& status);

/// The node of a selector that one node alone passes; else empty. By the
/// node's name, as schedulers write since Kubernetes 1.31, or by its label
/// `kubernetes.io/hostname`, as before. The label's value is taken for the
/// name: it is compared with nothing here, and the two are the same unless
/// the label was changed.
std::string OnlyNodeOf(const Field& selector);

/// The CEL expressions of `selectors`, as classes and requests have them.
std::vector<std::string> DecodeSelectors(const Field& selectors);
/// A CEL expression, which must be there, is of limited length, and compiles.
std::string DecodeExpression(const Field& field, ExpressionKind kind);
/// Reports a list of more than `limit` entries.
void CheckCount(const Field& list, std::size_t limit);
/// A name that must be there and pass `check`.
std::string RequiredName(const Field& field,
                         std::string (*check)(std::string_view));

}  // namespace devmgr::api
