// SPDX-License-Identifier: Apache-2.0
//
// The seams through which the outside world comes in. Each has a default that
// works; an embedder or a test replaces what it needs to.
#pragma once

#include <absl/status/status.h>
#include <devmgr/export.h>
#include <devmgr/manifests.h>
#include <devmgr/metrics.h>
#include <devmgr/objects.h>
#include <devmgr/persistent_map.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

class DeviceManagerObserver;
class RuntimeSource;
class TopologyHintProvider;
struct EventInfo;
struct ReportedPodStatus;

/// Objects by name. A copy shares its parts with the original: a source changes
/// a copy of what it published before, and what hears of it looks only at what
/// differs. It costs nothing that grows with the number of objects.
template <typename T>
using ObjectMap = PersistentMap<ObjectName, std::shared_ptr<const T>>;

/// The kinds of objects that a source may bring.
enum class ObjectKind {
  kPod,
  kResourceClaim,
  kResourceClaimTemplate,
  kDeviceClass,
  kResourceSlice,
  kNode,
  kDeviceTaintRule,
};

/// An object that is referred to, and that the source could not read so far.
struct UnreadObject {
  std::chrono::system_clock::time_point since;  ///< Since when it is tried.
  std::string reason;
  friend bool operator==(const UnreadObject&, const UnreadObject&) = default;
};

/// What drivers say of the devices of a claim, apart from the claim: where they
/// say it to the node, which may have made the claim itself.
struct ClaimDeviceStatus {
  std::string uid;  ///< Of the claim: one of its name that came later has none.
  std::vector<AllocatedDeviceStatus> devices;
  friend bool operator==(const ClaimDeviceStatus&,
                         const ClaimDeviceStatus&) = default;
};

/// Everything a source knows at one moment. Immutable once published. An object
/// that did not change stays the same pointer in the next snapshot.
struct ObjectSnapshot {
  ObjectMap<Pod> pods;
  ObjectMap<ResourceClaim> claims;
  ObjectMap<ResourceClaimTemplate> claim_templates;
  ObjectMap<DeviceClass> device_classes;
  ObjectMap<ResourceSlice> resource_slices;
  ObjectMap<Node> nodes;
  ObjectMap<DeviceTaintRule> device_taint_rules;
  ObjectMap<ResourceClass> resource_classes;
  ObjectMap<ResourceClassParameters> resource_class_parameters;
  ObjectMap<ResourceClaimParameters> resource_claim_parameters;
  ObjectMap<ResourceQuota> quotas;
  /// By the name of the claim; takes the place of what its `status.devices` is
  /// in the source. Entries of devices that are not allocated do not count.
  ObjectMap<ClaimDeviceStatus> device_statuses;
  /// Pods that break an API rule, by name, with the reason.
  ObjectMap<MalformedPod> malformed_pods;

  /// True only after a complete scan without errors. Absence of an object
  /// means "gone" in a complete snapshot and nothing at all in any other.
  bool complete = false;
  /// Kinds other than pods for which that does not hold: the source reads only
  /// what pods refer to, or has not read all of it yet.
  std::set<ObjectKind> partial_kinds;
  /// Claims that pods refer to and that are not above, although they may exist.
  PersistentMap<ObjectName, UnreadObject> unread_claims;
  /// Whether an object of `kind` that is missing above is gone.
  bool IsComplete(ObjectKind kind) const {
    return complete && partial_kinds.count(kind) == 0;
  }
  /// Whether the source vouches for `complete` whatever is missing, as an
  /// embedder does that keeps its own list. Where it does not, a complete
  /// snapshot that lacks more than half of the pods that the node has from this
  /// source counts as incomplete, unless `watch` or `marker` proves that they
  /// are gone, or an operator says so (docs/reliability.md): a directory may
  /// not be mounted yet.
  bool vouched = true;
  /// Pods above for which a part of the source vouches by itself, such as those
  /// that clients want (devmgr/control.h): they do not count among the pods
  /// that the rest is to have.
  PersistentSet<ObjectName> vouched_pods;
  /// UIDs of pods that are gone, whatever `complete` says. None is above.
  PersistentSet<PodUid> gone_pods;
  /// Snapshots with the same number, not 0, come from one watch without a
  /// break: what was in one of them and is missing in a later one was taken
  /// away. 0: the source cannot say.
  std::uint64_t watch = 0;
  /// The ID that the source carries (ObjectSource::Mark); empty: none.
  std::string marker;
  /// Why it carries none although it was to; empty: no reason is known.
  std::string marker_problem;
  /// Of a source that is made of several: each of them with the names of its
  /// pods. A pod that one of them had is gone when that one is complete without
  /// it, and vouches for that or is still in the same watch, whatever is known
  /// of the others. Empty: there is one.
  struct Part {
    bool complete = false;
    bool vouched = true;
    std::uint64_t watch = 0;
    PersistentSet<ObjectName> pods;
  };
  std::vector<Part> parts;
  /// Why the snapshot is not complete, and what else is wrong: bad files,
  /// stale contents, the same object in two files, an unreadable directory.
  std::vector<ManifestProblem> problems;
  /// Objects of the source that are not, or not as they are there now, among
  /// the objects above, or have a part that cannot be used. The first 200.
  std::vector<ObjectProblem> object_problems;
};

