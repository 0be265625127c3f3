// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cdi.h>
#include <devmgr/container_devices.h>
#include <devmgr/cri_shim.h>

#include <string>
#include <vector>

#include "cri/messages.h"
#include "cri/patch.h"
#include "shim/held_devices.h"

namespace devmgr::shim {

/// Where a container is created.
struct InjectionTarget {
  RuntimeCdi runtime = RuntimeCdi::kNone;
  CriTarget fallback;  ///< With all that is for messages.
  // For RuntimeCdi::kNone:
  const CdiRegistry& registry;
  const CdiHost& host;
};

struct Injection {
  cri::ConfigEdits edits;  ///< Empty: nothing is to be changed.
  HeldDevices held;        ///< What the container has then.
  std::vector<std::string> warnings;
};

/// What to change in a container's config so that it gets `devices` (may be
/// null: none of ours) and what the names say that the client sent.
///
/// What plugins ask for comes before what the pod asks for, as the kubelet has
/// it: the pod's variables win, and its annotations. Names go where the runtime
/// takes them; for a runtime without CDI they become plain fields, which win
/// over both, and disappear.
///   FailedPrecondition  a name cannot be resolved, or an edit has no plain
///                       form, or an annotation of CDI is malformed; the
///                       message names pod, container and culprits
absl::StatusOr<Injection> PlanInjection(const cri::ContainerConfig& config,
                                        const ContainerDevices* devices,
                                        const InjectionTarget& target);

}  // namespace devmgr::shim
