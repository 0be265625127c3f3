// SPDX-License-Identifier: Apache-2.0
#include "resources/resource_ownership.h"

#include <fmt/core.h>

#include <chrono>

#include "claim/pre_start.h"

namespace devmgr::resources {
namespace {

std::optional<state::Backing> BackingOf(ResourceOwner owner) {
  switch (owner) {
    case ResourceOwner::kDevicePlugin:
      return state::Backing::kPlugin;
    case ResourceOwner::kDeviceClass:
      return state::Backing::kClass;
    case ResourceOwner::kAutomatic:
      break;
  }
  return std::nullopt;
}

}  // namespace

using state::Backing;

void ResourceOwnership::Consider(const ResourceName& resource) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const claim::Candidates candidates = parts_.candidates(resource);
  const auto decide =
      [resource, candidates, sharing = parts_.sharing, now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
    return claim::DecideBacking(state, resource, candidates, sharing, now);
  };
  // Nearly always there is nothing to decide.
  if (decide(parts_.state)->changes.empty()) return;
  const auto retry = [this, resource](const absl::Status& status) {
    if (status.ok()) return;
    // The ledger says itself what is wrong with it.
    parts_.executor.PostAfter(ledger::kWriteRetry,
                              [this, resource] { Consider(resource); });
  };
  parts_.ledger.Submit(decide, parts_.executor, retry);
}

void ResourceOwnership::OnConnected(const ResourceName& resource,
                                    bool pre_start_required) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto decide =
      [resource, pre_start_required](
          const state::State& state) -> absl::StatusOr<state::Decision> {
    return claim::RecordPreStart(state, resource, pre_start_required);
  };
  // As with Consider.
  if (decide(parts_.state)->changes.empty()) return;
  parts_.ledger.Submit(decide);
}

void ResourceOwnership::Forget(const ResourceName& resource) {
  DEVMGR_ASSERT_ON(parts_.executor);
  // After a failure it is tried again with the next start.
  parts_.ledger.Submit(
      [resource](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::ForgetResource(state, resource);
      });
}

void ResourceOwnership::HandOver(
    const ResourceName& resource, ResourceOwner to, const std::string& reason,
    std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  parts_.ledger.Submit(
      [resource, to = BackingOf(to), reason,
       now = parts_.now_ms()](const state::State& state) {
        return claim::HandOverByOperator(state, resource, to, reason, now);
      },
      parts_.executor, done);
}

void ResourceOwnership::OnClasses() {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [name, record] : parts_.state.resources) Consider(name);
}

void ResourceOwnership::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const ledger::ClaimedResources& claimed : changes.claimed) {
    for (const ResourceName& resource : claimed.taken) {
      OnClaimed(resource, claimed.pod);
    }
    for (const ResourceName& resource : claimed.given_up) Consider(resource);
  }
  for (const auto& [name, passage] : changes.resources) {
    OnRecorded(name, passage.before.get(), passage.now.get());
  }
}

void ResourceOwnership::OnRecorded(const ResourceName& resource,
                                   const state::ResourceRecord* before,
                                   const state::ResourceRecord* now) {
  if (before != nullptr && now != nullptr && before->backing != now->backing) {
    parts_.events.Add(false, "ResourceHandedOver", "Resource", {"", resource},
                      fmt::format("{} serves it now, not {} any more",
                                  state::BackingName(now->backing),
                                  state::BackingName(before->backing)));
  }
  if (now != nullptr && !now->by_operator.empty() &&
      (before == nullptr || before->by_operator != now->by_operator)) {
    parts_.events.Add(
        true, "HandedOverByOperator", "Resource", {"", resource},
        fmt::format("an operator gave it to {}: {}",
                    state::BackingName(now->backing), now->by_operator));
  }
  Consider(resource);
}

void ResourceOwnership::OnClaimed(const ResourceName& resource,
                                  const ObjectName& pod) {
  const state::ResourceRecord* record = parts_.state.FindResource(resource);
  if (record == nullptr || record->backing != Backing::kPlugin) return;
  parts_.events.Add(
      true, "ResourceHasTwoOwners", "Resource", {"", resource},
      fmt::format("pod {} holds a claim for it, and a device plugin serves it; "
                  "the plugin gives no devices until such pods have ended",
                  pod.ToString()));
}

std::string ResourceOwnership::WhyNotServed(
    const ResourceName& resource) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return claim::WhyNotServed(parts_.state.FindResource(resource),
                             parts_.candidates(resource).plugin);
}

}  // namespace devmgr::resources
