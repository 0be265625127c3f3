// SPDX-License-Identifier: Apache-2.0
//
// What a pod-resources endpoint tells of the pods of a node, without the
// messages: NodeView::ResourcesOfPods. Served by devmgr/pod_resources_server.h.
#pragma once

#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace devmgr {

/// What one container has.
struct ContainerResources {
  ContainerName name;
  bool sidecar = false;  ///< An init container that is restarted always.
  /// Of device plugins that have allocated them, by resource; with the NUMA
  /// nodes that they had when they were chosen.
  std::vector<ResourceDevices> devices;
  /// As ContainerClaims::claims.
  std::vector<HeldClaim> claims;
  friend bool operator==(const ContainerResources&,
                         const ContainerResources&) = default;
};

/// What the containers of one pod have.
struct PodResources {
  ObjectName name;
  PodUid uid;
  /// Sidecars, then app containers, each as in the pod; those without devices,
  /// too. Other init containers, and ephemeral ones, are none of them.
  std::vector<ContainerResources> containers;
  /// Claims that its containers name and that are not above: not prepared yet,
  /// or lost. A claim counts once for each container.
  std::size_t missing_claims = 0;
  /// What this was made of. As long as all of it is the same, so is this.
  std::vector<std::shared_ptr<const void>> made_of;
};

/// The active pods, by namespace, name and UID. A pod is active unless
///   - the ledger has rejected it, or releases it: nothing of it runs any more;
///   - its object says that it has Succeeded or Failed, and its release does
///   not
///     wait for a container that still runs;
///   - its deletion was asked for, and it holds nothing;
///   - it holds nothing, and the source has no object of it.
struct PodResourcesList {
  std::vector<std::shared_ptr<const PodResources>> pods;
};

}  // namespace devmgr
