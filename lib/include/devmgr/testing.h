// SPDX-License-Identifier: Apache-2.0
//
// Fakes for tests, demos and people that want to see a driver misbehave: real
// gRPC servers on real sockets. Link `devmgr_testing`.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/objects.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
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
    kUnknownClaim,  ///< Also answer for a claim that was not asked for: the UID
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

    // Of drivers again:
    kSetHealth,  ///< Report `device` (`pool/device`, or a device of the pool
                 ///< of the driver) as `message` says: its health, and a text
                 ///< behind a colon. `after` the call is served.
    kRemember,   ///< Answer for a claim that is prepared already from memory,
                 ///< as drivers with a checkpoint do: a spec file that got lost
                 ///< stays lost until the claim is unprepared.
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
/// claim, device, times, delay, after, message}`; names of actions in kebab
/// case (`fail-claim`), delay as `250ms` or `2s`.
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
  /// Tells instances of one driver apart, as the UID of its pod does for
  /// drivers that are updated without a gap. Instances have sockets of their
  /// own, `dra-<instance>.sock` and `<name>-<instance>-reg.sock`, and share
  /// what is prepared. May be empty.
  std::string instance;
  /// Advertised services in this order, of `v1`, `v1beta1`, `v1alpha4`,
  /// `v1alpha3`, `v1alpha2`, `v1alpha1`. Older ones than `v1beta1` are
  /// announced as such drivers did: `v1alpha3.NodeService` for v1alpha4,
  /// `1.0.0` for the others. v1alpha4 and v1alpha3 have the same name on the
  /// wire: only one of them can be served.
  std::vector<std::string> api = {"v1", "v1beta1"};
  /// Served ones; empty: the same. For a driver that lies (DRA-008).
  std::vector<std::string> served_api;
  /// Advertised strings; empty: derived from `api`.
  std::vector<std::string> supported_versions;
  std::string pool = "pool-0";
  int devices = 8;  ///< So many it has; bounds what it would publish.
  /// Publish the devices as ResourceSlices to an API server, and read claims
  /// there, as stock drivers do. The pool has the name of the node then,
  /// whatever `pool` is.
  bool publish = false;
  /// With `publish`: how the server is reached; the file may come later than
  /// the driver. Empty: `<root>/kubeconfig/<name>`, where devmgrd writes it.
  std::filesystem::path kubeconfig;
  /// With `publish`: the node. Empty: the one node that the server shows.
  std::string node_name;
  /// True: the services answer on the registration socket, and the announced
  /// endpoint is empty.
  bool common_socket = false;
  /// Fail this many GetInfo calls at first.
  int fail_get_info = 0;
  /// Health service that it advertises and serves, of `v1`, `v1alpha1`; empty:
  /// none. Devices are healthy until SetHealth or a step says otherwise.
  std::string health;
  /// How long its reports count; it repeats them in a third of that.
  std::chrono::seconds health_lease{30};
  std::vector<ScenarioStep> scenario;
  /// One JSON line per event (without line end); called from any thread, one
  /// call at a time. Events: `serving`, `get-info`, `registered`,
  /// `registration-refused`, `call`, `step`, `answer`, `socket-dropped`,
  /// `socket-back`, `registration-offered`, `socket-failed`,
  /// `claims-unreadable`; with `publish` also `published` (its pool, its
  /// generation, and how many slices that are) and `publish-failed`.
  std::function<void(std::string_view)> on_event;
  /// What "crash" does; called on a thread of the driver. Default:
  /// `_exit(137)`. When it returns, the call stays without an answer.
  std::function<void()> crash;
};

/// A DRA driver that prepares whatever the claim's allocation says, writes one
/// CDI spec file per claim into `<root>/cdi`, and keeps its own state below
/// `<root>/plugins/<name>`, where several instances of it, in one process or
/// many, find what the others have prepared. Claims are read from
/// `<root>/manifests` and from those that clients of a devmgrd brought, in
/// `<root>/state/wanted`, or with `publish` from an API server; but what is
/// asked by v1alpha3 and older is prepared by its handle, as one device, or one
/// for each structured result, and answered as CDI names alone. Thread-safe.
class DEVMGR_EXPORT FakeDraDriver {
 public:
  /// A call the driver got.
  struct Call {
    std::string method;               ///< `prepare` or `unprepare`.
    std::string api;                  ///< As in FakeDraDriverOptions.
    std::vector<std::string> claims;  ///< Names of claim objects.
    std::vector<std::string> claim_uids;
    /// Of v1alpha3 and older, one for each claim: what came as its handle.
    std::vector<ResourceHandle> handles;
    /// Of v1alpha1's unprepare.
    std::vector<std::string> cdi_devices;
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

  /// UIDs of claims prepared now, by whichever instance.
  virtual std::vector<std::string> PreparedClaims() const = 0;

  /// Removes and re-creates both sockets, as a restarted process would.
  virtual absl::Status Restart() = 0;

