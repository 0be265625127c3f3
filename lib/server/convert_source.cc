// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"
#include "server/convert_values.h"

namespace devmgr::server {

pb::SourceInfo ToProto(const SourceInfo& info) {
  pb::SourceInfo message;
  message.set_name(ValidUtf8(info.name));
  message.set_state(ValidUtf8(info.state));
  message.set_server(ValidUtf8(info.server));
  message.set_api_version(ValidUtf8(info.api_version));
  message.set_resource_version(ValidUtf8(info.resource_version));
  message.set_last_list_ms(MillisOf(info.last_list));
  message.set_last_event_ms(MillisOf(info.last_event));
  message.set_known_at_ms(MillisOf(info.known_at));
  message.set_last_error(ValidUtf8(info.last_error));
  message.set_queued(info.queued);
  message.set_complete(info.complete);
  message.set_watch_restarts(info.watch_restarts);
  for (const SourceRequests& requests : info.requests) {
    pb::SourceRequests* added = message.add_requests();
    added->set_verb(ValidUtf8(requests.verb));
    added->set_resource(ValidUtf8(requests.resource));
    added->set_code(requests.code);
    added->set_count(requests.count);
  }
  return message;
}

SourceInfo FromProto(const pb::SourceInfo& message) {
  SourceInfo info;
  info.name = message.name();
  info.state = message.state();
  info.server = message.server();
  info.api_version = message.api_version();
  info.resource_version = message.resource_version();
  info.last_list = TimeOf(message.last_list_ms());
  info.last_event = TimeOf(message.last_event_ms());
  info.known_at = TimeOf(message.known_at_ms());
  info.last_error = message.last_error();
  info.queued = message.queued();
  info.complete = message.complete();
  info.watch_restarts = message.watch_restarts();
  for (const pb::SourceRequests& requests : message.requests()) {
    info.requests.push_back({requests.verb(), requests.resource(),
                             requests.code(), requests.count()});
  }
  return info;
}

}  // namespace devmgr::server
