// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "server/convert.h"
#include "server/convert_values.h"

namespace devmgr::server {

pb::ChangeToken ToProto(const ChangeToken& token) {
  pb::ChangeToken message;
  message.set_sequence(token.sequence);
  message.set_index(token.index);
  message.set_health(token.health);
  message.set_process(token.process);
  return message;
}

ChangeToken FromProto(const pb::ChangeToken& message) {
  return {message.sequence(), message.index(), message.health(),
          message.process()};
}

pb::DeviceChange ToProto(const DeviceChange& change) {
  pb::DeviceChange message;
  *message.mutable_token() = ToProto(change.token);
  message.set_time_ms(MillisOf(change.time));
  message.set_kind(ValidUtf8(change.kind.name()));
  *message.mutable_pod() = ToProto(change.pod);
  message.set_pod_uid(ValidUtf8(change.pod_uid.value));
  message.set_container(ValidUtf8(change.container.value));
  message.set_resource(ValidUtf8(change.resource.value));
  *message.mutable_claim() = ToProto(change.claim);
  message.set_claim_uid(ValidUtf8(change.claim_uid.value));
  message.set_driver(ValidUtf8(change.driver));
  message.set_pool(ValidUtf8(change.pool));
  Put(change.devices, message.mutable_devices());
  message.set_share_id(ValidUtf8(change.share_id));
  Put(change.cdi_devices, message.mutable_cdi_devices());
  message.set_health(WordOf(change.health));
  message.set_owner(WordOf(change.owner));
  message.set_former_owner(WordOf(change.former_owner));
  message.set_reason(ValidUtf8(change.reason));
  message.set_message(ValidUtf8(change.message));
  return message;
}

DeviceChange FromProto(const pb::DeviceChange& message) {
  DeviceChange change;
  change.token = FromProto(message.token());
  change.time = TimeOf(message.time_ms());
  change.kind = OpenDeviceChangeKind::OfWord(message.kind());
  change.pod = FromProto(message.pod());
  change.pod_uid = {message.pod_uid()};
  change.container = message.container();
  change.resource = message.resource();
  change.claim = FromProto(message.claim());
  change.claim_uid = {message.claim_uid()};
  change.driver = message.driver();
  change.pool = message.pool();
  change.devices = Get<DeviceId>(message.devices());
  change.share_id = message.share_id();
  change.cdi_devices = Get(message.cdi_devices());
  change.health = FromWord<OpenDeviceHealth>(message.health());
  change.owner = FromWord<OpenResourceOwner>(message.owner());
  change.former_owner = FromWord<OpenResourceOwner>(message.former_owner());
  change.reason = message.reason();
  change.message = message.message();
  return change;
}

pb::ChangesResponse ToProto(const DeviceChanges& changes) {
  pb::ChangesResponse response;
  for (const DeviceChange& change : changes.changes) {
    *response.add_changes() = ToProto(change);
  }
  *response.mutable_next() = ToProto(changes.next);
  response.set_more(changes.more);
  return response;
}

DeviceChanges FromProto(const pb::ChangesResponse& response) {
  DeviceChanges changes;
  for (const pb::DeviceChange& change : response.changes()) {
    changes.changes.push_back(FromProto(change));
  }
  changes.next = FromProto(response.next());
  changes.more = response.more();
  return changes;
}

pb::ChangesRequest ToProto(const ChangesFrom& from) {
  pb::ChangesRequest request;
  if (const auto* token = std::get_if<ChangeToken>(&from)) {
    *request.mutable_after() = ToProto(*token);
  } else if (std::holds_alternative<FromOldest>(from)) {
    request.set_oldest(true);
  }
  return request;
}

ChangesFrom FromProto(const pb::ChangesRequest& request) {
  if (request.has_after()) return FromProto(request.after());
  if (request.oldest()) return FromOldest();
  return FromSnapshot();
}

}  // namespace devmgr::server
