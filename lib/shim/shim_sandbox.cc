// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox knows of the devices of its pod before it is there.
#include <devmgr/cdi_spec.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shim/shim.h"

namespace devmgr::shim {
namespace {

/// As kSandboxDevicesAnnotation is made of them.
constexpr char kPlugin[] = "devmgr";
constexpr char kDevice[] = "sandbox";

}  // namespace

void Shim::FindSandboxDevices(const HeldCall& held,
                              const cri::SandboxIdentity& identity) {
  auto creation = std::make_shared<Creation>();
  creation->held = held;
  creation->kind = Creation::Kind::kRunPodSandbox;
  creation->identity = identity;
  Identify(creation);
}

/// There is more time for it than for a container: its pod may have come at the
/// same moment. And there may be several init containers.
bool Shim::GoOnForSandbox(const CreationPtr& creation, CreationAnswer answer,
                          const std::string& container) {
  if (answer == CreationAnswer::kNotReady &&
      executor_->Now() < creation->held->patient_until) {
    creation->patience = creation->held->patient_until;
    WaitForPod(creation);
    return true;
  }
  if (answer == CreationAnswer::kGivenBack &&
      creation->taken_back.insert(container).second) {
    TakeBackFirst(creation, container);
    return true;
  }
  return false;
}

absl::StatusOr<cri::ListEdit<NamedValue>> Shim::SandboxAnnotations(
    const cri::SandboxIdentity& identity, const PodDevices* pod) const {
  cri::ListEdit<NamedValue> edit;
  // Of the pod's author it would be a device that the pod was not given.
  edit.drop.insert(std::string(kSandboxDevicesAnnotation));
  if (pod == nullptr) return edit;
  std::vector<std::string> all;
  for (const ContainerDevices& container : pod->containers) {
    const auto names = CdiNamesOf(container);
    if (!names.ok()) {
      return FailedPreconditionError("sandbox of pod '{}': container '{}': {}",
                                     identity.pod.ToString(), container.name,
                                     MessageOf(names.status()));
    }
    for (const std::string& name : *names) {
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        all.push_back(name);
      }
    }
  }
  if (all.empty()) return edit;
  auto annotation = MakeCdiAnnotation(kPlugin, kDevice, all);
  if (!annotation.ok()) {
    return FailedPreconditionError("sandbox of pod '{}': {}",
                                   identity.pod.ToString(),
                                   MessageOf(annotation.status()));
  }
  edit.last.push_back(*std::move(annotation));
  return edit;
}

void Shim::PlanSandbox(const CreationPtr& creation, const PodDevices* pod) {
  const auto edit = SandboxAnnotations(creation->identity, pod);
  if (!edit.ok()) return Fail(creation->held, edit.status());
  const std::string& request = creation->held->call.message;
  auto patched = cri::PatchRunPodSandbox(request, *edit);
  if (!patched.ok()) return Unreadable(creation->held, patched.status());
  if (*patched == request) return Forward(creation->held);
  creation->held->decide(CriDecision::Replace(*std::move(patched)));
}

}  // namespace devmgr::shim
