// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/device_checkpoint.h"

#include <absl/strings/numbers.h>

#include <utility>

#include "api/quote.h"
#include "checkpoint/kubelet/go_writer.h"
#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {
namespace {

using Format = DeviceCheckpoint::Format;
using IdsByNode = std::map<std::int64_t, DeviceIdList>;

/// The list that an entry has in format 1; nullptr for null, and where there
/// is none in that format.
const DeviceIdList* ListOfNodeZero(const PodDevicesEntry& entry) {
  if (!entry.device_ids || entry.device_ids->size() != 1) return nullptr;
  const auto found = entry.device_ids->find(0);
  return found == entry.device_ids->end() ? nullptr : &found->second;
}

// The dump that is hashed.

void DumpDeviceIds(const PodDevicesEntry& entry, Format format, GoDump& dump) {
  if (format == Format::kIdLists) {
    dump.Type("DeviceIDs", "[]string");
    const DeviceIdList* const list = ListOfNodeZero(entry);
    dump.Texts(list == nullptr ? DeviceIdList() : *list);
    return;
  }
  dump.Type("DeviceIDs", "checkpoint.DevicesPerNUMA");
  dump.Sequence("map[", entry.device_ids, [&dump](const auto& node) {
    dump.Raw(std::to_string(node.first));
    dump.Raw(":");
    dump.Texts(node.second);
  });
}

void DumpEntry(const PodDevicesEntry& entry, Format format, GoDump& dump) {
  dump.Raw("{");
  dump.Text("PodUID", entry.pod.value);
  dump.Raw(" ");
  dump.Text("ContainerName", entry.container);
  dump.Raw(" ");
  dump.Text("ResourceName", entry.resource);
  dump.Raw(" ");
  DumpDeviceIds(entry, format, dump);
  dump.Raw(" ");
  dump.Type("AllocResp", "[]uint8");
  dump.Sequence("[", entry.alloc_resp, [&dump](char c) {
    dump.Raw(std::to_string(static_cast<unsigned char>(c)));
  });
  dump.Raw("}");
}

std::uint32_t ChecksumIn(const DeviceCheckpoint& checkpoint, Format format) {
  GoDump dump;
  dump.Raw("(checkpoint.checkpointData){");
  dump.Type("PodDeviceEntries", "[]checkpoint.PodDevicesEntry");
  dump.Sequence("[", checkpoint.entries,
                [&dump, format](const PodDevicesEntry& entry) {
                  DumpEntry(entry, format, dump);
                });
  dump.Raw(" ");
  dump.Type("RegisteredDevices", "map[string][]string");
  dump.Sequence("map[", checkpoint.registered, [&dump](const auto& resource) {
    dump.Raw(resource.first);
    dump.Raw(":");
    dump.Texts(resource.second);
  });
  dump.Raw("}");
  return dump.hash();
}

// The file.

void WriteDeviceIds(const PodDevicesEntry& entry, Format format,
                    GoJsonWriter& json) {
  if (format == Format::kIdLists) {
    const DeviceIdList* const list = ListOfNodeZero(entry);
    json.Strings(list == nullptr ? DeviceIdList() : *list);
    return;
  }
  // Go sorts keys as texts here, so that node 10 comes before node 2, and as
  // numbers in the dump.
  std::optional<std::map<std::string, const DeviceIdList*>> by_text;
  if (entry.device_ids) {
    by_text.emplace();
    for (const auto& [node, ids] : *entry.device_ids) {
      by_text->emplace(std::to_string(node), &ids);
    }
  }
  json.Sequence("{}", by_text, [&json](const auto& node) {
    json.String(node.first);
    json.Raw(":");
    json.Strings(*node.second);
  });
}

void WriteEntry(const PodDevicesEntry& entry, Format format,
                GoJsonWriter& json) {
  json.Raw(R"({"PodUID":)");
  json.String(entry.pod.value);
  json.Raw(R"(,"ContainerName":)");
  json.String(entry.container);
  json.Raw(R"(,"ResourceName":)");
  json.String(entry.resource);
  json.Raw(R"(,"DeviceIDs":)");
  WriteDeviceIds(entry, format, json);
  json.Raw(R"(,"AllocResp":)");
  if (entry.alloc_resp) {
    json.Bytes(*entry.alloc_resp);
  } else {
    json.Raw("null");
  }
  json.Raw("}");
}

/// Whether format 1 can say what the entries hold.
absl::Status CheckIdLists(const std::vector<PodDevicesEntry>& entries) {
  for (const PodDevicesEntry& entry : entries) {
    const DeviceIdList* const list = ListOfNodeZero(entry);
    if (!entry.device_ids || (list != nullptr && list->has_value())) continue;
    return InvalidArgumentError(
        "{}: format 1 has devices of NUMA node 0 only, not those of container "
        "{} of pod {}",
        kDeviceCheckpointName, api::Quoted(entry.container.value),
        api::Quoted(entry.pod.value));
  }
  return absl::OkStatus();
}

// Reading.

absl::StatusOr<std::optional<IdsByNode>> ReadIdsByNode(const JsonField& field) {
  DEVMGR_ASSIGN_OR_RETURN(auto by_text,
                          field.Map<std::string>(ReadTexts<DeviceId>));
  std::optional<IdsByNode> ids;
  if (!by_text) return ids;
  ids.emplace();
  for (auto& [text, list] : *by_text) {
    std::int64_t node = 0;
    // `07` and `7` would be one node.
    if (!absl::SimpleAtoi(text, &node) || std::to_string(node) != text) {
      return field.Error(fmt::format("{} is no NUMA node", api::Quoted(text)));
    }
    ids->emplace(node, std::move(list));
  }
  return ids;
}

/// Sets `format` to what the entry shows, if it shows it.
absl::StatusOr<std::optional<IdsByNode>> ReadDeviceIds(
    const JsonField& field, std::optional<Format>& format) {
  if (field.IsNil()) return std::optional<IdsByNode>();
  const Format shown =
      field.IsList() ? Format::kIdLists : Format::kIdsByNumaNode;
  if (format && *format != shown) {
    return field.Error("lists and objects of IDs in one file");
  }
  format = shown;
  if (shown == Format::kIdsByNumaNode) return ReadIdsByNode(field);
  DEVMGR_ASSIGN_OR_RETURN(auto list, ReadTexts<DeviceId>(field));
  return std::optional<IdsByNode>(IdsByNode{{0, std::move(list)}});
}

absl::StatusOr<PodDevicesEntry> ReadEntry(const JsonField& field,
                                          std::optional<Format>& format) {
  PodDevicesEntry entry;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField pod, field.Member("PodUID"));
  DEVMGR_ASSIGN_OR_RETURN(entry.pod.value, pod.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField container,
                          field.Member("ContainerName"));
  DEVMGR_ASSIGN_OR_RETURN(entry.container.value, container.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField resource,
                          field.Member("ResourceName"));
  DEVMGR_ASSIGN_OR_RETURN(entry.resource.value, resource.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField ids, field.Member("DeviceIDs"));
  DEVMGR_ASSIGN_OR_RETURN(entry.device_ids, ReadDeviceIds(ids, format));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField response, field.Member("AllocResp"));
  DEVMGR_ASSIGN_OR_RETURN(entry.alloc_resp, response.Bytes());
  return entry;
}

