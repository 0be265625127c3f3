// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
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
#include "common/work_budget.h"
#include "peer/call_lane.h"
#include "peer/flap_guard.h"
#include "plugin/api_version.h"
#include "plugin/instance_machine.h"
#include "plugin/list_parser.h"
#include "plugin/plugins.h"
#include "rpc/connection.h"

namespace devmgr::plugin {

using Dialer = std::function<absl::StatusOr<std::unique_ptr<rpc::Connection>>(
    const std::filesystem::path& socket, std::function<void()> on_hang_up)>;

/// Deadlines of calls to the plugins of one resource.
struct CallTimeouts {
  std::chrono::milliseconds options{10'000};
  std::chrono::milliseconds preferred{30'000};
  std::chrono::milliseconds allocate{30'000};
  std::chrono::milliseconds pre_start{30'000};
};

struct InstanceOptions {
  /// How long a plugin that registers has for beginning to listen.
  std::chrono::milliseconds dial_window{10'000};
  std::chrono::milliseconds first_retry{50};
  std::chrono::milliseconds last_retry{30'000};
  /// Connections in a row that end before they lasted `stable_after`; then the
  /// instance is given up.
  int max_redials = 10;
  std::chrono::milliseconds stable_after{30'000};
  WorkBudget::Options lists;  ///< What its lists may cost.
  CallTimeouts timeouts;
  peer::LaneOptions lane;
};

class PluginInstance;

/// Hears what becomes of instances. Called when the instance has its new state.
class InstanceOwner {
 public:
  virtual ~InstanceOwner() = default;
  virtual Generation NewGeneration() = 0;
  /// Whether an instance that never connected may go on dialling a socket at
  /// which no process listens.
  virtual bool MayWaitForSocket(const PluginInstance& instance) const = 0;
  virtual void OnConnected(PluginInstance& instance) = 0;
  virtual void OnList(PluginInstance& instance, DeviceList list) = 0;
  virtual void OnGone(PluginInstance& instance, Generation generation,
                      const std::string& why) = 0;
  /// Anything in Info may be different. With state kClosed the owner lets go.
  virtual void OnChange(PluginInstance& instance) = 0;
  /// A call that the instance makes by itself has ended, or a list has come
  /// for the first time: kOptionsMethod, kListMethod, kFirstList.
  virtual void OnOwnCall(PluginInstance& instance, std::string_view method,
                         const absl::Status& status,
                         std::chrono::nanoseconds took) = 0;
};

inline constexpr std::string_view kFirstList = "ListAndWatch (first list)";

/// One registered plugin: connects, asks for its options, listens to its lists,
/// and connects again when that is lost, for as long as somebody listens there
/// and so many times. Lives on its executor; owned by shared_ptr, which
/// completions hold weakly.
class PluginInstance : public std::enable_shared_from_this<PluginInstance> {
 public:
  struct Identity {
    ResourceName resource;
    std::string endpoint;
    const ApiVersion& version;
    Via via = Via::kSocket;
    WallTime registered_since;
    std::uint64_t registration =
        0;  ///< Of the directory, as its registrar says.
  };

  /// `executor` and `owner` are borrowed; the owner must outlive the instance
  /// or close it.
  PluginInstance(Executor& executor, Dialer dialer,
                 std::shared_ptr<ListParser> parser, InstanceOptions options,
                 Identity identity, std::shared_ptr<peer::FlapGuard> guard,
                 InstanceOwner& owner);
  ~PluginInstance();

  /// Connects for the first time. `done` runs once: when the options are
  /// known, or when the instance is closed because it came to nothing.
  void Start(std::function<void(absl::Status)> done);

  /// What a live connection that is closed says about the plugin.
  enum class End {
    kLost,      ///< It was there and is not any more.
    kReplaced,  ///< It made another connection and is still there.
  };
  /// Closes the connection. Final.
  void Close(const std::string& why, End end = End::kLost);

  /// Whether a call is fine while the plugin is in quarantine.
  enum class Trust { kNeeded, kNotNeeded };
  /// Why a call would be refused now with nothing sent; OK when it would be
  /// sent.
  absl::Status CheckCall(Trust trust) const;
  /// Sends a request to `method` of the plugin's service. `done` runs once,
  /// later.
  void Call(std::string_view method, std::string request,
            std::chrono::milliseconds timeout,
            const std::vector<std::pair<std::string, std::string>>& metadata,
            Trust trust, peer::CallLane::Done done);

  const Identity& identity() const { return identity_; }
  const CallTimeouts& timeouts() const { return options_.timeouts; }
  InstanceState state() const { return state_; }
  /// It has never been connected, and no process listens at its socket so far.
  bool is_waiting_for_socket() const {
    return state_ == InstanceState::kBackingOff && !was_connected_;
  }
  Generation generation() const { return generation_; }
  const PluginOptions& plugin_options() const { return plugin_options_; }
  /// Such as `plugin of 'example.com/gpu' at '/d/gpu.sock'`.
  const std::string& description() const { return description_; }
  InstanceInfo Info(WallTime now) const;
  /// As people see it; the same object as long as nothing of it changes.
  std::shared_ptr<const PluginInfo> Shown(WallTime now, bool serves);
  /// A list has come that the owner has not been given yet.
  bool is_behind() const;

 private:
  /// Moves through the table and does what the new state asks for.
  void Step(InstanceEvent event);
  void Dial();
  void Ask();
  void OnAnswered(const absl::StatusOr<std::string>& answer);
  void Listen();
  void OpenStream();
  void OnList(absl::StatusOr<DeviceList> list);
  /// Asks for the next list, which is the newest that has come by then: now,
  /// while the plugin's lists are within their budget; else later.
  void ReadNext(std::size_t devices);
  /// The connection is no good any more.
  void Lose(const absl::Status& why);
  void DropConnection(const std::string& why);
  void TellCall(std::string_view method, const absl::Status& status);
  /// After a connection was lost or not made: tries again, or gives up.
  void RetryOrGiveUp();
  absl::Status WhyGiveUp() const;
  void WatchQuarantine();
  peer::CallLane::Parts LaneParts();
  absl::Status CheckQuarantine(Trust trust) const;
  /// Runs `next` on the executor if the connection is still the same.
  template <typename Result, typename Next>
  std::function<void(Result)> Resume(Next next);

  Executor& executor_;
  const Dialer dialer_;
  const std::shared_ptr<ListParser> parser_;
  const InstanceOptions options_;
  const Identity identity_;
  const std::string description_;
  const std::shared_ptr<peer::FlapGuard> guard_;
  InstanceOwner& owner_;

  InstanceState state_ = InstanceState::kConnecting;
  std::function<void(absl::Status)> started_;  ///< Empty once it ran.
  std::chrono::steady_clock::time_point dial_until_;
  std::unique_ptr<rpc::Connection> connection_;
  std::uint64_t attempt_ = 0;  ///< Of dialling; tells late events.
  Generation generation_ = 0;  ///< Once the options are known.
  rpc::Connection::CallId stream_ = 0;
  std::uint64_t lists_taken_in_ = 0;  ///< Of the stream.
  PluginOptions plugin_options_;
  std::size_t devices_ = 0;
  std::chrono::steady_clock::time_point live_since_;
  std::chrono::steady_clock::time_point called_at_;  ///< Of its own calls.
  bool was_connected_ = false;
  bool dial_failed_ = false;
  int redials_ = 0;
  BackOff back_off_;
  TimerId retry_ = 0;
  WorkBudget lists_;  ///< Over all connections.
  TimerId read_next_ = 0;
  TimerId quarantine_ = 0;
  absl::Status last_error_;
  const std::shared_ptr<peer::CallLane> lane_;
  /// What PluginInfo shows that may change.
  using Changing =
      std::tuple<bool, InstanceState, std::size_t, absl::Status,
                 peer::BreakerState, std::optional<peer::FlapGuard::TimePoint>,
                 int, int>;
  Remembered<Changing, PluginInfo> shown_;
};

}  // namespace devmgr::plugin
