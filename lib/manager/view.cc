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
  return now;
}

PodInfo Manager::InfoOf(const state::PodRecord& pod) const {
  return view::InfoOf(Now(), pod);
}

NodeInfo Manager::NodeNow() const {
  NodeInfo node;
  node.version = std::string(Version());
  node.node_name = options_.node_name;
  node.boot_id = boot_id_;
  node.authority = options_.policies.authority;
  node.profile = options_.policies.profile;
  node.actuate = options_.actuate;
  node.state_dir = options_.state_dir.string();
  node.ledger_error = std::string(ledger_->health().message());
  node.recovery = recovery_;
  node.started = started_;
  node.source = host_.objects != nullptr ? host_.objects->Describe() : "none";
  return node;
}

std::vector<PluginInfo> Manager::PluginsNow() const {
  // A completion may look while we stop.
  if (drivers_ == nullptr) return {};
  std::vector<PluginInfo> plugins = drivers_->Plugins();
  for (PluginInfo& driver : plugins) {
    if (!driver.serves) continue;
    const pods::DriverCalls::Load load = lifecycle_->LoadOf(driver.name);
    driver.calls = load.calls;
    driver.queued = load.queued;
    if (load.oldest_ms.has_value()) {
      driver.calling_since = state::WallTimeOf(*load.oldest_ms);
    }
  }
  for (const plugin::InstanceInfo& instance : plugins_->Instances()) {
    plugins.push_back(plugin::PluginInfoOf(instance));
    plugins.back().serves =
        instance.generation != 0 &&
        devices_->PrimaryOf(instance.resource) == instance.generation;
  }
  return plugins;
}

std::shared_ptr<const NodeView> Manager::TakeView() const {
  view::Surroundings around;
  around.sequence = executor_->Begun();
  around.last_event = events_.last_sequence();
  around.node = NodeNow();
  around.plugins = PluginsNow();
  if (endpoints_ != nullptr) around.sockets = endpoints_->RegistrationSockets();
  around.runtimes = runtimes_.Runtimes();
  return view::NodeViewOf(Now(), std::move(around));
}

std::shared_ptr<const NodeView> Manager::View() const {
  // What the task that asks may change afterwards would be missing in a view
  // that others are given.
  if (executor_->IsCurrent()) return TakeView();
  {
    // What is known changes in tasks of the executor only.
    const MutexLock lock(view_mutex_);
    if (view_ != nullptr && view_->Sequence() == executor_->Posted()) {
      return view_;
    }
  }
  const std::shared_ptr<const NodeView> view =
      OnLoop([&] { return TakeView(); });
  std::shared_ptr<const NodeView> before = view;  // destroyed without the lock
  const MutexLock lock(view_mutex_);
  view_.swap(before);
  return view;
}

absl::Status Manager::ReportRuntime(const RuntimeReport& report) {
  return OnLoop([&] {
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
  auto batches = ledger_->History(after, most);
  if (!batches.ok()) return batches.status();
  std::vector<DecisionInfo> decisions;
  for (const state::Batch& batch : *batches) {
    decisions.push_back(state::DecisionInfoOf(batch));
  }
  return decisions;
}

absl::StatusOr<LedgerView> Manager::StateAt(const LedgerPoint& at) const {
  state::State now = OnLoop([&] { return state_; });
  const auto read = [&](std::uint64_t after, std::size_t most) {
    return ledger_->History(after, most);
  };
  DEVMGR_ASSIGN_OR_RETURN(const state::StateThen then,
                          state::StateAt(std::move(now), at, read));
  return state::LedgerViewOf(then.state, then.time_ms);
}

}  // namespace devmgr::manager
