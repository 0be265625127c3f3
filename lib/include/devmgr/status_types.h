// SPDX-License-Identifier: Apache-2.0
//
// What the manager tells about itself, as values: pods, claims, plugins,
// events, history. Shared by the manager, the inspection endpoint and the
// reader of stopped state directories.
//
// The types Open... hold a value of an enumeration, and in an inspection client
// maybe a word instead that only a newer daemon knows (devmgr/open_enum.h).
#pragma once

#include <devmgr/container_devices.h>
#include <devmgr/export.h>
#include <devmgr/open_enum.h>
#include <devmgr/options.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace devmgr {

using WallTime = std::chrono::system_clock::time_point;

/// The life of a pod, as people see it:
///
///     Waiting -> Preparing -> Ready -> Releasing -> (gone)
///        |           |  ^       |
///        |           v  |       +-> Preparing   after a reboot
///        |        Waiting (a driver failed; retried)
///        +-> Rejected -> (gone)
///
/// A pod that has to leave its devices (PodAction::Kind::kEvict) is Evicting
/// from any of the states in which it may hold some, until nothing of it runs;
/// then Releasing, then Rejected with the reason of its eviction.
enum class PodState {
  kWaiting,
  kPreparing,
  kReady,
  kRejected,
  kReleasing,
  kEvicting,
};
DEVMGR_EXPORT std::string_view PodStateName(PodState state);

/// What a waiting pod waits for. A change of exactly this wakes it.
struct WaitingFor {
  enum class Kind {
    kClaim,
    kDriver,
    kPod,
    kResource,
    kRuntime,
    kDevices,        ///< Devices for claims that this node allocates: others.
    kFreeDevices,    ///< The same: those that other claims have.
    kFewerDevices,   ///< The same: that one is gone, by a request for all.
    kTaint,          ///< The same: that a taint does not keep it off any more.
    kDeviceClass,    ///< What a class says, for such claims.
    kClaimTemplate,  ///< What a template of such claims says.
    kQuota,          ///< Quotas allow more, or less is used of them.
    kAuthority,      ///< The party that allocates devices is another one.
  };
  static constexpr char kAnyDriver[] = "*";  ///< Of the four kinds of devices.
  Kind kind = Kind::kClaim;
  /// `namespace/name` of a claim, pod or template, a driver name, a resource
  /// name; of a container runtime its socket (RuntimeSource::Describe); of
  /// devices the driver that publishes them, or kAnyDriver; of a taint the
  /// device, `driver/pool/device`, or these; the name of a class; of a quota
  /// `namespace/key`; `node` or `scheduler`.
  std::string name;
  friend auto operator<=>(const WaitingFor&, const WaitingFor&) = default;
};
DEVMGR_EXPORT std::string_view WaitingForKindName(WaitingFor::Kind kind);

/// The answer of admission. A wait holds nothing and is not an error. A
/// rejection is final for that pod UID and durable, unless the pod was given
/// devices already and asks for others: what it holds stays its own then.
struct Verdict {
  enum class Kind { kAdmit, kWait, kReject };
  Kind kind = Kind::kAdmit;
  std::string reason;
  std::string message;
  std::vector<WaitingFor> waiting_for;  ///< With kWait: what to wait for.
};

enum class DeviceHealth {
  kHealthy,
  kUnhealthy,
  kUnknown,  ///< No plugin or driver is there that could tell.
};
/// The kubelet's words: `Healthy`, `Unhealthy`, `Unknown`.
DEVMGR_EXPORT std::string_view DeviceHealthName(DeviceHealth health);
using OpenDeviceHealth = OpenEnum<DeviceHealth, DeviceHealthName>;

/// An element of `allocatedResourcesStatus` in a pod's status.
struct ResourceHealth {
  /// Of a device plugin: the device's ID. Of a driver: the device's first CDI
  /// name, or `driver/pool/device`.
  std::string resource_id;
  OpenDeviceHealth health = DeviceHealth::kUnknown;
  std::string message;  ///< Why, for people; may be empty.
  WallTime since;       ///< Of health and message; not set: not known.
  friend bool operator==(const ResourceHealth&,
                         const ResourceHealth&) = default;
};

