// SPDX-License-Identifier: Apache-2.0
#include "control/generated_claim.h"

#include "control/generated_name.h"
#include "control/owned_claim.h"

namespace devmgr::control {

ResourceClaim GenerateClaim(const Pod& pod, const PodResourceClaim& entry,
                            const ResourceClaimTemplate& source,
                            std::string_view suffix) {
  ResourceClaim claim;
  claim.metadata.name =
      GeneratedName(GeneratedBase(pod.metadata.name, entry.name), suffix);
  claim.metadata.ns = pod.metadata.ns;
  claim.metadata.labels = source.claim_labels;
  claim.metadata.annotations = source.claim_annotations;
  claim.metadata.annotations[kPodClaimNameAnnotation] = entry.name;
  claim.metadata.owner_references.push_back(
      {"v1", "Pod", pod.metadata.name, pod.metadata.uid, true, true});
  claim.spec = source.spec;
  return claim;
}

}  // namespace devmgr::control
