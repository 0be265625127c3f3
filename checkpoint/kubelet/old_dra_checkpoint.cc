// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/old_dra_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "api/quote.h"
#include "checkpoint/kubelet/dra_claim.h"
#include "checkpoint/kubelet/go_writer.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using Layout = OldDraCheckpoint::Layout;

// The dump that is hashed.

void DumpHandle(const OldResourceHandle& handle, GoDump& dump) {
  dump.Raw("{");
  dump.Text("DriverName", handle.driver);
  dump.Raw(" ");
  dump.Text("Data", handle.data);
  dump.Raw(" ");
  dump.Type("StructuredData", "*v1alpha2.StructuredResourceHandle");
  dump.Raw("<nil>}");
}

void DumpDriverStates(const DraClaim& claim, GoDump& dump) {
  dump.Type("DriverState", "map[string]state.DriverState");
  dump.Sequence("map[", claim.drivers, [&dump](const auto& driver) {
    dump.Raw(driver.first);
    dump.Raw(":{");
    dump.Type("Devices", "[]state.Device");
    dump.Sequence("[", driver.second.devices, [&dump](const DraDevice& device) {
      dump.Raw("{");
      dump.Text("PoolName", device.pool);
      dump.Raw(" ");
      dump.Text("DeviceName", device.device);
      dump.Raw(" ");
      dump.Type("RequestNames", "[]string");
      dump.Texts(device.request_names);
      dump.Raw(" ");
      dump.Type("CDIDeviceIDs", "[]string");
      dump.Texts(device.cdi_device_ids);
      dump.Raw("}");
    });
    dump.Raw("}");
  });
}

void DumpCdiDevices(const OldDraClaim& old, Layout layout, GoDump& dump) {
  if (layout == Layout::kResourceHandles) {
    dump.Type("ResourceHandles", "[]v1alpha2.ResourceHandle");
    dump.Sequence(
        "[", old.resource_handles,
        [&dump](const OldResourceHandle& handle) { DumpHandle(handle, dump); });
    dump.Raw(" ");
  }
  dump.Type("CDIDevices", "map[string][]string");
  dump.Sequence("map[", old.cdi_devices, [&dump](const auto& driver) {
    dump.Raw(driver.first);
    dump.Raw(":");
    dump.Texts(driver.second);
  });
}

void DumpClaim(const OldDraClaim& old, Layout layout, GoDump& dump) {
  dump.Raw("{");
  if (layout != Layout::kDriverState) {
    dump.Text("DriverName", old.driver);
    dump.Raw(" ");
    dump.Text("ClassName", old.class_name);
    dump.Raw(" ");
  }
  dump.Type("ClaimUID", "types.UID");
  dump.Raw(old.claim.uid.value);
  dump.Raw(" ");
  dump.Text("ClaimName", old.claim.name.name);
  dump.Raw(" ");
  dump.Text("Namespace", old.claim.name.ns);
  dump.Raw(" ");
  dump.Type("PodUIDs", "sets.Set[string]");
  dump.Sequence("map[", old.claim.pods, [&dump](const PodUid& pod) {
    dump.Raw(pod.value);
    dump.Raw(":{}");
  });
  dump.Raw(" ");
  if (layout == Layout::kDriverState) {
    DumpDriverStates(old.claim, dump);
  } else {
    DumpCdiDevices(old, layout, dump);
  }
  dump.Raw("}");
}

std::uint32_t OldChecksumOf(const OldDraCheckpoint& checkpoint) {
  GoDump dump;
  dump.Raw("(*state.DRAManagerCheckpoint){");
  dump.Text("Version", checkpoint.version);
  dump.Raw(" ");
  dump.Type("Entries", "state.ClaimInfoStateList");
  dump.Sequence("[", checkpoint.claims, [&](const OldDraClaim& claim) {
    DumpClaim(claim, checkpoint.layout, dump);
  });
  dump.Raw(" ");
  dump.Type("Checksum", "checksum.Checksum");
  dump.Raw("0}");
  return dump.hash();
}

// The file.

void WriteHandle(const OldResourceHandle& handle, GoJsonWriter& json) {
  json.Raw("{");
  if (!handle.driver.empty()) {
    json.Raw(R"("driverName":)");
    json.String(handle.driver);
  }
  if (!handle.data.empty()) {
    json.Raw(handle.driver.empty() ? R"("data":)" : R"(,"data":)");
    json.String(handle.data);
  }
  json.Raw("}");
}

