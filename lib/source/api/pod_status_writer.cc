// SPDX-License-Identifier: Apache-2.0
#include "source/api/pod_status_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "source/api/json_tree.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

std::string PodPath(const ObjectName& name) {
  return "/api/v1/namespaces/" + PathSegment(name.ns) + "/pods/" +
         PathSegment(name.name);
}

/// At once, and no other pod of the name.
std::string FinalDeletion(const PodUid& pod) {
  JsonMap preconditions;
  preconditions.Put("uid", pod.value);
  JsonMap options;
  options.Put("apiVersion", "v1")
      .Put("kind", "DeleteOptions")
      .Put("gracePeriodSeconds", JsonInteger(0))
      .Put("preconditions", preconditions.value());
  return options.Text();
}

bool HasHealth(const ReportedPodStatus& status) {
  const auto has = [](const ReportedContainerStatus& container) {
    return !container.allocated_resources.empty();
  };
  return std::any_of(status.containers.begin(), status.containers.end(), has) ||
         std::any_of(status.init_containers.begin(),
                     status.init_containers.end(), has);
}

ReportedPodStatus WithoutHealth(ReportedPodStatus status) {
  for (auto* list : {&status.containers, &status.init_containers}) {
    for (ReportedContainerStatus& container : *list) {
      container.allocated_resources.clear();
    }
  }
  return status;
}

}  // namespace

PodStatusWriter::PodStatusWriter(Random random)
    : random_(std::move(random)), retry_(random_) {}

PodStatusWriter::Entry* PodStatusWriter::EntryOf(const ObjectName& name,
                                                 const PodUid& pod) {
  if (pods_.size() >= kMostPods && !pods_.contains(pod)) {
    if (!std::exchange(is_full_, true)) {
      problems_.push_back(
          {"PodStatusDropped",
           fmt::format("the status of {} pods waits to be written; that of pod "
                       "{}, and of others from now on, is not",
                       pods_.size(), name.ToString())});
    }
    return nullptr;
  }
  Entry& entry = pods_.try_emplace(pod, random_).first->second;
  entry.name = name;
  return &entry;
}

void PodStatusWriter::Want(TimePoint now, const ObjectName& name,
                           const PodUid& pod, const ReportedPodStatus& status) {
  const bool is_new = !pods_.contains(pod);
  Entry* const entry = EntryOf(name, pod);
  if (entry == nullptr || entry->step == Step::kDelete) return;
  entry->wanted = status;
  entry->ask_again = entry->is_asking && entry->step == Step::kPatch;
  if (entry->is_asking) return;
  entry->step = Step::kRead;
  // After a failure the delay counts, not the news.
  if (is_new || entry->error.empty()) entry->due = now;
}

void PodStatusWriter::Finish(TimePoint now, const ObjectName& name,
                             const PodUid& pod) {
  const bool is_new = !pods_.contains(pod);
  Entry* const entry = EntryOf(name, pod);
  if (entry == nullptr) return;
  entry->finish = true;
  if (!is_new) return;
  entry->step = Step::kDelete;
  entry->due = now;
}

std::optional<PodStatusWriter::Request> PodStatusWriter::Next(
    TimePoint now,
    const std::function<bool(const ObjectName&, const PodUid&)>& is_there) {
  if (pause_ && now < *pause_) return std::nullopt;
  while (asking_ < kAtOnce) {
    auto next = pods_.end();
    for (auto pod = pods_.begin(); pod != pods_.end(); ++pod) {
      const Entry& entry = pod->second;
      if (entry.is_asking || entry.due > now) continue;
      if (next == pods_.end() || entry.due < next->second.due) next = pod;
    }
    if (next == pods_.end()) break;
    if (!is_there(next->second.name, next->first)) {
      pods_.erase(next);
      continue;
    }
    ++asking_;
    next->second.is_asking = true;
    return Request{next->first,
                   next->second.step == Step::kPatch ? "pods/status" : "pods",
                   RequestFor(next->first, next->second)};
  }
  return std::nullopt;
}

ApiRequest PodStatusWriter::RequestFor(const PodUid& pod, const Entry& entry) {
  ApiRequest request{.target = PodPath(entry.name),
                     .max_bytes = kMaxEventBytes};
  switch (entry.step) {
    case Step::kRead:
      break;
    case Step::kPatch:
      request.target += "/status";
      request.method = ApiRequest::Method::kPatch;
      request.content_type = "application/strategic-merge-patch+json";
      request.content = entry.patch;
      break;
    case Step::kDelete:
      request.method = ApiRequest::Method::kDelete;
      request.content_type = "application/json";
      request.content = FinalDeletion(pod);
      break;
  }
  return request;
}

std::optional<PodStatusWriter::TimePoint> PodStatusWriter::WakeAt() const {
  if (asking_ >= kAtOnce) return std::nullopt;
  std::optional<TimePoint> first;
  for (const auto& [uid, entry] : pods_) {
    if (entry.is_asking) continue;
    if (!first || entry.due < *first) first = entry.due;
  }
  if (first && pause_) first = std::max(*first, *pause_);
  return first;
}

