// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "manager/manager.h"
#include "model/objects.h"
#include "support/fake_plugins.h"
#include "support/luck.h"
#include "support/test_node.h"

namespace devmgr::model {

/// A node in a random life: one manager after the other, on one thread and on a
/// clock that the test moves. Disk, source, drivers and plugins outlive it.
class NodeLife {
 protected:
  using milliseconds = std::chrono::milliseconds;

  /// More tasks than there ever are at once.
  static constexpr std::size_t kAll = 20'000;

  explicit NodeLife(Luck& luck) : luck_(luck) {}
  ~NodeLife() = default;

  /// What is left out of `parts` is what all lives have in common.
  void Start(manager::ManagerParts parts) {
    auto loop = std::make_unique<ManualExecutor>();
    auto ledger = std::make_unique<ManualExecutor>();
    loop_ = loop.get();
    ledger_ = ledger.get();
    parts.options.max_events = 50;
    parts.options.actuate = Actuate::kSource;
    parts.options.device_plugins.grace_period = milliseconds(30'000);
    parts.host.objects = &source_;
    parts.host.boot_id = [this] { return fmt::format("boot-{}", boot_); };
    parts.host.now = [this, executor = loop_] {
      return WallTime(clock_ + std::chrono::duration_cast<milliseconds>(
                                   executor->Now().time_since_epoch()));
    };
    parts.store = store_.Open();
    parts.state = store_.Load();
    parts.drivers = [this](Executor& executor, auto on_change) {
      return drivers_.Make(executor, std::move(on_change));
    };
    parts.plugins = [this](Executor& executor,
                           plugin::PluginListener& listener) {
      return plugins_.Make(executor, listener);
    };
    parts.executor = std::move(loop);
    parts.ledger_executor = std::move(ledger);
    manager_ = manager::Manager::Start(std::move(parts));
  }

  void Stop() {
    clock_ += std::chrono::duration_cast<milliseconds>(
        loop_->Now().time_since_epoch());
    manager_.reset();
  }

  /// Runs up to so many tasks of the manager and the ledger.
  void Work(std::size_t tasks) {
    const bool all = tasks == kAll;
    for (; tasks > 0; --tasks) {
      if (!loop_->RunOne() && !ledger_->RunOne()) return;
    }
    if (all) ADD_FAILURE() << "it does not come to rest";
  }

  /// Time passes until nothing moves any more. False: a check has failed.
  bool WorkToRest() {
    for (int i = 0; i < 60; ++i) {
      Work(kAll);
      if (testing::Test::HasFailure()) return false;
      loop_->Advance(milliseconds(10'000));
    }
    Work(kAll);
    return true;
  }

  std::string Wait() {
    const milliseconds time(luck_.Below(20'000));
    loop_->Advance(time);
    return fmt::format("{} ms pass", time.count());
  }

  /// What holds at any moment of every life: the invariants of the ledger, and
  /// that no pod is rejected. Then `check` looks at each Ready pod.
  template <typename Check>
  void CheckPods(const state::State& state, const Check& check) {
    for (const std::string& violation : state::CheckInvariants(state)) {
      ADD_FAILURE() << violation;
    }
    for (const PodInfo& pod : manager_->View()->Pods()) {
      if (pod.state == PodState::kRejected) {
        ADD_FAILURE() << fmt::format("{} is rejected: {}", pod.uid.value,
                                     pod.message);
      }
      // What it shows may be behind what is on disk.
      const auto* record = state.FindPod(pod.uid);
      if (pod.state == PodState::kReady && record != nullptr &&
          record->phase == state::PodPhase::kReady) {
        check(pod);
      }
    }
  }

  /// Of a plugin that fails each Allocate.
  static absl::StatusOr<device::ContainerEdits> Refuse(
      const std::vector<DeviceId>&) {
    return InternalError("no");
  }

  Luck& luck_;
  int boot_ = 1;
  milliseconds clock_{std::chrono::hours(1)};
  SharedStore store_;
  FakeDrivers drivers_;
  FakePlugins plugins_;
  DirectSource source_;
  ManualExecutor* loop_ = nullptr;
  ManualExecutor* ledger_ = nullptr;
  std::unique_ptr<DeviceManager> manager_;
};

}  // namespace devmgr::model