void WriteCdiDevices(const OldDraClaim& old, Layout layout,
                     GoJsonWriter& json) {
  if (layout == Layout::kResourceHandles) {
    json.Raw(R"("ResourceHandles":)");
    json.Sequence("[]", old.resource_handles,
                  [&json](const OldResourceHandle& handle) {
                    WriteHandle(handle, json);
                  });
    json.Raw(",");
  }
  json.Raw(R"("CDIDevices":)");
  json.Sequence("{}", old.cdi_devices, [&json](const auto& driver) {
    json.String(driver.first);
    json.Raw(":");
    json.Strings(driver.second);
  });
}

void WriteOldClaim(const OldDraClaim& old, Layout layout, GoJsonWriter& json) {
  json.Raw("{");
  if (layout != Layout::kDriverState) {
    json.Raw(R"("DriverName":)");
    json.String(old.driver);
    json.Raw(R"(,"ClassName":)");
    json.String(old.class_name);
    json.Raw(",");
  }
  WriteClaimIdentity(old.claim, json);
  json.Raw(",");
  if (layout == Layout::kDriverState) {
    WriteDriverStates(old.claim, /*is_v1=*/false, json);
  } else {
    WriteCdiDevices(old, layout, json);
  }
  json.Raw("}");
}

bool HasOldDriverStatesOnly(const DraClaim& claim) {
  if (!claim.drivers) return true;
  return std::all_of(
      claim.drivers->begin(), claim.drivers->end(), [](const auto& driver) {
        const DraDriverState& state = driver.second;
        if (!state.skip_node_operations.empty()) return false;
        return !state.devices ||
               std::none_of(state.devices->begin(), state.devices->end(),
                            [](const DraDevice& device) {
                              return device.share_id.has_value();
                            });
      });
}

/// Why the layout cannot say all of the claim, or nullptr.
const char* WhatDoesNotFit(const OldDraClaim& old, Layout layout) {
  if (layout == Layout::kDriverState) {
    if (!old.driver.empty() || !old.class_name.empty() ||
        old.resource_handles || old.cdi_devices) {
      return "the layout of 1.31 has devices by driver only";
    }
    return HasOldDriverStatesOnly(old.claim)
               ? nullptr
               : "the layout of 1.31 has no share IDs and no skipped calls";
  }
  if (old.claim.drivers) return "layouts before 1.31 have no devices by driver";
  if (!old.resource_handles) return nullptr;
  if (layout == Layout::kCdiDevices) {
    return "the oldest layout has no resource handles";
  }
  const bool has_structured_data = std::any_of(
      old.resource_handles->begin(), old.resource_handles->end(),
      [](const auto& handle) { return handle.has_structured_data; });
  return has_structured_data ? "structured parameters are not kept" : nullptr;
}

// Reading.

absl::StatusOr<OldResourceHandle> ReadHandle(const JsonField& field) {
  OldResourceHandle handle;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField driver, field.Member("driverName"));
  DEVMGR_ASSIGN_OR_RETURN(handle.driver, driver.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField data, field.Member("data"));
  DEVMGR_ASSIGN_OR_RETURN(handle.data, data.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField structured,
                          field.Member("structuredData"));
  handle.has_structured_data = !structured.IsNil();
  return handle;
}

/// Sets `layout` to that of the claim, which all claims of a file share.
absl::StatusOr<OldDraClaim> ReadOldClaim(const JsonField& field,
                                         std::optional<Layout>& layout) {
  OldDraClaim old;
  DEVMGR_ASSIGN_OR_RETURN(old.claim, ReadDraClaim(field));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField driver, field.Member("DriverName"));
  DEVMGR_ASSIGN_OR_RETURN(old.driver, driver.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField name, field.Member("ClassName"));
  DEVMGR_ASSIGN_OR_RETURN(old.class_name, name.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField handles,
                          field.Member("ResourceHandles"));
  DEVMGR_ASSIGN_OR_RETURN(old.resource_handles, handles.List(ReadHandle));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField devices, field.Member("CDIDevices"));
  DEVMGR_ASSIGN_OR_RETURN(old.cdi_devices,
                          devices.Map<std::string>(ReadTexts<std::string>));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField states, field.Member("DriverState"));
  const Layout shown = !states.IsAbsent()    ? Layout::kDriverState
                       : !handles.IsAbsent() ? Layout::kResourceHandles
                                             : Layout::kCdiDevices;
  if (layout.value_or(shown) != shown) {
    return field.Error("another layout than that of the entries before it");
  }
  layout = shown;
  if (shown == Layout::kDriverState &&
      (!driver.IsAbsent() || !devices.IsAbsent() || !handles.IsAbsent())) {
    return field.Error("devices by driver and CDI devices in one entry");
  }
  return old;
}

