// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/dra_claim.h"

#include <utility>

namespace devmgr::kubelet_checkpoint {
namespace {

absl::StatusOr<DraDevice> ReadDevice(const JsonField& field) {
  DraDevice device;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField pool, field.Member("PoolName"));
  DEVMGR_ASSIGN_OR_RETURN(device.pool, pool.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField name, field.Member("DeviceName"));
  DEVMGR_ASSIGN_OR_RETURN(device.device, name.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField share, field.Member("ShareID"));
  DEVMGR_ASSIGN_OR_RETURN(device.share_id, share.OptionalText());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField requests,
                          field.Member("RequestNames"));
  DEVMGR_ASSIGN_OR_RETURN(device.request_names, ReadTexts(requests));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField ids, field.Member("CDIDeviceIDs"));
  DEVMGR_ASSIGN_OR_RETURN(device.cdi_device_ids, ReadTexts(ids));
  return device;
}

absl::StatusOr<DraDriverState> ReadDriverState(const JsonField& field) {
  DraDriverState state;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField devices, field.Member("Devices"));
  DEVMGR_ASSIGN_OR_RETURN(state.devices, devices.List(ReadDevice));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField skipped,
                          field.Member("skipNodeOperations"));
  DEVMGR_ASSIGN_OR_RETURN(TextList operations, ReadTexts(skipped));
  if (operations) state.skip_node_operations = *std::move(operations);
  return state;
}

/// Go's set: an object of empty objects.
absl::StatusOr<std::optional<std::set<PodUid>>> ReadPods(
    const JsonField& field) {
  DEVMGR_ASSIGN_OR_RETURN(
      const auto members,
      field.Map<PodUid>([](const JsonField& member) -> absl::StatusOr<bool> {
        if (!member.IsObject()) return member.WrongKind("an object");
        return true;
      }));
  std::optional<std::set<PodUid>> pods;
  if (!members) return pods;
  pods.emplace();
  for (const auto& [uid, is_there] : *members) pods->insert(uid);
  return pods;
}

void WriteDevice(const DraDevice& device, bool is_v1, GoJsonWriter& json) {
  json.Raw(R"({"PoolName":)");
  json.String(device.pool);
  json.Raw(R"(,"DeviceName":)");
  json.String(device.device);
  if (is_v1) {
    json.Raw(R"(,"ShareID":)");
    if (device.share_id) {
      json.String(*device.share_id);
    } else {
      json.Raw("null");
    }
  }
  json.Raw(R"(,"RequestNames":)");
  json.Strings(device.request_names);
  json.Raw(R"(,"CDIDeviceIDs":)");
  json.Strings(device.cdi_device_ids);
  json.Raw("}");
}

}  // namespace

absl::StatusOr<DraClaim> ReadDraClaim(const JsonField& field) {
  DraClaim claim;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField uid, field.Member("ClaimUID"));
  DEVMGR_ASSIGN_OR_RETURN(claim.uid.value, uid.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField name, field.Member("ClaimName"));
  DEVMGR_ASSIGN_OR_RETURN(claim.name.name, name.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField ns, field.Member("Namespace"));
  DEVMGR_ASSIGN_OR_RETURN(claim.name.ns, ns.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField pods, field.Member("PodUIDs"));
  DEVMGR_ASSIGN_OR_RETURN(claim.pods, ReadPods(pods));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField drivers, field.Member("DriverState"));
  DEVMGR_ASSIGN_OR_RETURN(claim.drivers,
                          drivers.Map<std::string>(ReadDriverState));
  return claim;
}

void WriteClaimIdentity(const DraClaim& claim, GoJsonWriter& json) {
  json.Raw(R"("ClaimUID":)");
  json.String(claim.uid.value);
  json.Raw(R"(,"ClaimName":)");
  json.String(claim.name.name);
  json.Raw(R"(,"Namespace":)");
  json.String(claim.name.ns);
  json.Raw(R"(,"PodUIDs":)");
  json.Sequence("{}", claim.pods, [&json](const PodUid& pod) {
    json.String(pod.value);
    json.Raw(":{}");
  });
}

void WriteDriverStates(const DraClaim& claim, bool is_v1, GoJsonWriter& json) {
  json.Raw(R"("DriverState":)");
  json.Sequence("{}", claim.drivers, [&](const auto& driver) {
    const DraDriverState& state = driver.second;
    json.String(driver.first);
    json.Raw(R"(:{"Devices":)");
    json.Sequence("[]", state.devices, [&](const DraDevice& device) {
      WriteDevice(device, is_v1, json);
    });
    if (is_v1 && !state.skip_node_operations.empty()) {
      json.Raw(R"(,"skipNodeOperations":)");
      json.Strings(TextList(state.skip_node_operations));
    }
    json.Raw("}");
  });
}

}  // namespace devmgr::kubelet_checkpoint
