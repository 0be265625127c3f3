// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/runtime_source.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/snapshot_cell.h"
#include "cri/messages.h"
#include "shim/runtime_client.h"
#include "shim/runtime_snapshot.h"

namespace devmgr::shim {

/// Looks at what a runtime runs, one look after the other, and publishes what
/// is different. Lives on `executor`; not destroyed while that runs tasks.
class RuntimeLooker {
 public:
  using Cell = SnapshotCell<RuntimeSnapshot>;

  /// All borrowed. The pods in `cell` are what is known from before.
  RuntimeLooker(Executor& executor, RuntimeClient& client, Cell& cell,
                RuntimeWatchOptions options)
      : executor_(executor),
        client_(client),
        cell_(cell),
        options_(options),
        back_off_(options.first_retry, options.last_retry) {}

  void Begin() {
    if (!looking_) BeginLook();
  }
  /// `done` runs after a look that begins after this.
  void Refresh(std::function<void()> done);
  /// The runtime has changed what it runs: there is a look that begins after
  /// this.
  void OnChange();
  void Expect(bool pods);
  /// The connection has ended. What answers next may be another runtime, or
  /// none may come.
  void OnLost() { Begin(); }
  /// No look begins any more: what runs is not known from now on. Nothing is
  /// waited for any more.
  void End(const std::string& reason);

  /// `options` with times that can be.
  static RuntimeWatchOptions Sane(RuntimeWatchOptions options);
  /// What runs is not known, and why.
  static void PublishUnknown(Cell& cell, const std::string& reason);

 private:
  /// So many containers and sandboxes are asked about at a time.
  static constexpr std::size_t kStatusesAtOnce = 8;

  void BeginLook();
  void AskOn();
  void OnStatus(const cri::Container& container,
                absl::StatusOr<cri::ContainerStatus> status);
  void OnAddresses(const std::string& sandbox,
                   const absl::StatusOr<cri::SandboxStatus>& status);
  void EndLook(const absl::Status& status);
  void PublishLists();
  void ArmTimer();

  Executor& executor_;
  RuntimeClient& client_;
  Cell& cell_;
  const RuntimeWatchOptions options_;
  std::vector<std::function<void()>> waiting_;  ///< For the next look.
  std::vector<std::function<void()>> served_;   ///< By the one under way.
  bool looking_ = false;
  bool look_again_ = false;  ///< The one under way may be too old.
  bool expects_ = false;
  bool over_ = false;
  bool lacks_details_ = false;  ///< Of one it could not be asked.
  TimerId timer_ = 0;
  BackOff back_off_;
  std::string name_;
  RuntimeLists lists_;
  ContainerDetails details_;
  SandboxAddresses addresses_;
  std::deque<cri::Container> to_ask_;
  std::deque<std::string> sandboxes_to_ask_;
  std::size_t asked_ = 0;
};

}  // namespace devmgr::shim
