// SPDX-License-Identifier: Apache-2.0
//
// Containers that hold devices which their pods were not given.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "common/status.h"
#include "shim/container_config.h"
#include "shim/shim.h"

namespace devmgr::shim {
namespace {

ForeignHolder HolderOf(const std::string& id, const std::string& container,
                       const cri::SandboxIdentity& identity,
                       const HeldDevices& held) {
  ForeignHolder holder;
  holder.container_id = id;
  holder.pod_uid = identity.uid;
  holder.pod = identity.pod;
  holder.container = container;
  std::size_t most = kMaxHeldDevices;
  for (const auto& [resource, device] : held.devices) {
    if (most == 0) break;
    if (holder.resources.empty() || holder.resources.back().name != resource) {
      holder.resources.push_back({resource, {}});
    }
    holder.resources.back().devices.push_back(device);
    --most;
  }
  for (const std::string& name : held.cdi_devices) {
    if (most == 0) break;
    holder.cdi_devices.push_back(name);
    --most;
  }
  return holder;
}

bool IsReleased(const PodDevices& pod, const std::string& container) {
  return std::any_of(pod.containers.begin(), pod.containers.end(),
                     [&](const ContainerDevices& devices) {
                       return devices.name == container &&
                              devices.devices_released;
                     });
}

}  // namespace

void Shim::LookForHolders() {
  if (source_ == nullptr || !has_lists_) return;
  std::erase_if(inspected_, [this](const auto& entry) {
    return book_.FindContainer(entry.first) == nullptr;
  });
  not_inspected_.clear();
  if (!inspecting_) Inspect();
}

/// Of which only the runtime can tell what it has.
std::optional<std::string> Shim::NextToInspect() const {
  for (const auto& [id, container] : book_.all_containers()) {
    if (container.exited || container.is_marked || inspected_.contains(id) ||
        not_inspected_.contains(id)) {
      continue;
    }
    const cri::SandboxIdentity* sandbox =
        book_.FindSandbox(container.sandbox_id);
    if (sandbox == nullptr || !given_.contains(sandbox->uid)) return id;
  }
  return std::nullopt;
}

/// One after the other: a runtime that has much to tell is not flooded.
void Shim::Inspect() {
  const auto id = NextToInspect();
  if (!id.has_value()) {
    holders_known_ = not_inspected_.empty();
    return UpdateHolders();
  }
  inspecting_ = true;
  client_.StatusOf(
      *id,
      [this, id = *id](const absl::StatusOr<cri::ContainerStatus>& status) {
        inspecting_ = false;
        OnInspected(id, status);
        Inspect();
      });
}

/// One that is gone, and one of which the runtime does not tell, has nothing.
void Shim::OnInspected(const std::string& id,
                       const absl::StatusOr<cri::ContainerStatus>& status) {
  const bool is_told = status.ok() || absl::IsNotFound(status.status()) ||
                       absl::IsUnimplemented(status.status());
  if (!is_told) {
    not_inspected_.insert(id);
    return;
  }
  HeldDevices& held = inspected_[id];
  if (!status.ok()) return;
  const auto config = ConfigIn(*status);
  if (!config.ok()) return;
  specs_->Refresh().IgnoreError();
  held = HeldByConfig(*config, *specs_->Registry(), host_);
}

void Shim::UpdateHolders() {
  holders_.clear();
  for (const auto& [id, container] : book_.all_containers()) {
    if (container.exited) continue;
    HeldDevices held = container.held;
    if (const auto more = inspected_.find(id); more != inspected_.end()) {
      held.Add(more->second);
    }
    if (held.empty()) continue;
    const cri::SandboxIdentity* sandbox =
        book_.FindSandbox(container.sandbox_id);
    const cri::SandboxIdentity identity =
        sandbox == nullptr ? cri::SandboxIdentity() : *sandbox;
    std::string why = "it belongs to no pod";
    if (const auto given = given_.find(identity.uid); given != given_.end()) {
      if (IsReleased(*given->second, container.name)) continue;
      held.Remove(HeldBy(*given->second));
      why = "its pod was given other devices";
    } else if (unknown_pods_.contains(identity.uid)) {
      why = "its pod is not known";
    } else if (!identity.uid.value.empty()) {
      why = "its pod was given no devices";
    }
    if (held.empty()) continue;
    holders_.push_back(HolderOf(id, container.name, identity, held));
    holders_.back().why = std::move(why);
  }
  if (reporter_ != nullptr) reporter_->OnNews();
  WatchHolders();
}

/// The end of a container that was made past the shim is seen by asking only.
void Shim::WatchHolders() {
  if ((holders_.empty() && holders_known_) || holder_timer_ != 0) return;
  holder_timer_ =
      executor_->PostAfter(options_.foreign_holder_interval, [this] {
        holder_timer_ = 0;
        look_again_ = true;
        if (!looking_) BeginLook();
      });
}

/// It may have begun anew, and know nothing of what any pod has.
void Shim::OnSourceLost() {
  given_.clear();
  if (feed_ != nullptr) feed_->OnSourceLost();
  UpdateHolders();
}

void Shim::ReportHolders(RuntimeReport* report) const {
  const std::size_t count = std::min(holders_.size(), kMaxReportedHolders);
  report->holders.assign(holders_.begin(),
                         holders_.begin() + static_cast<std::ptrdiff_t>(count));
  report->all_holders = holders_known_ && count == holders_.size();
}

}  // namespace devmgr::shim
