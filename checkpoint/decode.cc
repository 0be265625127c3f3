// SPDX-License-Identifier: Apache-2.0
//
// Bytes to records; whatever is on the disk, nothing is taken for granted.
#include <devmgr/ledger/v1/ledger.pb.h>
#include <devmgr/manifests.h>
#include <devmgr/topology.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "api/quantity.h"
#include "api/quote.h"
#include "checkpoint/codec.h"
#include "common/answer_messages.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace pb = ::devmgr::ledger::v1;

ObjectName Read(const pb::ObjectName& in) { return {in.ns(), in.name()}; }

template <typename Repeated>
std::vector<std::string> ReadTexts(const Repeated& in) {
  return {in.begin(), in.end()};
}

device::Hardware Read(const pb::Hardware& in) {
  device::Hardware hardware;
  for (const std::string& identity : in.identities()) {
    hardware.Add(device::PhysicalIdentity{identity});
  }
  hardware.part = in.part();
  return hardware;
}

state::PreparedDevice Read(const pb::PreparedDevice& in) {
  return {ReadTexts(in.request_names()),  in.pool(),     in.device(),
          ReadTexts(in.cdi_device_ids()), in.share_id(), Read(in.hardware())};
}

StructuredResourceHandle Read(const pb::StructuredHandle& in) {
  StructuredResourceHandle handle;
  handle.vendor_class_parameters = in.vendor_class_parameters();
  handle.vendor_claim_parameters = in.vendor_claim_parameters();
  handle.node_name = in.node_name();
  for (const pb::StructuredResult& result : in.results()) {
    handle.results.push_back(
        {result.vendor_request_parameters(), result.named_resource()});
  }
  return handle;
}

state::Want Read(const pb::Want& in);
state::ContainerNeed Read(const pb::ContainerNeed& in);
TopologyHint Read(const pb::NumaHint& in);
TopologyHintsInfo Read(const pb::ResourceHints& in);

template <typename T, typename Repeated>
std::vector<T> ReadAll(const Repeated& in) {
  std::vector<T> out;
  out.reserve(in.size());
  for (const auto& item : in) out.push_back(Read(item));
  return out;
}

state::Want Read(const pb::Want& in) {
  return {ClaimUid{in.claim()}, in.request(), in.resource(), in.pod_claim()};
}

state::ContainerNeed Read(const pb::ContainerNeed& in) {
  return {in.name(), in.init(), ReadAll<state::Want>(in.wants())};
}

/// Checks a stored enumerator against the first and last one we know.
template <typename Enum>
absl::StatusOr<Enum> ReadEnum(std::uint32_t value, Enum first, Enum last,
                              std::string_view what, std::string_view key) {
  if (value < static_cast<std::uint32_t>(first) ||
      value > static_cast<std::uint32_t>(last)) {
    return DataLossError("record '{}': unknown {} {}", key, what, value);
  }
  return static_cast<Enum>(value);
}

state::Debt Read(const pb::Debt& in) {
  return {in.since_ms(), in.attempts(), in.last_error(), ReadTexts(in.pods())};
}

absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> Read(
    const pb::ClaimRecord& in, std::string_view key) {
  auto claim = std::make_shared<state::ClaimRecord>();
  claim->uid.value = in.uid();
  claim->name = Read(in.name());
  for (const std::string& pod : in.pods()) claim->pods.insert(PodUid{pod});
  for (const pb::DriverRecord& driver : in.drivers()) {
    state::DriverRecord record;
    DEVMGR_ASSIGN_OR_RETURN(
        record.phase,
        ReadEnum(driver.phase(), state::DriverPhase::kPreparing,
                 state::DriverPhase::kUnpreparing, "driver phase", key));
    record.devices = ReadAll<state::PreparedDevice>(driver.devices());
    record.boot_id = driver.boot_id();
    if (driver.has_debt()) record.debt = Read(driver.debt());
    record.skipped = {driver.skips_prepare(), driver.skips_unprepare()};
    record.handle.data = driver.resource_handle();
    if (driver.has_structured_handle()) {
      record.handle.structured = Read(driver.structured_handle());
    }
    for (const pb::AllocatedDevice& device : driver.allocated()) {
      record.allocated.push_back({device.pool(), device.device(),
                                  device.shared(), Read(device.hardware())});
    }
    record.void_cdi_device_ids = ReadTexts(driver.void_cdi_device_ids());
    DEVMGR_ASSIGN_OR_RETURN(
        record.spec_recovery,
        ReadEnum(driver.spec_recovery(), state::SpecRecovery::kNone,
                 state::SpecRecovery::kRenewed, "spec recovery", key));
    if (!claim->drivers.emplace(driver.name(), std::move(record)).second) {
      return DataLossError("record '{}': driver {} stands there twice", key,
                           api::Quoted(driver.name()));
    }
  }
  claim->network_attached = in.network_attached();
  return claim;
}

absl::StatusOr<state::DeviceHold> Read(const pb::DeviceHold& in,
                                       std::string_view key) {
  state::DeviceHold hold;
  hold.container = in.container();
  DEVMGR_ASSIGN_OR_RETURN(
      hold.kind, ReadEnum(in.kind(), device::ContainerKind::kInit,
                          device::ContainerKind::kApp, "container kind", key));
  hold.resource = in.resource();
  DEVMGR_ASSIGN_OR_RETURN(
      hold.phase,
      ReadEnum(in.phase(), device::ReservationPhase::kReserved,
               device::ReservationPhase::kReleased, "hold phase", key));
  for (const pb::HeldDevice& held : in.devices()) {
    hold.devices.push_back(
        {held.id(), {held.numa_nodes().begin(), held.numa_nodes().end()}});
  }
  const auto named = [](const auto& item) { return ReadNamedValue(item); };
  hold.edits = {
      ReadEach(in.edits().env(), named),
      ReadEach(in.edits().mounts(),
               [](const auto& item) { return ReadDeviceMount(item); }),
      ReadEach(in.edits().devices(),
               [](const auto& item) { return ReadDeviceNode(item); }),
      ReadEach(in.edits().annotations(), named),
      ReadTexts(in.edits().cdi_devices())};
  if (in.edits().has_response()) hold.edits.response = in.edits().response();
  hold.pre_start = in.pre_start();
  hold.hardware = Read(in.hardware());
  return hold;
}

TopologyHint Read(const pb::NumaHint& in) {
  TopologyHint hint{.nodes = std::nullopt, .preferred = in.preferred()};
  if (!in.any()) hint.nodes = NumaMask(in.nodes());
  return hint;
}

TopologyHintsInfo Read(const pb::ResourceHints& in) {
  TopologyHintsInfo list;
  list.provider = in.provider();
  list.resource = in.resource();
  if (in.has_opinion()) list.hints = ReadAll<TopologyHint>(in.hints());
  list.count = in.count();
  list.truncated = in.truncated();
  list.informative = in.informative();
  return list;
}

absl::StatusOr<std::shared_ptr<const PodAlignmentInfo>> Read(
    const pb::PodAlignment& in, std::string_view key) {
  auto alignment = std::make_shared<PodAlignmentInfo>();
  TopologyOptions& options = alignment->options;
  DEVMGR_ASSIGN_OR_RETURN(
      options.policy,
      ReadEnum(in.policy(), TopologyPolicy::kNone,
               TopologyPolicy::kSingleNumaNode, "topology policy", key));
  DEVMGR_ASSIGN_OR_RETURN(options.scope,
                          ReadEnum(in.scope(), TopologyScope::kContainer,
                                   TopologyScope::kPod, "topology scope", key));
  options.prefer_closest = in.prefer_closest();
  options.max_numa_nodes = in.max_numa_nodes();
  for (const pb::ContainerAlignment& item : in.containers()) {
    ContainerAlignmentInfo& one = alignment->containers.emplace_back();
    one.container = item.container();
    one.resources = ReadAll<TopologyHintsInfo>(item.resources());
    one.merged = Read(item.merged());
    one.proven = item.proven();
  }
  return alignment;
}

