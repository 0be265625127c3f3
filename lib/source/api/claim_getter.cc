// SPDX-License-Identifier: Apache-2.0
#include "source/api/claim_getter.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/status.h"
#include "source/api/json_view.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;

const ResourceClaim* ClaimOf(const StoredObject& stored) {
  return stored.object == nullptr
             ? nullptr
             : std::get_if<ResourceClaim>(stored.object.get());
}

/// A 404 about this very claim; a version that is not served has another one.
bool IsAboutAnObject(std::string_view body) {
  return StringMember(body, "kind") == "Status" &&
         !StringMember(FindMember(body, "details"), "name").empty();
}

}  // namespace

void AddClaimsOf(const Pod& pod, WantedClaims* wanted) {
  const auto add = [&](const std::string& name) {
    if (name.empty()) return;
    (*wanted)[{pod.metadata.ns, name}].insert(pod.metadata.uid);
  };
  for (const PodResourceClaim& claim : pod.spec.resource_claims) {
    add(claim.resource_claim_name.value_or(""));
  }
  for (const PodResourceClaimStatus& claim :
       pod.status.resource_claim_statuses) {
    add(claim.resource_claim_name.value_or(""));
  }
  if (const auto& special = pod.status.extended_resource_claim_status) {
    add(special->resource_claim_name);
  }
}

void ClaimGetter::Want(TimePoint now, const WantedClaims& wanted) {
  std::vector<ObjectName> unwanted;
  for (const auto& [name, entry] : entries_) {
    if (wanted.count(name) == 0) unwanted.push_back(name);
  }
  for (const ObjectName& name : unwanted) WantFor(now, name, {});
  for (const auto& [name, pods] : wanted) WantFor(now, name, pods);
}

void ClaimGetter::WantFor(TimePoint now, const ObjectName& claim,
                          const std::set<std::string>& pods) {
  const auto found = entries_.find(claim);
  if (pods.empty()) {
    if (found == entries_.end()) return;
    if (found->second.is_asking) {
      found->second.pods.clear();
    } else {
      entries_.erase(found);
    }
    return Note(claim);
  }
  Entry& entry = entries_[claim];
  if (entry.pods == pods) return;
  const bool has_more = !std::includes(entry.pods.begin(), entry.pods.end(),
                                       pods.begin(), pods.end());
  entry.pods = pods;
  if (has_more && !IsSettled(entry)) Refresh(now, claim);
  Note(claim);
}

void ClaimGetter::Note(const ObjectName& claim) {
  const std::string key = claim.ToString();
  const auto found = entries_.find(claim);
  if (found == entries_.end()) {
    open_.erase(claim);
    objects_.erase(key);
    return;
  }
  const Entry& entry = found->second;
  const bool is_quiet = entry.object != nullptr && !entry.due &&
                        !entry.is_asking && entry.error.empty();
  if (is_quiet) {
    open_.erase(claim);
  } else {
    open_.insert(claim);
  }
  if (entry.object == nullptr || entry.pods.empty()) {
    objects_.erase(key);
  } else if (const auto* known = objects_.Find(key);
             known == nullptr || *known != entry.object) {
    objects_.insert_or_assign(key, entry.object);
  }
}

template <typename Visit>
void ClaimGetter::ForEachOpen(Visit visit) const {
  for (const ObjectName& name : open_) visit(name, entries_.at(name));
}

void ClaimGetter::SetVersion(TimePoint now, const std::string& version) {
  if (version == version_) return;
  version_ = version;
  Hurry(now);
}

std::optional<ClaimGetter::Get> ClaimGetter::Next(TimePoint now) {
  if (version_.empty() || requests_ >= kMaxRequests) return std::nullopt;
  for (const ObjectName& name : open_) {
    Entry& entry = entries_.at(name);
    if (!entry.due || now < *entry.due) continue;
    entry.due.reset();
    entry.is_asking = true;
    entry.asked = now;
    ++requests_;
    return Get{name,
               {.kind = ApiRequest::Kind::kGet,
                .target = ClaimPath(version_, name.ns, name.name),
                .max_bytes = kMaxEventBytes}};
  }
  return std::nullopt;
}

