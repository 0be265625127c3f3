// SPDX-License-Identifier: Apache-2.0
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
  return message;
}

RuntimeReport FromProto(const pb::RuntimeReport& message) {
  RuntimeReport report;
  report.session = message.session();
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
  return report;
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
