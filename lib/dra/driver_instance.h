// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "common/back_off.h"
#include "common/executor.h"
#include "common/remembered.h"
#include "dra/compat/spoken_api.h"
#include "dra/health_service.h"
#include "dra/instance_machine.h"
#include "peer/call_lane.h"
#include "peer/flap_guard.h"
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

/// One registered endpoint of a driver: connects at once, asks whether somebody
/// is there, connects again with a back-off when the peer hangs up, and makes
/// calls over the connection of the moment. Owned by shared_ptr: completions
/// under way hold it weakly. Lives on its executor.
class DriverInstance : public std::enable_shared_from_this<DriverInstance> {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{50};
  static constexpr std::chrono::milliseconds kLastRetry{30'000};
  /// Between dials for calls, at a socket that has not answered.
  static constexpr std::chrono::milliseconds kCallDial{1'000};

  enum class Change {
    kGained,  ///< It answered, or is trusted again.
    kLost,    ///< It does not answer any more, or is trusted less.
  };
  /// How well calls are off here, the best last.
  enum class Standing {
    kNoConnection,
    kNotAnswered,  ///< The socket took the connection; nothing came over it.
    kLeftAlone,    ///< It lets calls run into their deadline.
    kQuarantined,  ///< It comes and goes.
    kTrusted,
  };

  /// `executor` is borrowed and must outlive the instance. `on_change` hears of
  /// changes of its standing.
  DriverInstance(Executor& executor, Dialer dialer, InstanceOptions options,
                 std::string driver, std::string endpoint, SpokenApi api,
                 WallTime registered_since,
                 std::shared_ptr<peer::FlapGuard> guard,
                 std::function<void(Change)> on_change);
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
  Standing standing() const;
  /// It has answered over its connection, or has just been asked over one that
  /// followed no failure.
  bool MayAnswer() const;

  /// Where it tells of the health of its devices; null: nowhere.
  void set_health_service(const HealthService* service) { health_ = service; }
  const HealthService* health_service() const { return health_; }

  /// The connection of the moment, which another event may close; null: none.
  rpc::Connection* connection() const { return connection_.get(); }
  /// Of the connection, or of the last attempt to make one.
  std::uint64_t generation() const { return generation_; }

  /// As people see it; the same object as long as nothing of it changes.
  std::shared_ptr<const PluginInfo> Shown(WallTime now, bool serves);

 private:
  peer::CallLane::Parts LaneParts();
  peer::CallLane::Request ProbeRequest() const;
  /// Moves through the table and does what the new state asks for.
  void Step(InstanceEvent event);
  void Dial();
  void Probe();
  void OnProbed(const absl::Status& status);
  void OnAnswered();
  void OnLost(InstanceState before);
  void OnLane();
  /// `last_error_` says that it hung up.
  void HangUp();
  /// Has the next attempt made when it is due, to connect or to be answered.
  void ScheduleRetry();
  void OnRetryDue();
  bool MayDialForCall() const;
  bool IsQuarantined() const;
  PluginInfo Info(WallTime now) const;
  void WatchQuarantine();
  /// A call over the connection of `generation` ended.
  void OnCallOver(std::uint64_t generation, const absl::Status& status);

  Executor& executor_;
  const Dialer dialer_;
  const InstanceOptions options_;
  const std::string driver_;
  const std::string endpoint_;
  const WallTime registered_since_;
  const std::shared_ptr<peer::FlapGuard> guard_;
  const std::function<void(Change)> on_change_;
  const HealthService* health_ = nullptr;

  SpokenApi api_;
  InstanceState state_ = InstanceState::kConnecting;
  std::unique_ptr<rpc::Connection> connection_;
  std::uint64_t generation_ = 0;  ///< Of the connection.
  std::chrono::steady_clock::time_point dialed_at_;
  bool probing_ = false;
  bool answered_ = false;  ///< The last connection that was made.
  bool doubted_ = false;   ///< A connection got no answer; none has since.
  TimerId retry_ = 0;      ///< 0: none is due.
  TimerId quarantine_ = 0;
  BackOff back_off_{kFirstRetry, kLastRetry};
  absl::Status last_error_;
  const std::shared_ptr<peer::CallLane> lane_;
  /// What Info shows that may change.
  using Changing =
      std::tuple<bool, InstanceState, std::string, absl::Status,
                 peer::BreakerState, std::optional<peer::FlapGuard::TimePoint>,
                 int, int>;
  Remembered<Changing, PluginInfo> shown_;
};

}  // namespace devmgr::dra