struct ResourceStatus {
  /// The resource of a device plugin, or `claim:<pod claim>[/<request>]` as the
  /// container spells it; for extended resources by claims `claim:<name of the
  /// claim>/<request>`.
  std::string name;
  std::vector<ResourceHealth> resources;
  friend bool operator==(const ResourceStatus&,
                         const ResourceStatus&) = default;
};

struct ContainerResourceStatus {
  ContainerName container;
  std::vector<ResourceStatus> resources;  ///< By name.
  friend bool operator==(const ContainerResourceStatus&,
                         const ContainerResourceStatus&) = default;
};

struct PodInfo {
  ObjectName name;
  PodUid uid;
  PodState state = PodState::kWaiting;
  /// CamelCase, for programs; empty when Ready, unless it is refused because it
  /// asks for other devices than it holds.
  std::string reason;
  std::string message;  ///< For people.
  std::vector<WaitingFor> waiting_for;
  WallTime first_seen;
  std::vector<ContainerName> containers;
  std::vector<std::string> claims;  ///< Names of claims it holds.
  /// `allocatedResourcesStatus` of the containers, of all kinds, that hold
  /// devices. While the pod is released: as it was last.
  std::vector<ContainerResourceStatus> allocated_resources;
};

/// Where a driver stands with a claim.
enum class ClaimState { kPreparing, kPrepared, kUnpreparing };
/// `Preparing`, `Prepared`, `Unpreparing`.
DEVMGR_EXPORT std::string_view ClaimStateName(ClaimState state);
using OpenClaimState = OpenEnum<ClaimState, ClaimStateName>;

/// One driver's part of a claim.
struct ClaimDriverInfo {
  std::string driver;
  OpenClaimState state = ClaimState::kPreparing;
  std::vector<std::string> devices;      ///< `pool/device`.
  std::vector<std::string> cdi_devices;  ///< Qualified CDI names.
  std::string last_error;                ///< Of the last call; may be empty.
};

struct ClaimInfo {
  ObjectName name;
  ClaimUid uid;
  /// The least advanced of its drivers' states.
  OpenClaimState state = ClaimState::kPreparing;
  std::vector<std::string> pods;  ///< `namespace/name` of holders.
  std::vector<ClaimDriverInfo> drivers;
  /// The claim as an API server would show it, with its allocation, as JSON.
  /// Only of Inspector::ClaimsWithObjects; empty where the source has none.
  std::string object;
};

/// A driver was to unprepare a claim and has not.
struct DebtInfo {
  ObjectName claim;
  ClaimUid uid;
  std::string driver;
  std::vector<std::string> pods;  ///< `namespace/name` of the last holders.
  WallTime since;                 ///< Of the first failure.
  std::uint32_t attempts = 0;     ///< Calls that failed.
  std::string last_error;
  std::string policy;  ///< `block`, `defer`, `forgiveAfter: 1h`.
};

/// What may serve the name of an extended resource; kAutomatic: what the
/// rules of lib/claim/README.md say.
enum class ResourceOwner { kDevicePlugin, kDeviceClass, kAutomatic };
/// As the enumerator: `DevicePlugin`.
DEVMGR_EXPORT std::string_view ResourceOwnerName(ResourceOwner owner);
using OpenResourceOwner = OpenEnum<ResourceOwner, ResourceOwnerName>;

enum class PluginKind { kDra, kDevicePlugin };
/// `dra`, `device-plugin`.
DEVMGR_EXPORT std::string_view PluginKindName(PluginKind kind);
using OpenPluginKind = OpenEnum<PluginKind, PluginKindName>;

/// Where an instance of a driver or device plugin stands.
enum class PluginState {
  kConnecting,
  kAsking,     ///< A device plugin was asked for its options.
  kConnected,  ///< The driver answers; a device plugin has listed no device.
  kLive,       ///< A device plugin has listed its devices.
  kDisconnected,
  kClosed,  ///< It is deregistered or replaced. Final.
};
/// As the enumerator: `Connecting`.
DEVMGR_EXPORT std::string_view PluginStateName(PluginState state);
using OpenPluginState = OpenEnum<PluginState, PluginStateName>;