absl::StatusOr<std::shared_ptr<const state::PodRecord>> Read(
    const pb::PodRecord& in, std::string_view key) {
  auto pod = std::make_shared<state::PodRecord>();
  pod->uid.value = in.uid();
  pod->name = Read(in.name());
  pod->first_seen_ms = in.first_seen_ms();
  pod->first_seen_seq = in.first_seen_seq();
  DEVMGR_ASSIGN_OR_RETURN(
      pod->phase, ReadEnum(in.phase(), state::PodPhase::kWaiting,
                           state::PodPhase::kAdmitted, "pod phase", key));
  pod->reason = in.reason();
  pod->message = in.message();
  for (const std::string& uid : in.claims()) {
    pod->claims.push_back(ClaimUid{uid});
  }
  pod->needs = ReadAll<state::ContainerNeed>(in.needs());
  if (in.has_answer()) {
    pod->answer =
        std::make_shared<const PodDevices>(ReadPodDevices(in.answer()));
  }
  pod->boot_id = in.boot_id();
  for (const pb::DeviceHold& item : in.holds()) {
    DEVMGR_ASSIGN_OR_RETURN(auto hold, Read(item, key));
    pod->holds.push_back(std::move(hold));
  }
  if (in.has_eviction()) {
    pod->eviction = {in.eviction().reason(), in.eviction().message(),
                     in.eviction().since_ms()};
  }
  pod->imported = in.imported();
  pod->local = in.local();
  if (in.has_alignment()) {
    DEVMGR_ASSIGN_OR_RETURN(pod->alignment, Read(in.alignment(), key));
  }
  return pod;
}

std::shared_ptr<const state::IdentityRecord> Read(
    const pb::IdentityRecord& in) {
  auto identity = std::make_shared<state::IdentityRecord>();
  identity->kind = in.kind();
  identity->name = Read(in.name());
  identity->uid = in.uid();
  identity->first_seen_ms = in.first_seen_ms();
  return identity;
}

absl::StatusOr<std::shared_ptr<const state::ResourceRecord>> Read(
    const pb::ResourceRecord& in, std::string_view key) {
  auto resource = std::make_shared<state::ResourceRecord>();
  resource->name = in.name();
  DEVMGR_ASSIGN_OR_RETURN(resource->backing,
                          ReadEnum(in.backing(), state::Backing::kPlugin,
                                   state::Backing::kClass, "backing", key));
  resource->since_ms = in.since_ms();
  resource->by_operator = in.by_operator();
  return resource;
}

absl::StatusOr<std::shared_ptr<const state::HealthRecord>> Read(
    const pb::HealthRecord& in, std::string_view key) {
  auto health = std::make_shared<state::HealthRecord>();
  health->driver = in.driver();
  health->pool = in.pool();
  health->device = in.device();
  DEVMGR_ASSIGN_OR_RETURN(health->health,
                          ReadEnum(in.health(), device::Health::kHealthy,
                                   device::Health::kUnknown, "health", key));
  health->message = in.message();
  health->lease_ms = in.lease_ms();
  health->since_ms = in.since_ms();
  health->boot_id = in.boot_id();
  health->told_ms = in.told_ms();
  return health;
}

std::shared_ptr<const state::SourceRecord> Read(const pb::SourceRecord& in) {
  auto source = std::make_shared<state::SourceRecord>();
  source->name = in.name();
  source->marker = in.marker();
  source->since_ms = in.since_ms();
  return source;
}

