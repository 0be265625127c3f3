// SPDX-License-Identifier: Apache-2.0
#include "manager/backing_book.h"

#include <fmt/format.h>

namespace devmgr::manager {

using state::Backing;

void BackingBook::Consider(const std::string& resource) {
  const claim::Candidates candidates = parts_.candidates(resource);
  const auto decide =
      [resource, candidates, sharing = parts_.sharing, now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
    return claim::DecideBacking(state, resource, candidates, sharing, now);
  };
  // Nearly always there is nothing to decide.
  if (decide(parts_.state)->changes.empty()) return;
  // A failure is the ledger's, which says so itself; the next change of a
  // candidate tries again.
  parts_.ledger.Submit(decide, [](const absl::Status&) {});
}

void BackingBook::Forget(const std::string& resource) {
  parts_.ledger.Submit(
      [resource](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::ForgetResource(state, resource);
      },
      // As above: it is tried again after the next start.
      [](const absl::Status&) {});
}

void BackingBook::OnClasses() {
  for (const auto& [name, record] : parts_.state.resources) {
    if (record->backing == Backing::kPlugin) Consider(name);
  }
}

void BackingBook::OnRecorded(const state::ResourceRecord* before,
                             const state::ResourceRecord& now) {
  if (before == nullptr || before->backing == now.backing) return;
  parts_.events.Add(false, "ResourceHandedOver", "Resource", {"", now.name},
                    fmt::format("{} serves it now, not {} any more",
                                state::BackingName(now.backing),
                                state::BackingName(before->backing)));
}

void BackingBook::OnClaimed(const std::string& resource,
                            const ObjectName& pod) {
  const state::ResourceRecord* record = parts_.state.FindResource(resource);
  if (record == nullptr || record->backing != Backing::kPlugin) return;
  parts_.events.Add(
      true, "ResourceHasTwoOwners", "Resource", {"", resource},
      fmt::format("pod {} holds a claim for it, and a device plugin serves it; "
                  "the plugin gives no devices until such pods have ended",
                  pod.ToString()));
}

std::string BackingBook::WhyNotServed(const std::string& resource) const {
  const claim::Candidates candidates = parts_.candidates(resource);
  const state::ResourceRecord* record = parts_.state.FindResource(resource);
  if (record == nullptr) {
    return candidates.plugin ? "" : "no device plugin serves it";
  }
  if (record->backing == Backing::kPlugin) return "";
  if (!candidates.plugin) return "a device class serves it";
  return "pods use it through a device class, and its device plugin gives "
         "none until they have ended";
}

}  // namespace devmgr::manager
