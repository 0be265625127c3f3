// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30: the objects of
// resource.k8s.io/v1alpha2 by which its scheduler allocated, as they are
// stored. What the allocator makes of them is in
// allocator/named_resources.h.
#pragma once

#include <devmgr/objects.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/field.h"

namespace devmgr::api {

/// An object with parameters, of whatever group and kind.
struct ParametersReference {
  std::string api_group;
  std::string kind;
  std::string ns;  ///< Empty: the namespace of the object that refers to it.
  std::string name;
  friend bool operator==(const ParametersReference&,
                         const ParametersReference&) = default;
};

struct ResourceClass {
  ObjectMeta metadata;
  std::string driver;
  std::optional<ParametersReference> parameters;
  /// Of claims that refer to none. It was never released.
  std::optional<ParametersReference> default_claim_parameters;
  /// Otherwise the driver's own controller allocates.
  bool has_structured_parameters = false;
};

/// Parameters are JSON as it came; empty when absent.
struct ResourceClassParameters {
  struct Filter {
    std::string driver;
    std::string selector;  ///< CEL, as of Kubernetes 1.30.
  };
  ObjectMeta metadata;
  std::optional<ParametersReference> generated_from;
  std::map<std::string, std::string> vendor_parameters;  ///< By driver.
  std::vector<Filter> filters;
};

struct ResourceClaimParameters {
  struct Request {
    std::string vendor_parameters;
    std::string selector;  ///< CEL, as of Kubernetes 1.30.
  };
  struct DriverRequests {
    std::string driver;
    std::string vendor_parameters;
    std::vector<Request> requests;
  };
  ObjectMeta metadata;
  std::optional<ParametersReference> generated_from;
  bool is_shareable = false;
  std::vector<DriverRequests> driver_requests;
};

/// What a claim up to v1alpha2 asks for.
struct OldClaimSpec {
  std::string class_name;
  std::optional<ParametersReference> parameters;
  bool is_immediate = false;  ///< Allocated before a pod uses it.
};

ResourceClass DecodeResourceClass(const Field& root);
ResourceClassParameters DecodeClassParameters(const Field& root);
ResourceClaimParameters DecodeClaimParameters(const Field& root);
/// `spec` of a ResourceClaim.
OldClaimSpec DecodeOldClaimSpec(const Field& spec);

/// A ResourceSlice with `namedResources` as a slice of today: of the pool that
/// is named like the node, in generation 1, of one slice. Quantities are
/// capacities. Names of devices and attributes may be longer than today's, and
/// lists empty.
ResourceSlice DecodeNamedResources(const Field& root);

/// Slices of one driver and node are of one pool: each says how many there
/// are. Names of devices that occur twice make the pool invalid.
void JoinNamedResources(std::vector<ResourceSlice>& slices);

}  // namespace devmgr::api