std::optional<ClaimGetter::TimePoint> ClaimGetter::WakeAt() const {
  std::optional<TimePoint> first;
  if (version_.empty() || requests_ >= kMaxRequests) return first;
  ForEachOpen([&](const ObjectName&, const Entry& entry) {
    if (entry.due && (!first || *entry.due < *first)) first = entry.due;
  });
  return first;
}

ClaimGetter::Entry* ClaimGetter::EndRequest(const ObjectName& claim) {
  const auto found = entries_.find(claim);
  if (found == entries_.end() || !found->second.is_asking) return nullptr;
  --requests_;
  found->second.is_asking = false;
  found->second.answered = found->second.asked;
  if (!found->second.pods.empty()) return &found->second;
  entries_.erase(found);
  Note(claim);
  return nullptr;
}

void ClaimGetter::OnAnswer(TimePoint now, const ObjectName& claim,
                           const ResponseHead& head, std::string_view body) {
  Entry* const asked = EndRequest(claim);
  if (asked == nullptr) return;
  Entry& entry = *asked;
  if (head.code == 200) {
    OnObject(now, entry, body);
  } else if (head.code == 404 && IsAboutAnObject(body)) {
    OnMissing(now, entry);
  } else {
    OnStatus(now, entry, StatusOfAnswer(head, body));
  }
  if (std::exchange(entry.ask_again, false)) entry.due = now;
  Note(claim);
}

void ClaimGetter::OnFailure(TimePoint now, const ObjectName& claim,
                            const std::string& error) {
  Entry* const asked = EndRequest(claim);
  if (asked == nullptr) return;
  Entry& entry = *asked;
  Retry(now, entry, Outcome::kFailed, error);
  if (std::exchange(entry.ask_again, false)) entry.due = now;
  Note(claim);
}

void ClaimGetter::OnObject(TimePoint now, Entry& entry, std::string_view body) {
  auto stored = std::make_shared<StoredObject>(
      DecodeStored(ResourceCollection(version_, "ResourceClaim"), body));
  if (ClaimOf(*stored) == nullptr) {
    Retry(now, entry, Outcome::kRefused,
          stored->problem.empty() ? "it is no claim" : stored->problem);
    return;
  }
  const bool is_replaced =
      entry.object != nullptr && entry.object->uid != stored->uid;
  if (is_replaced) {
    changes_.push_back({ObjectChange::Kind::kDelete, true, entry.object});
  }
  if (entry.object == nullptr || is_replaced ||
      entry.object->resource_version != stored->resource_version) {
    entry.object = std::move(stored);
    changes_.push_back({ObjectChange::Kind::kUpsert, false, entry.object});
  }
  if (IsSettled(entry)) {
    entry.outcome = Outcome::kNone;
    entry.error.clear();
    entry.due.reset();
  } else {
    Retry(now, entry, Outcome::kUnready, "");
  }
}

void ClaimGetter::OnMissing(TimePoint now, Entry& entry) {
  if (entry.object != nullptr) {
    changes_.push_back({ObjectChange::Kind::kDelete, true,
                        std::exchange(entry.object, nullptr)});
  }
  Retry(now, entry, Outcome::kUnready, "");
}

void ClaimGetter::OnStatus(TimePoint now, Entry& entry,
                           const ApiStatus& status) {
  const milliseconds asked =
      status.retry_after.value_or(std::chrono::seconds(0));
  const std::string error = DescribeStatus(status);
  if (status.code == 404) {
    not_served_ = true;
    return Retry(now, entry, Outcome::kFailed, error);
  }
  if (status.code == 403 &&
      status.message.find("no relationship found") != std::string::npos) {
    return Retry(now, entry, Outcome::kUnrelated, "");
  }
  if (status.code == 401) {
    refused_ = true;
    const bool is_first = entry.outcome != Outcome::kUnauthorized;
    Retry(now, entry, Outcome::kUnauthorized, error);
    if (is_first) entry.due = now;
    return;
  }
  if (status.code == 429) {
    return Retry(now, entry, Outcome::kThrottled, error,
                 std::max<milliseconds>(asked, std::chrono::seconds(1)));
  }
  const bool is_ours = status.code >= 300 && status.code < 500;
  Retry(now, entry, is_ours ? Outcome::kRefused : Outcome::kFailed, error,
        asked);
}

