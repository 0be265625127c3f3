// SPDX-License-Identifier: Apache-2.0
//
// Fakes for tests, demos and people who want to see a driver misbehave: real
// gRPC servers on real sockets. Link `devmgr_testing`.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::testing {

/// One misbehaviour of a fake. It applies to calls of `method`, and is used up
/// after `times` calls (0: never). A call takes the first step that fits it.
///
/// Methods of a driver: `prepare`, `unprepare`; of a device plugin:
/// `get-preferred-allocation`, `allocate`, `pre-start-container`,
/// `get-options`, `list-and-watch`; of both `get-info` and
/// `notify-registration`, the handshake in the registration directory. `any` is
/// any call about claims or devices; with actions about the list and the life
/// of a plugin it is `list-and-watch`.
struct ScenarioStep {
  enum class Action {
    kDelay,      ///< Do the work, answer after `delay`.
    kFail,       ///< Fail the whole call with `message`, doing nothing.
    kFailClaim,  ///< Fail one claim (default: the last) with `message`, serve
                 ///< the others.
    kHang,       ///< Do the work, never answer (see ReleaseHanging).
    kTooLittle,  ///< Leave the claim (default: the last) out of the answer; of
                 ///< a plugin: all that is said about a container.
    kUnknownClaim,  ///< Also answer for a claim that nobody asked for: the UID
                    ///< `message`, or all zeros.
    kGarbageNames,  ///< Answer with names (`message`) that are not qualified
                    ///< CDI names; a plugin on `allocate` also with paths and
                    ///< permissions that are none. On `get-info`: with another
                    ///< name of driver or resource.
    kCrashBefore,   ///< Exit the process before doing anything.
    kCrashAfter,    ///< Exit after the work is done, before the answer; on
                    ///< `list-and-watch`: `after` the first list.
    kDropSocket,    ///< Remove the service socket and close connections, doing
                    ///< nothing; serve again after `delay`, or, if that is 0,
                    ///< after Restart. A plugin does not register for that.
    kReRegister,    ///< Serve, then remove and re-create the registration
                    ///< socket; a plugin on the registry socket: register once
                    ///< more, with all connections as they are.

    // From here on of device plugins only. What they answer:
    kGarbageBytes,   ///< Answer with bytes that are no message.
    kUnknownDevice,  ///< Also prefer a device that was not offered: `message`.
    kDuplicateIds,   ///< List the first device twice, healthy and unhealthy.
    kUnknownHealth,  ///< List all devices with a health that is none:
                     ///< `message`, or `Degraded`.
    kGarbageIds,   ///< Also list devices with IDs that are empty, of more than
                   ///< 63 characters, and not UTF-8.
    kGarbageNuma,  ///< List all devices on NUMA nodes that do not exist.

    // What they do, `after` that time, when they have served the call:
    kSetDevices,      ///< Have `count` devices from now on. With `after` 0
                      ///< before the call is answered.
    kFlapDevice,      ///< Turn `device` unhealthy, and `delay` later healthy
                      ///< again; `count` times.
    kDropStream,      ///< End the device streams: in order, or with `message`.
    kRestart,         ///< Close all sockets as a process that ends, come back
                      ///< after `delay` and register.
    kRollingUpgrade,  ///< Register a second instance at a socket of its own;
                      ///< `delay` later the first one ends.
    kTakeOver,        ///< The same, but at the path of the first one.
  };
  Action action = Action::kDelay;
  std::string method = "any";
  std::string claim;   ///< Only calls for this claim object; empty: any.
  std::string device;  ///< Only calls for this device; empty: any.
  int times = 1;
  /// Holds back any answer, if the action has no other use for it.
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds after{0};
  int count = 1;
  std::string message;
};