/// Where pods, claims, classes and slices come from.
/// Thread-safe.
class DEVMGR_EXPORT ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  /// What is known now; never null. Before the first scan: empty, incomplete.
  virtual std::shared_ptr<const ObjectSnapshot> Snapshot() const = 0;

  /// Calls `changed` after every new snapshot until `Unsubscribe`, on a thread
  /// of the source's. `changed` must not block and must not call back.
  /// One subscriber at a time; a second call replaces the first.
  virtual void Subscribe(std::function<void()> changed) = 0;

  /// No call of the subscriber runs after this returns.
  virtual void Unsubscribe() = 0;

  /// For people: `directory /etc/devmgr/manifests`. Also what the ledger knows
  /// it by.
  virtual std::string Describe() const = 0;

  /// Asks the source to carry `id` from now on, where it can, so that it is
  /// recognised after a restart; a new snapshot tells what became of it.
  /// `watch` is that of the snapshot which was trusted: a source that has lost
  /// sight of it since does nothing. Must not block. The default does nothing.
  virtual void Mark(const std::string& id, std::uint64_t watch);

  /// Reads one object anew from where it comes from. `done` is called once, on
  /// another thread, when Snapshot shows what was read.
  ///   NotFound     there is no such object
  ///   Unavailable  it cannot be read, and why
  /// False, and `done` is not called: what was published is what there is. The
  /// default answers that. Must not block. A source that ends drops the call.
  virtual bool Refresh(ObjectKind kind, const ObjectName& name,
                       std::function<void(const absl::Status&)> done);
};

/// A directory of manifests (`*.yaml`, `*.yml`, `*.json`), watched. Follows
/// directories that are swapped by symbolic link, files replaced by rename,
/// files half-written; a file that turns bad keeps its last good content and
/// is reported as stale. The directory may appear later; where it can be
/// written it carries a marker, `.devmgr-source`. `node_name` stands in for
/// the node of pods that name none, as a kubelet has it for its static pods,
/// and for the pool of ResourceSlices without one. Never blocks for long; stops
/// its thread in the destructor.
DEVMGR_EXPORT std::unique_ptr<ObjectSource> WatchManifests(
    std::filesystem::path directory, std::string node_name = {});

/// The objects of an API server and of manifests. A pod that both have under
/// one UID is one, as the server has it; of two with one name that of the
/// manifests counts, as of two claims, and the other one is a problem. Each
/// tells by itself that a pod of its own is gone. Both are borrowed; the
/// subscriber is called on threads of both.
DEVMGR_EXPORT std::unique_ptr<ObjectSource> CombineSources(ObjectSource& server,
                                                           ObjectSource& files);

/// A fixed or scripted set of objects, for embedders that have their own
/// source, and for tests. Thread-safe.
class DEVMGR_EXPORT MemoryObjectSource : public ObjectSource {
 public:
  virtual void Publish(ObjectSnapshot snapshot) = 0;
  static std::unique_ptr<MemoryObjectSource> Create();
};

/// How many devices of a resource the node has, and how many of them work.
struct NodeResourceAmounts {
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  friend bool operator==(const NodeResourceAmounts&,
                         const NodeResourceAmounts&) = default;
};

/// What the status of the Node object is to say of the node's devices.
struct NodeDeviceStatus {
  /// By resource of a device plugin. Nothing: the node has it no more, and its
  /// name is to be taken away. Other names are not this manager's.
  std::map<ResourceName, std::optional<NodeResourceAmounts>> resources;
  /// What the node can do with devices; ascending.
  std::vector<std::string> declared_features;
  friend bool operator==(const NodeDeviceStatus&,
                         const NodeDeviceStatus&) = default;
};

