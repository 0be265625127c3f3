// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/runtime_source.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/snapshot_cell.h"
#include "support/mailbox.h"

namespace devmgr {

/// A runtime that runs what a test says.
class ScriptedRuntime final : public RuntimeSource {
 public:
  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override { return "runtime of the test"; }
  bool Refresh(std::function<void()> done) override {
    if (!answers_late) return false;
    refreshes.Put(std::move(done));
    return true;
  }
  void Expect(bool pods) override { expects = pods; }

  void Publish(RuntimeSnapshot snapshot) {
    cell_.Put(std::make_shared<const RuntimeSnapshot>(std::move(snapshot)));
    cell_.Notify();
  }
  /// Container `c` of each pod is in its state.
  void Runs(const std::map<std::string, RuntimeContainer::State>& pods) {
    RuntimeSnapshot snapshot;
    snapshot.known = true;
    snapshot.since = WallTime(std::chrono::hours(1));
    for (const auto& [uid, state] : pods) {
      PodRun run;
      run.containers.emplace_back();
      run.containers[0].id = "id-" + uid;
      run.containers[0].name = "c";
      run.containers[0].state = state;
      run.containers[0].started_at = WallTime(std::chrono::seconds(90));
      snapshot.pods[PodUid{uid}] = std::make_shared<const PodRun>(run);
    }
    Publish(std::move(snapshot));
  }
  void IsUnknown(const std::string& reason) {
    RuntimeSnapshot snapshot = *Snapshot();
    snapshot.known = false;
    snapshot.since = WallTime(std::chrono::hours(2));
    snapshot.reason = reason;
    Publish(std::move(snapshot));
  }

  /// Refresh is answered by the test, which takes `done` from `refreshes`.
  std::atomic<bool> answers_late = false;
  Mailbox<std::function<void()>> refreshes;
  std::atomic<bool> expects = false;

 private:
  SnapshotCell<RuntimeSnapshot> cell_;
};

}  // namespace devmgr
