// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "commands.h"
#include "objects.h"
#include "sections.h"
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
    Table table = InjectedTable(session, *devices);
    session.Print(table);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