void PodStatusWriter::OnAnswer(TimePoint now, const PodUid& pod,
                               const ResponseHead& head,
                               std::string_view body) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  Entry& entry = found->second;
  const bool is_done = head.code >= 200 && head.code < 300;
  if (is_done || head.code == 404) {
    retry_.OnDone(now);
    pause_.reset();
  }
  std::optional<PodStatusView> view;
  if (is_done && entry.step == Step::kRead) {
    view = ParsePodStatus(body);
    if (!view) {
      return OnFailure(
          now, pod,
          fmt::format("{}: the answer is no pod", PodPath(entry.name)));
    }
  }
  --asking_;
  entry.is_asking = false;
  if (!is_done && head.code != 404) {
    return OnRefused(now, found, StatusOfAnswer(head, body));
  }
  entry.retry.OnDone(now);
  if (head.code == 404 || entry.step == Step::kDelete) {
    pods_.erase(found);
  } else if (view) {
    OnPod(now, found, *view);
  } else {
    Settle(now, found);
  }
}

void PodStatusWriter::OnPod(TimePoint now, Pods::iterator pod,
                            const PodStatusView& view) {
  Entry& entry = pod->second;
  if (view.uid != pod->first.value) {
    // Another pod of the name: this one is gone.
    pods_.erase(pod);
    return;
  }
  // Only one whose deletion was asked for is ever deleted.
  entry.finish = entry.finish && view.is_deleted;
  entry.patch.clear();
  if (entry.wanted) {
    entry.patch = PodStatusPatch(
        view, entry.is_plain ? WithoutHealth(*entry.wanted) : *entry.wanted);
  }
  if (entry.patch.empty()) return Settle(now, pod);
  entry.step = Step::kPatch;
  entry.due = now;
}

void PodStatusWriter::Settle(TimePoint now, Pods::iterator pod) {
  Entry& entry = pod->second;
  entry.error.clear();
  entry.due = now;
  entry.step = Step::kRead;
  if (std::exchange(entry.ask_again, false)) return;
  entry.wanted.reset();
  if (entry.finish) {
    entry.step = Step::kDelete;
  } else {
    pods_.erase(pod);
  }
}

void PodStatusWriter::OnRefused(TimePoint now, Pods::iterator pod,
                                const ApiStatus& status) {
  Entry& entry = pod->second;
  const WriteOutcome outcome = OutcomeOf(status);
  refused_ |= outcome == WriteOutcome::kUnauthorized;
  if (outcome != WriteOutcome::kConflict) {
    entry.error =
        fmt::format("{}: {}", PodPath(entry.name), DescribeStatus(status));
  }
  if (outcome == WriteOutcome::kInvalid && entry.step == Step::kPatch) {
    return OnInvalid(now, pod);
  }
  entry.due = now;
  // The same request again where the server only wants time for it.
  const bool is_throttled = outcome == WriteOutcome::kThrottled;
  if (!is_throttled || std::exchange(entry.ask_again, false)) {
    entry.step = Step::kRead;
    entry.ask_again = false;
  }
  switch (outcome) {
    case WriteOutcome::kUnauthorized:
    case WriteOutcome::kThrottled:
    case WriteOutcome::kFailed:
      return Pause(now, outcome, status.retry_after);
    default:
      break;
  }
  entry.due = now + entry.retry.After(now, outcome, status.retry_after);
}

void PodStatusWriter::OnInvalid(TimePoint now, Pods::iterator pod) {
  Entry& entry = pod->second;
  if (!entry.is_plain && entry.wanted && HasHealth(*entry.wanted)) {
    // The rest must not wait for what an older server may not know.
    entry.is_plain = true;
    entry.step = Step::kRead;
    entry.ask_again = false;
    entry.due = now;
    return;
  }
  problems_.push_back({"PodStatusRefused", entry.error});
  Settle(now, pod);
}

void PodStatusWriter::OnFailure(TimePoint now, const PodUid& pod,
                                const std::string& error) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  Entry& entry = found->second;
  --asking_;
  entry.is_asking = false;
  entry.ask_again = false;
  entry.error = error;
  entry.step = Step::kRead;
  entry.due = now;
  Pause(now, WriteOutcome::kFailed);
}

void PodStatusWriter::Pause(TimePoint now, WriteOutcome outcome,
                            std::optional<std::chrono::seconds> retry_after) {
  // Those that were under way fail together.
  if (pause_ && now < *pause_) return;
  pause_ = now + retry_.After(now, outcome, retry_after);
}

void PodStatusWriter::Hurry(TimePoint now) {
  pause_.reset();
  for (auto& [uid, entry] : pods_) {
    if (entry.is_asking || entry.error.empty()) continue;
    entry.step = Step::kRead;
    entry.due = now;
  }
}

std::string PodStatusWriter::last_error() const {
  for (const auto& [uid, entry] : pods_) {
    if (!entry.error.empty()) return entry.error;
  }
  return "";
}

}  // namespace devmgr::apiserver
