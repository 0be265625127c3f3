// SPDX-License-Identifier: Apache-2.0
//
// A node in one process: a real manager with its threads and a ledger that
// outlives it, over fake drivers and objects from text.
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/host.h>
#include <devmgr/topology.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "common/executor.h"
#include "support/fake_drivers.h"
#include "support/fake_plugins.h"

namespace devmgr {

/// The objects of a manifest, as a complete snapshot. Problems in the text fail
/// the test.
ObjectSnapshot SnapshotOf(const std::string& yaml);

/// A store that a test shares between managers, and whose writes it can fail.
class SharedStore {
 public:
  SharedStore();
  std::unique_ptr<checkpoint::LedgerStore> Open();
  /// How the next Append ends.
  enum class Failure {
    kNone,
    kLost,     ///< It fails, and nothing is on disk.
    kWritten,  ///< It fails, but is on disk all the same.
  };
  void FailNext(Failure failure) { failure_ = failure; }
  void FailReopen(bool fail) { fail_reopen_ = fail; }
  int appends() const { return appends_; }
  std::size_t batches() const { return batches_; }
  state::State Load();

 private:
  friend class SharedStoreView;
  std::shared_ptr<checkpoint::LedgerStore> store_;
  std::atomic<Failure> failure_{Failure::kNone};
  std::atomic<bool> fail_reopen_{false};
  std::atomic<int> appends_{0};
  std::atomic<std::size_t> batches_{0};
};

class TestNode {
 public:
  TestNode();
  ~TestNode();

  /// Starts the manager with `options.actuate`, where kNone, the default, is
  /// taken for kSource; or, without actuator, with kNone.
  void Start(bool with_actuator = true);
  void Stop();
  void Restart() {
    Stop();
    Start();
  }
  void Reboot() {
    Stop();
    boot_id += "-again";
    Start();
  }
  /// Documents that were there before are the same objects again, as those of
  /// a source are.
  void Publish(const std::string& yaml);

  /// Waits until the pod's state is `state`; the last state in the message of
  /// a failure.
  ::testing::AssertionResult WaitFor(const std::string& pod, PodState state);
  ::testing::AssertionResult WaitForAny(PodState state);
  /// Looks again after each change; `what` is for the message of a failure.
  ::testing::AssertionResult WaitUntil(const std::string& what,
                                       const std::function<bool()>& condition);
  ::testing::AssertionResult WaitForReason(const std::string& pod,
                                           const std::string& reason);
  ::testing::AssertionResult WaitUntilGone(const std::string& pod);

  /// `default/<name>`; a default PodInfo when there is none.
  PodInfo PodNamed(const std::string& name);
  PodUid UidOf(const std::string& pod);
  /// CDI device IDs of a container; the error's text when it has no answer.
  std::vector<std::string> Resolve(const std::string& pod,
                                   const std::string& container);

  DeviceManager& manager() { return *manager_; }

  /// How often pods were judged so far, by `event/result`.
  std::map<std::string, int> Judgements();
  /// Pods of which the audit found that nothing woke them although they could
  /// have been admitted. Such a pod fails the test when the node stops.
  int MissedWakeups();

  /// Runs `task` on the manager's thread, and waits for its end.
  void RunAndWait(const std::function<void()>& task);
  /// All that was posted to the manager's thread has run.
  void Sync() {
    RunAndWait([] {});
  }
  void RunAfter(std::chrono::milliseconds delay, std::function<void()> task);

  SharedStore store;
  /// What a manager gets: by default a hold on `store`.
  std::function<std::unique_ptr<checkpoint::LedgerStore>()> open_store =
      [this] { return store.Open(); };
  FakeDrivers drivers;
  FakePlugins plugins;
  std::unique_ptr<MemoryObjectSource> source = MemoryObjectSource::Create();
  DeviceManagerOptions options;  ///< With retries that come soon.
  /// As in ManagerParts.
  std::function<void(const std::vector<WaitingFor>&)> on_wake;
  std::function<void(const PodUid&)> on_judge_again;
  std::function<void(const PodAction&)> act_on_pod;  ///< Of the host.
  MetricsSink* metrics = nullptr;
  RuntimeSource* runtime = nullptr;  ///< Of the host.
  /// A copy of /sys; empty: the machine's NUMA nodes are not known.
  std::filesystem::path sysfs_dir;
  std::vector<const TopologyHintProvider*> topology_providers;  ///< The same.
  ObjectSink* object_sink = nullptr;              ///< Of the host.
  std::vector<DeviceManagerObserver*> observers;  ///< Of the host.
  std::string boot_id = "boot-1";

 private:
  class Waiter;
  class CountedMetrics;
  std::map<std::string, ObjectSnapshot> documents_;  ///< As published last.
  std::unique_ptr<CountedMetrics> counted_;
  std::unique_ptr<Waiter> waiter_;  ///< Outlives the manager.
  std::unique_ptr<DeviceManager> manager_;
  Executor* executor_ = nullptr;  ///< The manager's.
};

}  // namespace devmgr
