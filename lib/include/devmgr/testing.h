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
/// (`prepare`, `unprepare`, or `any` of the two; `get-info` and
/// `notify-registration` for the handshake), optionally to one claim only, and
/// is used up after `times` calls (0: never). A call takes the first step that
/// fits it; steps about single claims (`kFailClaim`, `kTooLittle`,
/// `kGarbageNames`) go together as long as each is about another claim.
struct ScenarioStep {
  enum class Action {
    kDelay,      ///< Do the work, answer after `delay`.
    kFail,       ///< Fail the whole call with `message`, doing nothing.
    kFailClaim,  ///< Fail one claim (default: the last) with `message`, serve
                 ///< the others.
    kHang,       ///< Do the work, never answer (see ReleaseHanging).
    kTooLittle,  ///< Leave the claim (default: the last) out of the answer.
    kUnknownClaim,  ///< Also answer for a claim that nobody asked for: the UID
                    ///< `message`, or all zeros.
    kGarbageNames,  ///< Answer with names (`message`) that are not qualified
                    ///< CDI names; on `get-info`: with another driver name.
    kCrashBefore,   ///< Exit the process before doing anything.
    kCrashAfter,    ///< Exit after the work is done, before the answer.
    kDropSocket,    ///< Remove the service socket and close connections, doing
                    ///< nothing; serve again after `delay`, or, if that is 0,
                    ///< after Restart.
    kReRegister,    ///< Serve, then remove and re-create the registration
                    ///< socket.
  };
  Action action = Action::kDelay;
  std::string method = "any";
  std::string claim;  ///< Name of the claim object; empty: any.
  int times = 1;
  /// Holds back any answer, whatever the action (except `kDropSocket`).
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
