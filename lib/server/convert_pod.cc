// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "common/status.h"
#include "server/convert.h"
#include "server/convert_values.h"

namespace devmgr::server {
namespace {

// Beside those below.
using server::Get;
using server::Put;

pb::PodState StateToProto(PodState state) {
  switch (state) {
    case PodState::kWaiting:
      return pb::POD_STATE_WAITING;
    case PodState::kPreparing:
      return pb::POD_STATE_PREPARING;
    case PodState::kReady:
      return pb::POD_STATE_READY;
    case PodState::kRejected:
      return pb::POD_STATE_REJECTED;
    case PodState::kReleasing:
      return pb::POD_STATE_RELEASING;
    case PodState::kEvicting:
      return pb::POD_STATE_EVICTING;
  }
  return pb::POD_STATE_UNSPECIFIED;
}

/// Nothing for one of a newer version.
std::optional<PodState> FromProto(pb::PodState state) {
  switch (state) {
    case pb::POD_STATE_WAITING:
      return PodState::kWaiting;
    case pb::POD_STATE_PREPARING:
      return PodState::kPreparing;
    case pb::POD_STATE_READY:
      return PodState::kReady;
    case pb::POD_STATE_REJECTED:
      return PodState::kRejected;
    case pb::POD_STATE_RELEASING:
      return PodState::kReleasing;
    case pb::POD_STATE_EVICTING:
      return PodState::kEvicting;
    default:
      return std::nullopt;
  }
}

pb::WaitingFor::Kind KindToProto(WaitingFor::Kind kind) {
  switch (kind) {
    case WaitingFor::Kind::kClaim:
      return pb::WaitingFor::KIND_CLAIM;
    case WaitingFor::Kind::kDriver:
      return pb::WaitingFor::KIND_DRIVER;
    case WaitingFor::Kind::kPod:
      return pb::WaitingFor::KIND_POD;
    case WaitingFor::Kind::kResource:
      return pb::WaitingFor::KIND_RESOURCE;
    case WaitingFor::Kind::kRuntime:
      return pb::WaitingFor::KIND_RUNTIME;
    case WaitingFor::Kind::kDevices:
      return pb::WaitingFor::KIND_DEVICES;
    case WaitingFor::Kind::kDeviceClass:
      return pb::WaitingFor::KIND_DEVICE_CLASS;
    case WaitingFor::Kind::kQuota:
      return pb::WaitingFor::KIND_QUOTA;
    case WaitingFor::Kind::kFreeDevices:
      return pb::WaitingFor::KIND_FREE_DEVICES;
    case WaitingFor::Kind::kFewerDevices:
      return pb::WaitingFor::KIND_FEWER_DEVICES;
    case WaitingFor::Kind::kTaint:
      return pb::WaitingFor::KIND_TAINT;
    case WaitingFor::Kind::kClaimTemplate:
      return pb::WaitingFor::KIND_CLAIM_TEMPLATE;
    case WaitingFor::Kind::kAuthority:
      return pb::WaitingFor::KIND_AUTHORITY;
  }
  return pb::WaitingFor::KIND_UNSPECIFIED;
}

/// Nothing for one of a newer version.
std::optional<WaitingFor::Kind> FromProto(pb::WaitingFor::Kind kind) {
  switch (kind) {
    case pb::WaitingFor::KIND_CLAIM:
      return WaitingFor::Kind::kClaim;
    case pb::WaitingFor::KIND_DRIVER:
      return WaitingFor::Kind::kDriver;
    case pb::WaitingFor::KIND_POD:
      return WaitingFor::Kind::kPod;
    case pb::WaitingFor::KIND_RESOURCE:
      return WaitingFor::Kind::kResource;
    case pb::WaitingFor::KIND_RUNTIME:
      return WaitingFor::Kind::kRuntime;
    case pb::WaitingFor::KIND_DEVICES:
      return WaitingFor::Kind::kDevices;
    case pb::WaitingFor::KIND_DEVICE_CLASS:
      return WaitingFor::Kind::kDeviceClass;
    case pb::WaitingFor::KIND_QUOTA:
      return WaitingFor::Kind::kQuota;
    case pb::WaitingFor::KIND_FREE_DEVICES:
      return WaitingFor::Kind::kFreeDevices;
    case pb::WaitingFor::KIND_FEWER_DEVICES:
      return WaitingFor::Kind::kFewerDevices;
    case pb::WaitingFor::KIND_TAINT:
      return WaitingFor::Kind::kTaint;
    case pb::WaitingFor::KIND_CLAIM_TEMPLATE:
      return WaitingFor::Kind::kClaimTemplate;
    case pb::WaitingFor::KIND_AUTHORITY:
      return WaitingFor::Kind::kAuthority;
    default:
      return std::nullopt;
  }
}

void Put(const ContainerResourceStatus& from, pb::ContainerResourceStatus* to) {
  to->set_container(ValidUtf8(from.container));
  for (const ResourceStatus& resource : from.resources) {
    pb::ResourceStatus* status = to->add_resources();
    status->set_name(ValidUtf8(resource.name));
    for (const ResourceHealth& device : resource.resources) {
      pb::ResourceHealth* health = status->add_resources();
      health->set_resource_id(ValidUtf8(device.resource_id));
      health->set_health(ValidUtf8(device.health.name()));
      health->set_message(ValidUtf8(device.message));
      health->set_since_ms(MillisOf(device.since));
    }
  }
}

ContainerResourceStatus Get(const pb::ContainerResourceStatus& from) {
  ContainerResourceStatus to;
  to.container = from.container();
  for (const auto& resource : from.resources()) {
    ResourceStatus& status = to.resources.emplace_back();
    status.name = resource.name();
    for (const auto& device : resource.resources()) {
      status.resources.push_back({device.resource_id(),
                                  OpenDeviceHealth::OfWord(device.health()),
                                  device.message(), TimeOf(device.since_ms())});
    }
  }
  return to;
}

}  // namespace

pb::PodInfo ToProto(const PodInfo& info) {
  pb::PodInfo message;
  *message.mutable_name() = ToProto(info.name);
  message.set_uid(ValidUtf8(info.uid.value));
  message.set_state(StateToProto(info.state));
  message.set_reason(ValidUtf8(info.reason));
  message.set_message(ValidUtf8(info.message));
  for (const WaitingFor& waiting : info.waiting_for) {
    pb::WaitingFor* item = message.add_waiting_for();
    item->set_kind(KindToProto(waiting.kind));
    item->set_name(ValidUtf8(waiting.name));
  }
  message.set_first_seen_ms(MillisOf(info.first_seen));
  Put(info.containers, message.mutable_containers());
  Put(info.claims, message.mutable_claims());
  for (const ContainerResourceStatus& container : info.allocated_resources) {
    Put(container, message.add_allocated_resources());
  }
  return message;
}

absl::StatusOr<PodInfo> FromProto(const pb::PodInfo& info) {
  PodInfo pod;
  pod.name = FromProto(info.name());
  pod.uid.value = info.uid();
  const std::optional<PodState> state = FromProto(info.state());
  if (!state.has_value()) {
    return InvalidArgumentError(
        "pod '{}' is in a state, {}, that version {} does not know: the "
        "daemon's is another one",
        pod.name.ToString(), static_cast<int>(info.state()), DEVMGR_VERSION);
  }
  pod.state = *state;
  pod.reason = info.reason();
  pod.message = info.message();
  for (const auto& item : info.waiting_for()) {
    // Of what only a newer version knows the message tells.
    const std::optional<WaitingFor::Kind> kind = FromProto(item.kind());
    if (kind.has_value()) pod.waiting_for.push_back({*kind, item.name()});
  }
  pod.first_seen = TimeOf(info.first_seen_ms());
  pod.containers = Get<ContainerName>(info.containers());
  pod.claims = Get(info.claims());
  for (const auto& container : info.allocated_resources()) {
    pod.allocated_resources.push_back(Get(container));
  }
  return pod;
}

}  // namespace devmgr::server
