// SPDX-License-Identifier: Apache-2.0
#include "resolve_diff.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "resolve_edits.h"
#include "runtime_ledger.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// `container 'c' (0f3a..., running)`.
std::string TextOf(const RuntimeContainer& container) {
  return fmt::format("container '{}' ({}, {})", container.name, container.id,
                     RuntimeContainerStateName(container.state));
}

/// What the ledger gives to that container of that very pod.
absl::StatusOr<ContainerDevices> AllocatedTo(
    Inspector& inspector, const RuntimeContainer& container) {
  if (container.pod_uid.value.empty()) {
    return MakeError(
        absl::StatusCode::kNotFound,
        TextOf(container) +
            " belongs to no pod: its sandbox was made without a pod UID, as "
            "crictl does");
  }
  const auto answers = AnswersFor(inspector, {container});
  if (!answers.ok()) return answers.status();
  const auto answer = answers->find(container.pod_uid);
  if (answer == answers->end()) {
    return MakeError(absl::StatusCode::kNotFound,
                     fmt::format("{} is of pod '{}' with UID '{}', which the "
                                 "ledger does not know",
                                 TextOf(container), container.pod.ToString(),
                                 container.pod_uid.value));
  }
  if (!answer->second.ok()) {
    // Nobody is away: there is nothing to compare with.
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        TextOf(container) + ": " + MessageOf(answer->second.status()));
  }
  PodDevices pod = *answer->second;
  const absl::Status status = KeepContainer(container.name, pod);
  if (!status.ok()) return status;
  ContainerDevices devices = std::move(pod.containers.front());
  if (!devices.devices_released) return devices;
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("init container '{}' has given its devices back",
                               devices.name));
}

Json ContainerItem(const RuntimeContainer& container) {
  Json item = {{"id", container.id},
               {"name", container.name},
               {"attempt", container.attempt},
               {"state", RuntimeContainerStateName(container.state)},
               {"pod",
                {{"namespace", container.pod.ns},
                 {"name", container.pod.name},
                 {"uid", container.pod_uid.value}}}};
  if (!container.allocation.empty()) {
    item["allocation"] = container.allocation;
  }
  return item;
}

Json DifferenceItem(const HeldDifference& difference) {
  Json item = {{"difference", HeldDifferenceKindName(difference.kind)},
               {"what", difference.what},
               {"name", difference.name}};
  if (difference.kind != HeldDifference::Kind::kAdditional) {
    item["ledger"] = difference.ledger;
  }
  if (difference.kind != HeldDifference::Kind::kMissing) {
    item["container"] = difference.container;
  }
  return item;
}

Cell KindCell(HeldDifference::Kind kind) {
  return {std::string(HeldDifferenceKindName(kind)),
          kind == HeldDifference::Kind::kMissing ? Tone::kBad : Tone::kWarn};
}

void Print(const Session& session, const RuntimeContainer& container,
           const std::vector<HeldDifference>& differences) {
  if (session.is_document()) {
    Json items = Json::array();
    for (const HeldDifference& difference : differences) {
      items.push_back(DifferenceItem(difference));
    }
    PrintDocument(
        session.out(),
        DocumentOf("ContainerDiff",
                   {{"container", ContainerItem(container)}, {"items", items}}),
        session.options().format);
    return;
  }
  if (session.options().format == Format::kName) {
    for (const HeldDifference& difference : differences) {
      session.out() << Clean(difference.name) << "\n";
    }
    return;
  }
  if (differences.empty()) return;
  Table table =
      session.MakeTable({"DIFFERENCE", "WHAT", "NAME", "LEDGER", "CONTAINER"});
  for (const HeldDifference& difference : differences) {
    const bool is_secret =
        difference.what == "environment" && !session.options().show_env;
    const auto shown = [&](const std::string& value) {
      return is_secret && !value.empty() ? "***" : value;
    };
    table.Add({KindCell(difference.kind), difference.what, difference.name,
               shown(difference.ledger), shown(difference.container)});
  }
  table.Print(session.out());
}

absl::Status CompareContainer(const Session& session, std::size_t* count) {
  const auto runtime = session.OpenRuntime();
  if (!runtime.ok()) return runtime.status();
  const auto containers = (*runtime)->Containers();
  if (!containers.ok()) return containers.status();
  const auto container =
      FindRuntimeContainer(*containers, session.options().diff_container);
  if (!container.ok()) return container.status();
  const auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto devices = AllocatedTo(**inspector, *container);
  if (!devices.ok()) return devices.status();
  const auto config = (*runtime)->ConfigOf(container->id);
  if (!config.ok()) return config.status();
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const auto differences =
      CompareWithLedger(*container, *config, *devices, *(*cache)->Registry());
  if (!differences.ok()) return differences.status();
  if (container->state == RuntimeContainer::State::kExited) {
    session.Note(TextOf(*container) +
                 " holds nothing any more: what follows is what it was "
                 "created with");
  }
  if (container->allocation.empty()) {
    session.Note(TextOf(*container) +
                 " has no annotation 'devmgr/allocation': it did not get its "
                 "devices from a shim");
  }
  Print(session, *container, *differences);
  *count = differences->size();
  if (*count == 0) {
    session.Note(TextOf(*container) + " has what the ledger says");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DiffContainer(const Session& session) {
  std::size_t count = 0;
  const absl::Status status = CompareContainer(session, &count);
  if (!status.ok()) return AsTrouble(status);
  if (count == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("{} difference{} to the ledger", count,
                               count == 1 ? "" : "s"));
}

}  // namespace devmgr::ctl
