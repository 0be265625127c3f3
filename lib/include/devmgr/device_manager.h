// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/device_changes.h>
#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/maintenance.h>
#include <devmgr/node_view.h>
#include <devmgr/objects.h>
#include <devmgr/options.h>
#include <devmgr/runtime_report.h>
#include <devmgr/simulation.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// Hears of changes. All methods have empty defaults.
///
/// Thread: one at a time, in order of change: the manager's own, or one that
///   waits in a blocking method of the manager.
/// Locks: none is held.
/// Limits: do not block, throw, or call blocking methods of the manager.
class DEVMGR_EXPORT DeviceManagerObserver {
 public:
  virtual ~DeviceManagerObserver() = default;
  /// A pod's state, reason or message changed; after its release, the last one.
  /// A repair may take a pod that was Ready back to Preparing: then prepare it.
  virtual void OnPod(const PodInfo&, bool gone) { (void)gone; }
  /// The health of devices that these pods hold is another now; see
  /// PodInfo::allocated_resources. What changes at the same time comes in
  /// one call, each pod once.
  virtual void OnResourceHealth(const std::vector<PodUid>&) {}
  /// The source has new objects; `DeviceManager::Objects` returns them.
  virtual void OnObjects() {}
  /// Something happened. An event that has not been there before is delivered
  /// at once, up to 200 of an object kind in 10 s; what is above that, and the
  /// repeats of an event, are delivered together 10 s later: each event at most
  /// twice in 10 s, with `count`, and `fresh` for those that are new. What was
  /// dropped for newer ones meanwhile is not delivered.
  virtual void OnEvent(const EventInfo&) {}
  /// DeviceManager::Changes has more.
  virtual void OnDeviceChanges() {}
};

class ObjectSpace;

using OperationId = std::uint64_t;

/// An observer is registered as long as this lives.
class DEVMGR_EXPORT Observation {
 public:
  virtual ~Observation() = default;
};

/// Decides and remembers which devices the pods of this node hold, and tells
/// what to inject into each container.
///
/// Thread-safe. Operations are asynchronous: `Start...` returns at once with an
/// id, and the completion runs on the manager's thread, under no lock; it must
/// not block. The methods without `Start` wait for that completion; from a
/// completion or an observer they do nothing and return FailedPrecondition,
/// since what they wait for could not run. A thread that waits, for a
/// completion or for a view, is the manager's thread meanwhile whenever that
/// has something to do, which saves waking up another one; it may so run
/// completions and observers of others. Hold no lock then that these take.
/// Every answered decision is on disk before its completion runs.
class DEVMGR_EXPORT DeviceManager {
 public:
  using AdmitDone = std::function<void(absl::StatusOr<Verdict>)>;
  using Done = std::function<void(absl::Status)>;

  /// Recovers the ledger, then accepts drivers without waiting for any: what
  /// was prepared in this boot resolves at once. Blocks for disk only.
  /// The bytes of all files are checked, and the pods are read. The rest is
  /// read on the manager's thread before it does anything else; what waits for
  /// it is each call but those that resolve (WaitUntilLoaded says how it went).
  ///   InvalidArgument     an option is out of range; the message names all
  ///   FailedPrecondition  the ledger is held by another process, or is newer
  ///   PermissionDenied    a directory is not ours to use
  ///   DataLoss            the ledger is present but damaged
  static absl::StatusOr<std::unique_ptr<DeviceManager>> Open(
      const DeviceManagerOptions& options, Host host = {});

  /// Stops within 2 s: calls are cancelled, the ledger is drained, threads are
  /// joined; no callback runs afterwards. What pods hold stays prepared.
  virtual ~DeviceManager() = default;

  /// Judges whether `pod` may run here. A pod that the ledger holds already is
  /// judged by the ledger. Pure towards drivers; the verdict is recorded.
  /// A pod that asks for other devices than it was given is refused, with
  /// kReject: it keeps them until it is unprepared and released.
  /// As an API server would, this fills in defaults first and rejects a pod
  /// that breaks a rule, for good.
  /// A pod that has no claims and wants devices of plugins is Ready once they
  /// have answered; PreparePod has nothing left to do for it.
  ///   InvalidArgument  the pod has no usable UID or name
  ///   Unavailable      the ledger cannot be written now
  virtual OperationId StartAdmitPod(const Pod& pod, AdmitDone done) = 0;
  /// Has the drivers prepare all claims of an admitted pod, in parallel, and
  /// freezes the answer for its containers. Asks only drivers that have not
  /// prepared yet; joins calls that are under way for another pod.
  /// On failure the references and what succeeded stay, for the next try or
  /// UnpreparePod; the error names every driver and claim that failed.
  ///   NotFound            the pod is not admitted
  ///   FailedPrecondition  the pod is rejected or being released, or has to
  ///                       wait by what the objects say now
  ///   Aborted             by now the pod would be rejected, as AdmitPod says;
  ///                       or it gives up a claim that was replaced: EndPod,
  ///                       then admit it anew; or it was released
  ///   Cancelled           by `Cancel`, or the manager stops
  virtual OperationId StartPreparePod(const PodUid& pod, Done done) = 0;

