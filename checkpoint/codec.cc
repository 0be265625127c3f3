// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/codec.h"

#include <devmgr/ledger/v1/ledger.pb.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace pb = ::devmgr::ledger::v1;

// ---- to protobuf

void Write(const ObjectName& name, pb::ObjectName* out) {
  out->set_ns(name.ns);
  out->set_name(name.name);
}

void Write(const state::PreparedDevice& device, pb::PreparedDevice* out) {
  for (const std::string& name : device.request_names) {
    out->add_request_names(name);
  }
  out->set_pool(device.pool);
  out->set_device(device.device);
  for (const std::string& id : device.cdi_device_ids) {
    out->add_cdi_device_ids(id);
  }
  out->set_share_id(device.share_id);
}

void Write(const state::Debt& debt, pb::Debt* out) {
  out->set_since_ms(debt.since_ms);
  out->set_attempts(debt.attempts);
  out->set_last_error(debt.last_error);
  for (const std::string& pod : debt.pods) out->add_pods(pod);
}

void Write(const StructuredResourceHandle& handle, pb::StructuredHandle* out) {
  out->set_vendor_class_parameters(handle.vendor_class_parameters);
  out->set_vendor_claim_parameters(handle.vendor_claim_parameters);
  out->set_node_name(handle.node_name);
  for (const auto& result : handle.results) {
    pb::StructuredResult* record = out->add_results();
    record->set_vendor_request_parameters(result.vendor_request_parameters);
    record->set_named_resource(result.named_resource);
  }
}

void Write(const state::ClaimRecord& claim, pb::ClaimRecord* out) {
  out->set_uid(claim.uid.value);
  Write(claim.name, out->mutable_name());
  for (const PodUid& pod : claim.pods) out->add_pods(pod.value);
  for (const auto& [name, driver] : claim.drivers) {
    pb::DriverRecord* record = out->add_drivers();
    record->set_name(name);
    record->set_phase(static_cast<std::uint32_t>(driver.phase));
    for (const auto& device : driver.devices) {
      Write(device, record->add_devices());
    }
    record->set_boot_id(driver.boot_id);
    if (driver.debt.has_value()) Write(*driver.debt, record->mutable_debt());
    record->set_skips_prepare(driver.skipped.prepare);
    record->set_skips_unprepare(driver.skipped.unprepare);
    record->set_resource_handle(driver.handle.data);
    if (driver.handle.structured.has_value()) {
      Write(*driver.handle.structured, record->mutable_structured_handle());
    }
  }
  out->set_network_attached(claim.network_attached);
}

void Write(const NamedValue& value, pb::NamedValue* out) {
  out->set_name(value.name);
  out->set_value(value.value);
  out->set_resource(value.resource);
}

void Write(const CdiDevice& device, pb::CdiDevice* out) {
  out->set_name(device.name);
  pb::DeviceOrigin* origin = out->mutable_origin();
  origin->set_claim(device.origin.claim);
  origin->set_request(device.origin.request);
  origin->set_driver(device.origin.driver);
  origin->set_pool(device.origin.pool);
  origin->set_device(device.origin.device);
  origin->set_resource(device.origin.resource);
}

void Write(const DeviceMount& mount, pb::DeviceMount* out) {
  out->set_container_path(mount.container_path);
  out->set_host_path(mount.host_path);
  out->set_read_only(mount.read_only);
  out->set_resource(mount.resource);
}

void Write(const DeviceNode& node, pb::DeviceNode* out) {
  out->set_container_path(node.container_path);
  out->set_host_path(node.host_path);
  out->set_permissions(node.permissions);
  out->set_resource(node.resource);
}

void Write(const ContainerDevices& container, pb::ContainerDevices* out) {
  out->set_name(container.name);
  out->set_init(container.init);
  for (const auto& item : container.cdi_devices) {
    Write(item, out->add_cdi_devices());
  }
  for (const auto& item : container.env) Write(item, out->add_env());
  for (const auto& item : container.mounts) Write(item, out->add_mounts());
  for (const auto& item : container.devices) Write(item, out->add_devices());
  for (const auto& item : container.annotations) {
    Write(item, out->add_annotations());
  }
  for (const HeldResource& held : container.resources) {
    pb::HeldResource* record = out->add_resources();
    record->set_name(held.name);
    for (const std::string& id : held.devices) record->add_devices(id);
  }
  out->set_devices_released(container.devices_released);
}

