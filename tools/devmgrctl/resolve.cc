// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "commands.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::Status KeepContainer(const std::string& container, PodDevices& devices) {
  if (container.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ContainerDevices& candidate : devices.containers) {
    names.push_back(candidate.name);
  }
  std::erase_if(devices.containers, [&](const ContainerDevices& candidate) {
    return candidate.name != container;
  });
  if (!devices.containers.empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kNotFound,
      fmt::format("pod '{}' has no container '{}'; it has: {}",
                  devices.name.ToString(), container, Join(names, ", ")));
}

void PrintNames(std::ostream& out, const PodDevices& devices) {
  std::set<std::string> printed;
  for (const ContainerDevices& container : devices.containers) {
    for (const CdiDevice& device : container.cdi_devices) {
      if (printed.insert(device.name).second) {
        out << Clean(device.name) << "\n";
      }
    }
  }
}

/// One row per device; a container without any has a row of its own.
void PrintTable(const Session& session, const PodDevices& devices) {
  std::vector<std::string> headers = {"CONTAINER", "DEVICE", "CLAIM",
                                      "REQUEST",   "DRIVER", "POOL/DEVICE",
                                      "RESOURCE"};
  if (session.wide()) headers.push_back("INIT");
  Table table = session.MakeTable(std::move(headers));
  for (const ContainerDevices& container : devices.containers) {
    const auto add = [&](std::vector<Cell> row) {
      if (session.wide()) row.emplace_back(container.init ? "true" : "false");
      table.Add(std::move(row));
    };
    for (const CdiDevice& device : container.cdi_devices) {
      const DeviceOrigin& origin = device.origin;
      add({container.name, device.name, origin.claim, origin.request,
           origin.driver, origin.pool + "/" + origin.device, origin.resource});
    }
    if (container.cdi_devices.empty()) {
      add({container.name, "", "", "", "", "", ""});
    }
  }
  session.Print(table);
}

}  // namespace

absl::Status Resolve(const Session& session) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  auto devices = (*inspector)->Resolve(session.options().name);
  if (!devices.ok()) return devices.status();
  const absl::Status status =
      KeepContainer(session.options().container, *devices);
  if (!status.ok()) return status;
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf("PodDevices", ItemOf(*devices)),
                  session.options().format);
  } else if (session.options().format == Format::kName) {
    PrintNames(session.out(), *devices);
  } else {
    PrintTable(session, *devices);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
