// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime_snapshot.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace devmgr::shim {
namespace {

WallTime TimeOf(std::int64_t unix_ns) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::nanoseconds(unix_ns)));
}

std::optional<WallTime> TimeIfAny(std::int64_t unix_ns) {
  if (unix_ns <= 0) return std::nullopt;
  return TimeOf(unix_ns);
}

/// The status was asked for after the list: where they differ it is newer.
ContainerRun RunOf(const cri::Container& listed,
                   const cri::ContainerStatus* status) {
  ContainerRun run;
  run.id = listed.id;
  run.name = listed.name;
  run.attempt = listed.attempt;
  run.state = RunStateOf(listed.state);
  run.image = listed.image;
  run.image_id = listed.image_ref;
  run.created_at = TimeOf(listed.created_at);
  if (status == nullptr) return run;
  run.state = RunStateOf(status->state);
  run.started_at = TimeIfAny(status->started_at);
  run.reason = status->reason;
  run.message = status->message;
  if (status->state != cri::ContainerState::kExited) return run;
  run.finished_at = TimeIfAny(status->finished_at);
  run.exit_code = status->exit_code;
  return run;
}

bool IsNewerSandbox(const SandboxRun& a, const SandboxRun& b) {
  return std::tie(a.created_at, a.attempt, a.id) >
         std::tie(b.created_at, b.attempt, b.id);
}

bool IsBefore(const ContainerRun& a, const ContainerRun& b) {
  if (a.name != b.name) return a.name < b.name;
  return std::tie(a.created_at, a.attempt, a.id) >
         std::tie(b.created_at, b.attempt, b.id);
}

}  // namespace

RuntimeContainer::State RunStateOf(cri::ContainerState state) {
  switch (state) {
    case cri::ContainerState::kCreated:
      return RuntimeContainer::State::kCreated;
    case cri::ContainerState::kRunning:
      return RuntimeContainer::State::kRunning;
    case cri::ContainerState::kExited:
      return RuntimeContainer::State::kExited;
    case cri::ContainerState::kUnknown:
      break;
  }
  return RuntimeContainer::State::kUnknown;
}

void ContainerDetails::Put(const cri::Container& listed,
                           cri::ContainerStatus status) {
  details_.insert_or_assign(listed.id, Detail{listed.state, std::move(status)});
}

std::vector<cri::Container> ContainerDetails::Missing(
    const std::vector<cri::Container>& listed) {
  std::set<std::string> ids;
  std::vector<cri::Container> missing;
  for (const cri::Container& container : listed) {
    ids.insert(container.id);
    const auto detail = details_.find(container.id);
    if (detail != details_.end()) {
      if (detail->second.listed == container.state) continue;
      // What was said of it before is older than the list.
      details_.erase(detail);
    }
    if (container.state == cri::ContainerState::kRunning ||
        container.state == cri::ContainerState::kExited) {
      missing.push_back(container);
    }
  }
  std::erase_if(details_,
                [&](const auto& item) { return !ids.contains(item.first); });
  return missing;
}

const cri::ContainerStatus* ContainerDetails::Find(
    const std::string& id) const {
  const auto found = details_.find(id);
  return found == details_.end() ? nullptr : &found->second.status;
}

/// A pod has one address of a family; a server refuses more, and other texts.
void SandboxAddresses::Put(const std::string& id,
                           const std::vector<std::string>& said) {
  std::vector<std::string> addresses;
  std::set<int> families;
  for (const std::string& text : said) {
    for (const int family : {AF_INET, AF_INET6}) {
      unsigned char bytes[sizeof(in6_addr)];
      if (inet_pton(family, text.c_str(), bytes) != 1) continue;
      if (families.insert(family).second) addresses.push_back(text);
    }
  }
  addresses_.insert_or_assign(id, std::move(addresses));
}

std::vector<std::string> SandboxAddresses::Missing(
    const std::vector<cri::Sandbox>& listed) {
  std::set<std::string> ids;
  std::vector<std::string> missing;
  for (const cri::Sandbox& sandbox : listed) {
    ids.insert(sandbox.id);
    if (!sandbox.ready || sandbox.identity.uid.value.empty()) continue;
    if (!addresses_.contains(sandbox.id)) missing.push_back(sandbox.id);
  }
  std::erase_if(addresses_,
                [&](const auto& item) { return !ids.contains(item.first); });
  return missing;
}

std::vector<std::string> SandboxAddresses::Find(const std::string& id) const {
  const auto found = addresses_.find(id);
  return found == addresses_.end() ? std::vector<std::string>() : found->second;
}

PodRuns PodRunsOf(const RuntimeLists& lists, const ContainerDetails& details,
                  const SandboxAddresses& addresses, const PodRuns& before) {
  std::map<PodUid, PodRun> runs;
  std::map<std::string, PodRun*> by_sandbox;
  for (const cri::Sandbox& sandbox : lists.sandboxes) {
    if (sandbox.identity.uid.value.empty()) continue;
    PodRun& run = runs[sandbox.identity.uid];
    run.name = sandbox.identity.pod;
    run.sandboxes.push_back({sandbox.id, sandbox.identity.attempt,
                             sandbox.ready, TimeOf(sandbox.created_at),
                             addresses.Find(sandbox.id)});
    by_sandbox[sandbox.id] = &run;
  }
  for (const cri::Container& container : lists.containers) {
    const auto run = by_sandbox.find(container.sandbox_id);
    if (run == by_sandbox.end()) continue;
    run->second->containers.push_back(
        RunOf(container, details.Find(container.id)));
  }
  PodRuns pods;
  for (auto& [uid, run] : runs) {
    std::sort(run.sandboxes.begin(), run.sandboxes.end(), IsNewerSandbox);
    std::sort(run.containers.begin(), run.containers.end(), IsBefore);
    const auto same = before.find(uid);
    pods[uid] = same != before.end() && *same->second == run
                    ? same->second
                    : std::make_shared<const PodRun>(std::move(run));
  }
  return pods;
}

bool AnyRuns(const PodRuns& pods) {
  return std::any_of(pods.begin(), pods.end(),
                     [](const auto& item) { return item.second->IsRunning(); });
}

}  // namespace devmgr::shim