void Write(const PodDevices& answer, pb::PodDevices* out) {
  Write(answer.name, out->mutable_name());
  out->set_uid(answer.uid.value);
  for (const auto& container : answer.containers) {
    Write(container, out->add_containers());
  }
}

void Write(const state::ContainerNeed& need, pb::ContainerNeed* out) {
  out->set_name(need.name);
  out->set_init(need.init);
  for (const state::Want& want : need.wants) {
    pb::Want* record = out->add_wants();
    record->set_claim(want.claim.value);
    record->set_request(want.request);
    record->set_resource(want.resource);
    record->set_pod_claim(want.pod_claim);
  }
}

void Write(const device::ContainerEdits& edits, pb::ContainerEdits* out) {
  for (const auto& item : edits.env) Write(item, out->add_env());
  for (const auto& item : edits.mounts) Write(item, out->add_mounts());
  for (const auto& item : edits.devices) Write(item, out->add_devices());
  for (const auto& item : edits.annotations) {
    Write(item, out->add_annotations());
  }
  for (const auto& name : edits.cdi_devices) out->add_cdi_devices(name);
}

void Write(const state::DeviceHold& hold, pb::DeviceHold* out) {
  out->set_container(hold.container);
  out->set_kind(static_cast<std::uint32_t>(hold.kind));
  out->set_resource(hold.resource);
  out->set_phase(static_cast<std::uint32_t>(hold.phase));
  for (const device::HeldDevice& device : hold.devices) {
    pb::HeldDevice* held = out->add_devices();
    held->set_id(device.id);
    for (const std::int64_t node : device.numa_nodes) {
      held->add_numa_nodes(node);
    }
  }
  Write(hold.edits, out->mutable_edits());
  out->set_pre_start(hold.pre_start);
}

void Write(const state::PodRecord& pod, pb::PodRecord* out) {
  out->set_uid(pod.uid.value);
  Write(pod.name, out->mutable_name());
  out->set_first_seen_ms(pod.first_seen_ms);
  out->set_first_seen_seq(pod.first_seen_seq);
  out->set_phase(static_cast<std::uint32_t>(pod.phase));
  out->set_reason(pod.reason);
  out->set_message(pod.message);
  for (const ClaimUid& claim : pod.claims) out->add_claims(claim.value);
  for (const auto& need : pod.needs) Write(need, out->add_needs());
  if (pod.answer != nullptr) Write(*pod.answer, out->mutable_answer());
  out->set_boot_id(pod.boot_id);
  for (const auto& hold : pod.holds) Write(hold, out->add_holds());
}

void Write(const state::IdentityRecord& identity, pb::IdentityRecord* out) {
  out->set_kind(identity.kind);
  Write(identity.name, out->mutable_name());
  out->set_uid(identity.uid);
  out->set_first_seen_ms(identity.first_seen_ms);
}

void Write(const state::ResourceRecord& resource, pb::ResourceRecord* out) {
  out->set_name(resource.name);
  out->set_backing(static_cast<std::uint32_t>(resource.backing));
  out->set_since_ms(resource.since_ms);
  out->set_by_operator(resource.by_operator);
}

void Write(const state::HealthRecord& health, pb::HealthRecord* out) {
  out->set_driver(health.driver);
  out->set_pool(health.pool);
  out->set_device(health.device);
  out->set_health(static_cast<std::uint32_t>(health.health));
  out->set_message(health.message);
  out->set_lease_ms(health.lease_ms);
  out->set_since_ms(health.since_ms);
}

