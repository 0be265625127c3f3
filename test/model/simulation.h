// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "dra/driver_registry.h"
#include "model/disk.h"
#include "model/drivers.h"
#include "model/objects.h"
#include "model/operation.h"
#include "model/reference.h"
#include "support/held_by_stream.h"

namespace devmgr::model {

/// What went wrong, and after which operation.
struct Failure {
  std::size_t step = 0;
  std::string check;  ///< The rule that was broken.
  std::string text;
};

/// A node on one thread and on a clock that moves when told: the real manager,
/// ledger, actuator and driver registry, over objects, drivers and a disk that
/// are made up. After each operation it is held against the reference.
class Simulation {
 public:
  /// Comes between the manager and the drivers, to break something.
  using Saboteur = std::function<std::unique_ptr<dra::Drivers>(
      std::unique_ptr<dra::Drivers>)>;
  struct Options {
    std::filesystem::path store_dir;  ///< Empty: kReopen only restarts.
    Saboteur saboteur;
  };
  /// What a life was made of; all of it should have happened.
  struct Counts {
    std::uint64_t decisions = 0;
    std::uint64_t driver_calls = 0;
    std::uint64_t pods_ready = 0;
    std::uint64_t managers = 0;
    std::uint64_t reopened = 0;
    std::uint64_t debts = 0;        ///< That were written anew.
    std::uint64_t given_up = 0;     ///< By time or by force.
    std::uint64_t allocations = 0;  ///< In the stream of changes.
  };

  explicit Simulation(Options options);
  ~Simulation();

  /// Runs a life; the first failure ends it.
  std::optional<Failure> Run(const std::vector<Operation>& operations);

  const Counts& counts() const { return counts_; }
  /// What happened, one line per operation.
  const std::vector<std::string>& story() const { return story_; }

 private:
  /// A manager's life. The executors belong to the manager.
  struct Life {
    ManualExecutor* loop = nullptr;
    ManualExecutor* ledger = nullptr;
    dra::DriverRegistry* registry = nullptr;
    std::unique_ptr<DeviceManager> manager;
    std::set<std::pair<std::string, std::size_t>> registered;
  };
  /// An operation of the embedder's own.
  struct Started {
    OperationId id = 0;
    int done = 0;
  };

  void TellTheEnd();
  std::string Do(const Operation& operation);
  std::string DoObject(const Operation& operation);
  std::string DoDriver(const Operation& operation);
  std::string DoEmbedder(const Operation& operation);
  std::string PickPod(std::uint32_t a) const;
  std::string DoOrder(const Operation& operation);
  std::string DoLife(const Operation& operation);

  /// For the next manager: whose debts may wait, which gates are on.
  std::string Configure(Luck& luck);
  void Start(const state::State& state);
  void Stop(bool kill);
  void Restart(bool kill) {
    Stop(kill);
    Start(disk_.Load());
  }
  state::State Reopen();
  registration::Plugin PluginAt(const std::string& driver,
                                std::size_t endpoint) const;
  void Register(const std::string& driver, std::size_t endpoint);
  std::string Roll(const std::string& driver, Luck& luck);
  void RegisterAll();
  /// Notes an operation of the embedder's that `operate` starts.
  template <typename Operate>
  void Begin(Operate operate);
  void Publish() { source_.Publish(objects_.Snapshot()); }

  /// Runs tasks and writes, and `answers` if told, until nothing moves.
  void Settle(bool answers);
  /// Mends everything, and lets time pass until nothing moves any more.
  void Heal();
  /// What an embedder began on its own, it ends.
  void EndEmbeddersPods();
  void LetTimePass();
  void CheckRest();
  void CheckFsck();
  void Drain();

  void OnBatch(const state::Batch& batch, bool told);
  /// What must hold at any moment.
  void CheckAlways();
  void CatchUp(const NodeInfo& node);
  void CheckViews();
  /// A reader of changes, which goes on where it was over all restarts, knows
  /// what pods hold.
  void CheckChanges();
  void CheckAnswers();
  void CheckIdentities();
  std::map<state::IdentityKey, std::string> MadeUpUids() const;
  void Complain(const std::string& check, const std::string& text) {
    if (failure_.has_value() || text.empty()) return;
    failure_ = Failure{step_, check, text};
  }

  const Options options_;
  Disk disk_;
  Drivers drivers_;
  Objects objects_;
  DirectSource source_;
  Life life_;
  std::map<std::string, DebtPolicy> debt_policies_;
  Rules rules_;
  std::string boot_id_ = "boot-0";
  std::chrono::milliseconds clock_{1'700'000'000'000};  ///< When life_ began.
  int boots_ = 0;

  /// The projection of all that was ever on disk, rebuilt batch by batch.
  state::State ledger_;
  /// The same without what the writer was not told, though it is on disk.
  state::State told_;
  std::vector<state::Batch> untold_;
  /// The same as far as the manager's thread knows it.
  state::State seen_;
  std::deque<state::Batch> unseen_;
  AnswerHistory history_;
  HeldByStream held_;
  ChangesFrom changes_from_ = FromSnapshot();
  std::deque<PodUid> gone_;  ///< Pods that were forgotten lately.
  /// UIDs made up for objects, as of the last rest, as long as these are there.
  std::map<state::IdentityKey, std::string> identities_;
  std::set<std::string> invalid_;  ///< UIDs of pods that were rejected as such.

  std::deque<std::shared_ptr<Started>> started_;
  std::set<std::string> taken_;  ///< Pods that the embedder acted on.
  /// Those it had judged: they show its last verdict, not the actuator's.
  std::set<std::string> judged_;
  std::set<std::string> dropped_;  ///< Those it took from the actuator.
  std::size_t step_ = 0;
  std::optional<Failure> failure_;
  Counts counts_;
  std::vector<std::string> story_;
};

}  // namespace devmgr::model