/// The way a device plugin came.
enum class PluginVia {
  kSocket,     ///< It called Register.
  kDirectory,  ///< Its socket was found in the registration directory.
};
/// `socket`, `directory`.
DEVMGR_EXPORT std::string_view PluginViaName(PluginVia via);
using OpenPluginVia = OpenEnum<PluginVia, PluginViaName>;

/// Whether it is called, as calls ran into deadlines or did not.
enum class PluginBreaker {
  kClosed,    ///< Calls go out.
  kOpen,      ///< None does.
  kHalfOpen,  ///< One does, as a trial.
};
/// As the enumerator: `HalfOpen`.
DEVMGR_EXPORT std::string_view PluginBreakerName(PluginBreaker breaker);
using OpenPluginBreaker = OpenEnum<PluginBreaker, PluginBreakerName>;

struct PluginInfo {
  std::string name;  ///< Driver name, or resource name.
  OpenPluginKind kind = PluginKind::kDra;
  std::string endpoint;  ///< Service socket.
  std::string version;   ///< API chosen, such as `v1.DRAPlugin`.
  OpenPluginState state = PluginState::kConnecting;
  WallTime registered_since;
  std::string last_error;
  // `via` and `devices` are of device plugins, the rest of drivers, too.
  std::optional<OpenPluginVia> via;
  OpenPluginBreaker breaker = PluginBreaker::kClosed;
  /// It came and went too often; until then nothing is allocated from a plugin,
  /// and calls go to a driver's other instances first.
  std::optional<WallTime> quarantined_until;
  std::uint64_t devices = 0;  ///< In its last list.
  int calls = 0;              ///< Under way.
  int queued = 0;             ///< Waiting for others to end.
  /// New calls go to this one, of all instances of its name.
  bool serves = false;
  /// When the oldest call under way began; of drivers only.
  std::optional<WallTime> calling_since;
};

/// A socket in the registration directory, of whatever kind of plugin.
struct RegistrationSocketInfo {
  std::string path;         ///< Readable: what is not UTF-8 is replaced.
  bool registered = false;  ///< Its plugin is taken in, and was notified.
  friend bool operator==(const RegistrationSocketInfo&,
                         const RegistrationSocketInfo&) = default;
};

/// A device that a driver or device plugin publishes, or that a pod holds.
struct DeviceInfo {
  // Of a driver, or empty.
  std::string driver;
  std::string pool;
  std::string device;  ///< Of a device plugin, too: its ID.
  /// `namespace/name` of pods; `foreign container ID (pod namespace/name)` of a
  /// ForeignHolder.
  std::vector<std::string> used_by;
  std::vector<std::string> cdi_devices;
  ResourceName resource;  ///< Of a device plugin, or empty.
  /// Not set when its driver reports nothing of it.
  std::optional<OpenDeviceHealth> health;
  std::string health_reason;             ///< For people.
  WallTime since;                        ///< Of health and reason.
  std::vector<std::int64_t> numa_nodes;  ///< Of a device plugin.
  /// Which hardware it is, as far as that is known, for people: `PCI address
  /// 0000:3b:00.0`.
  std::vector<std::string> hardware = {};
  /// Other devices that are the same hardware, `driver/pool/device` or
  /// `resource/ID`, the first few.
  std::vector<std::string> same_hardware = {};
};

/// A container that holds devices which were given to no pod, or to none that
/// the ledger knows: made past the manager, or before it. They go to no pod
/// until it is gone, its pod is given just these, or an operator frees them.
struct ForeignHolder {
  std::string container_id;  ///< As its runtime names it.
  // As the runtime says; empty where it does not.
  PodUid pod_uid;
  ObjectName pod;
  ContainerName container;
  std::vector<HeldResource> resources;   ///< Of device plugins, by name.
  std::vector<std::string> cdi_devices;  ///< Names; of these only is warned.
  std::string why;                       ///< Why it is taken for one.
  friend bool operator==(const ForeignHolder&, const ForeignHolder&) = default;
};

/// One as the ledger keeps it.
struct ForeignHolderInfo {
  ForeignHolder holder;
  std::string endpoint;  ///< Socket of its runtime.
  WallTime since;
  /// Why an operator freed its devices, which it may still use; empty: they are
  /// held.
  std::string freed;
};

