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

/// One misbehaviour of a fake driver. It applies to calls of `method`
/// (`prepare`, `unprepare`, or `any`), optionally to one claim only, and is
/// used up after `times` calls (0: never).
struct ScenarioStep {
  enum class Action {
    kDelay,         ///< Answer after `delay`.
    kFail,          ///< Fail the whole call with `message`.
    kFailClaim,     ///< Fail one claim with `message`, serve the others.
    kHang,          ///< Never answer.
    kTooLittle,     ///< Leave the claim (default: the last) out of the answer.
    kUnknownClaim,  ///< Also answer for a claim that nobody asked for.
    kGarbageNames,  ///< Answer with names that are not qualified CDI names.
    kCrashBefore,   ///< Exit the process before doing anything.
    kCrashAfter,    ///< Exit after the work is done, before the answer.
    kDropSocket,    ///< Remove the service socket and close connections.
    kReRegister,    ///< Remove and re-create the registration socket.
  };
  Action action = Action::kDelay;
  std::string method = "any";
  std::string claim;  ///< Name of the claim object; empty: any.
  int times = 1;
  std::chrono::milliseconds delay{0};
  std::string message;
};

/// Reads a scenario: a YAML list `steps` of `{action, method, claim, times,
/// delay, message}`; names of actions in kebab case (`fail-claim`), delay as
/// `250ms` or `2s`.
///   InvalidArgument  names the file, line and field
DEVMGR_EXPORT absl::StatusOr<std::vector<ScenarioStep>> ReadScenario(
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
  /// call at a time. Events: `registered`, `call`, `answer`, `get-info`, ...
  std::function<void(std::string_view)> on_event;
  /// What "crash" does. Default: `_exit(137)`.
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
