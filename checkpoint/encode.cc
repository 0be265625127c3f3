// SPDX-License-Identifier: Apache-2.0
//
// Records to bytes.
#include <devmgr/ledger/v1/ledger.pb.h>
#include <devmgr/manifests.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <string>
#include <variant>

#include "api/quantity.h"
#include "checkpoint/codec.h"
#include "common/answer_messages.h"

namespace devmgr::checkpoint {
namespace {

namespace pb = ::devmgr::ledger::v1;

void Write(const ObjectName& name, pb::ObjectName* out) {
  out->set_ns(name.ns);
  out->set_name(name.name);
}

void Write(const device::Hardware& hardware, pb::Hardware* out) {
  for (const device::PhysicalIdentity& identity : hardware.identities) {
    out->add_identities(identity.text);
  }
  out->set_part(hardware.part);
}

/// Most records have none.
template <typename Record>
void WriteHardware(const device::Hardware& hardware, Record* out) {
  if (!hardware.empty()) Write(hardware, out->mutable_hardware());
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
  WriteHardware(device.hardware, out);
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
    for (const state::AllocatedDevice& device : driver.allocated) {
      pb::AllocatedDevice* allocated = record->add_allocated();
      allocated->set_pool(device.pool);
      allocated->set_device(device.device);
      allocated->set_shared(device.shared);
      WriteHardware(device.hardware, allocated);
    }
    for (const std::string& id : driver.void_cdi_device_ids) {
      record->add_void_cdi_device_ids(id);
    }
    record->set_spec_recovery(static_cast<std::uint32_t>(driver.spec_recovery));
  }
  out->set_network_attached(claim.network_attached);
}

/// Texts as they came.
const AnswerWriter kAnswers([](const std::string& text) -> const std::string& {
  return text;
});

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
  kAnswers.WriteAll(edits.env, out->mutable_env());
  kAnswers.WriteAll(edits.mounts, out->mutable_mounts());
  kAnswers.WriteAll(edits.devices, out->mutable_devices());
  kAnswers.WriteAll(edits.annotations, out->mutable_annotations());
  for (const auto& name : edits.cdi_devices) out->add_cdi_devices(name);
  if (edits.response.has_value()) out->set_response(*edits.response);
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
  WriteHardware(hold.hardware, out);
}

void Write(const TopologyHint& hint, pb::NumaHint* out) {
  out->set_any(!hint.nodes.has_value());
  if (hint.nodes.has_value()) out->set_nodes(hint.nodes->bits());
  out->set_preferred(hint.preferred);
}

void Write(const TopologyHintsInfo& list, pb::ResourceHints* out) {
  out->set_provider(list.provider);
  out->set_resource(list.resource);
  out->set_has_opinion(list.hints.has_value());
  if (list.hints.has_value()) {
    for (const TopologyHint& hint : *list.hints) Write(hint, out->add_hints());
  }
  out->set_count(list.count);
  out->set_truncated(list.truncated);
  out->set_informative(list.informative);
}

void Write(const PodAlignmentInfo& alignment, pb::PodAlignment* out) {
  out->set_policy(static_cast<std::uint32_t>(alignment.options.policy));
  out->set_scope(static_cast<std::uint32_t>(alignment.options.scope));
  out->set_prefer_closest(alignment.options.prefer_closest);
  out->set_max_numa_nodes(alignment.options.max_numa_nodes);
  for (const ContainerAlignmentInfo& one : alignment.containers) {
    pb::ContainerAlignment* container = out->add_containers();
    container->set_container(one.container);
    for (const auto& list : one.resources) {
      Write(list, container->add_resources());
    }
    Write(one.merged, container->mutable_merged());
    container->set_proven(one.proven);
  }
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
  if (pod.answer != nullptr) {
    kAnswers.Write(*pod.answer, out->mutable_answer());
  }
  out->set_boot_id(pod.boot_id);
  for (const auto& hold : pod.holds) Write(hold, out->add_holds());
  if (pod.eviction.has_value()) {
    pb::Eviction* eviction = out->mutable_eviction();
    eviction->set_reason(pod.eviction->reason);
    eviction->set_message(pod.eviction->message);
    eviction->set_since_ms(pod.eviction->since_ms);
  }
  out->set_imported(pod.imported);
  out->set_local(pod.local);
  if (pod.alignment != nullptr) Write(*pod.alignment, out->mutable_alignment());
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
  out->set_boot_id(health.boot_id);
  out->set_told_ms(health.told_ms);
}

void Write(const state::SourceRecord& source, pb::SourceRecord* out) {
  out->set_name(source.name);
  out->set_marker(source.marker);
  out->set_since_ms(source.since_ms);
}

void Write(const state::ForeignHolderRecord& holder,
           pb::ForeignHolderRecord* out) {
  out->set_id(holder.id.value);
  out->set_endpoint(holder.endpoint);
  out->set_pod_uid(holder.pod_uid.value);
  Write(holder.pod, out->mutable_pod());
  out->set_container(holder.container);
  pb::HeldResource* held = nullptr;
  for (const auto& [resource, device] : holder.devices) {
    if (held == nullptr || held->name() != resource) {
      held = out->add_devices();
      held->set_name(resource);
    }
    held->add_devices(device);
  }
  for (const std::string& name : holder.cdi_devices) out->add_cdi_devices(name);
  out->set_since_ms(holder.since_ms);
  out->set_why(holder.why);
  out->set_freed(holder.freed);
  out->set_boot_id(holder.boot_id);
  WriteHardware(holder.hardware, out);
}

