// SPDX-License-Identifier: Apache-2.0
//
// What a session publishes, says of itself and remembers.
#include <fmt/core.h>

#include <utility>

#include "source/api/api_session.h"

namespace devmgr::apiserver {
namespace {

std::string_view PhaseName(Reflector::Phase phase) {
  switch (phase) {
    case Reflector::Phase::kWaiting:
      return "Waiting";
    case Reflector::Phase::kListing:
      return "Listing";
    case Reflector::Phase::kWatching:
      return "Watching";
  }
  return "";
}

std::string DescribeVersion(const Discovery& discovery) {
  switch (discovery.state()) {
    case Discovery::State::kUnknown:
      return "the version of resource.k8s.io is not known yet";
    case Discovery::State::kServed:
      return "resource.k8s.io/" + discovery.version();
    case Discovery::State::kNotServed:
      return "resource.k8s.io is not served";
    case Discovery::State::kUnreadable:
      return "resource.k8s.io is served in no version that is read";
  }
  return "";
}

}  // namespace

void ApiSession::PublishBefore() {
  auto snapshot = std::make_shared<ObjectSnapshot>(*before_);
  snapshot->problems.clear();
  snapshot->object_problems.clear();
  AddTroubles(snapshot.get());
  parts_.publish(std::move(snapshot));
}

bool ApiSession::IsOtherNode() const {
  return !memory_.node_uid.empty() && !node_.uid().empty() &&
         node_.uid() != memory_.node_uid;
}

void ApiSession::AcceptNode(std::uint64_t watch) {
  if (!IsOtherNode() || !node_.IsSettled() || watch != snapshot_->watch) return;
  memory_.node_uid.clear();
  remembered_at_.reset();
  Remember();
  PublishSoon();
}

void ApiSession::Fill(SourceInfo* info) const {
  info->state = PhaseName(pods().phase());
  if (!TroubleName(pods().trouble()).empty()) {
    info->state = TroubleName(pods().trouble());
  }
  if (!credentials_error_.empty()) info->state = "NoCredentials";
  if (!discovery_.version().empty()) {
    info->api_version = "resource.k8s.io/" + discovery_.version();
  }
  info->resource_version = pods().resource_version();
  for (const std::string& error :
       {config_problem_, credentials_error_, pods().last_error(),
        discovery_.last_error(), node_.last_error()}) {
    if (info->last_error.empty()) info->last_error = error;
  }
  info->complete = snapshot_->complete;
  if (getter_) info->queued = getter_->unsettled();
}

void ApiSession::AddTroubles(ObjectSnapshot* snapshot) const {
  if (!node_.IsSettled() && !node_.last_error().empty()) {
    AddTrouble("", node_.last_error(), snapshot);
  }
  if (IsOtherNode()) {
    AddTrouble(
        "nodes",
        fmt::format("the node has the UID {}, and had {}: it was registered "
                    "anew, or the server is that of another cluster. While "
                    "pods are missing, nothing vouches for their end",
                    node_.uid(), memory_.node_uid),
        snapshot);
  }
  if (!config_problem_.empty()) AddTrouble("", config_problem_, snapshot);
  if (!credentials_error_.empty()) AddTrouble("", credentials_error_, snapshot);
  for (const auto& watched : watched_) {
    if (watched->reflector == nullptr) continue;
    const Reflector& reflector = *watched->reflector;
    for (const auto& [uid, object] : reflector.store().problems()) {
      AddProblem(reflector.collection().path, object.problem, snapshot);
      AddObjectProblem(object, snapshot);
    }
    if (reflector.trouble() != Reflector::Trouble::kNone) {
      AddTrouble(reflector.collection().path, reflector.last_error(), snapshot);
    }
  }
}

void ApiSession::Publish() {
  if (before_ != nullptr && pods().lists() == 0) return PublishBefore();
  before_.reset();
  for (const auto& watched : watched_) {
    if (watched->reflector != nullptr && watched->reflector->lists() > 0) {
      watched->known = watched->reflector->store().objects();
    }
    watched->named.Follow(watched->known, *snapshot_, &objects_);
  }
  if (getter_) {
    const TimePoint now = parts_.executor.Now();
    wanted_claims_.Follow(objects_.pods,
                          [&](const ObjectName& claim, const auto& pods) {
                            getter_->WantFor(now, claim, pods);
                          });
    named_claims_.Follow(getter_->objects(), *snapshot_, &objects_);
  }
  auto snapshot = std::make_shared<ObjectSnapshot>(objects_);
  const bool is_node_known =
      !options_.reads_node || node_.IsSettled() || memory_.node_uid.empty();
  snapshot->complete = pods().IsComplete() && is_node_known;
  snapshot->vouched = is_confirmed_ && !IsOtherNode();
  snapshot->watch = first_watch_ + pods().lists();
  for (const auto& watched : watched_) watched->named.Report(snapshot.get());
  AddTroubles(snapshot.get());
  if (getter_) {
    for (const auto& [name, text] : getter_->problems()) {
      AddProblem("resourceclaims", name.ToString() + ": " + text,
                 snapshot.get());
    }
    AddUnread(snapshot.get());
  }
  snapshot->partial_kinds = PartialKinds();
  snapshot->gone_pods = gone_.uids();
  snapshot_ = snapshot;
  parts_.publish(std::move(snapshot));
  AnswerRefreshes();
}

void ApiSession::Remember() {
  if (!parts_.remember || pods().lists() == 0) return;
  const TimePoint now = parts_.executor.Now();
  SourceMemory memory = memory_;
  if (CanBeRemembered(pods().resource_version())) {
    memory.pods_version = pods().resource_version();
  }
  if (!IsOtherNode() && node_.IsSettled()) {
    if (!node_.uid().empty()) memory.node_uid = node_.uid();
  }
  const bool is_other_uid = memory.node_uid != memory_.node_uid;
  if (memory == memory_ || (!is_other_uid && remembered_at_ &&
                            now - *remembered_at_ < kVersionPeriod)) {
    return;
  }
  remembered_at_ = now;
  memory_ = memory;
  parts_.remember(memory_);
}

std::string ApiSession::State() const {
  std::string text(PhaseName(pods().phase()));
  if (const std::string_view trouble = TroubleName(pods().trouble());
      !trouble.empty()) {
    text = std::string(trouble);
  }
  text += "; " + DescribeVersion(discovery_);
  if (!config_problem_.empty()) text += "; " + config_problem_;
  if (!credentials_error_.empty()) {
    text += "; " + credentials_error_;
  } else if (!pods().last_error().empty()) {
    text += "; last error: " + pods().last_error();
  } else if (!discovery_.last_error().empty()) {
    text += "; last error: " + discovery_.last_error();
  }
  return text;
}

}  // namespace devmgr::apiserver
