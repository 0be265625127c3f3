// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "dra/drivers.h"
#include "dra/health_listener.h"

namespace devmgr {

/// Drivers whose answers a test scripts. Outlives managers: each manager gets
/// its own `Drivers` from `Make`, over this one script. Thread-safe.
class FakeDrivers {
 public:
  struct Call {
    bool prepare = true;
    std::string driver;
    std::set<std::string> claims;  ///< Names.
    friend bool operator==(const Call&, const Call&) = default;
  };
  /// The error of one claim, or OK.
  using Script =
      std::function<absl::Status(bool prepare, const dra::ClaimReference&)>;

  void Register(const std::string& driver);
  void Deregister(const std::string& driver);
  /// Registers it, and the manager is not told.
  void RegisterSilently(const std::string& driver);
  /// Applies from the next call on.
  void Answer(const std::string& driver, Script script);
  /// Holds answers of this driver back until `Let`.
  void Hold(const std::string& driver);
  void Let(const std::string& driver);

  /// What is prepared for a claim of this name; by default `pool-1/dev-1`.
  void Prepares(const std::string& claim,
                std::vector<state::PreparedDevice> devices);
  /// Tells the manager that watches health, on its thread.
  void ReportHealth(const std::string& driver,
                    std::vector<device::DeviceReport> report);
  void LoseHealth(const std::string& driver);
  bool health_watched() const;

  std::vector<Call> calls() const;
  bool WaitForCalls(std::size_t count) const;
  /// Claims that are prepared at a driver now, by UID.
  std::set<std::string> prepared(const std::string& driver) const;

  std::unique_ptr<dra::Drivers> Make(
      Executor& executor, std::function<void(const std::string&)> on_change);

 private:
  friend class FakeDriversView;
  struct Driver {
    bool registered = false;
    bool held = false;
    Script script;
    std::vector<Task> waiting;
    std::set<std::string> prepared;
  };

  using Listening = std::function<void(dra::HealthListener&)>;
  void TellHealth(Listening what);
  void Changed(const std::string& driver);
  /// Runs `answer` now, or when the driver is let go.
  void Reply(const std::string& driver, Task answer);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<std::string, Driver> drivers_ DEVMGR_GUARDED_BY(mutex_);
  std::vector<Call> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_change_ DEVMGR_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<state::PreparedDevice>> devices_
      DEVMGR_GUARDED_BY(mutex_);
  /// Has the listener called; null: nobody listens.
  std::function<void(Listening)> health_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr
