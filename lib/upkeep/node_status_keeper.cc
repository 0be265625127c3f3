// SPDX-License-Identifier: Apache-2.0
#include "upkeep/node_status_keeper.h"

#include <utility>

namespace devmgr::upkeep {

NodeStatusKeeper::NodeStatusKeeper(Parts parts)
    : parts_(std::move(parts)), gate_(std::make_shared<Gate>()) {
  MutexLock lock(gate_->mutex);
  gate_->executor = &parts_.executor;
}

NodeStatusKeeper::~NodeStatusKeeper() {
  {
    MutexLock lock(gate_->mutex);
    gate_->executor = nullptr;
  }
  parts_.executor.Cancel(timer_);
}

void NodeStatusKeeper::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (parts_.sink == nullptr) return;
  parts_.sink->ReportProblems([this, gate = gate_](const std::string& reason,
                                                   const std::string& message) {
    MutexLock lock(gate->mutex);
    if (gate->executor == nullptr) return;
    gate->executor->Post([this, reason, message] {
      parts_.events.Add(true, reason, "Node", {"", parts_.node_name}, message);
    });
  });
  OnResources();
}

void NodeStatusKeeper::OnResources() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (parts_.sink == nullptr || timer_ != 0) return;
  timer_ = parts_.executor.PostAfter(kPause, [this] {
    timer_ = 0;
    Set();
  });
}

void NodeStatusKeeper::Set() {
  NodeDeviceStatus now = Now();
  if (last_ == now) return;
  parts_.sink->SetNodeStatus(now);
  last_ = std::move(now);
}

NodeDeviceStatus NodeStatusKeeper::Now() const {
  NodeDeviceStatus status;
  status.declared_features = parts_.features;
  for (const ResourceInfo& info : parts_.resources()) {
    // What no plugin has served is others' to publish.
    if (!info.state || *info.state == ResourceState::kUnknown) continue;
    auto& amounts = status.resources[info.name];
    // Classes serve it now: a scheduler goes by slices.
    if (info.owner != ResourceOwner::kDevicePlugin) continue;
    if (*info.state == ResourceState::kForgotten && !parts_.keeps_zeroes) {
      continue;
    }
    amounts = {info.capacity, info.allocatable};
  }
  return status;
}

}  // namespace devmgr::upkeep
