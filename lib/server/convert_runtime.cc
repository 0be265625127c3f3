// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"

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
  return counters;
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
  report.over = message.over();
  return report;
}

}  // namespace devmgr::server
