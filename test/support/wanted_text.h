// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace devmgr {

/// A claim `name` with UID `u-NAME` and one device, reserved for a pod.
inline std::string WantedClaim(const std::string& name,
                               const std::string& pod_uid,
                               const std::string& device = "gpu-0") {
  return "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
         "metadata: {name: " +
         name + ", uid: u-" + name +
         "}\n"
         "spec: {devices: {requests: [{name: r, exactly: "
         "{deviceClassName: c}}]}}\n"
         "status:\n  allocation: {devices: {results: [{request: r, driver: "
         "gpu.example.com, pool: pool-1, device: " +
         device +
         "}]}}\n"
         "  reservedFor: [{resource: pods, name: p, uid: " +
         pod_uid + "}]\n---\n";
}

/// A pod with one container `c`, which uses all of a claim, if it has one.
inline std::string WantedPodText(const std::string& name,
                                 const std::string& uid,
                                 const std::string& claim = "") {
  std::string text = "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
                     ", uid: " + uid + "}\nspec:\n";
  if (claim.empty()) return text + "  containers: [{name: c}]\n";
  return text +
         "  containers: [{name: c, resources: {claims: [{name: x}]}}]\n" +
         "  resourceClaims: [{name: x, resourceClaimName: " + claim + "}]\n";
}

}  // namespace devmgr