std::shared_ptr<const state::ForeignHolderRecord> Read(
    const pb::ForeignHolderRecord& in) {
  auto holder = std::make_shared<state::ForeignHolderRecord>();
  holder->id.value = in.id();
  holder->endpoint = in.endpoint();
  holder->pod_uid.value = in.pod_uid();
  holder->pod = Read(in.pod());
  holder->container = in.container();
  for (const pb::HeldResource& held : in.devices()) {
    for (const std::string& device : held.devices()) {
      holder->devices.emplace(held.name(), device);
    }
  }
  holder->cdi_devices = {in.cdi_devices().begin(), in.cdi_devices().end()};
  holder->since_ms = in.since_ms();
  holder->why = in.why();
  holder->freed = in.freed();
  holder->boot_id = in.boot_id();
  holder->hardware = Read(in.hardware());
  return holder;
}

/// What the encoder has written: one claim, and valid.
absl::StatusOr<std::shared_ptr<const ResourceClaim>> ReadObject(
    std::string_view json, std::string_view key) {
  DecodedManifest decoded = DecodeManifest(json, key);
  if (!decoded.errors.empty()) {
    return DataLossError("record '{}': {}", key,
                         decoded.errors.front().ToString());
  }
  auto* claim = decoded.objects.size() == 1
                    ? std::get_if<ResourceClaim>(&decoded.objects[0].object)
                    : nullptr;
  if (claim == nullptr) {
    return DataLossError("record '{}' does not hold one ResourceClaim", key);
  }
  return std::make_shared<const ResourceClaim>(std::move(*claim));
}

absl::StatusOr<state::DeviceCounters> Read(const pb::DeviceCounters& in,
                                           std::string_view key) {
  state::DeviceCounters counters{{in.driver(), in.pool(), in.device()}, {}};
  for (const pb::CounterUse& use : in.counters()) {
    auto amount = api::ParseQuantity(use.amount());
    if (!amount.ok()) {
      return DataLossError("record '{}': counter {}: {}", key,
                           api::Quoted(use.name()), MessageOf(amount.status()));
    }
    counters.counters.emplace(std::pair(use.set(), use.name()),
                              *std::move(amount));
  }
  return counters;
}

absl::StatusOr<std::shared_ptr<const state::LocalClaimRecord>> Read(
    const pb::LocalClaimRecord& in, std::string_view key) {
  auto claim = std::make_shared<state::LocalClaimRecord>();
  claim->uid.value = in.uid();
  DEVMGR_ASSIGN_OR_RETURN(
      claim->origin,
      ReadEnum(in.origin(), state::ClaimOrigin::kSource,
               state::ClaimOrigin::kExtendedResources, "origin", key));
  DEVMGR_ASSIGN_OR_RETURN(claim->object, ReadObject(in.object(), key));
  if (claim->object->metadata.uid != claim->uid.value) {
    return DataLossError("record '{}' holds the claim with UID {}", key,
                         api::Quoted(claim->object->metadata.uid));
  }
  for (const pb::DeviceCounters& item : in.counters()) {
    DEVMGR_ASSIGN_OR_RETURN(auto counters, Read(item, key));
    claim->counters.push_back(std::move(counters));
  }
  claim->pod.value = in.pod_uid();
  claim->pod_claim = in.pod_claim();
  for (const pb::RequestMapping& item : in.mappings()) {
    claim->mappings.push_back(
        {item.container(), item.resource(), item.request()});
  }
  for (const pb::DeviceHardware& item : in.hardware()) {
    claim->hardware.push_back(
        {{item.driver(), item.pool(), item.device()}, Read(item.hardware())});
  }
  return claim;
}

absl::StatusOr<state::Party> ReadParty(std::uint32_t value,
                                       std::string_view key) {
  return ReadEnum(value, state::Party::kNode, state::Party::kSplit, "authority",
                  key);
}

absl::StatusOr<std::shared_ptr<const state::AuthorityRecord>> Read(
    const pb::AuthorityRecord& in, std::string_view key) {
  auto authority = std::make_shared<state::AuthorityRecord>();
  DEVMGR_ASSIGN_OR_RETURN(authority->party, ReadParty(in.party(), key));
  DEVMGR_ASSIGN_OR_RETURN(authority->configured,
                          ReadParty(in.configured(), key));
  authority->since_ms = in.since_ms();
  authority->by_operator = in.by_operator();
  if (in.to() == 0) return authority;
  DEVMGR_ASSIGN_OR_RETURN(authority->to, ReadParty(in.to(), key));
  authority->to_since_ms = in.to_since_ms();
  return authority;
}

