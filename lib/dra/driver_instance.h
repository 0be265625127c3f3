// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/executor.h"
#include "dra/health_service.h"
#include "dra/instance_machine.h"
#include "dra/spoken_api.h"
#include "rpc/connection.h"

namespace devmgr::dra {

using Dialer = std::function<absl::StatusOr<std::unique_ptr<rpc::Connection>>(
    const std::filesystem::path& socket, std::function<void()> on_hang_up)>;

struct InstanceOptions {
  std::chrono::milliseconds call_timeout{45'000};
  int max_calls = 64;
  /// A call that was sent has ended; `code` is gRPC's name for how. May be
  /// null.
  std::function<void(const std::string& driver, const std::string& method,
                     const std::string& code, std::chrono::nanoseconds took)>
      on_call;
};

/// One registered endpoint of a driver: connects at once, connects again with
/// a back-off when the peer hangs up, and makes calls over the connection of
/// the moment. Owned by shared_ptr: completions under way hold it weakly.
/// Lives on its executor.
class DriverInstance : public std::enable_shared_from_this<DriverInstance> {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{50};
  static constexpr std::chrono::milliseconds kLastRetry{30'000};

  /// `executor` is borrowed and must outlive the instance. `on_change` runs
  /// whenever a connection was made or lost.
  DriverInstance(Executor& executor, Dialer dialer, InstanceOptions options,
                 std::string driver, std::string endpoint, SpokenApi api,
                 WallTime registered_since, std::function<void()> on_change);
  ~DriverInstance();

  /// Dials for the first time.
  void Start();

  /// Closes the connection; calls under way end with Unavailable. Final.
  void Close();

  /// Sends `request` to `method`; one that could not be made is its own
  /// answer. `done` runs once, later, on the executor.
  void Call(const std::string& method, absl::StatusOr<std::string> request,
            std::function<void(absl::StatusOr<std::string>)> done);

  const std::string& endpoint() const { return endpoint_; }
  SpokenApi& api() { return api_; }
  std::size_t max_calls() const {
    return static_cast<std::size_t>(options_.max_calls);
  }
  InstanceState state() const { return state_; }

  /// Where it tells of the health of its devices; null: nowhere.
  void set_health_service(const HealthService* service) { health_ = service; }
  const HealthService* health_service() const { return health_; }

  /// The connection of the moment, which another event may close; null: none.
  rpc::Connection* connection() const { return connection_.get(); }
  /// Of the connection, or of the last attempt to make one.
  std::uint64_t generation() const { return generation_; }

  PluginInfo Info() const;

 private:
  /// Moves through the table and does what the new state asks for.
  void Step(InstanceEvent event);
  void Dial();
  void ScheduleRetry();
  absl::Status CheckCallable();
  void TellCall(const std::string& method, const absl::Status& status,
                std::chrono::steady_clock::time_point began) const;
  /// A call over the connection of `generation` ended. How that connection was
  /// lost; empty when it is there.
  std::string_view OnCallOver(std::uint64_t generation,
                              const absl::Status& status);

  Executor& executor_;
  const Dialer dialer_;
  const InstanceOptions options_;
  const std::string driver_;
  const std::string endpoint_;
  const WallTime registered_since_;
  const std::function<void()> on_change_;
  const HealthService* health_ = nullptr;

  SpokenApi api_;
  InstanceState state_ = InstanceState::kConnecting;
  std::unique_ptr<rpc::Connection> connection_;
  std::uint64_t generation_ = 0;  ///< Of the connection.
  int calls_ = 0;
  TimerId retry_ = 0;  ///< 0: none is due.
  std::chrono::milliseconds next_delay_ = kFirstRetry;
  absl::Status last_error_;
};

}  // namespace devmgr::dra
