// SPDX-License-Identifier: Apache-2.0
#include <devmgr/runtime_inspection.h>
#include <devmgr/runtime_source.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/convert.h"
#include "server/convert_values.h"

namespace devmgr::server {
namespace {

pb::RuntimeCounters MessageOfCounters(const RuntimeCounters& counters) {
  pb::RuntimeCounters message;
  message.set_sandboxes(counters.sandboxes);
  message.set_foreign_sandboxes(counters.foreign_sandboxes);
  message.set_containers(counters.containers);
  message.set_unknown_containers(counters.unknown_containers);
  message.set_injected(counters.injected);
  message.set_unchanged(counters.unchanged);
  message.set_refused(counters.refused);
  message.set_unreadable(counters.unreadable);
  message.set_calls(counters.calls);
  message.set_runtime_losses(counters.runtime_losses);
  message.set_turned_away(counters.turned_away);
  return message;
}

RuntimeCounters CountersIn(const pb::RuntimeCounters& message) {
  RuntimeCounters counters;
  counters.sandboxes = message.sandboxes();
  counters.foreign_sandboxes = message.foreign_sandboxes();
  counters.containers = message.containers();
  counters.unknown_containers = message.unknown_containers();
  counters.injected = message.injected();
  counters.unchanged = message.unchanged();
  counters.refused = message.refused();
  counters.unreadable = message.unreadable();
  counters.calls = message.calls();
  counters.runtime_losses = message.runtime_losses();
  counters.turned_away = message.turned_away();
  return counters;
}

pb::ForeignHolder MessageOfHolder(const ForeignHolder& holder) {
  pb::ForeignHolder message;
  message.set_container_id(ValidUtf8(holder.container_id));
  message.set_pod_uid(ValidUtf8(holder.pod_uid.value));
  *message.mutable_pod() = server::ToProto(holder.pod);
  message.set_container(ValidUtf8(holder.container));
  for (const HeldResource& resource : holder.resources) {
    pb::HeldResource* held = message.add_resources();
    held->set_name(ValidUtf8(resource.name));
    Put(resource.devices, held->mutable_devices());
  }
  Put(holder.cdi_devices, message.mutable_cdi_devices());
  message.set_why(ValidUtf8(holder.why));
  return message;
}

pb::PodRun MessageOfRun(const PodUid& uid, const PodRun& pod) {
  pb::PodRun message;
  message.set_uid(ValidUtf8(uid.value));
  *message.mutable_name() = server::ToProto(pod.name);
  for (const SandboxRun& sandbox : pod.sandboxes) {
    pb::SandboxRun* run = message.add_sandboxes();
    run->set_id(ValidUtf8(sandbox.id));
    run->set_attempt(sandbox.attempt);
    run->set_ready(sandbox.ready);
    run->set_created_at_ms(MillisOf(sandbox.created_at));
    Put(sandbox.ips, run->mutable_ips());
  }
  for (const ContainerRun& container : pod.containers) {
    pb::ContainerRun* run = message.add_containers();
    run->set_id(ValidUtf8(container.id));
    run->set_name(ValidUtf8(container.name));
    run->set_attempt(container.attempt);
    run->set_state(std::string(RuntimeContainerStateName(container.state)));
    run->set_image(ValidUtf8(container.image));
    run->set_image_id(ValidUtf8(container.image_id));
    run->set_created_at_ms(MillisOf(container.created_at));
    if (container.started_at) {
      run->set_started_at_ms(MillisOf(*container.started_at));
    }
    if (container.finished_at) {
      run->set_finished_at_ms(MillisOf(*container.finished_at));
    }
    run->set_exit_code(container.exit_code);
    run->set_reason(ValidUtf8(container.reason));
    run->set_message(ValidUtf8(container.message));
  }
  return message;
}

/// One that is not known may run.
RuntimeContainer::State StateOfWord(std::string_view word) {
  using State = RuntimeContainer::State;
  for (const State state : {State::kCreated, State::kRunning, State::kExited}) {
    if (word == RuntimeContainerStateName(state)) return state;
  }
  return State::kUnknown;
}

std::optional<WallTime> TimeIfAny(std::int64_t unix_ms) {
  if (unix_ms == 0) return std::nullopt;
  return TimeOf(unix_ms);
}

PodRun RunIn(const pb::PodRun& message) {
  PodRun pod;
  pod.name = server::FromProto(message.name());
  for (const pb::SandboxRun& run : message.sandboxes()) {
    pod.sandboxes.push_back({run.id(), run.attempt(), run.ready(),
                             TimeOf(run.created_at_ms()), Get(run.ips())});
  }
  for (const pb::ContainerRun& run : message.containers()) {
    ContainerRun container;
    container.id = run.id();
    container.name = run.name();
    container.attempt = run.attempt();
    container.state = StateOfWord(run.state());
    container.image = run.image();
    container.image_id = run.image_id();
    container.created_at = TimeOf(run.created_at_ms());
    container.started_at = TimeIfAny(run.started_at_ms());
    container.finished_at = TimeIfAny(run.finished_at_ms());
    container.exit_code = run.exit_code();
    container.reason = run.reason();
    container.message = run.message();
    pod.containers.push_back(std::move(container));
  }
  return pod;
}

pb::RuntimeRuns MessageOfRuns(const RuntimeSnapshot& runs) {
  pb::RuntimeRuns message;
  message.set_known(runs.known);
  message.set_since_ms(MillisOf(runs.since));
  message.set_reason(ValidUtf8(runs.reason));
  message.set_runtime(ValidUtf8(runs.runtime));
  for (const auto& [uid, pod] : runs.pods) {
    *message.add_pods() = MessageOfRun(uid, *pod);
  }
  return message;
}

std::shared_ptr<const RuntimeSnapshot> RunsIn(const pb::RuntimeRuns& message) {
  auto runs = std::make_shared<RuntimeSnapshot>();
  runs->known = message.known();
  runs->since = TimeOf(message.since_ms());
  runs->reason = message.reason();
  runs->runtime = message.runtime();
  for (const pb::PodRun& pod : message.pods()) {
    runs->pods[PodUid{pod.uid()}] = std::make_shared<const PodRun>(RunIn(pod));
  }
  return runs;
}

ForeignHolder HolderIn(const pb::ForeignHolder& message) {
  ForeignHolder holder;
  holder.container_id = message.container_id();
  holder.pod_uid.value = message.pod_uid();
  holder.pod = server::FromProto(message.pod());
  holder.container = message.container();
  for (const pb::HeldResource& held : message.resources()) {
    holder.resources.push_back({held.name(), Get<DeviceId>(held.devices())});
  }
  holder.cdi_devices = Get(message.cdi_devices());
  holder.why = message.why();
  return holder;
}

}  // namespace

pb::RuntimeReport ToProto(const RuntimeReport& report) {
  pb::RuntimeReport message;
  message.set_session(ValidUtf8(report.session));
  message.set_name(ValidUtf8(report.name));
  message.set_listen(ValidUtf8(report.listen));
  message.set_endpoint(ValidUtf8(report.endpoint));
  message.set_runtime(ValidUtf8(report.runtime));
  *message.mutable_counters() = MessageOfCounters(report.counters);
  for (const EventInfo& event : report.events) {
    *message.add_events() = ToProto(event);
  }
  for (const ForeignHolder& holder : report.holders) {
    *message.add_holders() = MessageOfHolder(holder);
  }
  message.set_all_holders(report.all_holders);
  message.set_over(report.over);
  if (report.runs != nullptr) {
    *message.mutable_runs() = MessageOfRuns(*report.runs);
  }
  message.set_look(report.look);
  return message;
}

RuntimeReport FromProto(const pb::RuntimeReport& message) {
  RuntimeReport report;
  report.session = message.session();
  report.name = message.name();
  report.listen = message.listen();
  report.endpoint = message.endpoint();
  report.runtime = message.runtime();
  report.counters = CountersIn(message.counters());
  for (const pb::EventInfo& event : message.events()) {
    report.events.push_back(FromProto(event));
  }
  for (const pb::ForeignHolder& holder : message.holders()) {
    report.holders.push_back(HolderIn(holder));
  }
  report.all_holders = message.all_holders();
  report.over = message.over();
  if (message.has_runs()) report.runs = RunsIn(message.runs());
  report.look = message.look();
  return report;
}

pb::DeviceHolderInfo ToProto(const DeviceHolderInfo& info) {
  pb::DeviceHolderInfo message;
  *message.mutable_pod() = ToProto(info.pod);
  message.set_pod_uid(ValidUtf8(info.pod_uid.value));
  message.set_container(ValidUtf8(info.container));
  message.set_container_id(ValidUtf8(info.container_id));
  message.set_state(ValidUtf8(info.state));
  if (info.created_at) message.set_created_at_ms(MillisOf(*info.created_at));
  for (const ContainerDevice& device : info.devices) {
    pb::ContainerDevice* to = message.add_devices();
    to->set_resource(ValidUtf8(device.resource));
    if (!device.claim.name.empty())
      *to->mutable_claim() = ToProto(device.claim);
    to->set_driver(ValidUtf8(device.driver));
    to->set_pool(ValidUtf8(device.pool));
    to->set_device(ValidUtf8(device.device));
    Put(device.cdi_devices, to->mutable_cdi_devices());
    to->set_uuid(ValidUtf8(device.uuid));
    to->set_pci_address(ValidUtf8(device.pci_address));
  }
  Put(info.cdi_devices, message.mutable_cdi_devices());
  return message;
}

DeviceHolderInfo FromProto(const pb::DeviceHolderInfo& message) {
  DeviceHolderInfo info;
  info.pod = FromProto(message.pod());
  info.pod_uid.value = message.pod_uid();
  info.container = message.container();
  info.container_id = message.container_id();
  info.state = message.state();
  info.created_at = TimeIfAny(message.created_at_ms());
  for (const pb::ContainerDevice& device : message.devices()) {
    ContainerDevice& to = info.devices.emplace_back();
    to.resource = device.resource();
    to.claim = FromProto(device.claim());
    to.driver = device.driver();
    to.pool = device.pool();
    to.device = device.device();
    to.cdi_devices = Get(device.cdi_devices());
    to.uuid = device.uuid();
    to.pci_address = device.pci_address();
  }
  info.cdi_devices = Get(message.cdi_devices());
  return info;
}

pb::ForeignHolderInfo ToProto(const ForeignHolderInfo& info) {
  pb::ForeignHolderInfo message;
  *message.mutable_holder() = MessageOfHolder(info.holder);
  message.set_endpoint(ValidUtf8(info.endpoint));
  message.set_since_ms(MillisOf(info.since));
  message.set_freed(ValidUtf8(info.freed));
  return message;
}

ForeignHolderInfo FromProto(const pb::ForeignHolderInfo& message) {
  return {HolderIn(message.holder()), message.endpoint(),
          TimeOf(message.since_ms()), message.freed()};
}

}  // namespace devmgr::server