absl::StatusOr<state::Change> Read(const pb::Change& in, std::string_view key) {
  switch (in.change_case()) {
    case pb::Change::kPutPod: {
      DEVMGR_ASSIGN_OR_RETURN(auto pod, Read(in.put_pod(), key));
      return state::PutPod{std::move(pod)};
    }
    case pb::Change::kErasePod:
      return state::ErasePod{PodUid{in.erase_pod()}};
    case pb::Change::kPutClaim: {
      DEVMGR_ASSIGN_OR_RETURN(auto claim, Read(in.put_claim(), key));
      return state::PutClaim{std::move(claim)};
    }
    case pb::Change::kEraseClaim:
      return state::EraseClaim{ClaimUid{in.erase_claim()}};
    case pb::Change::kPutIdentity:
      return state::PutIdentity{Read(in.put_identity())};
    case pb::Change::kEraseIdentity:
      return state::EraseIdentity{in.erase_identity().kind(),
                                  Read(in.erase_identity().name())};
    case pb::Change::kPutResource: {
      DEVMGR_ASSIGN_OR_RETURN(auto resource, Read(in.put_resource(), key));
      return state::PutResource{std::move(resource)};
    }
    case pb::Change::kEraseResource:
      return state::EraseResource{in.erase_resource()};
    case pb::Change::kPutHealth: {
      DEVMGR_ASSIGN_OR_RETURN(auto health, Read(in.put_health(), key));
      return state::PutHealth{std::move(health)};
    }
    case pb::Change::kEraseHealth: {
      const pb::HealthRecord& health = in.erase_health();
      return state::EraseHealth{
          {health.driver(), health.pool(), health.device()}};
    }
    case pb::Change::kPutSource:
      return state::PutSource{Read(in.put_source())};
    case pb::Change::kEraseSource:
      return state::EraseSource{{in.erase_source()}};
    case pb::Change::kPutHolder:
      return state::PutHolder{Read(in.put_holder())};
    case pb::Change::kEraseHolder:
      return state::EraseHolder{{in.erase_holder()}};
    case pb::Change::kPutLocalClaim: {
      DEVMGR_ASSIGN_OR_RETURN(auto claim, Read(in.put_local_claim(), key));
      return state::PutLocalClaim{std::move(claim)};
    }
    case pb::Change::kEraseLocalClaim:
      return state::EraseLocalClaim{{in.erase_local_claim()}};
    case pb::Change::kPutAuthority: {
      DEVMGR_ASSIGN_OR_RETURN(auto authority, Read(in.put_authority(), key));
      return state::PutAuthority{std::move(authority)};
    }
    case pb::Change::kEraseAuthority:
      return state::EraseAuthority{};
    case pb::Change::CHANGE_NOT_SET:
      break;
  }
  return DataLossError("record '{}': unknown change", key);
}

/// Adds the changes, but for those that we do not know and may ignore.
template <typename Changes>
absl::Status ReadChanges(const Changes& in, std::string_view key,
                         std::vector<state::Change>& out) {
  for (const pb::Change& item : in) {
    if (item.change_case() == pb::Change::CHANGE_NOT_SET &&
        item.may_be_ignored()) {
      continue;
    }
    DEVMGR_ASSIGN_OR_RETURN(auto change, Read(item, key));
    out.push_back(std::move(change));
  }
  return absl::OkStatus();
}

absl::StatusOr<state::DecisionKind> ReadKind(const pb::Batch& in,
                                             std::string_view key) {
  auto kind = ReadEnum(in.kind(), state::DecisionKind::kIdentity,
                       state::DecisionKind::kReplaced, "kind of decision", key);
  if (!kind.ok() && in.kind_may_be_unknown()) {
    return state::DecisionKind::kOther;
  }
  return kind;
}

