// SPDX-License-Identifier: Apache-2.0
#include "shim/pod_book.h"

#include <devmgr/cri_shim.h>

#include <algorithm>

namespace devmgr::shim {

void PodBook::Touch(const std::string& id) {
  if (looking_) touched_.insert(id);
}

void PodBook::AddSandbox(const std::string& id,
                         const cri::SandboxIdentity& identity) {
  Touch(id);
  sandboxes_[id] = identity;
}

void PodBook::AddContainer(const std::string& id, KnownContainer container) {
  Touch(id);
  containers_[id] = std::move(container);
}

cri::SandboxIdentity PodBook::RemoveSandbox(const std::string& id) {
  Touch(id);
  std::erase_if(containers_, [&](const auto& entry) {
    const bool its_own = entry.second.sandbox_id == id;
    if (its_own) Touch(entry.first);
    return its_own;
  });
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return {};
  const cri::SandboxIdentity identity = std::move(found->second);
  sandboxes_.erase(found);
  return HasSandboxOf(identity.uid) ? cri::SandboxIdentity() : identity;
}

void PodBook::RemoveContainer(const std::string& id) {
  Touch(id);
  containers_.erase(id);
}

void PodBook::BeginLook() {
  looking_ = true;
  touched_.clear();
}

std::set<PodUid> PodBook::Reconcile(
    const std::vector<cri::Sandbox>& sandboxes,
    const std::vector<cri::Container>& containers) {
  looking_ = false;
  std::set<PodUid> gone = Pods();
  const auto untouched = [this](const auto& entry) {
    return !touched_.contains(entry.first);
  };
  std::erase_if(sandboxes_, untouched);
  std::erase_if(containers_, untouched);
  for (const cri::Sandbox& sandbox : sandboxes) {
    if (touched_.contains(sandbox.id)) continue;
    sandboxes_[sandbox.id] = sandbox.identity;
  }
  for (const cri::Container& container : containers) {
    if (touched_.contains(container.id)) continue;
    containers_[container.id] = {
        container.sandbox_id, container.name,
        container.state == cri::ContainerState::kExited,
        HeldByAnnotations(container.annotations),
        container.annotations.contains(std::string(kDevicesAnnotation))};
  }
  touched_.clear();
  for (const PodUid& pod : Pods()) gone.erase(pod);
  return gone;
}

const cri::SandboxIdentity* PodBook::FindSandbox(const std::string& id) const {
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : &found->second;
}

const PodBook::KnownContainer* PodBook::FindContainer(
    const std::string& id) const {
  const auto found = containers_.find(id);
  return found == containers_.end() ? nullptr : &found->second;
}

bool PodBook::HasSandboxOf(const PodUid& pod) const {
  return std::any_of(
      sandboxes_.begin(), sandboxes_.end(),
      [&](const auto& entry) { return entry.second.uid == pod; });
}

ObjectName PodBook::NameOf(const PodUid& pod) const {
  const auto found =
      std::find_if(sandboxes_.begin(), sandboxes_.end(),
                   [&](const auto& entry) { return entry.second.uid == pod; });
  return found == sandboxes_.end() ? ObjectName() : found->second.pod;
}

std::set<PodUid> PodBook::Pods() const {
  std::set<PodUid> pods;
  for (const auto& [id, identity] : sandboxes_) {
    if (!identity.uid.value.empty()) pods.insert(identity.uid);
  }
  return pods;
}

std::size_t PodBook::foreign_sandboxes() const {
  return static_cast<std::size_t>(std::count_if(
      sandboxes_.begin(), sandboxes_.end(),
      [](const auto& entry) { return entry.second.uid.value.empty(); }));
}

}  // namespace devmgr::shim
