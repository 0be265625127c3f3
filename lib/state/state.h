// SPDX-License-Identifier: Apache-2.0
//
// The projection of the ledger: what holds after all decisions up to `seq`.
// Pure values. Records are immutable and shared: a change replaces a record,
// so copies of a State are cheap and may live on several threads.
#pragma once

#include <absl/status/status.h>
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
#include <variant>
#include <vector>

#include "device/device.h"
#include "device/reservation.h"

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
std::string_view DriverPhaseName(DriverPhase phase);

/// A device as the driver's answer named it. APIs up to v1alpha3 answer CDI
/// names alone: then it is one device without any other name.
struct PreparedDevice {
  std::vector<std::string> request_names;  ///< Empty: serves all requests.
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_device_ids;
  std::string share_id;  ///< Empty when absent.
  friend bool operator==(const PreparedDevice&,
                         const PreparedDevice&) = default;
};

/// A device as the claim's allocation names it.
struct AllocatedDevice {
  std::string pool;
  std::string device;
  bool shared = false;  ///< Others may have it, too: admin access, a share.
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
  /// `void_cdi_device_ids`, or those of `devices`.
  std::vector<std::string> LastCdiDeviceIds() const;
  /// Before the driver was asked for the first time: kPreparing, with all that
  /// the claim's allocation says, and with what the driver may still have.
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
  std::string container;
  device::ContainerKind kind = device::ContainerKind::kApp;
  std::string resource;
  device::ReservationPhase phase = device::ReservationPhase::kReserved;
  std::vector<device::HeldDevice> devices;  ///< Once each.
  device::ContainerEdits edits;  ///< The plugin's answer, with kCommitted.
  /// The plugin is to be asked before each start of the container.
  bool pre_start = false;
  /// False: `devices` are only what it had.
  bool Holds() const { return phase != device::ReservationPhase::kReleased; }
  friend bool operator==(const DeviceHold&, const DeviceHold&) = default;
};

/// Who serves an extended resource by its name on this node. Stored: never
/// renumber.
enum class Backing : std::uint8_t {
  kPlugin = 1,  ///< A device plugin, by counting.
  kClass = 2,   ///< A device class, through claims.
};
std::string_view BackingName(Backing backing);

/// Changed by a recorded hand-over only.
struct ResourceRecord {
  std::string name;
  Backing backing = Backing::kPlugin;
  std::int64_t since_ms = 0;  ///< Unix time.
  /// Why an operator gave the name to whom it is with; it stays there until he
  /// says otherwise. Empty: nobody did.
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
  std::string resource;
  /// Entry of the pod's `resourceClaims`. Empty for the special claim, and in
  /// pods that were prepared before it was kept.
  std::string pod_claim = {};
  friend bool operator==(const Want&, const Want&) = default;
};

struct ContainerNeed {
  std::string name;
  bool init = false;
  std::vector<Want> wants;  ///< In pod-claim order, the special claim last.
  friend bool operator==(const ContainerNeed&, const ContainerNeed&) = default;
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
};
bool operator==(const PodRecord& a, const PodRecord& b);

/// Devices that the claim has for itself: as allocated, and where that is not
/// known as its drivers answered.
std::set<DeviceKey> OwnDevices(const ClaimRecord& claim);

/// The extended resources for which the pod holds claims.
std::set<std::string> ResourcesByClaims(const PodRecord& pod);

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

struct State {
  std::uint64_t seq = 0;
  std::map<PodUid, std::shared_ptr<const PodRecord>> pods;
  std::map<ClaimUid, std::shared_ptr<const ClaimRecord>> claims;
  std::map<IdentityKey, std::shared_ptr<const IdentityRecord>> identities;
  std::map<std::string, std::shared_ptr<const ResourceRecord>> resources;
  std::map<DeviceKey, std::shared_ptr<const HealthRecord>> healths;

  // Indexes over the maps above; Put and Erase keep all of them together.
  std::set<std::pair<ObjectName, PodUid>> pod_names;
  std::set<std::pair<ObjectName, ClaimUid>> claim_names;
  /// Resource, device of its plugin, who holds it.
  std::set<std::tuple<std::string, std::string, PodUid>> device_holders;
  /// Resource, who holds a claim for it.
  std::set<std::pair<std::string, PodUid>> class_holders;
  /// Prepared device, which claim has it.
  std::set<std::pair<DeviceKey, ClaimUid>> device_claims;
  /// Device that nobody else may have, which claim without pods keeps it.
  std::set<std::pair<DeviceKey, ClaimUid>> kept_devices;

  void Put(std::shared_ptr<const PodRecord> pod);
  void Put(std::shared_ptr<const ClaimRecord> claim);
  void Put(std::shared_ptr<const IdentityRecord> identity);
  void Put(std::shared_ptr<const ResourceRecord> resource);
  void Put(std::shared_ptr<const HealthRecord> health);
  // False when there was none.
  bool Erase(const PodUid& uid);
  bool Erase(const ClaimUid& uid);
  bool Erase(const IdentityKey& key);
  bool Erase(const std::string& resource);
  bool Erase(const DeviceKey& device);

  /// All of one name: a pod or claim that was re-created stands beside the one
  /// that is still being released. Pods in the order they were first seen.
  std::vector<PodUid> PodsNamed(const ObjectName& name) const;
  std::vector<ClaimUid> ClaimsNamed(const ObjectName& name) const;

  /// The pod that holds a device; null when it is free. Valid until the next
  /// change.
  const PodUid* HolderOf(std::string_view resource,
                         std::string_view device) const;