  /// Drops the pod's claims; those without another pod are unprepared. Works
  /// from the ledger alone. Unknown pods are fine. On failure the intent stays
  /// and the next call asks only drivers that have not answered.
  virtual OperationId StartUnpreparePod(const PodUid& pod, Done done) = 0;

  /// Forgets a pod that holds nothing. Unknown pods are fine.
  ///   FailedPrecondition  the pod still holds claims
  virtual OperationId StartReleasePod(const PodUid& pod, Done done) = 0;

  /// UnpreparePod, then ReleasePod, with fewer writes: the pod is forgotten in
  /// the write that records its last driver's answer. To be preferred where
  /// nothing is to happen between the two. Unknown pods are fine. Fails as
  /// UnpreparePod does, and goes on where it was when it is called again.
  virtual OperationId StartEndPod(const PodUid& pod, Done done) = 0;

  /// With Actuate::kWanted: the pod is wanted from now on, so that the manager
  /// admits and prepares it, and tries again when that fails. A pod that was
  /// wanted before is replaced. Watch its state with an observer.
  ///   InvalidArgument     the pod has no UID
  ///   FailedPrecondition  DeviceManagerOptions::actuate is another one
  virtual absl::Status WantPod(const Pod& pod) = 0;

  /// With Actuate::kWanted: the pod is released. Unknown pods are fine.
  ///   FailedPrecondition  DeviceManagerOptions::actuate is another one
  virtual absl::Status UnwantPod(const PodUid& pod) = 0;

  /// To be called before each start of a container, also when it starts again:
  /// asks the plugins for PreStartContainer that want to be asked. At once OK
  /// for containers without such devices. An init container whose devices were
  /// given back gets others first; ask for its devices afterwards.
  ///   NotFound            the pod or container is not known
  ///   FailedPrecondition  the pod is not Ready; or its device is Unhealthy and
  ///                       pods with such are to fail (HealthPolicy)
  ///   Unavailable         a plugin that must be asked is not there; there are
  ///                       no devices for the init container now; or CDI specs
  ///                       of a claim are lost and its driver, asked again, has
  ///                       not brought them back yet
  ///   others              as the plugin answered
  virtual OperationId StartBeforeContainerStart(const PodUid& pod,
                                                const ContainerName& container,
                                                Done done) = 0;

  /// To be called when all init containers of a Ready pod have ended: frees
  /// their devices of plugins, but for those that its other containers have
  /// taken over. To call it again, or for a pod without such, changes nothing.
  /// Does nothing under Profile::kStrictKubelet, which keeps them.
  ///   NotFound            the pod is not known
  ///   FailedPrecondition  it is not Ready, or not in this boot
  virtual OperationId StartReleaseInitContainers(const PodUid& pod,
                                                 Done done) = 0;

  /// What a CRI shim did and saw: its events are kept as the manager's own are,
  /// its counters are shown by NodeView::Runtimes, containers that hold what
  /// their pods were not given become NodeView::ForeignHolders, soon. For
  /// shims; to be repeated until it succeeds. Waits for the manager's thread,
  /// like views.
  ///   InvalidArgument    the report cannot be meant; nothing of it counts
  ///   ResourceExhausted  too many sessions are known
  virtual absl::Status ReportRuntime(const RuntimeReport& report) = 0;

  /// Completes the operation with Cancelled, unless it is over. What a driver
  /// is doing for it goes on and is recorded when it ends.
  virtual void Cancel(OperationId operation) = 0;

  absl::StatusOr<Verdict> AdmitPod(const Pod& pod);
  absl::Status PreparePod(const PodUid& pod);
  absl::Status UnpreparePod(const PodUid& pod);
  absl::Status ReleasePod(const PodUid& pod);
  absl::Status EndPod(const PodUid& pod);
  absl::Status BeforeContainerStart(const PodUid& pod,
                                    const ContainerName& container);
  absl::Status ReleaseInitContainers(const PodUid& pod);

  /// What to inject into one container: a pure read of what is on disk; never
  /// blocks. Works before any driver is back after a restart.
  ///   NotFound            this pod or container is not known
  ///   Unavailable         not prepared (in this boot); the message names the
  ///                       drivers that are late
  ///   FailedPrecondition  an init container whose devices were given back
  virtual absl::StatusOr<std::shared_ptr<const ContainerDevices>>
  ContainerDevicesOf(const PodUid& pod,
                     const ContainerName& container) const = 0;