struct ChangeWriter {
  pb::Change* out;
  void operator()(const state::PutPod& change) const {
    Write(*change.pod, out->mutable_put_pod());
  }
  void operator()(const state::ErasePod& change) const {
    out->set_erase_pod(change.uid.value);
  }
  void operator()(const state::PutClaim& change) const {
    Write(*change.claim, out->mutable_put_claim());
  }
  void operator()(const state::EraseClaim& change) const {
    out->set_erase_claim(change.uid.value);
  }
  void operator()(const state::PutIdentity& change) const {
    Write(*change.identity, out->mutable_put_identity());
  }
  void operator()(const state::EraseIdentity& change) const {
    pb::IdentityRecord* identity = out->mutable_erase_identity();
    identity->set_kind(change.kind);
    Write(change.name, identity->mutable_name());
  }
  void operator()(const state::PutResource& change) const {
    Write(*change.resource, out->mutable_put_resource());
  }
  void operator()(const state::EraseResource& change) const {
    out->set_erase_resource(change.name);
  }
  void operator()(const state::PutHealth& change) const {
    Write(*change.health, out->mutable_put_health());
  }
  void operator()(const state::EraseHealth& change) const {
    pb::HealthRecord* health = out->mutable_erase_health();
    const auto& [driver, pool, device] = change.device;
    health->set_driver(driver);
    health->set_pool(pool);
    health->set_device(device);
  }
};

// ---- from protobuf

ObjectName Read(const pb::ObjectName& in) { return {in.ns(), in.name()}; }

template <typename Repeated>
std::vector<std::string> ReadTexts(const Repeated& in) {
  return {in.begin(), in.end()};
}

state::PreparedDevice Read(const pb::PreparedDevice& in) {
  return {ReadTexts(in.request_names()), in.pool(), in.device(),
          ReadTexts(in.cdi_device_ids()), in.share_id()};
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

NamedValue Read(const pb::NamedValue& in) {
  return {in.name(), in.value(), in.resource()};
}

CdiDevice Read(const pb::CdiDevice& in) {
  const pb::DeviceOrigin& origin = in.origin();
  return {in.name(),
          {origin.claim(), origin.request(), origin.driver(), origin.pool(),
           origin.device(), origin.resource()}};
}

DeviceMount Read(const pb::DeviceMount& in) {
  return {in.container_path(), in.host_path(), in.read_only(), in.resource()};
}

DeviceNode Read(const pb::DeviceNode& in) {
  return {in.container_path(), in.host_path(), in.permissions(), in.resource()};
}

HeldResource Read(const pb::HeldResource& in) {
  return {in.name(), ReadTexts(in.devices())};
}

ContainerDevices Read(const pb::ContainerDevices& in);
state::Want Read(const pb::Want& in);
state::ContainerNeed Read(const pb::ContainerNeed& in);

template <typename T, typename Repeated>
std::vector<T> ReadAll(const Repeated& in) {
  std::vector<T> out;
  out.reserve(in.size());
  for (const auto& item : in) out.push_back(Read(item));
  return out;
}

ContainerDevices Read(const pb::ContainerDevices& in) {
  return {in.name(),
          in.init(),
          ReadAll<CdiDevice>(in.cdi_devices()),
          ReadAll<NamedValue>(in.env()),
          ReadAll<DeviceMount>(in.mounts()),
          ReadAll<DeviceNode>(in.devices()),
          ReadAll<NamedValue>(in.annotations()),
          ReadAll<HeldResource>(in.resources()),
          in.devices_released()};
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
  hold.edits = {ReadAll<NamedValue>(in.edits().env()),
                ReadAll<DeviceMount>(in.edits().mounts()),
                ReadAll<DeviceNode>(in.edits().devices()),
                ReadAll<NamedValue>(in.edits().annotations()),
                ReadTexts(in.edits().cdi_devices())};
  hold.pre_start = in.pre_start();
  return hold;
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
    auto answer = std::make_shared<PodDevices>();
    answer->name = Read(in.answer().name());
    answer->uid.value = in.answer().uid();
    answer->containers = ReadAll<ContainerDevices>(in.answer().containers());
    pod->answer = std::move(answer);
  }
  pod->boot_id = in.boot_id();
  for (const pb::DeviceHold& item : in.holds()) {
    DEVMGR_ASSIGN_OR_RETURN(auto hold, Read(item, key));
    pod->holds.push_back(std::move(hold));
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
  return health;
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
    case pb::Change::CHANGE_NOT_SET:
      break;
  }
  return DataLossError("record '{}': unknown change", key);
}

