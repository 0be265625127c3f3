// SPDX-License-Identifier: Apache-2.0
#include "resolve_edits.h"

#include <devmgr/cdi.h>
#include <fmt/core.h>

#include <utility>
#include <vector>

#include "cdi_edits.h"
#include "objects.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::StatusOr<CdiEdits> EditsOf(const CdiRegistry& registry,
                                 const ContainerDevices& container) {
  const auto names = CdiNamesOf(container);
  if (!names.ok()) return names.status();
  return CdiEditsOf(registry, *names);
}

absl::Status Failed(const std::string& problems) {
  if (problems.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, problems);
}

void AddProblem(const std::string& problem, std::string* problems) {
  *problems += (problems->empty() ? "" : "; ") + problem;
}

/// What a shim with the same flags would aim at.
absl::StatusOr<CriTarget> TargetOf(const Session& session) {
  const Options& options = session.options();
  CriTarget target;
  target.cdi_directories = options.cdi_spec_dirs;
  if (!options.runtime_endpoint.empty()) {
    const auto runtime = session.OpenRuntime();
    if (!runtime.ok()) return runtime.status();
    target.runtime = (*runtime)->Runtime();
  }
  if (options.leaves_out) {
    for (CriPolicy* policy :
         {&target.hooks, &target.device_nodes, &target.net_devices,
          &target.mounts, &target.intel_rdt}) {
      *policy = CriPolicy::kWarn;
    }
  }
  if (!options.leaves_out && !options.allowed_hooks.empty()) {
    target.hooks = CriPolicy::kAllowList;
    target.allowed_hooks = options.allowed_hooks;
  }
  target.mount_options = options.mount_options;
  return target;
}

/// What one container gets in plain CRI fields, as a container of its own: of
/// two that set the same, the CDI device wins, as where a runtime injects it.
ContainerDevices InPlainFields(ContainerDevices container,
                               const CriEdits& edits) {
  container.cdi_devices.clear();
  std::erase_if(container.annotations, [](const NamedValue& annotation) {
    return IsCdiAnnotation(annotation.name);
  });
  const auto replace = [](auto& list, const auto& item, auto member) {
    std::erase_if(list,
                  [&](const auto& old) { return old.*member == item.*member; });
    list.push_back(item);
  };
  for (const NamedValue& env : edits.env) {
    replace(container.env, env, &NamedValue::name);
  }
  for (const DeviceNode& node : edits.devices) {
    replace(container.devices, node, &DeviceNode::container_path);
  }
  for (const CriMount& mount : edits.mounts) {
    replace(container.mounts,
            DeviceMount{mount.container_path, mount.host_path, mount.read_only},
            &DeviceMount::container_path);
  }
  return container;
}

}  // namespace

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

absl::Status PrintCdiEdits(const Session& session, const PodDevices& devices) {
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const auto registry = (*cache)->Registry();
  Table table =
      session.MakeTable({"CONTAINER", "DEVICE", "EDIT", "VALUE", "FILE"});
  Json containers = Json::array();
  std::string problems;
  for (const ContainerDevices& container : devices.containers) {
    const auto edits = EditsOf(*registry, container);
    if (!edits.ok()) {
      AddProblem(fmt::format("container '{}': {}", container.name,
                             MessageOf(edits.status())),
                 &problems);
      continue;
    }
    Json parts = Json::array();
    for (const CdiEditsPart& part : *edits) {
      for (const EditRow& row :
           RowsOf(*part.edits, session.options().show_env)) {
        table.Add({container.name, part.of_spec ? "(all)" : part.device,
                   row.what, row.value, part.path});
      }
      parts.push_back({{"device", part.device},
                       {"path", part.path},
                       {"ofSpec", part.of_spec},
                       {"containerEdits", ItemOf(*part.edits)}});
    }
    containers.push_back({{"name", container.name}, {"edits", parts}});
  }
  if (session.is_document()) {
    PrintDocument(session.out(),
                  DocumentOf("PodCdiEdits", {{"containers", containers}}),
                  session.options().format);
  } else {
    session.Print(table);
  }
  return Failed(problems);
}

absl::Status PrintFallback(const Session& session, const PodDevices& devices) {
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const auto registry = (*cache)->Registry();
  auto target = TargetOf(session);
  if (!target.ok()) return target.status();
  target->pod = devices.name.ToString();
  PodDevices plain = devices;
  plain.containers.clear();
  Json groups = Json::object();
  std::string problems;
  for (const ContainerDevices& container : devices.containers) {
    target->container = container.name;
    const CriExpansion expansion =
        ExpandCdiForCri(*registry, CdiNamesOf(container), *target);
    for (const std::string& warning : expansion.warnings) {
      session.Note(warning);
    }
    if (!expansion.verdict.ok()) {
      AddProblem(MessageOf(expansion.verdict), &problems);
      continue;
    }
    if (!expansion.edits.supplemental_groups.empty()) {
      groups[container.name] = expansion.edits.supplemental_groups;
    }
    plain.containers.push_back(InPlainFields(container, expansion.edits));
  }
  // Of a refusal nothing is to be used.
  if (!problems.empty()) return Failed(problems);
  if (session.is_document()) {
    Json item = ItemOf(plain);
    item["supplementalGroups"] = groups;
    PrintDocument(session.out(), DocumentOf("PodCriEdits", item),
                  session.options().format);
    return absl::OkStatus();
  }
  Table table = InjectedTable(session, plain);
  session.Print(table);
  for (const auto& [container, gids] : groups.items()) {
    session.Note(fmt::format("container '{}' gets supplemental groups {}",
                             container, gids.dump()));
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
