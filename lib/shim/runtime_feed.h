// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/runtime_report.h>
#include <devmgr/runtime_source.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/back_off.h"
#include "common/executor.h"
#include "shim/device_source.h"
#include "shim/runtime_client.h"
#include "shim/runtime_looker.h"

namespace devmgr::shim {

/// What the runtime has, for the reports to a daemon that goes by it. Asks the
/// daemon which looks it wants; as long as it wants none, nothing is looked at.
/// Lives on `executor`; not destroyed while that runs tasks.
class RuntimeFeed {
 public:
  /// After an answer, so that a daemon that answers without end does not keep
  /// this shim and its runtime busy.
  static constexpr std::chrono::milliseconds kPause{20};
  /// After a question that was not answered, or a connection that has ended.
  static constexpr std::chrono::milliseconds kFirstRetry{200};
  static constexpr std::chrono::milliseconds kLastRetry{60'000};

  /// `client` and `source` are borrowed; `identity` is that of the reports.
  /// `on_news` runs when FillIn has more to
  /// say; `awaited`: it is a look that the daemon waits for.
  RuntimeFeed(std::shared_ptr<Executor> executor, RuntimeClient& client,
              DeviceSource& source, ShimIdentity identity,
              std::function<void(bool awaited)> on_news);
  ~RuntimeFeed() { cell_.SetSubscriber({}); }
  RuntimeFeed(const RuntimeFeed&) = delete;
  RuntimeFeed& operator=(const RuntimeFeed&) = delete;

  void Begin() { Ask(); }
  /// The runtime has changed what it runs.
  void OnChange();
  /// The connection to the runtime has ended.
  void OnRuntimeLost();
  /// The daemon may be another one, which knows nothing.
  void OnSourceLost();

  void FillIn(RuntimeReport* report);
  /// What became of the report that was filled in last.
  void OnSent(const absl::Status& status);

 private:
  void Ask();
  void AskAfter(std::chrono::milliseconds pause);
  void OnWanted(const absl::StatusOr<std::uint64_t>& look);

  const std::shared_ptr<Executor> executor_;
  DeviceSource& source_;
  const ShimIdentity identity_;
  const std::function<void(bool awaited)> on_news_;
  RuntimeLooker::Cell cell_;
  RuntimeLooker looker_;
  bool wanted_ = false;  ///< The daemon goes by what is reported.
  bool asking_ = false;
  TimerId timer_ = 0;
  BackOff back_off_{kFirstRetry, kLastRetry};
  std::uint64_t asked_ = 0;   ///< The look that the daemon wanted last.
  std::uint64_t looked_ = 0;  ///< The last one that was done.
  std::shared_ptr<const RuntimeSnapshot> sent_;   ///< With the last report.
  std::shared_ptr<const RuntimeSnapshot> taken_;  ///< That the daemon has.
};

}  // namespace devmgr::shim