void Write(const state::DeviceCounters& counters, pb::DeviceCounters* out) {
  const auto& [driver, pool, device] = counters.device;
  out->set_driver(driver);
  out->set_pool(pool);
  out->set_device(device);
  for (const auto& [name, amount] : counters.counters) {
    pb::CounterUse* use = out->add_counters();
    use->set_set(name.first);
    use->set_name(name.second);
    use->set_amount(api::QuantityText(amount));
  }
}

void Write(const state::LocalClaimRecord& claim, pb::LocalClaimRecord* out) {
  out->set_uid(claim.uid.value);
  out->set_origin(static_cast<std::uint32_t>(claim.origin));
  out->set_object(EncodeResourceClaim(*claim.object));
  for (const state::DeviceCounters& counters : claim.counters) {
    Write(counters, out->add_counters());
  }
  out->set_pod_uid(claim.pod.value);
  out->set_pod_claim(claim.pod_claim);
  for (const ContainerExtendedResourceRequest& mapping : claim.mappings) {
    pb::RequestMapping* to = out->add_mappings();
    to->set_container(mapping.container_name);
    to->set_resource(mapping.resource_name);
    to->set_request(mapping.request_name);
  }
  for (const state::DeviceHardware& item : claim.hardware) {
    pb::DeviceHardware* to = out->add_hardware();
    const auto& [driver, pool, device] = item.device;
    to->set_driver(driver);
    to->set_pool(pool);
    to->set_device(device);
    WriteHardware(item.hardware, to);
  }
}

void Write(const state::AuthorityRecord& authority, pb::AuthorityRecord* out) {
  out->set_party(static_cast<std::uint32_t>(authority.party));
  out->set_since_ms(authority.since_ms);
  out->set_configured(static_cast<std::uint32_t>(authority.configured));
  out->set_by_operator(authority.by_operator);
  if (!authority.to.has_value()) return;
  out->set_to(static_cast<std::uint32_t>(*authority.to));
  out->set_to_since_ms(authority.to_since_ms);
}

struct ChangeEncoder {
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
  void operator()(const state::PutSource& change) const {
    Write(*change.source, out->mutable_put_source());
    out->set_may_be_ignored(true);
  }
  void operator()(const state::EraseSource& change) const {
    out->set_erase_source(change.source.name);
    out->set_may_be_ignored(true);
  }
  // A version that knew nothing of them would give their devices to others.
  void operator()(const state::PutHolder& change) const {
    Write(*change.holder, out->mutable_put_holder());
  }
  void operator()(const state::EraseHolder& change) const {
    out->set_erase_holder(change.id.value);
  }
  void operator()(const state::PutLocalClaim& change) const {
    Write(*change.claim, out->mutable_put_local_claim());
  }
  void operator()(const state::EraseLocalClaim& change) const {
    out->set_erase_local_claim(change.uid.value);
  }
  // A version that knew nothing of it would go by its configuration alone.
  void operator()(const state::PutAuthority& change) const {
    Write(*change.authority, out->mutable_put_authority());
  }
  void operator()(const state::EraseAuthority&) const {
    out->set_erase_authority(true);
  }
};

/// Kinds since format 3 that only say what happened.
bool MayBeUnknown(state::DecisionKind kind) {
  return kind == state::DecisionKind::kSource ||
         kind == state::DecisionKind::kWanted ||
         kind == state::DecisionKind::kUnwanted ||
         kind == state::DecisionKind::kSlicesDeleted ||
         kind == state::DecisionKind::kRecheck ||
         kind == state::DecisionKind::kOther;
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

std::string EncodeClaim(const state::ClaimRecord& claim) {
  return Encode<pb::ClaimRecord>(claim);
}

std::string EncodeIdentity(const state::IdentityRecord& identity) {
  return Encode<pb::IdentityRecord>(identity);
}

std::string EncodeResource(const state::ResourceRecord& resource) {
  return Encode<pb::ResourceRecord>(resource);
}

std::string EncodeHealth(const state::HealthRecord& health) {
  return Encode<pb::HealthRecord>(health);
}

std::string EncodeSource(const state::SourceRecord& source) {
  return Encode<pb::SourceRecord>(source);
}

std::string EncodeHolder(const state::ForeignHolderRecord& holder) {
  return Encode<pb::ForeignHolderRecord>(holder);
}

std::string EncodeLocalClaim(const state::LocalClaimRecord& claim) {
  return Encode<pb::LocalClaimRecord>(claim);
}

std::string EncodeAuthority(const state::AuthorityRecord& authority) {
  return Encode<pb::AuthorityRecord>(authority);
}

std::string EncodeBatch(const state::Batch& batch) {
  pb::Batch message;
  message.set_seq(batch.seq);
  message.set_time_ms(batch.time_ms);
  message.set_kind(static_cast<std::uint32_t>(batch.decision.kind));
  message.set_kind_may_be_unknown(MayBeUnknown(batch.decision.kind));
  for (const auto& pod : batch.decision.pods) Write(pod, message.add_pods());
  for (const auto& claim : batch.decision.claims) {
    Write(claim, message.add_claims());
  }
  message.set_message(batch.decision.message);
  for (const state::Change& change : batch.decision.changes) {
    std::visit(ChangeEncoder{message.add_changes()}, change);
  }
  for (const state::Change& change : batch.undo) {
    std::visit(ChangeEncoder{message.add_undo()}, change);
  }
  return message.SerializeAsString();
}

}  // namespace devmgr::checkpoint