/// A device as a pod-resources endpoint tells of it.
struct ResourceDevice {
  DeviceId id;
  std::vector<std::int64_t> numa_nodes;  ///< Ascending; empty: on no node.
  friend bool operator==(const ResourceDevice&,
                         const ResourceDevice&) = default;
};

struct ResourceDevices {
  ResourceName resource;
  std::vector<ResourceDevice> devices;  ///< In natural order of IDs.
  friend bool operator==(const ResourceDevices&,
                         const ResourceDevices&) = default;
};

/// A device of a claim, as a pod-resources endpoint tells of it. Only CDI names
/// are known of what a driver of an API up to v1alpha3 prepared.
struct ClaimDevice {
  std::string driver;
  std::string pool;
  std::string device;
  std::string share_id;                  ///< Empty when absent.
  std::vector<std::string> cdi_devices;  ///< Its own, qualified.
  friend bool operator==(const ClaimDevice&, const ClaimDevice&) = default;
};

struct HeldClaim {
  ObjectName name;
  ClaimUid uid;
  /// By driver, then as it answered; none before it has.
  std::vector<ClaimDevice> devices;
  friend bool operator==(const HeldClaim&, const HeldClaim&) = default;
};

/// The claims of a container.
struct ContainerClaims {
  /// As in the pod, the one for extended resources last; once each, with the
  /// devices that serve what the container asks for.
  std::vector<HeldClaim> claims;
  /// For people: why claims that it uses are not among these, a text for each.
  std::vector<std::string> missing;
};

/// Where a resource stands with its device plugins (lib/device/README.md).
enum class ResourceState {
  kUnknown,    ///< None has been heard of.
  kRestored,   ///< The ledger names the resource; no plugin is back yet.
  kConnected,  ///< A plugin is there; none that is has listed its devices.
  kLive,       ///< Served.
  kStopped,    ///< The last plugin has gone; the grace period runs.
  kForgotten,  ///< The grace period is over.
};
/// As the enumerator: `Live`.
DEVMGR_EXPORT std::string_view ResourceStateName(ResourceState state);
using OpenResourceState = OpenEnum<ResourceState, ResourceStateName>;

/// An extended resource that a device plugin serves, or has served, or that is
/// the name of a device class.
struct ResourceInfo {
  ResourceName name;
  /// Never kAutomatic; not set when the ledger has none.
  std::optional<OpenResourceOwner> owner;
  /// Not set when no device plugin has served it.
  std::optional<OpenResourceState> state;
  WallTime since;  ///< Of the state.
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  /// Devices that pods and foreign containers hold, as its plugin's or through
  /// claims.
  std::int64_t held = 0;
  /// Why an operator gave the name to its owner; empty: none did.
  std::string by_operator;
  std::string device_class;  ///< That has the name now; may be empty.
  /// Drivers that the class's selectors name, and those of devices that pods
  /// hold through it; ascending.
  std::vector<std::string> drivers;
  /// Under Authority::kSplit: healthy devices that are kept for pods of this
  /// node. `allocatable` is without them.
  std::int64_t local = 0;
};

/// A ResourceSlice that counts for the node.
struct SliceInfo {
  std::string name;
  std::string driver;
  std::string pool;
  std::int64_t generation = 0;       ///< Of the pool.
  std::int64_t pool_slices = 0;      ///< That the pool has, as the slice says.
  std::int64_t known_slices = 0;     ///< Of these, as far as they are here.
  std::string node;                  ///< Empty: not for one node by its name.
  std::vector<std::string> devices;  ///< Their names, in the order there.
  /// `endpoint`: a driver has published it here; `manifest`; empty: not known.
  std::string origin;
  /// A newer generation of the pool is there: it does not count.
  bool obsolete = false;
  /// Slices of its pool are missing: no device of it is allocated.
  bool complete = true;
  /// This node allocates, and the driver is not registered with it: no device
  /// of it is allocated. It is there again when the driver registers.
  bool hidden = false;
  /// What the slices of its pool contradict each other in, such as a device
  /// that is there twice: no device of it is allocated. Empty: in nothing.
  std::string problem;
};

