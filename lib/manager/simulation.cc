// SPDX-License-Identifier: Apache-2.0
//
// Simulations: a copy of what is decided by, taken on the manager's thread; the
// rest on the thread of the caller.
#include <devmgr/simulation.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "common/status.h"
#include "manager/manager.h"
#include "pods/device_admission.h"
#include "simulation/simulate.h"

namespace devmgr {

absl::StatusOr<Simulation> DeviceManager::Simulate(
    const SimulationRequest& /*request*/) const {
  return UnimplementedError("this device manager does not simulate");
}

SimulationCounts DeviceManager::Simulations() const { return {}; }

}  // namespace devmgr

namespace devmgr::manager {
namespace {

/// Counts what runs as long as it lives.
class Running {
 public:
  explicit Running(std::atomic<int>& count)
      : count_(count), number_(count.fetch_add(1) + 1) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { count_.fetch_sub(1); }
  int number() const { return number_; }

 private:
  std::atomic<int>& count_;
  const int number_;
};

/// Sleeps a moment after each quarter of a millisecond of work. The kernel does
/// a part of a decision's sync on a thread that may wait for the very processor
/// on which a simulation runs, and waits there for up to a tick (4 ms). A lower
/// priority is no way out: a thread that has it may be kept from a processor
/// while it holds the lock of the heap, which decisions need, too.
class GiveWay {
 public:
  void operator()() {
    if (steady_clock::now() < until_) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    until_ = steady_clock::now() + kWork;
  }

 private:
  using steady_clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kWork{250};
  steady_clock::time_point until_ = steady_clock::now() + kWork;
};

/// By the worst of its verdicts.
std::uint64_t& CountOf(const Simulation& simulation, SimulationCounts& counts) {
  if (simulation.interrupted) return counts.interrupted;
  Verdict::Kind worst = Verdict::Kind::kAdmit;
  for (const SimulatedPod& pod : simulation.pods) {
    worst = std::max(worst, pod.verdict.kind);
  }
  if (worst == Verdict::Kind::kAdmit) return counts.admit;
  return worst == Verdict::Kind::kWait ? counts.wait : counts.reject;
}

/// Those that have devices, and those that claims were allocated from.
std::set<std::string> DriversNamedIn(const ObjectSnapshot& objects) {
  std::set<std::string> drivers;
  for (const auto& [name, slice] : objects.resource_slices) {
    drivers.insert(slice->driver);
  }
  for (const auto& [name, claim] : objects.claims) {
    if (!claim->status.allocation.has_value()) continue;
    for (const auto& result : claim->status.allocation->results) {
      drivers.insert(result.driver);
    }
    for (const auto& [driver, handle] :
         claim->status.allocation->resource_handles) {
      drivers.insert(driver);
    }
  }
  return drivers;
}

}  // namespace

simulation::NodeMoment Manager::MomentNow() const {
  simulation::NodeMoment now;
  now.state = state_;
  now.objects = *objects_->Current();
  now.of_source = objects_->of_source();
  now.inventories = devices_->inventories();
  now.intended = devices_->intended();
  now.plugin_hardware = devices_->hardware();
  now.hardware = options_.hardware;
  if (local_claims_ != nullptr) {
    now.evictions = evictions_->plan();
    now.withheld = withheld_->All();
  }
  now.queue.emplace(device_admission_->queue());
  for (const std::string& driver : DriversNamedIn(now.objects)) {
    if (drivers_->IsRegistered(driver)) now.drivers.insert(driver);
  }
  for (const auto& [resource, inventory] : now.inventories) {
    if (devices_->OptionsOf(resource).preferred_allocation) {
      now.with_preference.insert(resource);
    }
  }
  now.node_name = options_.node_name;
  now.boot_id = boot_id_;
  now.numa_nodes = numa_nodes_;
  now.alignment = alignment_;
  for (const TopologyHintProvider* provider : host_.topology_providers) {
    now.hint_providers.emplace_back(provider->name());
  }
  now.allocates = authority_->Allocates();
  now.feature_gates = options_.feature_gates;
  now.plan_options = plan_options_;
  now.plan_options.hardware_of = nullptr;  // It lives on this thread.
  now.policy = device_admission_->policy();
  now.local_sets = options_.policies.split_local;
  now.now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                   host_.now().time_since_epoch())
                   .count();
  return now;
}

absl::StatusOr<Simulation> Manager::Simulate(
    const SimulationRequest& request) const {
  DEVMGR_RETURN_IF_ERROR(WaitUntilLoaded());
  const Running running(simulations_);
  if (running.number() > kMostSimulations) {
    return ResourceExhaustedError("busy: {} simulations are running already",
                                  kMostSimulations);
  }
  simulation::NodeMoment moment = OnLoop([&] { return MomentNow(); });
  moment.random = [bits = std::make_shared<std::mt19937_64>(
                       std::random_device()())] { return (*bits)(); };
  // Copied, and one all the same.
  moment.pause = [give_way = std::make_shared<GiveWay>()] { (*give_way)(); };
  SimulationRequest limited = request;
  if (limited.stop == nullptr) {
    limited.stop = std::make_shared<std::atomic<bool>>(false);
  }
  const TimerId timer = executor_->PostAfter(
      std::max(request.deadline, std::chrono::milliseconds(0)),
      [stop = limited.stop] { *stop = true; });
  absl::StatusOr<Simulation> result = simulation::Simulate(moment, limited);
  executor_->Cancel(timer);
  if (result.ok()) {
    const MutexLock lock(simulated_mutex_);
    ++CountOf(*result, simulated_);
  }
  return result;
}

SimulationCounts Manager::Simulations() const {
  const MutexLock lock(simulated_mutex_);
  return simulated_;
}

}  // namespace devmgr::manager