/// What the manager has changed in the world of objects: slices of drivers that
/// are gone are taken back, so that no pod is scheduled to them; the status of
/// the node says which devices it has; events are recorded. Called on the
/// manager's thread; must not block, throw, or call blocking methods of the
/// manager. Must outlive it.
class DEVMGR_EXPORT ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  /// Deletes the ResourceSlices that `driver` has published for this node; when
  /// it is empty, those of all drivers. `done` is called once, on any thread;
  /// NotFound is as good as OK, and after anything else it is tried again.
  virtual void DeleteResourceSlices(const std::string& driver,
                                    std::function<void(absl::Status)> done) = 0;
  /// `driver` is back: what was asked for above and is not done yet is not to
  /// be done. `done` need not be called then. The default does nothing.
  virtual void KeepResourceSlices(const std::string& driver);
  /// This counts from now on, in the place of what was set before. The default
  /// does nothing.
  virtual void SetNodeStatus(const NodeDeviceStatus& status);
  /// An event that is new, or has happened again. The default does nothing.
  virtual void RecordEvent(const EventInfo& event);
  /// What the sink finds wrong is to be an event about the node: its reason and
  /// a text for people. `report` may be called on any thread and at any time,
  /// also when the manager is gone. The default does nothing.
  virtual void ReportProblems(
      std::function<void(const std::string& reason, const std::string& message)>
          report);
  /// Whether it takes what the agent of the node writes: the status of its
  /// pods, and their last deletion. One agent of a node may do that, which is
  /// the kubelet where there is one. False: neither of the two below is called.
  /// The default.
  virtual bool IsNodeAgent() const;
  /// This counts for the pod from now on. The default does nothing.
  virtual void SetPodStatus(const ObjectName& name, const PodUid& uid,
                            const ReportedPodStatus& status);
  /// The deletion of the pod was asked for, nothing of it runs, and it holds
  /// nothing: once its status is written its object is to go. The default does
  /// nothing.
  virtual void FinishPod(const ObjectName& name, const PodUid& uid);
};

/// What should happen to a pod. Carrying it out is the embedder's.
struct PodAction {
  enum class Kind {
    kFail,  ///< It is to be stopped, and has failed.
    /// It has to leave its devices: it is to be stopped, and another pod may
    /// take its place. It is PodState::kEvicting already, on disk; what it
    /// holds is free when Host::runtime says that nothing of it runs, or when
    /// it is ended. No later call admits it.
    kEvict,
    /// Its sandbox is to be stopped now. Follows kEvict, where the manager
    /// knows by Host::runtime that something of the pod runs.
    kStop,
  };
  Kind kind = Kind::kFail;
  PodUid pod;
  ObjectName name;
  std::string reason;   ///< CamelCase, such as `DeviceUnhealthy`.
  std::string message;  ///< For people.
  /// The type of a condition of the pod that is True from now on, with reason
  /// and message; empty: none. `DisruptionTarget` with kEvict.
  std::string condition = {};
};
/// `Fail`, `Evict`, `Stop`.
DEVMGR_EXPORT std::string_view PodActionKindName(PodAction::Kind kind);

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Where log lines go; called from any thread, must not block.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// The seams in one bundle. Members left empty take their default.
struct Host {
  /// Where claims are read, and pods with Actuate::kSource. Borrowed: must
  /// outlive the manager. Null: an empty, incomplete source.
  ObjectSource* objects = nullptr;
  /// What the container runtime runs. Borrowed: must outlive the manager, which
  /// is its subscriber. With it, and where pods are driven (Actuate), a pod
  /// that is not wanted any more is unprepared and released only when it is
  /// known that nothing of it runs. Null: whatever takes pods away has to end
  /// their containers first.
  RuntimeSource* runtime = nullptr;
  /// Borrowed. Null: nothing is ever deleted.
  ObjectSink* object_sink = nullptr;
  /// Identifies this boot of the machine. Default: the kernel's boot ID.
  std::function<std::string()> boot_id;
  /// Wall clock, used for time stamps only. Default: the system's.
  std::function<std::chrono::system_clock::time_point()> now;
  /// Called on the manager's thread; must not block. It is an event, too,
  /// which is all that happens by default.
  std::function<void(const PodAction&)> act_on_pod;
  /// Default: nothing is logged.
  LogSink log;
  /// Borrowed: must outlive the manager. Null: none are reported.
  MetricsSink* metrics = nullptr;
  /// Hear of all changes, from the first one on. Borrowed: must outlive the
  /// manager.
  std::vector<DeviceManagerObserver*> observers;
  /// Have a say in the alignment of pods to NUMA nodes, with resources that
  /// this library does not manage (devmgr/topology.h). Borrowed: must outlive
  /// the manager. With a policy (TopologyOptions) and any of them, pods without
  /// devices are judged by them, too.
  std::vector<const TopologyHintProvider*> topology_providers;
};

}  // namespace devmgr