struct DeviceClassInfo {
  std::string name;
  std::string extended_resource_name;  ///< Empty when none is set.
  std::string implicit_resource_name;  ///< Empty when there can be none.
  std::string note;                    ///< For people; may be empty.
  /// The class that has the extended resource name instead: the newest of that
  /// name, of several the first by their own names. Empty: this one has it.
  std::string shadowed_by;
};

/// Something that happened, kept in memory for a while. The same again, that is
/// an event of the same type, reason, object and message, is counted and not
/// listed once more. Of one reason and object 16 messages are kept apart; the
/// later ones count as one event, which has the last message.
struct EventInfo {
  /// Rises with each event, and when repeats of an event are delivered.
  std::uint64_t sequence = 0;
  WallTime time;  ///< Of the last time that it happened.
  bool warning = false;
  std::string reason;  ///< CamelCase; the kubelet's where it has one.
  std::string object_kind;
  ObjectName object;
  std::string message;
  std::uint64_t count = 1;  ///< How often it has happened.
  WallTime first_time{};    ///< Of the first time.
  /// How many of `count` no observer has heard of before this delivery.
  std::uint64_t fresh = 1;
};

/// What was decided.
enum class DecisionKind {
  kIdentity,         ///< Objects from files got their UIDs, or lost them.
  kSeen,             ///< A pod that has to wait is known.
  kReject,           ///< A pod is rejected for good.
  kPrepareIntent,    ///< A pod references its claims; drivers will be asked.
  kPrepareResult,    ///< Drivers answered; pods may have become Ready.
  kUnprepareIntent,  ///< A pod gives up its claims.
  kUnprepareResult,  ///< Drivers answered; claims may be gone.
  kRelease,          ///< A pod is forgotten, maybe with its last claim.
  kRepair,           ///< What a check of the ledger found was mended.
  kRecovered,        ///< What could be saved of a damaged ledger.
  kReserve,          ///< Devices are chosen; plugins will be asked.
  kAllocated,        ///< Plugins answered; the pod has its devices.
  kUnreserve,        ///< Devices are free again; the pod did not get them.
  kBacking,          ///< What serves a resource's name.
  kInitEnded,        ///< Init containers ended; their devices are free.
  kDebt,             ///< Drivers have not unprepared what they were to.
  kForgiven,         ///< What drivers owed is not waited for any more.
  kHealth,           ///< The health of devices that claims hold.
  kSource,           ///< How a source is recognised, or what it vouches for.
  kHolderFound,      ///< Containers hold devices that no pod was given.
  kHolderGone,       ///< Such containers are gone, or their devices pods'.
  kHolderFreed,      ///< An operator freed what such a container holds.
  kWanted,           ///< A client wants a pod, over the control socket.
  kUnwanted,         ///< A client wants it no longer.
  kClaimsAllocated,  ///< This node made or allocated claims for a pod.
  kClaimsReleased,   ///< Such claims are free again, or gone.
  kSlicesDeleted,    ///< An operator deletes what a driver has published.
  kEvict,            ///< A pod has to leave its devices.
  kEvicted,          ///< It has left them, and is not admitted again.
  kRecheck,          ///< An operator has devices offered again at once.
  kImported,   ///< What checkpoint files of a kubelet hold was taken over.
  kShown,      ///< The source shows a pod that was imported.
  kAuthority,  ///< Which party allocates, or that it is handed over.
  kReplaced,   ///< A container gives up devices that do not work.
  kOther,      ///< A newer version wrote it into this ledger.
};
/// As the enumerator: `PrepareIntent`.
DEVMGR_EXPORT std::string_view DecisionKindName(DecisionKind kind);
using OpenDecisionKind = OpenEnum<DecisionKind, DecisionKindName>;

/// One decision of the ledger, as its bounded history keeps it.
struct DecisionInfo {
  std::uint64_t sequence = 0;
  WallTime time;
  OpenDecisionKind kind = DecisionKind::kOther;
  std::vector<std::string> pods;    ///< `namespace/name`.
  std::vector<std::string> claims;  ///< `namespace/name`.
  std::string message;
  /// Of the objects whose records it changed, and of the pods that hold those
  /// claims.
  std::vector<std::string> uids;
};

/// A moment in the life of a ledger: now, after the decision of that number, or
/// after the last decision that was not made later than that time.
using LedgerPoint = std::variant<std::monostate, std::uint64_t, WallTime>;

