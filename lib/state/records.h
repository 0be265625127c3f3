// SPDX-License-Identifier: Apache-2.0
//
// What the ledger remembers: one record per pod, claim, identity, resource
// name, device health, source of objects, foreign holder and claim that this
// node allocates, and one of the party that allocates. Pure values.
#pragma once

#include <devmgr/container_devices.h>
#include <devmgr/objects.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/hardware.h"
#include "device/reservation.h"

namespace devmgr {
enum class Authority;
enum class ClaimState;
enum class ResourceOwner;
struct PodAlignmentInfo;
}  // namespace devmgr

namespace devmgr::state {

/// Where one driver stands with one claim. Stored: never renumber.
/// The transitions are drawn in lib/claim/README.md.
enum class DriverPhase : std::uint8_t {
  /// The intent to prepare is recorded. The driver may or may not have acted.
  kPreparing = 1,
  /// The driver answered; `devices` and `boot_id` hold.
  kPrepared = 2,
  /// The intent to unprepare is recorded. Never resolved, shared or prepared
  /// before this is settled.
  kUnpreparing = 3,
};
/// As devmgr/status_types.h has it.
ClaimState PublicOf(DriverPhase phase);
std::string_view DriverPhaseName(DriverPhase phase);

/// A device as the driver's answer named it. APIs up to v1alpha3 answer CDI
/// names alone: then it is one device without any other name.
struct PreparedDevice {
  std::vector<std::string> request_names;  ///< Empty: serves all requests.
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_device_ids;
  std::string share_id;  ///< Empty when absent.
  /// By the device nodes behind `cdi_device_ids`, where they were looked at.
  device::Hardware hardware = {};
  friend bool operator==(const PreparedDevice&,
                         const PreparedDevice&) = default;
};

/// A device as the claim's allocation names it.
struct AllocatedDevice {
  std::string pool;
  std::string device;
  bool shared = false;  ///< Others may have it, too: admin access, a share.
  /// By what its driver had published of it. None of a shared device.
  device::Hardware hardware = {};
  friend bool operator==(const AllocatedDevice&,
                         const AllocatedDevice&) = default;
};

/// A driver was to unprepare a claim and has not: it was not there, or failed.
struct Debt {
  std::int64_t since_ms = 0;   ///< Unix time of the first failure.
  std::uint32_t attempts = 0;  ///< Calls that failed.
  std::string last_error;
  std::vector<std::string> pods;  ///< `namespace/name` of the last holders.
  friend bool operator==(const Debt&, const Debt&) = default;
};

/// Calls that a driver does not want for a claim.
struct SkippedOperations {
  bool prepare = false;
  bool unprepare = false;
  friend bool operator==(const SkippedOperations&,
                         const SkippedOperations&) = default;
};

/// How far it was tried to bring back CDI specs that are gone, of what the
/// driver has prepared. Stored: never renumber.
enum class SpecRecovery : std::uint8_t {
  kNone = 0,            ///< They are not missed.
  kAskedAgain = 1,      ///< The driver prepares, or has prepared, once more.
  kUnprepareFirst = 2,  ///< With kPreparing: it is to unprepare before.
  kRenewed = 3,  ///< It has unprepared, and prepares or has prepared since.
};

struct DriverRecord {
  DriverPhase phase = DriverPhase::kPreparing;
  std::vector<PreparedDevice> devices;  ///< In the order of the answer.
  std::string boot_id;                  ///< Boot in which it was prepared.
  std::optional<Debt> debt;             ///< With kUnpreparing only.
  SkippedOperations skipped;            ///< As its allocation says.
  /// What the driver gets with each call; of claims up to v1alpha2.
  ResourceHandle handle = {};
  /// Known before the driver is asked. Empty when the allocation names none, as
  /// up to v1alpha2, or when it was booked before this was kept.
  std::vector<AllocatedDevice> allocated = {};
  /// Of the driver's last answer, where `devices` are void: it may still have
  /// them, and v1alpha1 wants to hear of them when they are unprepared.
  std::vector<std::string> void_cdi_device_ids = {};
  SpecRecovery spec_recovery = SpecRecovery::kNone;
  /// `void_cdi_device_ids`, or those of `devices`.
  std::vector<std::string> LastCdiDeviceIds() const;
  /// Before the driver was asked for the first time: kPreparing, with all that
  /// the claim's allocation says, and with what the driver may still have. What
  /// is kPreparing already keeps how it is to be prepared.
  DriverRecord Anew() const;
  friend bool operator==(const DriverRecord&, const DriverRecord&) = default;
};

/// A claim that some pod references, or that is being unprepared.
struct ClaimRecord {
  ClaimUid uid;
  ObjectName name;
  std::set<PodUid> pods;
  std::map<std::string, DriverRecord> drivers;
  /// Some of its devices can be reached from other nodes, too.
  bool network_attached = false;
  friend bool operator==(const ClaimRecord&, const ClaimRecord&) = default;
};

/// The devices of one resource that a container holds.
struct DeviceHold {
  ContainerName container;
  device::ContainerKind kind = device::ContainerKind::kApp;
  ResourceName resource;
  device::ReservationPhase phase = device::ReservationPhase::kReserved;
  std::vector<device::HeldDevice> devices;  ///< Once each.
  device::ContainerEdits edits;  ///< The plugin's answer, with kCommitted.
  /// The plugin is to be asked before each start of the container.
  bool pre_start = false;
  /// By the IDs of `devices`, and by the device nodes of `edits`.
  device::Hardware hardware = {};
  /// False: `devices` are only what it had.
  bool Holds() const { return phase != device::ReservationPhase::kReleased; }
  friend bool operator==(const DeviceHold&, const DeviceHold&) = default;
};

/// What serves an extended resource by its name on this node. Stored: never
/// renumber.
enum class Backing : std::uint8_t {
  kPlugin = 1,  ///< A device plugin, by counting.
  kClass = 2,   ///< A device class, through claims.
};
/// As devmgr/status_types.h has it.
ResourceOwner PublicOf(Backing backing);
std::string_view BackingName(Backing backing);

/// Changed by a recorded hand-over only.
struct ResourceRecord {
  ResourceName name;
  Backing backing = Backing::kPlugin;
  std::int64_t since_ms = 0;  ///< Unix time.
  /// Why an operator gave the name to its owner; it stays there until another
  /// decision. Empty: none did.
  std::string by_operator;
  friend bool operator==(const ResourceRecord&,
                         const ResourceRecord&) = default;
};

/// Driver, pool and device.
using DeviceKey = std::tuple<std::string, std::string, std::string>;

/// What a driver said last of the health of a device that a claim holds.
struct HealthRecord {
  std::string driver;
  std::string pool;
  std::string device;
  device::Health health = device::Health::kUnknown;
  std::string message;
  std::int64_t lease_ms = 0;  ///< How long a report counts.
  std::int64_t since_ms = 0;  ///< Of health and message; Unix time.
  /// Boot in which the lease began. Empty where it was written before this was
  /// kept: it counts no more.
  std::string boot_id = {};
  /// When the lease began, at the latest that is known: since that boot, by
  /// BootMs of common/boot_id.h.
  std::int64_t told_ms = 0;
  DeviceKey Key() const { return {driver, pool, device}; }
  friend bool operator==(const HealthRecord&, const HealthRecord&) = default;
};

/// Stored: never renumber.
enum class PodPhase : std::uint8_t {
  kWaiting = 1,     ///< Known; holds nothing.
  kPreparing = 2,   ///< References its claims; not all are prepared.
  kReady = 3,       ///< `answer` is frozen.
  kRejected = 4,    ///< Final; holds nothing.
  kReleasing = 5,   ///< Being unprepared; `claims` are what is left to do.
  kAllocating = 6,  ///< Its devices are reserved; plugins are being asked.
  kAdmitted = 7,    ///< Its devices are committed; it references no claims yet.
};
std::string_view PodPhaseName(PodPhase phase);

/// One thing a container wants: a request (empty: all requests) of a claim;
/// `resource` is set when an extended resource asks for it.
struct Want {
  ClaimUid claim;
  std::string request;
  ResourceName resource;
  /// Entry of the pod's `resourceClaims`. Empty for the special claim, and in
  /// pods that were prepared before it was kept.
  std::string pod_claim = {};
  friend bool operator==(const Want&, const Want&) = default;
};

struct ContainerNeed {
  ContainerName name;
  bool init = false;
  std::vector<Want> wants;  ///< In pod-claim order, the special claim last.
  friend bool operator==(const ContainerNeed&, const ContainerNeed&) = default;
};

/// A pod has to leave its devices, and is never admitted again.
struct Eviction {
  std::string reason;  ///< CamelCase.
  std::string message;
  std::int64_t since_ms = 0;  ///< Unix time.
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

struct PodRecord {
  PodUid uid;
  ObjectName name;
  std::int64_t first_seen_ms = 0;  ///< Unix time.
  /// Decision at which the pod was first seen; orders pods of one name.
  std::uint64_t first_seen_seq = 0;
  PodPhase phase = PodPhase::kWaiting;
  std::string reason;            ///< Of a rejection.
  std::string message;           ///< Of a rejection.
  std::vector<ClaimUid> claims;  ///< In pod-claim order.
  /// Kept while it is being unprepared.
  std::vector<ContainerNeed> needs;
  /// Of device plugins; by container as in the pod, then by resource. Kept
  /// until the pod is forgotten.
  std::vector<DeviceHold> holds;
  /// Set while the phase is kReady: what resolve answers.
  std::shared_ptr<const PodDevices> answer;
  std::string boot_id;  ///< Boot in which `answer` was frozen.
  /// Once the pod has left, its phase is kRejected. Before, it is as it was: it
  /// holds what it holds until nothing of it runs.
  std::optional<Eviction> eviction = {};
  /// It came from the kubelet's checkpoint files, and the source has not shown
  /// it yet: they name no pods, so `name` is ImportedName of its UID; kinds of
  /// containers and, of a pod with claims, what these want are not known.
  bool imported = false;
  /// Its devices of plugins are of those that are kept for pods of this node,
  /// where a control plane has the others (Party::kSplit).
  bool local = false;
  /// What its hints of NUMA nodes came to when it was given its devices. Null:
  /// it was not aligned, or before this was kept.
  std::shared_ptr<const PodAlignmentInfo> alignment;
};
/// What an imported pod is called until the source shows it: its UID, without a
/// namespace, which no other pod is without.
inline ObjectName ImportedName(const PodUid& pod) { return {"", pod.value}; }
bool operator==(const PodRecord& a, const PodRecord& b);

struct ForeignHolderRecord;
struct LocalClaimRecord;

/// It references its claims: it is being prepared, or Ready.
bool IsLive(const PodRecord& pod);

/// It is to be stopped, and then gives up what it holds.
bool IsEvicting(const PodRecord& pod);

/// Some driver of the claim is to unprepare it.
bool IsUnpreparing(const ClaimRecord& claim);

/// Devices that the claim has for itself: as allocated, and where that is not
/// known as its drivers answered.
std::set<DeviceKey> OwnDevices(const ClaimRecord& claim);

/// Hardware, and the resource or driver by which it is had. Points into a
/// record.
struct OwnedHardware {
  const std::string* owner;
  const device::Hardware* hardware;
};
/// What a record keeps from others, as far as it is known; of a foreign holder
/// by no owner.
std::vector<OwnedHardware> HardwareOf(const ClaimRecord& claim);
std::vector<OwnedHardware> HardwareOf(const PodRecord& pod);
std::vector<OwnedHardware> HardwareOf(const ForeignHolderRecord& holder);
std::vector<OwnedHardware> HardwareOf(const LocalClaimRecord& claim);

/// What the pod holds of device plugins, as the rooms that decide see it.
std::vector<device::Reservation> ReservationsOf(const PodRecord& pod);

/// The extended resources for which the pod holds claims.
std::set<ResourceName> ResourcesByClaims(const PodRecord& pod);

/// The identity of an object that came from a file without one.
struct IdentityRecord {
  std::string kind;
  ObjectName name;
  std::string uid;  ///< Given or derived.
  std::int64_t first_seen_ms = 0;
  friend bool operator==(const IdentityRecord&,
                         const IdentityRecord&) = default;
};
using IdentityKey = std::pair<std::string, ObjectName>;  ///< Kind and name.

/// A source of objects, as it describes itself.
struct SourceKey {
  std::string name;
  friend auto operator<=>(const SourceKey&, const SourceKey&) = default;
};

/// A source that has brought pods of this node, and how it is recognised over a
/// restart.
struct SourceRecord {
  std::string name;           ///< ObjectSource::Describe.
  std::string marker;         ///< The ID that it carries if it can be written.
  std::int64_t since_ms = 0;  ///< Unix time.
  SourceKey Key() const { return {name}; }
  friend bool operator==(const SourceRecord&, const SourceRecord&) = default;
};

/// A container, as its runtime names it.
struct ContainerId {
  std::string value;
  friend auto operator<=>(const ContainerId&, const ContainerId&) = default;
};

/// A container that holds devices which the ledger assigned to no pod of its.
/// Ends when the container is gone, when its pod has just these devices, or
/// when other pods have all of them.
struct ForeignHolderRecord {
  ContainerId id;
  /// Socket of the runtime. What is reported of another runtime does not touch
  /// the record.
  std::string endpoint;
  // As the runtime says; empty where it does not.
  PodUid pod_uid;
  ObjectName pod;
  ContainerName container;
  /// Resource and ID of devices of device plugins; no other pod has them.
  std::set<std::pair<ResourceName, DeviceId>> devices;
  /// Names of CDI devices. They are shown, and keep no claim from being
  /// allocated.
  std::set<std::string> cdi_devices;
  std::int64_t since_ms = 0;  ///< Unix time.
  std::string why;            ///< Why it was taken for one, for people.
  /// Why an operator freed its devices though it may still run. Empty: it holds
  /// them. The record stays until the container is gone, so that the next
  /// report of it is not taken for a new one.
  std::string freed;
  /// Boot in which it was found: no container outlives it.
  std::string boot_id = {};
  device::Hardware hardware = {};  ///< Of all that it has.
  bool Holds() const { return freed.empty(); }
  friend bool operator==(const ForeignHolderRecord&,
                         const ForeignHolderRecord&) = default;
};

/// A claim that this node allocates itself, by the UID of its object. Not the
/// UID of a ClaimRecord: that one says what drivers have prepared of it.
struct LocalClaimUid {
  std::string value;
  friend auto operator<=>(const LocalClaimUid&, const LocalClaimUid&) = default;
};

/// Where the object of such a claim comes from. Stored: never renumber.
enum class ClaimOrigin : std::uint8_t {
  kSource = 1,             ///< The source of objects; its status is ours.
  kTemplate = 2,           ///< Made for a pod, from a template.
  kExtendedResources = 3,  ///< Made for the extended resources of a pod.
};
std::string_view ClaimOriginName(ClaimOrigin origin);

/// What a device that a claim was given takes of the counters of its pool.
struct DeviceCounters {
  DeviceKey device;
  /// By counter set and counter.
  std::map<std::pair<std::string, std::string>, Quantity> counters;
  friend bool operator==(const DeviceCounters&,
                         const DeviceCounters&) = default;
};

/// The hardware of a device that a claim was given.
struct DeviceHardware {
  DeviceKey device;
  device::Hardware hardware;
  friend bool operator==(const DeviceHardware&,
                         const DeviceHardware&) = default;
};

/// A claim that this node has made, or allocated, for pods of its own: what a
/// control plane keeps in an API server.
struct LocalClaimRecord {
  LocalClaimUid uid;
  ClaimOrigin origin = ClaimOrigin::kSource;
  /// With its allocation and those it is reserved for. Of a claim of the source
  /// the rest is as it was when it was allocated. Never null.
  std::shared_ptr<const ResourceClaim> object;
  std::vector<DeviceCounters> counters = {};  ///< Of its allocation.
  PodUid pod = {};                            ///< For which it was made.
  std::string pod_claim = {};  ///< Entry of its `resourceClaims`: kTemplate.
  /// Which request serves which container: kExtendedResources.
  std::vector<ContainerExtendedResourceRequest> mappings = {};
  /// Of its allocation; without shared devices, and those of which nothing is
  /// known.
  std::vector<DeviceHardware> hardware = {};
};
bool operator==(const LocalClaimRecord& a, const LocalClaimRecord& b);

/// The party that allocates devices of this node. Stored: never renumber.
enum class Party : std::uint8_t {
  kNode = 1,
  kScheduler = 2,
  kSplit = 3,
};
/// As devmgr/options.h has it.
devmgr::Authority PublicOf(Party party);
Party PartyOf(devmgr::Authority authority);

/// There is one record of it, or none: then the node has always been it.
struct AuthorityKey {
  friend auto operator<=>(const AuthorityKey&, const AuthorityKey&) = default;
};

/// Which party allocates, and the hand-over to another one. Changed by
/// recorded decisions only.
struct AuthorityRecord {
  Party party = Party::kNode;
  std::int64_t since_ms = 0;  ///< Unix time.
  /// As configured when this was written: another party in the configuration
  /// begins a hand-over.
  Party configured = Party::kNode;
  /// Why an operator chose `party`, or `to`. Empty: the configuration did.
  std::string by_operator = {};
  /// While it is handed over: neither party takes new decisions.
  std::optional<Party> to = {};
  std::int64_t to_since_ms = 0;  ///< Unix time, with `to`.
  AuthorityKey Key() const { return {}; }
  friend bool operator==(const AuthorityRecord&,
                         const AuthorityRecord&) = default;
};

/// The holder where pods are named: `foreign container 0123456789abc (pod
/// default/a)`, with as much of the ID as crictl shows.
std::string HolderText(const ForeignHolderRecord& holder);

}  // namespace devmgr::state
