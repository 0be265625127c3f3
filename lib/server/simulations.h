// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/inspection.h>
#include <devmgr/simulation.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/executor.h"
#include "common/mutex.h"
#include "server/call_limit.h"
#include "server/convert.h"

namespace devmgr::server {

/// The objects of the documents, as a request of the manager.
///   InvalidArgument  a document or the view cannot be meant; the message names
///                    what
absl::StatusOr<SimulationRequest> SimulationRequestOf(
    const pb::SimulateRequest& request);

pb::SimulateRequest ToProto(const SimulationDocuments& request);

/// Simulations for clients: on a thread of their own, one after the other, so
/// that no other caller waits for one and they take one core at most. The
/// thread is there from the first one on.
class Simulations {
 public:
  /// `manager` is borrowed.
  explicit Simulations(const DeviceManager& manager) : manager_(manager) {}
  Simulations(const Simulations&) = delete;
  Simulations& operator=(const Simulations&) = delete;
  /// Those under way end at once, interrupted.
  ~Simulations();

  /// `done` is called once, on the thread of the simulations or at once, with
  /// the document.
  ///   ResourceExhausted  kMostSimulations run or wait already
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  void Run(const pb::SimulateRequest& request, Done done);

 private:
  std::shared_ptr<std::atomic<bool>> Begin();
  absl::StatusOr<std::string> Answer(const pb::SimulateRequest& request);

  const DeviceManager& manager_;
  Mutex mutex_;
  bool stopped_ DEVMGR_GUARDED_BY(mutex_) = false;
  /// What ends the one that runs.
  std::shared_ptr<std::atomic<bool>> running_ DEVMGR_GUARDED_BY(mutex_);
  CallLimit calls_{kMostSimulations};
  std::unique_ptr<ThreadExecutor> executor_;
};

}  // namespace devmgr::server