  /// Reports it from now on; `health` is `Healthy`, `Unhealthy`.
  virtual void SetHealth(std::string_view pool, std::string_view device,
                         std::string_view health, std::string_view message) = 0;
  /// Health streams that are open now.
  virtual std::size_t open_health_streams() const = 0;
  /// Ends all health streams with `status`.
  virtual void DropHealthStreams(const absl::Status& status) = 0;
};

struct FakeDevicePluginOptions {
  std::string resource;        ///< Extended resource name. Required.
  std::filesystem::path root;  ///< As `devmgrd --root`. Required.
  int devices = 8;
  /// Device number i is on `numa[i % size]`; empty: on no node.
  std::vector<std::int64_t> numa;
  /// How it makes itself known: by calling Register on
  /// `<root>/device-plugins/kubelet.sock`, by a socket in
  /// `<root>/plugins_registry`, or both.
  enum class Way { kSocket, kDirectory, kBoth };
  Way way = Way::kSocket;
  bool preferred = false;  ///< Offer GetPreferredAllocation.
  bool pre_start = false;  ///< Require PreStartContainer.
  /// Answer Allocate with CDI names in place of nodes and mounts, which then
  /// stand in a spec file in `<root>/cdi`.
  bool cdi = false;
  /// Tells sockets of several plugins for one resource apart.
  std::string instance;
  /// What it says of itself when registering. An empty endpoint: the truth.
  std::string version = "v1beta1";
  std::string endpoint;
  std::vector<ScenarioStep> scenario;
  /// One JSON line per event (without line end); called from any thread, one
  /// call at a time. Events: `serving`, `registered`, `registration-refused`,
  /// `registry-away`, `call`, `step`, `answer`, `list`, `stream-ended`,
  /// `socket-dropped`, `socket-back`, `socket-failed`, `spec-failed`, `ended`.
  std::function<void(std::string_view)> on_event;
  /// What "crash" does; called on a thread of the plugin. Default:
  /// `_exit(137)`. When it returns, the call stays without an answer.
  std::function<void()> crash;
};

/// A device plugin with devices `<name part of the resource>-0` and so on, the
/// same after a restart, all healthy. It answers Allocate with one variable
/// (`EXAMPLE_COM_GPU` for `example.com/gpu`) that lists the IDs, and one device
/// node (`/dev/<id>`) and one read-only mount (`/run/devices/<id>`) for each;
/// unknown IDs are an error. Asked for a preference it takes what it must, then
/// the last ones. When the registry socket is made anew, or its own socket is
/// deleted, it starts over and registers, as long as it takes. Thread-safe.
class DEVMGR_EXPORT FakeDevicePlugin {
 public:
  struct Device {
    std::string id;
    std::string health = "Healthy";
    std::vector<std::int64_t> numa;
  };

  /// A call the plugin got.
  struct Call {
    std::string method;                     ///< As in ScenarioStep.
    std::vector<std::string> devices;       ///< Those asked for or offered.
    std::vector<std::string> must_include;  ///< Of a preference.
    int size = 0;                           ///< Of a preference.
    /// Request metadata with names that begin with `devmgr-`.
    std::map<std::string, std::string> metadata;
  };

  /// Returns once its sockets answer; registration follows, as soon as there
  /// is somebody to register with.
  ///   InvalidArgument     an option is out of range; all are named
  ///   FailedPrecondition  another process serves one of the sockets
  static absl::StatusOr<std::unique_ptr<FakeDevicePlugin>> Start(
      FakeDevicePluginOptions options);
  /// Closes the sockets and removes them.
  virtual ~FakeDevicePlugin() = default;

  virtual void AddStep(ScenarioStep step) = 0;
  virtual void ClearSteps() = 0;
  /// Lets all hanging calls go on.
  virtual void ReleaseHanging() = 0;

  virtual std::vector<Call> Calls() const = 0;
  /// Waits until at least `count` calls of `method` have arrived.
  virtual bool WaitForCalls(std::string_view method, std::size_t count,
                            std::chrono::milliseconds limit) const = 0;
  /// Waits until the manager has confirmed or refused a registration at least
  /// `count` times, either way. The last answer: empty text means accepted.
  virtual bool WaitForRegistrations(std::size_t count,
                                    std::chrono::milliseconds limit) const = 0;
  virtual std::string last_registration_error() const = 0;
  virtual std::size_t accepted_connections() const = 0;
  /// Device streams that are open now.
  virtual std::size_t open_streams() const = 0;

  virtual std::vector<Device> Devices() const = 0;
  /// Sends the new list on all streams.
  virtual void SetDevices(std::vector<Device> devices) = 0;
  /// False: there is no such device.
  virtual bool SetHealth(std::string_view id, std::string_view health) = 0;
  /// Ends all streams with `status`.
  virtual void DropStreams(const absl::Status& status) = 0;

  /// Registers once more, with everything as it is.
  virtual void Register() = 0;
  /// Closes and removes all sockets; Restart brings them back.
  virtual void Stop() = 0;
  /// Closes and re-creates all sockets and registers, as a restarted process
  /// would. Devices stay as they are.
  virtual absl::Status Restart() = 0;
};

}  // namespace devmgr::testing
