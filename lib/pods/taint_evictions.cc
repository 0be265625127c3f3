// SPDX-License-Identifier: Apache-2.0
#include "pods/taint_evictions.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>
#include <utility>

#include "claim/eviction.h"
#include "common/status.h"

namespace devmgr::pods {
namespace {

constexpr char kEvent[] = "DeviceTaintManagerEviction";
constexpr char kDisruptionTarget[] = "DisruptionTarget";
constexpr std::chrono::milliseconds kRecordRetry{1'000};
/// The time of day may be set meanwhile.
constexpr std::int64_t kLongestSleepMs = 60'000;

bool IsSameRule(const DeviceTaintRule& a, const DeviceTaintRule& b) {
  return a.metadata.uid == b.metadata.uid &&
         a.device_selector == b.device_selector && a.taint == b.taint;
}

}  // namespace

TaintEvictions::~TaintEvictions() { parts_.executor.Cancel(timer_); }

void TaintEvictions::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [uid, pod] : parts_.state.pods) {
    if (state::IsEvicting(*pod)) Act(*pod, PodAction::Kind::kEvict);
  }
}

void TaintEvictions::OnObjects() {
  DEVMGR_ASSERT_ON(parts_.executor);
  Look();
  CountDryRuns();
}

void TaintEvictions::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!changes.local_claims.empty() || !changes.pods.empty()) Look();
}

void TaintEvictions::Look() {
  const std::int64_t now = parts_.now_ms();
  WakeFor(plan_.Follow(parts_.state, *parts_.objects.Current(), now));
  parts_.executor.Cancel(std::exchange(timer_, 0));
  if (!parts_.evicts) return;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t nearest = kNever;
  for (const auto& [pod, due] : plan_.OfPods(parts_.state)) {
    if (recording_.contains(pod)) continue;
    if (due.at_ms <= now) {
      Evict(pod, due);
    } else {
      nearest = std::min(nearest, due.at_ms);
    }
  }
  if (nearest == kNever) return;
  const std::int64_t delay = std::min(nearest - now, kLongestSleepMs);
  timer_ = parts_.executor.PostAfter(std::chrono::milliseconds(delay),
                                     [this] { Look(); });
}

void TaintEvictions::WakeFor(const std::vector<ObjectName>& claims) {
  std::vector<WaitingFor> again;
  for (const ObjectName& claim : claims) {
    again.push_back({WaitingFor::Kind::kClaim, claim.ToString()});
  }
  if (!again.empty()) parts_.wake(again);
}

void TaintEvictions::Evict(const PodUid& pod, const control::DueEviction& due) {
  recording_.insert(pod);
  const state::Eviction eviction{control::kDeletionByDeviceTaint, due.message,
                                 parts_.now_ms()};
  parts_.ledger.Submit(
      [pod,
       eviction](const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::BeginEviction(state, pod, eviction);
      },
      parts_.executor,
      [this, pod, due](const absl::Status& status) {
        OnRecorded(pod, due, status);
      });
}

void TaintEvictions::OnRecorded(const PodUid& pod,
                                const control::DueEviction& due,
                                const absl::Status& status) {
  const std::string_view action = PodActionKindName(PodAction::Kind::kEvict);
  recording_.erase(pod);
  const bool stop_next = stop_next_.erase(pod) > 0;
  if (!status.ok()) {
    parts_.metrics.OnPodAction(action, control::kDeletionByDeviceTaint,
                               "failed");
    parts_.executor.Cancel(std::exchange(timer_, 0));
    timer_ = parts_.executor.PostAfter(kRecordRetry, [this] { Look(); });
    return;
  }
  const state::PodRecord* record = parts_.state.FindPod(pod);
  // It is gone, or was going by itself.
  if (record == nullptr || !record->eviction.has_value()) return;
  parts_.metrics.OnPodAction(action, control::kDeletionByDeviceTaint,
                             "requested");
  parts_.metrics.OnTaintEviction(std::chrono::milliseconds(
      std::max<std::int64_t>(0, parts_.now_ms() - due.at_ms)));
  parts_.events.Add(
      true, kEvent, "Pod", record->name,
      fmt::format("the pod has to leave its devices: {}", due.message));
  Act(*record, PodAction::Kind::kEvict);
  if (stop_next) Stop(pod);
}

void TaintEvictions::Stop(const PodUid& pod) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const state::PodRecord* record = parts_.state.FindPod(pod);
  if (record == nullptr || !record->eviction.has_value()) return;
  // That it has to leave is said first, and the ledger has just taken it.
  if (recording_.contains(pod)) {
    stop_next_.insert(pod);
    return;
  }
  parts_.metrics.OnPodAction(PodActionKindName(PodAction::Kind::kStop),
                             record->eviction->reason, "requested");
  Act(*record, PodAction::Kind::kStop);
}

void TaintEvictions::Act(const state::PodRecord& pod, PodAction::Kind kind) {
  PodAction action;
  action.kind = kind;
  action.pod = pod.uid;
  action.name = pod.name;
  action.reason = pod.eviction->reason;
  action.message = pod.eviction->message;
  action.condition = kDisruptionTarget;
  parts_.act_on_pod(action);
}

void TaintEvictions::CountDryRuns() {
  const auto objects = parts_.objects.Current();
  // What is missing may be yet to come.
  if (!objects->complete) return;
  objects->device_taint_rules.VisitChangesSince(
      counted_, [&](const auto* was, const auto* is) {
        if (is == nullptr || is->second->taint.effect != "None") return;
        if (was != nullptr && IsSameRule(*was->second, *is->second)) return;
        const Condition condition = control::DryRunCondition(control::EffectsOf(
            *is->second, objects->resource_slices, parts_.state));
        parts_.events.Add(false, condition.type, "DeviceTaintRule", is->first,
                          fmt::format("{} ({}): {}", condition.status,
                                      condition.reason, condition.message));
      });
  counted_ = objects->device_taint_rules;
}

}  // namespace devmgr::pods
