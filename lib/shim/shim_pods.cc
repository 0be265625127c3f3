// SPDX-License-Identifier: Apache-2.0
//
// Which pods and containers nobody but the runtime knows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "common/status.h"
#include "shim/shim.h"

namespace devmgr::shim {
namespace {

/// Containers that one event names.
constexpr std::size_t kMaxNamed = 10;

std::string DescribeUnknown(const UnknownContainer& container) {
  if (container.uid.value.empty()) {
    return fmt::format("'{}' ({}, of no pod)", container.name, container.id);
  }
  return fmt::format("'{}' of pod '{}' ({})", container.name,
                     container.pod.ToString(), container.id);
}

}  // namespace

void Shim::JudgePods(const std::set<PodUid>& pods, std::function<void()> told) {
  std::erase_if(unknown_pods_,
                [this](const PodUid& pod) { return !book_.HasSandboxOf(pod); });
  std::erase_if(given_, [this](const auto& entry) {
    return !book_.HasSandboxOf(entry.first);
  });
  if (source_ == nullptr || pods.empty()) return told();
  const auto left = std::make_shared<std::size_t>(pods.size());
  const auto one_told = [this, left, told = std::move(told)] {
    if (--*left > 0) return;
    told();
    WatchSource();
  };
  for (const PodUid& pod : pods) {
    source_->DevicesOf(
        pod, book_.NameOf(pod), options_.call_timeout,
        OnExecutor<absl::StatusOr<std::shared_ptr<const PodDevices>>>(
            [this, pod,
             one_told](const absl::StatusOr<std::shared_ptr<const PodDevices>>&
                           devices) {
              OnJudged(pod, devices);
              one_told();
            }));
  }
}

/// Where the source is away nothing is known, of which nothing is said.
void Shim::OnJudged(
    const PodUid& pod,
    const absl::StatusOr<std::shared_ptr<const PodDevices>>& devices) {
  if (devices.ok() && book_.HasSandboxOf(pod)) {
    given_[pod] = *devices;
  } else {
    given_.erase(pod);
  }
  if (absl::IsNotFound(devices.status()) && book_.HasSandboxOf(pod)) {
    unknown_pods_.insert(pod);
  } else {
    unknown_pods_.erase(pod);
  }
}

std::vector<UnknownContainer> Shim::UnknownContainers() const {
  std::vector<UnknownContainer> unknown;
  for (const auto& [id, container] : book_.all_containers()) {
    if (container.exited) continue;
    const cri::SandboxIdentity* const sandbox =
        book_.FindSandbox(container.sandbox_id);
    const cri::SandboxIdentity identity =
        sandbox == nullptr ? cri::SandboxIdentity() : *sandbox;
    if (!identity.uid.value.empty() && !unknown_pods_.contains(identity.uid)) {
      continue;
    }
    unknown.push_back({id, container.name, identity.pod, identity.uid});
  }
  return unknown;
}

/// Each once. Such of no pod are nothing unusual.
void Shim::TellOfUnknownContainers() {
  CountBook();
  const std::vector<UnknownContainer> all = UnknownContainers();
  std::set<std::string> ids;
  std::vector<std::string> texts;
  bool warning = false;
  for (const UnknownContainer& container : all) {
    ids.insert(container.id);
    if (told_unknown_.contains(container.id)) continue;
    warning = warning || !container.uid.value.empty();
    texts.push_back(DescribeUnknown(container));
  }
  told_unknown_ = std::move(ids);
  if (texts.empty()) return;
  const std::size_t count = texts.size();
  texts.resize(std::min(count, kMaxNamed));
  std::string message =
      fmt::format("the runtime has containers of pods that are not known: {}",
                  fmt::join(texts, ", "));
  if (count > texts.size()) {
    message += fmt::format(", and {} more", count - texts.size());
  }
  Tell(warning, "UnknownContainers", {}, message);
}

void Shim::OnContainersOf(const PodUid& pod) {
  if (!unknown_pods_.contains(pod)) return;
  for (const UnknownContainer& container : UnknownContainers()) {
    if (container.uid == pod) told_unknown_.insert(container.id);
  }
  LookForHolders();
  WatchSource();
}

void Shim::WarnOfContainersNotInPod(const Creation& creation,
                                    const PodDevices& pod) {
  std::vector<std::string> names;
  for (const ContainerDevices& container : pod.containers) {
    names.push_back(container.name);
  }
  for (const cri::ContainerConfig& config : creation.configs) {
    if (std::find(names.begin(), names.end(), config.name) != names.end()) {
      continue;
    }
    Tell(true, "ContainerNotInPod", creation.identity,
         fmt::format("container '{}' is created without devices: pod '{}' has "
                     "no container of that name; it has '{}'",
                     config.name, creation.identity.pod.ToString(),
                     fmt::join(names, "', '")));
  }
}

void Shim::FillIn(RuntimeReport* report) const {
  const CriShimInfo info = Info();
  if (info.runtime_known) {
    report->runtime = info.runtime_name + " " + info.runtime_version;
  }
  RuntimeCounters& counters = report->counters;
  counters.sandboxes = info.sandboxes;
  counters.foreign_sandboxes = info.foreign_sandboxes;
  counters.containers = info.containers;
  counters.unknown_containers = info.unknown_containers.size();
  counters.injected = info.injected;
  counters.unchanged = info.unchanged;
  counters.refused = info.refused;
  counters.unreadable = info.unreadable;
  counters.calls = decided_;
  counters.runtime_losses = losses_;
  counters.turned_away = turned_away_;
  ReportHolders(report);
}

}  // namespace devmgr::shim