  /// Pods that hold devices of the plugin for this resource, `most` at most.
  std::vector<PodUid> PluginHoldersOf(const std::string& resource,
                                      std::size_t most) const;
  /// Pods that hold claims for this resource, `most` at most.
  std::vector<PodUid> ClassHoldersOf(const std::string& resource,
                                     std::size_t most) const;

  /// Claims that have a prepared device, in order of UID.
  std::vector<ClaimUid> ClaimsOf(const DeviceKey& device) const;
  /// A claim whose pods have gone and which a driver has yet to unprepare, so
  /// that nobody else may have the device; null when there is none. Valid until
  /// the next change.
  const ClaimUid* KeeperOf(const DeviceKey& device) const;

  /// Null when there is none.
  const PodRecord* FindPod(const PodUid& uid) const;
  const ClaimRecord* FindClaim(const ClaimUid& uid) const;
  const IdentityRecord* FindIdentity(const std::string& kind,
                                     const ObjectName& name) const;
  const ResourceRecord* FindResource(const std::string& name) const;
  const HealthRecord* FindHealth(const DeviceKey& device) const;

 private:
  void IndexHolds(const PodRecord& pod);
  void ForgetHolds(const PodRecord* pod);
  void ForgetDevices(const ClaimRecord* claim);
};
/// Compares contents, not addresses.
bool operator==(const State& a, const State& b);

// One change of the projection. Records are never null.
struct PutPod {
  std::shared_ptr<const PodRecord> pod;
};
struct ErasePod {
  PodUid uid;
};
struct PutClaim {
  std::shared_ptr<const ClaimRecord> claim;
};
struct EraseClaim {
  ClaimUid uid;
};
struct PutIdentity {
  std::shared_ptr<const IdentityRecord> identity;
};
struct EraseIdentity {
  std::string kind;
  ObjectName name;
};
struct PutResource {
  std::shared_ptr<const ResourceRecord> resource;
};
struct EraseResource {
  std::string name;
};
struct PutHealth {
  std::shared_ptr<const HealthRecord> health;
};
struct EraseHealth {
  DeviceKey device;
};
using Change = std::variant<PutPod, ErasePod, PutClaim, EraseClaim, PutIdentity,
                            EraseIdentity, PutResource, EraseResource,
                            PutHealth, EraseHealth>;

/// What was decided. Stored: never renumber.
enum class DecisionKind : std::uint8_t {
  kIdentity = 1,       ///< Objects from files got their UIDs, or lost them.
  kSeen = 2,           ///< A pod that has to wait is known.
  kReject = 3,         ///< A pod is rejected for good.
  kPrepareIntent = 4,  ///< A pod references its claims; drivers will be asked.
  kPrepareResult = 5,  ///< Drivers answered; pods may have become Ready.
  kUnprepareIntent = 6,  ///< A pod gives up its claims.
  kUnprepareResult = 7,  ///< Drivers answered; claims may be gone.
  kRelease = 8,          ///< A pod is forgotten.
  kRepair = 9,           ///< What a check of the ledger found was mended.
  kRecovered = 10,       ///< What could be saved of a damaged ledger.
  kReserve = 11,         ///< Devices are chosen; plugins will be asked.
  kAllocated = 12,       ///< Plugins answered; the pod has its devices.
  kUnreserve = 13,       ///< Devices are free again; the pod did not get them.
  kBacking = 14,         ///< Who serves a resource's name.
  kInitEnded = 15,       ///< Init containers ended; their devices are free.
  kDebt = 16,            ///< Drivers have not unprepared what they were to.
  kForgiven = 17,        ///< What drivers owed is not waited for any more.
  kHealth = 18,          ///< The health of devices that claims hold.
};
std::string_view DecisionKindName(DecisionKind kind);

/// A decision before it has a number.
struct Decision {
  DecisionKind kind = DecisionKind::kSeen;
  std::vector<ObjectName> pods;    ///< Whom it concerns, for the history.
  std::vector<ObjectName> claims;  ///< The same.
  std::string message;             ///< For people; may be empty.
  std::vector<Change> changes;     ///< Empty: nothing to decide, no write.
};

/// True with changes, and for a repair: what it does may lie outside.
bool IsWorthWriting(const Decision& decision);

/// A decision with its number: the unit of the ledger.
struct Batch {
  std::uint64_t seq = 0;
  std::int64_t time_ms = 0;  ///< Unix time.
  Decision decision;
  /// What takes the decision's changes back, one for each, the last one first.
  /// Empty when that is not known (see CanRevert).
  std::vector<Change> undo;
};

/// Applies one batch. Costs as much as its changes, however much is stored.
/// On error `state` is unchanged.
///   DataLoss  the number is not the next one, a record to be erased is not
///             there, or a record to be put is missing or has no UID
absl::Status Apply(State& state, const Batch& batch);

/// Apply for a batch that is being made: fills in its `undo`.
absl::Status ApplyNew(State& state, Batch& batch);

/// Whether the state before this batch can be had from the one after it. Not
/// so for batches of ledger format 1, and never for kRecovered: what was there
/// before that is lost.
bool CanRevert(const Batch& batch);

/// Takes back the last batch, the inverse of Apply. On error `state` is
/// unchanged.
///   FailedPrecondition  not CanRevert
///   DataLoss            it is not the last batch, or its `undo` does not fit
absl::Status Revert(State& state, const Batch& batch);

/// Invariants 1 to 5 of docs/architecture.md as far as the projection shows
/// them. One sentence per violation; empty when all hold.
/// With the `boot_id` of this boot, pods that became Ready in it are held to
/// be prepared in it; without, a reboot may explain that they are not.
std::vector<std::string> CheckInvariants(const State& state,
                                         std::string_view boot_id = {});

}  // namespace devmgr::state
