// SPDX-License-Identifier: Apache-2.0
//
// What the manager shows of itself: what the rooms know at one moment.
#include <devmgr/version.h>

#include <utility>

#include "common/status.h"
#include "manager/manager.h"
#include "node/plugin_endpoints.h"
#include "state/history.h"
#include "state/views.h"
#include "view/node_view.h"
#include "view/pod_views.h"

namespace devmgr::manager {

view::Moment Manager::Now() const {
  view::Moment now;
  now.terms = terms_;
  now.state = state_;
  now.objects = objects_->Current();
  now.pods = lifecycle_->known();
  now.calls = lifecycle_->calls();
  now.resources = devices_->known();
  now.health = dra_health_->known();
  now.steady_ms = dra_health_->SteadyMs();
  now.numa = numa_;
  now.alignments = device_admission_->alignments();
  return now;
}

PodInfo Manager::InfoOf(const state::PodRecord& pod) const {
  return view::InfoOf(Now(), pod);
}

std::shared_ptr<const NodeInfo> Manager::NodeOf() const {
  NodeInfo node;
  node.version = std::string(Version());
  node.node_name = options_.node_name;
  node.boot_id = boot_id_;
  authority_->Show(&node);
  node.profile = options_.policies.profile;
  node.actuate = options_.actuate;
  node.state_dir = options_.state_dir.string();
  node.recovery = recovery_;
  node.started = started_;
  node.source = host_.objects != nullptr ? host_.objects->Describe() : "none";
  return std::make_shared<const NodeInfo>(std::move(node));
}

std::vector<std::shared_ptr<const PluginInfo>> Manager::PluginsNow() const {
  // A completion may come while we stop.
  if (drivers_ == nullptr) return {};
  auto plugins = drivers_->Plugins();
  const auto of_devices = plugins_->Shown(
      [this](const ResourceName& resource, plugin::Generation generation) {
        return devices_->PrimaryOf(resource) == generation;
      });
  plugins.insert(plugins.end(), of_devices.begin(), of_devices.end());
  return plugins;
}

void Manager::PublishView() {
  view::Surroundings around;
  around.sequence = ++views_;
  around.last_event = events_.last_sequence();
  around.node = node_;
  around.ledger = loaded_.ok() ? ledger_->health() : loaded_;
  around.plugins = PluginsNow();
  if (endpoints_ != nullptr) around.sockets = endpoints_->RegistrationSockets();
  around.runtimes = runtimes_.Runtimes();
  if (runtime_news_ != nullptr) {
    around.runtime = runtime_news_->Info();
    around.runs = runtime_news_->shown();
  }
  auto view = view::NodeViewOf(Now(), std::move(around));
  // Swapped, so that the old one is destroyed after the lock is released.
  const MutexLock lock(view_mutex_);
  view_.swap(view);
}

std::shared_ptr<const NodeView> Manager::View() const {
  WaitUntilBegun();
  const MutexLock lock(view_mutex_);
  return view_;
}

absl::Status Manager::ReportRuntime(const RuntimeReport& report) {
  return OnLoop([&] {
    if (!loaded_.ok()) return loaded_;
    const absl::Status taken = runtimes_.Take(report);
    if (taken.ok()) foreign_->Take(report);
    return taken;
  });
}

std::vector<EventInfo> Manager::Events(std::uint64_t after) const {
  return OnLoop([&] { return events_.After(after); });
}

absl::StatusOr<std::vector<DecisionInfo>> Manager::History(
    std::uint64_t after, std::size_t most) const {
  DEVMGR_RETURN_IF_ERROR(WaitUntilLoaded());
  auto batches = ledger_->History(after, most);
  if (!batches.ok()) return batches.status();
  std::vector<DecisionInfo> decisions;
  for (const state::Batch& batch : *batches) {
    decisions.push_back(state::DecisionInfoOf(batch));
  }
  return decisions;
}

void Manager::StartChanges() {
  changes_ = std::make_unique<ChangeStream>(ChangeStream::Parts{
      *executor_, *ledger_, state_, [this] { return Now(); }, host_.now,
      [this] {
        observers_->Tell([](DeviceManagerObserver& o) { o.OnDeviceChanges(); });
      }});
}

absl::StatusOr<LedgerView> Manager::StateAt(const LedgerPoint& at) const {
  DEVMGR_RETURN_IF_ERROR(WaitUntilLoaded());
  state::State now = OnLoop([&] { return state_; });
  const auto read = [&](std::uint64_t after, std::size_t most) {
    return ledger_->History(after, most);
  };
  DEVMGR_ASSIGN_OR_RETURN(const state::StateThen then,
                          state::StateAt(std::move(now), at, read));
  return state::LedgerViewOf(then.state, then.time_ms);
}

}  // namespace devmgr::manager