absl::Status ParseInto(google::protobuf::MessageLite& message,
                       std::string_view bytes, std::string_view key) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return DataLossError("record '{}': its {} bytes cannot be decoded", key,
                       bytes.size());
}

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes, std::string_view key) {
  Message message;
  DEVMGR_RETURN_IF_ERROR(ParseInto(message, bytes, key));
  return message;
}

/// For records of which there are thousands: what is parsed lies in one block
/// that goes as a whole, instead of field by field.
template <typename Message, typename Use>
auto ParseThen(std::string_view bytes, std::string_view key, Use use)
    -> decltype(use(std::declval<const Message&>())) {
  constexpr std::size_t kLeast = 1024;
  constexpr std::size_t kMost = 64 * 1024;
  google::protobuf::ArenaOptions options;
  options.start_block_size = std::clamp(4 * bytes.size(), kLeast, kMost);
  options.max_block_size = kMost;
  google::protobuf::Arena arena(options);
  auto* const message = google::protobuf::Arena::CreateMessage<Message>(&arena);
  DEVMGR_RETURN_IF_ERROR(ParseInto(*message, bytes, key));
  return use(*message);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const state::PodRecord>> DecodePod(
    std::string_view bytes, std::string_view key) {
  return ParseThen<pb::PodRecord>(
      bytes, key, [&](const auto& message) { return Read(message, key); });
}

absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> DecodeClaim(
    std::string_view bytes, std::string_view key) {
  return ParseThen<pb::ClaimRecord>(
      bytes, key, [&](const auto& message) { return Read(message, key); });
}

absl::StatusOr<std::shared_ptr<const state::IdentityRecord>> DecodeIdentity(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::IdentityRecord>(bytes, key));
  return Read(message);
}

absl::StatusOr<std::shared_ptr<const state::ResourceRecord>> DecodeResource(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::ResourceRecord>(bytes, key));
  return Read(message, key);
}

absl::StatusOr<std::shared_ptr<const state::HealthRecord>> DecodeHealth(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::HealthRecord>(bytes, key));
  return Read(message, key);
}

absl::StatusOr<std::shared_ptr<const state::SourceRecord>> DecodeSource(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::SourceRecord>(bytes, key));
  return Read(message);
}

absl::StatusOr<std::shared_ptr<const state::ForeignHolderRecord>> DecodeHolder(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::ForeignHolderRecord>(bytes, key));
  return Read(message);
}

absl::StatusOr<std::shared_ptr<const state::LocalClaimRecord>> DecodeLocalClaim(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::LocalClaimRecord>(bytes, key));
  return Read(message, key);
}

absl::StatusOr<state::Batch> DecodeBatch(std::string_view bytes,
                                         std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message, Parse<pb::Batch>(bytes, key));
  state::Batch batch;
  batch.seq = message.seq();
  batch.time_ms = message.time_ms();
  DEVMGR_ASSIGN_OR_RETURN(batch.decision.kind, ReadKind(message, key));
  batch.decision.pods = ReadAll<ObjectName>(message.pods());
  batch.decision.claims = ReadAll<ObjectName>(message.claims());
  batch.decision.message = message.message();
  DEVMGR_RETURN_IF_ERROR(
      ReadChanges(message.changes(), key, batch.decision.changes));
  DEVMGR_RETURN_IF_ERROR(ReadChanges(message.undo(), key, batch.undo));
  if (!batch.undo.empty() &&
      batch.undo.size() != batch.decision.changes.size()) {
    return DataLossError("record '{}': {} changes, but {} to take them back",
                         key, batch.decision.changes.size(), batch.undo.size());
  }
  return batch;
}

absl::StatusOr<std::shared_ptr<const state::AuthorityRecord>> DecodeAuthority(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::AuthorityRecord>(bytes, key));
  return Read(message, key);
}

}  // namespace devmgr::checkpoint