// ---- bytes

template <typename Message>
absl::StatusOr<Message> Parse(std::string_view bytes, std::string_view key) {
  Message message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLossError("record '{}': its {} bytes cannot be decoded", key,
                         bytes.size());
  }
  return message;
}

template <typename Message, typename Record>
std::string Encode(const Record& record) {
  Message message;
  Write(record, &message);
  return message.SerializeAsString();
}

}  // namespace

std::string EncodePod(const state::PodRecord& pod) {
  return Encode<pb::PodRecord>(pod);
}

absl::StatusOr<std::shared_ptr<const state::PodRecord>> DecodePod(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message, Parse<pb::PodRecord>(bytes, key));
  return Read(message, key);
}

std::string EncodeClaim(const state::ClaimRecord& claim) {
  return Encode<pb::ClaimRecord>(claim);
}

absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> DecodeClaim(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::ClaimRecord>(bytes, key));
  return Read(message, key);
}

std::string EncodeIdentity(const state::IdentityRecord& identity) {
  return Encode<pb::IdentityRecord>(identity);
}

absl::StatusOr<std::shared_ptr<const state::IdentityRecord>> DecodeIdentity(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::IdentityRecord>(bytes, key));
  return Read(message);
}

std::string EncodeResource(const state::ResourceRecord& resource) {
  return Encode<pb::ResourceRecord>(resource);
}

absl::StatusOr<std::shared_ptr<const state::ResourceRecord>> DecodeResource(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::ResourceRecord>(bytes, key));
  return Read(message, key);
}

std::string EncodeHealth(const state::HealthRecord& health) {
  return Encode<pb::HealthRecord>(health);
}

absl::StatusOr<std::shared_ptr<const state::HealthRecord>> DecodeHealth(
    std::string_view bytes, std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message,
                          Parse<pb::HealthRecord>(bytes, key));
  return Read(message, key);
}

std::string EncodeBatch(const state::Batch& batch) {
  pb::Batch message;
  message.set_seq(batch.seq);
  message.set_time_ms(batch.time_ms);
  message.set_kind(static_cast<std::uint32_t>(batch.decision.kind));
  for (const auto& pod : batch.decision.pods) Write(pod, message.add_pods());
  for (const auto& claim : batch.decision.claims) {
    Write(claim, message.add_claims());
  }
  message.set_message(batch.decision.message);
  for (const state::Change& change : batch.decision.changes) {
    std::visit(ChangeWriter{message.add_changes()}, change);
  }
  for (const state::Change& change : batch.undo) {
    std::visit(ChangeWriter{message.add_undo()}, change);
  }
  return message.SerializeAsString();
}

absl::StatusOr<state::Batch> DecodeBatch(std::string_view bytes,
                                         std::string_view key) {
  DEVMGR_ASSIGN_OR_RETURN(const auto message, Parse<pb::Batch>(bytes, key));
  state::Batch batch;
  batch.seq = message.seq();
  batch.time_ms = message.time_ms();
  DEVMGR_ASSIGN_OR_RETURN(
      batch.decision.kind,
      ReadEnum(message.kind(), state::DecisionKind::kIdentity,
               state::DecisionKind::kHealth, "kind of decision", key));
  batch.decision.pods = ReadAll<ObjectName>(message.pods());
  batch.decision.claims = ReadAll<ObjectName>(message.claims());
  batch.decision.message = message.message();
  for (const pb::Change& item : message.changes()) {
    DEVMGR_ASSIGN_OR_RETURN(auto change, Read(item, key));
    batch.decision.changes.push_back(std::move(change));
  }
  for (const pb::Change& item : message.undo()) {
    DEVMGR_ASSIGN_OR_RETURN(auto change, Read(item, key));
    batch.undo.push_back(std::move(change));
  }
  if (!batch.undo.empty() &&
      batch.undo.size() != batch.decision.changes.size()) {
    return DataLossError("record '{}': {} changes, but {} to take them back",
                         key, batch.decision.changes.size(), batch.undo.size());
  }
  return batch;
}

}  // namespace devmgr::checkpoint
