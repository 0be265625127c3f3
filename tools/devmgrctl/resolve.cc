// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi.h>

#include <set>
#include <string>

#include "commands.h"
#include "objects.h"
#include "resolve_diff.h"
#include "resolve_edits.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::Status PrintNames(std::ostream& out, const PodDevices& devices) {
  std::set<std::string> printed;
  for (const ContainerDevices& container : devices.containers) {
    const auto names = CdiNamesOf(container);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (printed.insert(name).second) out << Clean(name) << "\n";
    }
  }
  return absl::OkStatus();
}

/// With all devices behind CDI names that have more than one.
Json ItemWith(const PodDevices& devices, const SharedCdiNames& shared) {
  Json item = ItemOf(devices);
  for (Json& container : item["containers"]) {
    for (Json& device : container["cdiDevices"]) {
      const auto all = shared.find(device["name"].get<std::string>());
      if (all != shared.end()) device["devices"] = all->second;
    }
  }
  return item;
}

}  // namespace

absl::Status Resolve(const Session& session) {
  if (!session.options().diff_container.empty()) return DiffContainer(session);
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  auto devices = (*inspector)->Resolve(session.options().name);
  if (!devices.ok()) return devices.status();
  const absl::Status status =
      KeepContainer(session.options().container, *devices);
  if (!status.ok()) return status;
  if (session.options().cdi_edits) return PrintCdiEdits(session, *devices);
  if (session.options().fallback) return PrintFallback(session, *devices);
  if (session.is_document()) {
    PrintDocument(
        session.out(),
        DocumentOf(
            "PodDevices",
            ItemWith(*devices,
                     SharedCdiNamesOf(**inspector, session.options().name))),
        session.options().format);
  } else if (session.options().format == Format::kName) {
    return PrintNames(session.out(), *devices);
  } else {
    Table table =
        InjectedTable(session, *devices,
                      SharedCdiNamesOf(**inspector, session.options().name));
    session.Print(table);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