/// Without the format where no entry shows it, which is then nothing.
absl::StatusOr<DeviceCheckpoint> ReadData(const JsonField& data,
                                          std::optional<Format>& format) {
  DeviceCheckpoint checkpoint;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField entries,
                          data.Member("PodDeviceEntries"));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.entries,
                          entries.List([&format](const JsonField& entry) {
                            return ReadEntry(entry, format);
                          }));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField registered,
                          data.Member("RegisteredDevices"));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.registered,
                          registered.Map<ResourceName>(ReadTexts<DeviceId>));
  // The kubelet reads over values that are empty, not nil.
  if (entries.IsAbsent()) checkpoint.entries.emplace();
  if (registered.IsAbsent()) checkpoint.registered.emplace();
  return checkpoint;
}

absl::StatusOr<DeviceCheckpoint> DecodeFile(std::string_view bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const api::ValuePtr file, ParseObject(bytes));
  const JsonField root(file.get(), "");
  DEVMGR_ASSIGN_OR_RETURN(const JsonField data, root.Member("Data"));
  std::optional<Format> format;
  DEVMGR_ASSIGN_OR_RETURN(DeviceCheckpoint checkpoint, ReadData(data, format));
  DEVMGR_ASSIGN_OR_RETURN(const JsonField field, root.Member("Checksum"));
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t checksum, field.Number());
  checkpoint.format = format.value_or(Format::kIdsByNumaNode);
  const std::uint32_t computed = ChecksumOf(checkpoint);
  if (checksum == computed) return checkpoint;
  // Entries without IDs do not show the format, and have two dumps.
  if (!format && checksum == ChecksumIn(checkpoint, Format::kIdLists)) {
    checkpoint.format = Format::kIdLists;
    return checkpoint;
  }
  return field.Corrupted(checksum, computed);
}

}  // namespace

std::uint32_t ChecksumOf(const DeviceCheckpoint& checkpoint) {
  return ChecksumIn(checkpoint, checkpoint.format);
}

absl::StatusOr<DeviceCheckpoint> DecodeDeviceCheckpoint(
    std::string_view bytes) {
  auto checkpoint = DecodeFile(bytes);
  if (checkpoint.ok()) return checkpoint;
  return WithContext(checkpoint.status(), "{}", kDeviceCheckpointName);
}

absl::StatusOr<std::string> EncodeDeviceCheckpoint(
    const DeviceCheckpoint& checkpoint) {
  if (checkpoint.format == Format::kIdLists && checkpoint.entries) {
    DEVMGR_RETURN_IF_ERROR(CheckIdLists(*checkpoint.entries));
  }
  GoJsonWriter json;
  json.Raw(R"({"Data":{"PodDeviceEntries":)");
  json.Sequence("[]", checkpoint.entries, [&](const PodDevicesEntry& entry) {
    WriteEntry(entry, checkpoint.format, json);
  });
  json.Raw(R"(,"RegisteredDevices":)");
  json.Sequence("{}", checkpoint.registered, [&json](const auto& resource) {
    json.String(resource.first);
    json.Raw(":");
    json.Strings(resource.second);
  });
  if (json.size() <= kMaxFileBytes) {
    json.Raw(fmt::format(R"(}},"Checksum":{}}})", ChecksumOf(checkpoint)));
  }
  return std::move(json).Take(kDeviceCheckpointName);
}

}  // namespace devmgr::kubelet_checkpoint
