// SPDX-License-Identifier: Apache-2.0
//
// Structured parameters of Kubernetes 1.30: the objects of
// resource.k8s.io/v1alpha2 by which its scheduler allocated, as they are
// stored. Drivers' controllers write parameters, and claims and classes refer
// to them.
#pragma once

#include <devmgr/object_meta.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// An object with parameters, of whatever group and kind.
struct ParametersReference {
  std::string api_group;
  std::string kind;
  std::string ns;  ///< Empty: the namespace of the object that refers to it.
  std::string name;
  friend bool operator==(const ParametersReference&,
                         const ParametersReference&) = default;
};

/// What a claim up to v1alpha2 asks for.
struct OldClaimSpec {
  std::string class_name;  ///< Of a ResourceClass.
  std::optional<ParametersReference> parameters;
  bool is_immediate = false;  ///< Allocated before a pod uses it.
  friend bool operator==(const OldClaimSpec&, const OldClaimSpec&) = default;
};

struct ResourceClass {
  ObjectMeta metadata;
  std::string driver;
  std::optional<ParametersReference> parameters;
  /// Of claims that refer to none. It was never released.
  std::optional<ParametersReference> default_claim_parameters;
  /// Otherwise the driver's own controller allocates.
  bool has_structured_parameters = false;
  friend bool operator==(const ResourceClass&, const ResourceClass&) = default;
};

/// Parameters are JSON as it came; empty when absent.
struct ResourceClassParameters {
  struct Filter {
    std::string driver;
    std::string selector;  ///< CEL, as of Kubernetes 1.30.
    friend bool operator==(const Filter&, const Filter&) = default;
  };
  ObjectMeta metadata;
  std::optional<ParametersReference> generated_from;
  std::map<std::string, std::string> vendor_parameters;  ///< By driver.
  std::vector<Filter> filters;
  friend bool operator==(const ResourceClassParameters&,
                         const ResourceClassParameters&) = default;
};

struct ResourceClaimParameters {
  struct Request {
    std::string vendor_parameters;
    std::string selector;  ///< CEL, as of Kubernetes 1.30.
    friend bool operator==(const Request&, const Request&) = default;
  };
  struct DriverRequests {
    std::string driver;
    std::string vendor_parameters;
    std::vector<Request> requests;
    friend bool operator==(const DriverRequests&,
                           const DriverRequests&) = default;
  };
  ObjectMeta metadata;
  std::optional<ParametersReference> generated_from;
  bool is_shareable = false;
  std::vector<DriverRequests> driver_requests;
  friend bool operator==(const ResourceClaimParameters&,
                         const ResourceClaimParameters&) = default;
};

}  // namespace devmgr