/// What the ledger held at some moment. It knows neither why a pod waits nor
/// what went wrong in calls.
struct LedgerView {
  std::uint64_t sequence = 0;  ///< Of the last decision.
  WallTime time;               ///< Of that decision; not set when not known.
  std::vector<PodInfo> pods;
  std::vector<ClaimInfo> claims;
  std::vector<DeviceInfo> devices;         ///< Those that claims hold.
  std::vector<ForeignHolderInfo> holders;  ///< By container ID.
};

/// What became of one pod, claim or foreign holder between two views.
struct LedgerChange {
  enum class Kind { kAdded, kRemoved, kChanged };
  struct Field {
    std::string name;
    std::string before;  ///< Empty, too, when it was not there.
    std::string after;   ///< Empty, too, when it is not there.
    friend bool operator==(const Field&, const Field&) = default;
  };
  Kind kind = Kind::kChanged;
  std::string object_kind;  ///< `Pod`, `Claim`, `ForeignHolder`.
  /// Of a foreign holder: its pod's.
  ObjectName name;
  std::string uid;  ///< Of a foreign holder: the container's ID.
  std::vector<Field> fields;
};
DEVMGR_EXPORT std::string_view LedgerChangeKindName(LedgerChange::Kind kind);

/// Pods first, then claims, then foreign holders, each by name; empty when both
/// views are the same.
DEVMGR_EXPORT std::vector<LedgerChange> DifferenceOf(const LedgerView& before,
                                                     const LedgerView& after);

/// What was found when the ledger was opened, or is found in a stopped one.
struct RecoveryInfo {
  bool closed_cleanly = true;  ///< When it was last closed; or it is new.
  bool damaged = false;        ///< It was recovered (Recovery::kLenient).
  std::uint64_t last_sequence = 0;
  std::vector<std::string> dropped;  ///< Writes cut off before their answer.
  std::uint64_t skipped = 0;         ///< Records that could not be read.
  std::vector<std::string> skipped_records;  ///< The first of them.
  std::string kept;     ///< Where the damaged database is now; may be empty.
  std::string message;  ///< All of it for people.
};

/// An object of a source that cannot be used as it is now, or not all of it.
struct ObjectProblem {
  std::string object_kind;
  ObjectName object;
  std::string problem;  ///< `file:line: field: message`.
  friend bool operator==(const ObjectProblem&, const ObjectProblem&) = default;
};

/// What is known of what a container runtime runs.
struct RuntimeSourceInfo {
  std::string source;  ///< As it describes itself.
  bool known = false;
  WallTime since;       ///< Of `known`.
  std::string reason;   ///< Why it is not known.
  std::string runtime;  ///< Name and version; empty: not known yet.
  int pods = 0;         ///< Of which it has something, as it was known last.
  friend bool operator==(const RuntimeSourceInfo&,
                         const RuntimeSourceInfo&) = default;
};

/// What `devmgrctl status` shows of a node.
struct NodeInfo {
  std::string version;
  std::string node_name;
  std::string boot_id;
  // Not set: not known, as of a manager that is stopped.
  std::optional<Authority> authority;
  /// Since when; not set: since the ledger was begun.
  std::optional<WallTime> authority_since;
  /// It is being handed over to this party, and why that takes time.
  std::optional<Authority> authority_to;
  std::string authority_wait;
  /// Why an operator chose; empty: the configuration did.
  std::string authority_by_operator;
  std::optional<Profile> profile;
  Actuate actuate = Actuate::kNone;
  std::string state_dir;
  std::uint64_t ledger_sequence = 0;
  std::string ledger_error;  ///< Empty while the ledger takes decisions.
  RecoveryInfo recovery;
  WallTime started;
  std::string source;  ///< Where objects come from.
  bool source_complete = false;
  std::vector<std::string> source_problems;
  /// The first 200 objects of files that cannot be used as they are now.
  std::vector<ObjectProblem> object_problems;
  /// Nothing: there is no source of it.
  std::optional<RuntimeSourceInfo> runtime;
  int pods = 0, pods_ready = 0, pods_waiting = 0, pods_rejected = 0;
  int claims = 0, plugins = 0;
};

}  // namespace devmgr