/// Reads a scenario for a driver: a YAML list `steps` of `{action, method,
/// claim, times, delay, message}`; names of actions in kebab case
/// (`fail-claim`), delay as `250ms` or `2s`.
///   InvalidArgument  names the file, line and field
DEVMGR_EXPORT absl::StatusOr<std::vector<ScenarioStep>> ReadScenario(
    const std::filesystem::path& file);
/// The same for a device plugin: `{action, method, device, times, delay, after,
/// count, message}`.
DEVMGR_EXPORT absl::StatusOr<std::vector<ScenarioStep>> ReadPluginScenario(
    const std::filesystem::path& file);

struct FakeDraDriverOptions {
  std::string name;            ///< Driver name. Required.
  std::filesystem::path root;  ///< As `devmgrd --root`. Required.
  /// Advertised services in this order, of `v1`, `v1beta1`.
  std::vector<std::string> api = {"v1", "v1beta1"};
  /// Served ones; empty: the same. For a driver that lies (DRA-008).
  std::vector<std::string> served_api;
  /// Advertised strings; empty: derived from `api`.
  std::vector<std::string> supported_versions;
  std::string pool = "pool-0";
  int devices = 8;  ///< Bounds what it would publish.
  /// True: the services answer on the registration socket, and the announced
  /// endpoint is empty.
  bool common_socket = false;
  /// Fail this many GetInfo calls at first.
  int fail_get_info = 0;
  std::vector<ScenarioStep> scenario;
  /// One JSON line per event (without line end); called from any thread, one
  /// call at a time. Events: `serving`, `get-info`, `registered`,
  /// `registration-refused`, `call`, `step`, `answer`, `socket-dropped`,
  /// `socket-back`, `registration-offered`, `socket-failed`.
  std::function<void(std::string_view)> on_event;
  /// What "crash" does; called on a thread of the driver. Default:
  /// `_exit(137)`. When it returns, the call stays without an answer.
  std::function<void()> crash;
};

/// A DRA driver that prepares whatever the claim's allocation says, writes one
/// CDI spec file per claim into `<root>/cdi`, and keeps its own state below
/// `<root>/plugins/<name>`. Claims are read from `<root>/manifests`.
/// Thread-safe.
class DEVMGR_EXPORT FakeDraDriver {
 public:
  /// A call the driver got.
  struct Call {
    std::string method;               ///< `prepare` or `unprepare`.
    std::string api;                  ///< `v1` or `v1beta1`.
    std::vector<std::string> claims;  ///< Names of claim objects.
    std::vector<std::string> claim_uids;
  };

  /// Returns once both sockets answer.
  ///   InvalidArgument     an option is out of range; all are named
  ///   FailedPrecondition  another process serves one of the sockets
  ///   DataLoss            its own state cannot be read; names the file
  static absl::StatusOr<std::unique_ptr<FakeDraDriver>> Start(
      FakeDraDriverOptions options);
  /// Closes the sockets and removes them; prepared claims stay prepared.
  virtual ~FakeDraDriver() = default;

  virtual void AddStep(ScenarioStep step) = 0;
  virtual void ClearSteps() = 0;
  /// Lets all hanging calls go on.
  virtual void ReleaseHanging() = 0;

  virtual std::vector<Call> Calls() const = 0;
  /// Waits until at least `count` calls have arrived.
  virtual bool WaitForCalls(std::size_t count,
                            std::chrono::milliseconds limit) const = 0;
  /// Waits until the manager has confirmed (or refused) the registration at
  /// least `count` times. The last answer: empty text means accepted.
  virtual bool WaitForRegistrations(std::size_t count,
                                    std::chrono::milliseconds limit) const = 0;
  virtual std::string last_registration_error() const = 0;
  virtual std::size_t accepted_connections() const = 0;

  /// UIDs of claims prepared now.
  virtual std::vector<std::string> PreparedClaims() const = 0;

  /// Removes and re-creates both sockets, as a restarted process would.
  virtual absl::Status Restart() = 0;
};

}  // namespace devmgr::testing
