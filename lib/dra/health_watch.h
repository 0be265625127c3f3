// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/work_budget.h"
#include "dra/driver_instance.h"
#include "dra/health_listener.h"

namespace devmgr::dra {

/// Listens to what one driver says of the health of its devices: one stream,
/// with the instance that gets the calls, if that offers it. A stream that ends
/// is opened again after a back-off, unless the instance does not know the
/// call. Owned by shared_ptr, which events under way hold weakly. Lives on its
/// executor.
class HealthWatch : public std::enable_shared_from_this<HealthWatch> {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{1'000};
  static constexpr std::chrono::milliseconds kLastRetry{30'000};

  /// The instance that gets the calls now; null: there is none.
  using Preferred = std::function<std::shared_ptr<DriverInstance>()>;

  /// `executor` and `listener` are borrowed and must outlive the watch.
  HealthWatch(Executor& executor, std::string driver, Preferred preferred,
              HealthListener& listener);
  ~HealthWatch();

  /// Instances came, connected or left.
  void Update();

 private:
  using Report = absl::StatusOr<std::vector<device::DeviceReport>>;

  bool CanListen() const;
  void Open();
  /// What the stream still says does not count.
  void Drop();
  void OnReport(const Report& report);
  void OnEnd(const absl::Status& status);
  /// Asks for what has come by then, as one report: now, while the driver's
  /// reports are within their budget; else later. A report may be about some
  /// of the devices, so none is dropped; of a device the last one counts.
  void ReadNext(std::size_t devices);
  void ReadNext();
  void TellLost(const std::string& why);
  /// Runs `next` on the executor if the stream is still the same.
  template <typename Value, typename Next>
  std::function<void(Value)> Resume(Next next);

  Executor& executor_;
  const std::string driver_;
  const Preferred preferred_;
  HealthListener& listener_;

  std::shared_ptr<DriverInstance> instance_;
  std::uint64_t connection_ = 0;  ///< Generation of the instance's.
  std::uint64_t epoch_ = 0;       ///< Of the stream; tells late events.
  rpc::Connection::CallId stream_ = 0;
  bool refused_ = false;   ///< The instance does not know the call.
  bool reported_ = false;  ///< There is something to lose.
  BackOff back_off_{kFirstRetry, kLastRetry};
  WorkBudget reports_;  ///< Over all instances.
  TimerId timer_ = 0;   ///< To open again, or to read on.
};

}  // namespace devmgr::dra