  /// The same for all containers of a pod.
  virtual absl::StatusOr<std::shared_ptr<const PodDevices>> PodDevicesOf(
      const PodUid& pod) const = 0;

  /// The newest pod of that name.
  virtual absl::StatusOr<PodUid> FindPod(const ObjectName& name) const = 0;

  /// The source's objects with their identities filled in; never null. Of
  /// another node's pods none. Never blocks.
  virtual std::shared_ptr<const ObjectSnapshot> Objects() const = 0;

  /// Waits until the ledger is read to its end. After an error no operation is
  /// taken, all fail with it, and what pods were answered still resolves.
  ///   DataLoss     a record cannot be decoded; nothing was changed
  ///   Unavailable  the disk fails
  virtual absl::Status WaitUntilLoaded() const { return absl::OkStatus(); }

  /// What the node is now; never null. It has all that calls which have
  /// returned did, and all that observers and completions were given. A new one
  /// is published after every change, at a cost that does not grow with pods,
  /// claims or devices; this call waits for nothing once the ledger is loaded.
  virtual std::shared_ptr<const NodeView> View() const = 0;

  /// What would be decided about these pods now, or on another node. Nothing is
  /// decided: no write, no call, no event, no place in the queue. The functions
  /// are those of admission; what plugins would prefer or answer is not asked.
  /// Runs on the calling thread, for `deadline` at most, on what the manager
  /// knows at one moment; waits for the manager's thread for that alone. Sleeps
  /// for moments in between, so that decisions are not kept waiting. A caller's
  /// thread of low priority is worse for these than one of the same: it may be
  /// kept from a processor while it holds the lock of the heap.
  ///   InvalidArgument    the request cannot be meant; the message names what
  ///   NotFound           a pod of `view.minus` is not known
  ///   ResourceExhausted  kMostSimulations are running
  ///   Unimplemented      this manager does not simulate
  virtual absl::StatusOr<Simulation> Simulate(
      const SimulationRequest& request) const;
  /// How many simulations have ended since the manager was opened.
  virtual SimulationCounts Simulations() const;

  /// Events after `sequence`, oldest first. The newest `max_events` are kept,
  /// of which one object has a twentieth at most, warnings of one reason too,
  /// and one kind of object a tenth; pods that are known have as much as there
  /// is, those that are gone a tenth. So no input pushes out what there is to
  /// know of others.
  virtual std::vector<EventInfo> Events(std::uint64_t after) const = 0;

  /// What happens to devices, in order: allocations, releases, changes of
  /// health, hand-overs; at most kMostDeviceChanges at a time. Go on with
  /// DeviceChanges::next, also after a restart.
  /// Where the newest changes are kept in memory, this only copies. Else it
  /// reads the ledger's history, on the calling thread, and waits for the
  /// manager's thread once; changes of health follow kHealthReset then. A
  /// reader that does not come back costs nothing: what it has not read is
  /// dropped in time, and it is refused when the history has dropped it, too.
  /// Waits up to `wait` for a change if there is none; not on the manager's own
  /// thread.
  ///   OutOfRange     too old, or not of this ledger: the changes after that
  ///                  token are not known; begin with FromSnapshot
  ///   Unavailable    the ledger takes no decisions now
  ///   Unimplemented  this manager does not have them
  static constexpr std::size_t kMostDeviceChanges = 1'000;
  virtual absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from,
      std::chrono::milliseconds wait = std::chrono::milliseconds(0)) const;

  /// Where objects are kept in the ledger's database that are none of the
  /// manager's, such as what drivers publish (DriverEndpoint::Serve). They can
  /// be read and written once the ledger is loaded. Null: this manager keeps
  /// none.
  virtual std::shared_ptr<ObjectSpace> KeptObjects() const { return nullptr; }

  /// What an operator looks at and decides. As long as the manager.
  virtual Maintenance& maintenance() = 0;

  /// `observer` hears of changes from now on, until what is returned is
  /// destroyed, which may be after the manager. Borrowed until then. Waits for
  /// the manager's thread, as its destruction does. See also Host::observers.
  [[nodiscard]] virtual std::unique_ptr<Observation> Observe(
      DeviceManagerObserver& observer) = 0;

 private:
  /// Calls `begin`, and returns once what `begin` was given has been called,
  /// on any thread. By default the calling thread just waits. False, and
  /// `begin` is not called, where waiting would never end: on the manager's own
  /// thread.
  virtual bool RunUntilFinished(
      const std::function<void(std::function<void()> finish)>& begin);
  template <typename Result, typename Start>
  Result WaitFor(Start start);
};

}  // namespace devmgr
