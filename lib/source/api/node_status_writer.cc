// SPDX-License-Identifier: Apache-2.0
#include "source/api/node_status_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/quote.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

constexpr char kPatchType[] = "application/strategic-merge-patch+json";

std::string Shown(const std::optional<std::string>& value) {
  return value ? api::Quoted(*value) : "nothing";
}

}  // namespace

NodeStatusWriter::NodeStatusWriter(const std::string& node, Random random)
    : path_("/api/v1/nodes/" + PathSegment(node)), retry_(std::move(random)) {}

void NodeStatusWriter::Want(TimePoint now, const NodeDeviceStatus& wanted) {
  WantedFields fields = FieldsOf(wanted);
  // What was wanted before is ours to take away.
  for (const auto& [field, value] : wanted_) fields.try_emplace(field);
  if (std::exchange(is_wanted_, true) && fields == wanted_) return;
  wanted_ = std::move(fields);
  ask_again_ = is_asking_;
  if (is_asking_) return;
  // After a failure the delay counts, not the news.
  if (!last_error_.empty() && due_) return;
  step_ = Step::kRead;
  due_ = now;
}

std::optional<ApiRequest> NodeStatusWriter::Next(TimePoint now) {
  if (is_asking_ || !due_ || now < *due_) return std::nullopt;
  due_.reset();
  is_asking_ = true;
  ApiRequest request{.target = path_, .max_bytes = kMaxEventBytes};
  if (step_ == Step::kLook) request.target += "?resourceVersion=0";
  if (step_ != Step::kPatch) return request;
  request.target += "/status";
  request.method = ApiRequest::Method::kPatch;
  request.content_type = kPatchType;
  request.content = patch_;
  return request;
}

void NodeStatusWriter::OnAnswer(TimePoint now, const ResponseHead& head,
                                std::string_view body) {
  if (head.code != 200) return OnRefused(now, StatusOfAnswer(head, body));
  const auto node = ParseNodeStatus(body);
  if (!node) {
    return OnFailure(now, fmt::format("{}: the answer is no node", path_));
  }
  is_asking_ = false;
  retry_.OnDone(now);
  if (node->uid != uid_) {
    // Another node under the name: nothing of this one was written by us.
    uid_ = node->uid;
    written_.clear();
    flips_.clear();
    left_.clear();
    dropped_.clear();
  }
  if (step_ == Step::kPatch) {
    OnPatched(now, *node);
  } else {
    OnNode(now, *node);
  }
}

void NodeStatusWriter::OnNode(TimePoint now, const NodeStatusView& node) {
  if (step_ == Step::kRead) CountFlips(now, node);
  ask_again_ = false;
  WantedFields changes = ChangesOf(node, wanted_);
  std::erase_if(changes, [&](const auto& change) {
    return left_.count(change.first) + dropped_.count(change.first) != 0;
  });
  if (changes.empty()) return Settle(now);
  due_ = now;
  if (step_ == Step::kLook) {
    // The cache may not have what was written last.
    step_ = Step::kRead;
    return;
  }
  step_ = Step::kPatch;
  patch_ = NodeStatusPatch(node, changes);
  patched_ = std::move(changes);
}

void NodeStatusWriter::OnPatched(TimePoint now, const NodeStatusView& node) {
  for (const auto& [field, value] : patched_) {
    const auto found = node.Find(field);
    written_[field] = found;
    // A server without the field drops it; it would be sent for ever.
    if (!IsSameValue(found, value)) dropped_.insert(field);
  }
  patched_.clear();
  Settle(now);
}

void NodeStatusWriter::Settle(TimePoint now) {
  last_error_.clear();
  step_ = Step::kRead;
  if (std::exchange(ask_again_, false)) {
    due_ = now;
    return;
  }
  std::erase_if(wanted_, [&](const auto& item) {
    return !item.second && item.first.first != "declaredFeatures";
  });
  const bool has_values =
      std::any_of(wanted_.begin(), wanted_.end(),
                  [](const auto& item) { return item.second.has_value(); });
  if (!has_values) return;
  step_ = Step::kLook;
  due_ = now + kLookAgain;
}

void NodeStatusWriter::OnRefused(TimePoint now, const ApiStatus& status) {
  const WriteOutcome outcome = OutcomeOf(status);
  is_asking_ = false;
  refused_ |= outcome == WriteOutcome::kUnauthorized;
  if (outcome != WriteOutcome::kConflict) {
    last_error_ = fmt::format("{}: {}", path_, DescribeStatus(status));
  }
  const bool was_patch = step_ == Step::kPatch;
  // The same request again where the server only wants time for it.
  if (outcome != WriteOutcome::kThrottled || std::exchange(ask_again_, false)) {
    step_ = Step::kRead;
    ask_again_ = false;
  }
  if (outcome == WriteOutcome::kInvalid && was_patch) {
    // Until something else is wanted.
    problems_.push_back({"NodeStatusRefused", last_error_});
    return;
  }
  due_ = now + retry_.After(now, outcome, status.retry_after);
}

void NodeStatusWriter::OnFailure(TimePoint now, const std::string& error) {
  is_asking_ = false;
  ask_again_ = false;
  last_error_ = error;
  step_ = Step::kRead;
  due_ = now + retry_.After(now, WriteOutcome::kFailed);
}

void NodeStatusWriter::Hurry(TimePoint now) {
  if (is_asking_ || !is_wanted_ || last_error_.empty()) return;
  step_ = Step::kRead;
  due_ = now;
}

void NodeStatusWriter::CountFlips(TimePoint now, const NodeStatusView& node) {
  for (auto& [field, ours] : written_) {
    const auto theirs = node.Find(field);
    const auto wanted = wanted_.find(field);
    if (wanted != wanted_.end() && IsSameValue(theirs, wanted->second)) {
      left_.erase(field);
      ours = theirs;
      continue;
    }
    if (IsSameValue(theirs, ours)) continue;
    ours = theirs;
    if (left_.count(field) != 0) continue;
    std::deque<TimePoint>& flips = flips_[field];
    flips.push_back(now);
    while (now - flips.front() > kFlipPeriod) flips.pop_front();
    if (flips.size() >= kFlips) Leave(field, Shown(theirs));
  }
}

void NodeStatusWriter::Leave(const NodeField& field,
                             const std::string& theirs) {
  left_.insert(field);
  flips_.erase(field);
  const auto wanted = wanted_.find(field);
  problems_.push_back(
      {"ResourceOwnerConflict",
       fmt::format(
           "another agent has set {} to {} {} times within {} minutes, "
           "where this node has {}: it is left to that agent",
           api::Readable(DescribeField(field), 300), theirs, kFlips,
           kFlipPeriod.count(),
           wanted == wanted_.end() ? "nothing" : Shown(wanted->second))});
}

}  // namespace devmgr::apiserver