bool HasStructuredData(const OldDraCheckpoint& checkpoint) {
  if (!checkpoint.claims) return false;
  for (const OldDraClaim& claim : *checkpoint.claims) {
    if (!claim.resource_handles) continue;
    for (const OldResourceHandle& handle : *claim.resource_handles) {
      if (handle.has_structured_data) return true;
    }
  }
  return false;
}

/// The driver that a claim of before 1.31 has, and those of its handles: what
/// the kubelet calls to prepare and unprepare it.
std::map<std::string, DraDriverState> DriversOf(const OldDraClaim& old) {
  std::map<std::string, DraDriverState> drivers;
  if (old.resource_handles) {
    for (const OldResourceHandle& handle : *old.resource_handles) {
      // A handle without a driver is for that of the claim.
      drivers[handle.driver.empty() ? old.driver : handle.driver];
    }
  }
  if (drivers.empty() && !old.driver.empty()) drivers[old.driver];
  if (!old.cdi_devices) return drivers;
  for (const auto& [driver, ids] : *old.cdi_devices) {
    DraDriverState& state = drivers[driver];
    if (ids && !ids->empty()) {
      state.devices.emplace(1).front().cdi_device_ids = ids;
    }
  }
  return drivers;
}

}  // namespace

absl::StatusOr<std::string> EncodeOldDraCheckpoint(
    const OldDraCheckpoint& checkpoint) {
  if (checkpoint.claims) {
    for (const OldDraClaim& old : *checkpoint.claims) {
      if (const char* why = WhatDoesNotFit(old, checkpoint.layout)) {
        return InvalidArgumentError("{}: claim {}: {}", kDraStateName,
                                    api::Quoted(old.claim.name.ToString()),
                                    why);
      }
    }
  }
  GoJsonWriter json;
  json.Raw(R"({"version":)");
  json.String(checkpoint.version);
  json.Raw(R"(,"entries":)");
  json.Sequence("[]", checkpoint.claims, [&](const OldDraClaim& old) {
    WriteOldClaim(old, checkpoint.layout, json);
  });
  json.Raw(fmt::format(R"(,"checksum":{}}})", OldChecksumOf(checkpoint)));
  return std::move(json).Take(kDraStateName);
}

DraCheckpoint Upgraded(const OldDraCheckpoint& old) {
  DraCheckpoint checkpoint;
  if (!old.claims) return checkpoint;
  checkpoint.claims.emplace();
  for (const OldDraClaim& old_claim : *old.claims) {
    DraClaim claim = old_claim.claim;
    if (old.layout != Layout::kDriverState) {
      claim.drivers = DriversOf(old_claim);
    }
    checkpoint.claims->push_back(std::move(claim));
  }
  return checkpoint;
}

absl::StatusOr<OldDraCheckpoint> ReadOldDraCheckpoint(const JsonField& file) {
  OldDraCheckpoint checkpoint;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField version, file.Member("version"));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.version, version.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField entries, file.Member("entries"));
  std::optional<Layout> layout;
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.claims,
                          entries.List([&layout](const JsonField& entry) {
                            return ReadOldClaim(entry, layout);
                          }));
  checkpoint.layout = layout.value_or(Layout::kDriverState);
  DEVMGR_ASSIGN_OR_RETURN(const JsonField field, file.Member("checksum"));
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t checksum, field.Number());
  checkpoint.is_checksum_proven =
      !HasStructuredData(checkpoint) && checksum == OldChecksumOf(checkpoint);
  return checkpoint;
}

}  // namespace devmgr::kubelet_checkpoint