void ClaimGetter::Retry(TimePoint now, Entry& entry, Outcome outcome,
                        std::string error, milliseconds at_least) {
  if (entry.outcome != outcome || !entry.delay) {
    entry.outcome = outcome;
    entry.delay.emplace(random_,
                        outcome == Outcome::kRefused ? RetryDelay::kLastRefused
                                                     : RetryDelay::kLast,
                        outcome == Outcome::kUnrelated ? kFirstUnrelated
                        : outcome == Outcome::kUnready ? kFirstUnready
                                                       : RetryDelay::kFirst);
  }
  entry.error = std::move(error);
  entry.due = now + std::max(entry.delay->OnFailure(now), at_least);
}

bool ClaimGetter::IsSettled(const Entry& entry) {
  if (entry.object == nullptr) return false;
  const ResourceClaim* claim = ClaimOf(*entry.object);
  if (claim == nullptr || !claim->status.allocation) return false;
  const auto& consumers = claim->status.reserved_for;
  return std::all_of(
      entry.pods.begin(), entry.pods.end(), [&](const std::string& pod) {
        return std::any_of(
            consumers.begin(), consumers.end(),
            [&](const auto& consumer) { return consumer.uid == pod; });
      });
}

void ClaimGetter::Hurry(TimePoint now) {
  for (auto& [name, entry] : entries_) {
    if (entry.outcome == Outcome::kThrottled) continue;
    if (entry.due) entry.due = std::min(*entry.due, now);
    entry.delay.reset();
  }
}

void ClaimGetter::Refresh(TimePoint now, const ObjectName& claim) {
  const auto found = entries_.find(claim);
  if (found == entries_.end()) return;
  if (found->second.is_asking) {
    found->second.ask_again = true;
  } else {
    found->second.due = now;
  }
  Note(claim);
}

std::optional<absl::Status> ClaimGetter::AnswerSince(
    TimePoint since, const ObjectName& claim) const {
  const auto found = entries_.find(claim);
  if (found == entries_.end() || found->second.pods.empty()) {
    return UnavailableError("no pod of this node refers to it");
  }
  if (version_.empty()) {
    return UnavailableError("no version of resource.k8s.io is known");
  }
  const Entry& entry = found->second;
  const bool is_throttled =
      entry.outcome == Outcome::kThrottled && !entry.is_asking;
  if (!is_throttled && (!entry.answered || *entry.answered < since)) {
    return std::nullopt;
  }
  if (entry.outcome == Outcome::kNone) return absl::OkStatus();
  if (entry.outcome != Outcome::kUnready) {
    return UnavailableError("{}", WhyUnread(entry));
  }
  if (entry.object == nullptr) return NotFoundError("there is no such claim");
  return absl::OkStatus();
}

std::string ClaimGetter::WhyUnread(const Entry& entry) {
  if (!entry.error.empty()) return entry.error;
  if (entry.outcome == Outcome::kUnrelated) {
    return "the server does not know yet that a pod of this node refers to it";
  }
  return "the server has not answered yet";
}

std::map<ObjectName, std::string> ClaimGetter::unread() const {
  std::map<ObjectName, std::string> unread;
  ForEachOpen([&](const ObjectName& name, const Entry& entry) {
    if (entry.pods.empty() || entry.object != nullptr ||
        entry.outcome == Outcome::kUnready) {
      return;
    }
    unread.emplace(name, WhyUnread(entry));
  });
  return unread;
}

std::size_t ClaimGetter::unsettled() const {
  std::size_t count = 0;
  ForEachOpen([&](const ObjectName&, const Entry& entry) {
    if (entry.due.has_value() || entry.is_asking) ++count;
  });
  return count;
}

std::map<ObjectName, std::string> ClaimGetter::problems() const {
  std::map<ObjectName, std::string> problems;
  ForEachOpen([&](const ObjectName& name, const Entry& entry) {
    if (!entry.error.empty()) {
      problems.emplace(name, entry.error);
    } else if (entry.object != nullptr && !entry.object->remark.empty()) {
      problems.emplace(name, entry.object->remark);
    }
  });
  return problems;
}

}  // namespace devmgr::apiserver
