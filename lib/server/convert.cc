// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "api/quote.h"
#include "common/answer_messages.h"
#include "common/status.h"
#include "server/convert_values.h"

namespace devmgr::server {
namespace {

// Beside those below.
using server::Get;
using server::Put;

const AnswerWriter kAnswers([](const std::string& text) {
  return ValidUtf8(text);
});

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string result;
  for (;;) {
    const std::size_t valid = std::min(api::FindInvalidUtf8(text), text.size());
    result += text.substr(0, valid);
    if (valid == text.size()) return result;
    result += "\xEF\xBF\xBD";  // U+FFFD
    text.remove_prefix(valid + 1);
  }
}

pb::ObjectName ToProto(const ObjectName& name) {
  pb::ObjectName message;
  message.set_ns(ValidUtf8(name.ns));
  message.set_name(ValidUtf8(name.name));
  return message;
}

ObjectName FromProto(const pb::ObjectName& name) {
  return {name.ns(), name.name()};
}

pb::RecoveryInfo ToProto(const RecoveryInfo& info) {
  pb::RecoveryInfo message;
  message.set_closed_cleanly(info.closed_cleanly);
  message.set_damaged(info.damaged);
  message.set_last_sequence(info.last_sequence);
  Put(info.dropped, message.mutable_dropped());
  message.set_skipped(info.skipped);
  Put(info.skipped_records, message.mutable_skipped_records());
  message.set_kept(ValidUtf8(info.kept));
  message.set_message(ValidUtf8(info.message));
  return message;
}

RecoveryInfo FromProto(const pb::RecoveryInfo& info) {
  RecoveryInfo recovery;
  recovery.closed_cleanly = info.closed_cleanly();
  recovery.damaged = info.damaged();
  recovery.last_sequence = info.last_sequence();
  recovery.dropped = Get(info.dropped());
  recovery.skipped = info.skipped();
  recovery.skipped_records = Get(info.skipped_records());
  recovery.kept = info.kept();
  recovery.message = info.message();
  return recovery;
}

pb::NodeInfo ToProto(const NodeInfo& info) {
  pb::NodeInfo message;
  message.set_version(ValidUtf8(info.version));
  message.set_node_name(ValidUtf8(info.node_name));
  message.set_boot_id(ValidUtf8(info.boot_id));
  if (info.authority.has_value()) {
    message.set_authority(std::string(AuthorityName(*info.authority)));
  }
  if (info.authority_since.has_value()) {
    message.set_authority_since_ms(MillisOf(*info.authority_since));
  }
  if (info.authority_to.has_value()) {
    message.set_authority_to(std::string(AuthorityName(*info.authority_to)));
  }
  message.set_authority_wait(ValidUtf8(info.authority_wait));
  message.set_authority_by_operator(ValidUtf8(info.authority_by_operator));
  if (info.profile.has_value()) {
    message.set_profile(std::string(ProfileName(*info.profile)));
  }
  message.set_actuate(std::string(ActuateName(info.actuate)));
  message.set_state_dir(ValidUtf8(info.state_dir));
  message.set_ledger_sequence(info.ledger_sequence);
  message.set_ledger_error(ValidUtf8(info.ledger_error));
  *message.mutable_recovery() = ToProto(info.recovery);
  message.set_started_ms(MillisOf(info.started));
  message.set_source(ValidUtf8(info.source));
  message.set_source_complete(info.source_complete);
  Put(info.source_problems, message.mutable_source_problems());
  for (const ObjectProblem& problem : info.object_problems) {
    pb::ObjectProblem* item = message.add_object_problems();
    item->set_object_kind(ValidUtf8(problem.object_kind));
    *item->mutable_object() = ToProto(problem.object);
    item->set_problem(ValidUtf8(problem.problem));
  }
  if (info.runtime.has_value()) {
    pb::RuntimeSourceInfo* runtime = message.mutable_runtime();
    runtime->set_source(ValidUtf8(info.runtime->source));
    runtime->set_known(info.runtime->known);
    runtime->set_since_ms(MillisOf(info.runtime->since));
    runtime->set_reason(ValidUtf8(info.runtime->reason));
    runtime->set_runtime(ValidUtf8(info.runtime->runtime));
    runtime->set_pods(info.runtime->pods);
  }
  message.set_pods(info.pods);
  message.set_pods_ready(info.pods_ready);
  message.set_pods_waiting(info.pods_waiting);
  message.set_pods_rejected(info.pods_rejected);
  message.set_claims(info.claims);
  message.set_plugins(info.plugins);
  return message;
}

NodeInfo FromProto(const pb::NodeInfo& info) {
  NodeInfo node;
  node.version = info.version();
  node.node_name = info.node_name();
  node.boot_id = info.boot_id();
  for (const Authority authority :
       {Authority::kNode, Authority::kScheduler, Authority::kSplit}) {
    if (AuthorityName(authority) == info.authority()) {
      node.authority = authority;
    }
    if (AuthorityName(authority) == info.authority_to()) {
      node.authority_to = authority;
    }
  }
  if (info.authority_since_ms() != 0) {
    node.authority_since = TimeOf(info.authority_since_ms());
  }
  node.authority_wait = info.authority_wait();
  node.authority_by_operator = info.authority_by_operator();
  for (const Profile profile : {Profile::kDefault, Profile::kStrictKubelet}) {
    if (ProfileName(profile) == info.profile()) node.profile = profile;
  }
  for (const Actuate actuate : {Actuate::kSource, Actuate::kWanted}) {
    if (ActuateName(actuate) == info.actuate()) node.actuate = actuate;
  }
  node.state_dir = info.state_dir();
  node.ledger_sequence = info.ledger_sequence();
  node.ledger_error = info.ledger_error();
  node.recovery = FromProto(info.recovery());
  node.started = TimeOf(info.started_ms());
  node.source = info.source();
  node.source_complete = info.source_complete();
  node.source_problems = Get(info.source_problems());
  for (const pb::ObjectProblem& problem : info.object_problems()) {
    node.object_problems.push_back({problem.object_kind(),
                                    FromProto(problem.object()),
                                    problem.problem()});
  }
  if (info.has_runtime()) {
    const pb::RuntimeSourceInfo& runtime = info.runtime();
    node.runtime = {runtime.source(),           runtime.known(),
                    TimeOf(runtime.since_ms()), runtime.reason(),
                    runtime.runtime(),          runtime.pods()};
  }
  node.pods = info.pods();
  node.pods_ready = info.pods_ready();
  node.pods_waiting = info.pods_waiting();
  node.pods_rejected = info.pods_rejected();
  node.claims = info.claims();
  node.plugins = info.plugins();
  return node;
}

pb::ClaimInfo ToProto(const ClaimInfo& info) {
  pb::ClaimInfo message;
  *message.mutable_name() = ToProto(info.name);
  message.set_uid(ValidUtf8(info.uid.value));
  message.set_state(ValidUtf8(info.state.name()));
  Put(info.pods, message.mutable_pods());
  for (const ClaimDriverInfo& driver : info.drivers) {
    pb::ClaimDriverInfo* item = message.add_drivers();
    item->set_driver(ValidUtf8(driver.driver));
    item->set_state(ValidUtf8(driver.state.name()));
    Put(driver.devices, item->mutable_devices());
    Put(driver.cdi_devices, item->mutable_cdi_devices());
    item->set_last_error(ValidUtf8(driver.last_error));
  }
  message.set_object(ValidUtf8(info.object));
  return message;
}

ClaimInfo FromProto(const pb::ClaimInfo& info) {
  ClaimInfo claim;
  claim.name = FromProto(info.name());
  claim.uid.value = info.uid();
  claim.state = OpenClaimState::OfWord(info.state());
  claim.pods = Get(info.pods());
  for (const auto& item : info.drivers()) {
    claim.drivers.push_back(
        {item.driver(), OpenClaimState::OfWord(item.state()),
         Get(item.devices()), Get(item.cdi_devices()), item.last_error()});
  }
  claim.object = info.object();
  return claim;
}

pb::PluginInfo ToProto(const PluginInfo& info) {
  pb::PluginInfo message;
  message.set_name(ValidUtf8(info.name));
  message.set_kind(ValidUtf8(info.kind.name()));
  message.set_endpoint(ValidUtf8(info.endpoint));
  message.set_version(ValidUtf8(info.version));
  message.set_state(ValidUtf8(info.state.name()));
  message.set_registered_since_ms(MillisOf(info.registered_since));
  message.set_last_error(ValidUtf8(info.last_error));
  message.set_via(WordOf(info.via));
  message.set_breaker(ValidUtf8(info.breaker.name()));
  if (info.quarantined_until.has_value()) {
    message.set_quarantined_until_ms(MillisOf(*info.quarantined_until));
  }
  message.set_devices(info.devices);
  message.set_calls(info.calls);
  message.set_queued(info.queued);
  message.set_serves(info.serves);
  if (info.calling_since.has_value()) {
    message.set_calling_since_ms(MillisOf(*info.calling_since));
  }
  return message;
}

PluginInfo FromProto(const pb::PluginInfo& message) {
  PluginInfo info;
  info.name = message.name();
  info.kind = OpenPluginKind::OfWord(message.kind());
  info.endpoint = message.endpoint();
  info.version = message.version();
  info.state = OpenPluginState::OfWord(message.state());
  info.registered_since = TimeOf(message.registered_since_ms());
  info.last_error = message.last_error();
  info.via = FromWord<OpenPluginVia>(message.via());
  info.breaker = OpenPluginBreaker::OfWord(message.breaker());
  if (message.quarantined_until_ms() != 0) {
    info.quarantined_until = TimeOf(message.quarantined_until_ms());
  }
  info.devices = message.devices();
  info.calls = message.calls();
  info.queued = message.queued();
  info.serves = message.serves();
  if (message.calling_since_ms() != 0) {
    info.calling_since = TimeOf(message.calling_since_ms());
  }
  return info;
}

pb::DeviceInfo ToProto(const DeviceInfo& info) {
  pb::DeviceInfo message;
  message.set_driver(ValidUtf8(info.driver));
  message.set_pool(ValidUtf8(info.pool));
  message.set_device(ValidUtf8(info.device));
  Put(info.used_by, message.mutable_used_by());
  Put(info.cdi_devices, message.mutable_cdi_devices());
  message.set_resource(ValidUtf8(info.resource));
  message.set_health(WordOf(info.health));
  message.set_health_reason(ValidUtf8(info.health_reason));
  message.set_since_ms(MillisOf(info.since));
  message.mutable_numa_nodes()->Add(info.numa_nodes.begin(),
                                    info.numa_nodes.end());
  Put(info.hardware, message.mutable_hardware());
  Put(info.same_hardware, message.mutable_same_hardware());
  return message;
}

DeviceInfo FromProto(const pb::DeviceInfo& info) {
  return {info.driver(),
          info.pool(),
          info.device(),
          Get(info.used_by()),
          Get(info.cdi_devices()),
          info.resource(),
          FromWord<OpenDeviceHealth>(info.health()),
          info.health_reason(),
          TimeOf(info.since_ms()),
          {info.numa_nodes().begin(), info.numa_nodes().end()},
          Get(info.hardware()),
          Get(info.same_hardware())};
}

pb::DebtInfo ToProto(const DebtInfo& info) {
  pb::DebtInfo message;
  *message.mutable_claim() = ToProto(info.claim);
  message.set_uid(ValidUtf8(info.uid.value));
  message.set_driver(ValidUtf8(info.driver));
  Put(info.pods, message.mutable_pods());
  message.set_since_ms(MillisOf(info.since));
  message.set_attempts(info.attempts);
  message.set_last_error(ValidUtf8(info.last_error));
  message.set_policy(info.policy);
  return message;
}

DebtInfo FromProto(const pb::DebtInfo& info) {
  return {FromProto(info.claim()), ClaimUid{info.uid()},
          info.driver(),           {info.pods().begin(), info.pods().end()},
          TimeOf(info.since_ms()), info.attempts(),
          info.last_error(),       info.policy()};
}

pb::ResourceOwner ToProto(ResourceOwner owner) {
  switch (owner) {
    case ResourceOwner::kDevicePlugin:
      return pb::RESOURCE_OWNER_DEVICE_PLUGIN;
    case ResourceOwner::kDeviceClass:
      return pb::RESOURCE_OWNER_DEVICE_CLASS;
    case ResourceOwner::kAutomatic:
      break;
  }
  return pb::RESOURCE_OWNER_AUTOMATIC;
}

std::optional<ResourceOwner> FromProto(pb::ResourceOwner owner) {
  switch (owner) {
    case pb::RESOURCE_OWNER_DEVICE_PLUGIN:
      return ResourceOwner::kDevicePlugin;
    case pb::RESOURCE_OWNER_DEVICE_CLASS:
      return ResourceOwner::kDeviceClass;
    case pb::RESOURCE_OWNER_AUTOMATIC:
      return ResourceOwner::kAutomatic;
    default:
      return std::nullopt;
  }
}

pb::ResourceInfo ToProto(const ResourceInfo& info) {
  pb::ResourceInfo message;
  message.set_name(ValidUtf8(info.name));
  message.set_owner(WordOf(info.owner));
  message.set_state(WordOf(info.state));
  message.set_since_ms(MillisOf(info.since));
  message.set_capacity(info.capacity);
  message.set_allocatable(info.allocatable);
  message.set_local(info.local);
  message.set_held(info.held);
  message.set_by_operator(ValidUtf8(info.by_operator));
  message.set_device_class(ValidUtf8(info.device_class));
  Put(info.drivers, message.mutable_drivers());
  return message;
}

ResourceInfo FromProto(const pb::ResourceInfo& info) {
  return {info.name(),
          FromWord<OpenResourceOwner>(info.owner()),
          FromWord<OpenResourceState>(info.state()),
          TimeOf(info.since_ms()),
          info.capacity(),
          info.allocatable(),
          info.held(),
          info.by_operator(),
          info.device_class(),
          Get(info.drivers()),
          info.local()};
}

pb::DeviceClassInfo ToProto(const DeviceClassInfo& info) {
  pb::DeviceClassInfo message;
  message.set_name(ValidUtf8(info.name));
  message.set_extended_resource_name(ValidUtf8(info.extended_resource_name));
  message.set_implicit_resource_name(ValidUtf8(info.implicit_resource_name));
  message.set_note(ValidUtf8(info.note));
  message.set_shadowed_by(ValidUtf8(info.shadowed_by));
  return message;
}

DeviceClassInfo FromProto(const pb::DeviceClassInfo& info) {
  return {info.name(), info.extended_resource_name(),
          info.implicit_resource_name(), info.note(), info.shadowed_by()};
}

pb::SliceInfo ToProto(const SliceInfo& info) {
  pb::SliceInfo message;
  message.set_name(ValidUtf8(info.name));
  message.set_driver(ValidUtf8(info.driver));
  message.set_pool(ValidUtf8(info.pool));
  message.set_generation(info.generation);
  message.set_pool_slices(info.pool_slices);
  message.set_known_slices(info.known_slices);
  message.set_node(ValidUtf8(info.node));
  Put(info.devices, message.mutable_devices());
  message.set_origin(ValidUtf8(info.origin));
  message.set_obsolete(info.obsolete);
  message.set_complete(info.complete);
  message.set_hidden(info.hidden);
  message.set_problem(ValidUtf8(info.problem));
  return message;
}

SliceInfo FromProto(const pb::SliceInfo& info) {
  return {info.name(),       info.driver(),       info.pool(),
          info.generation(), info.pool_slices(),  info.known_slices(),
          info.node(),       Get(info.devices()), info.origin(),
          info.obsolete(),   info.complete(),     info.hidden(),
          info.problem()};
}

pb::EventInfo ToProto(const EventInfo& info) {
  pb::EventInfo message;
  message.set_sequence(info.sequence);
  message.set_time_ms(MillisOf(info.time));
  message.set_warning(info.warning);
  message.set_reason(ValidUtf8(info.reason));
  message.set_object_kind(ValidUtf8(info.object_kind));
  *message.mutable_object() = ToProto(info.object);
  message.set_message(ValidUtf8(info.message));
  message.set_count(info.count);
  message.set_first_time_ms(MillisOf(info.first_time));
  return message;
}

EventInfo FromProto(const pb::EventInfo& info) {
  EventInfo event{info.sequence(),    TimeOf(info.time_ms()),
                  info.warning(),     info.reason(),
                  info.object_kind(), FromProto(info.object()),
                  info.message()};
  event.count = std::max<std::uint64_t>(info.count(), 1);
  event.first_time = TimeOf(info.first_time_ms());
  return event;
}

pb::DecisionInfo ToProto(const DecisionInfo& info) {
  pb::DecisionInfo message;
  message.set_sequence(info.sequence);
  message.set_time_ms(MillisOf(info.time));
  message.set_kind(ValidUtf8(info.kind.name()));
  Put(info.pods, message.mutable_pods());
  Put(info.claims, message.mutable_claims());
  message.set_message(ValidUtf8(info.message));
  Put(info.uids, message.mutable_uids());
  return message;
}

DecisionInfo FromProto(const pb::DecisionInfo& info) {
  return {info.sequence(),
          TimeOf(info.time_ms()),
          OpenDecisionKind::OfWord(info.kind()),
          Get(info.pods()),
          Get(info.claims()),
          info.message(),
          Get(info.uids())};
}

pb::LedgerView ToProto(const LedgerView& view) {
  pb::LedgerView message;
  message.set_sequence(view.sequence);
  message.set_time_ms(MillisOf(view.time));
  for (const PodInfo& pod : view.pods) *message.add_pods() = ToProto(pod);
  for (const ClaimInfo& claim : view.claims) {
    *message.add_claims() = ToProto(claim);
  }
  for (const DeviceInfo& device : view.devices) {
    *message.add_devices() = ToProto(device);
  }
  for (const ForeignHolderInfo& holder : view.holders) {
    *message.add_holders() = ToProto(holder);
  }
  return message;
}

absl::StatusOr<LedgerView> FromProto(const pb::LedgerView& view) {
  LedgerView result;
  result.sequence = view.sequence();
  result.time = TimeOf(view.time_ms());
  for (const auto& message : view.pods()) {
    DEVMGR_ASSIGN_OR_RETURN(PodInfo pod, FromProto(message));
    result.pods.push_back(std::move(pod));
  }
  for (const auto& claim : view.claims()) {
    result.claims.push_back(FromProto(claim));
  }
  for (const auto& device : view.devices()) {
    result.devices.push_back(FromProto(device));
  }
  for (const auto& holder : view.holders()) {
    result.holders.push_back(FromProto(holder));
  }
  return result;
}

pb::StateAtRequest ToProto(const LedgerPoint& at) {
  pb::StateAtRequest message;
  if (const auto* sequence = std::get_if<std::uint64_t>(&at)) {
    message.set_sequence(*sequence);
  } else if (const auto* time = std::get_if<WallTime>(&at)) {
    message.set_time_ms(MillisOf(*time));
  }
  return message;
}

LedgerPoint FromProto(const pb::StateAtRequest& at) {
  switch (at.at_case()) {
    case pb::StateAtRequest::kSequence:
      return at.sequence();
    case pb::StateAtRequest::kTimeMs:
      return TimeOf(at.time_ms());
    case pb::StateAtRequest::AT_NOT_SET:
      break;
  }
  return std::monostate();
}

pb::ContainerDevices ToProto(const ContainerDevices& devices) {
  pb::ContainerDevices message;
  kAnswers.Write(devices, &message);
  return message;
}

pb::PodDevices ToProto(const PodDevices& devices) {
  pb::PodDevices message;
  kAnswers.Write(devices, &message);
  return message;
}

PodDevices FromProto(const pb::PodDevices& devices) {
  return ReadPodDevices(devices);
}

}  // namespace devmgr::server
