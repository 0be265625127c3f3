// SPDX-License-Identifier: Apache-2.0
#include "source/api/api_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::apiserver {
namespace {

using std::chrono::milliseconds;

std::string_view VerbOf(ApiRequest::Kind kind) {
  switch (kind) {
    case ApiRequest::Kind::kGet:
      return "get";
    case ApiRequest::Kind::kList:
      return "list";
    case ApiRequest::Kind::kWatch:
      return "watch";
  }
  return "";
}

/// `pods` of `/api/v1/pods`.
std::string ResourceOf(const Collection& collection) {
  return collection.path.substr(collection.path.rfind('/') + 1);
}

/// Makes `first` the earlier one.
template <typename TimePoint>
void Earlier(std::optional<TimePoint>& first,
             const std::optional<TimePoint>& other) {
  if (other && (!first || *other < *first)) first = other;
}

}  // namespace

ApiSession::ApiSession(Options options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      discovery_(parts_.random, parts_.executor.Now()),
      node_(options_.node_name, parts_.random),
      memory_(options_.memory),
      credentials_delay_(parts_.random, RetryDelay::kLast),
      looked_at_files_(parts_.executor.Now()),
      before_(options_.before) {
  if (before_ != nullptr) {
    snapshot_ = before_;
    first_watch_ = before_->watch;
  }
  memory_.node_name = options_.node_name;
  auto pods = std::make_unique<Watched>();
  pods->kind = "Pod";
  pods->reflector = std::make_unique<Reflector>(
      PodsOfNode(options_.node_name),
      Reflector::Options{.resource_version = options_.memory.pods_version,
                         .stream_list = options_.stream_lists},
      parts_.random, parts_.executor.Now());
  watched_.push_back(std::move(pods));
  bool watches_claims = false;
  for (const std::string& kind : options_.watched_kinds) {
    watches_claims |= kind == "ResourceClaim";
    watched_.push_back(std::make_unique<Watched>());
    watched_.back()->kind = kind;
  }
  if (!watches_claims) getter_.emplace(parts_.random);
  Step();
}

ApiSession::~ApiSession() {
  *alive_ = false;
  parts_.executor.Cancel(timer_);
  for (const auto& watched : watched_) {
    if (watched->transfer != 0) parts_.transport.Cancel(watched->transfer);
  }
  for (const Transport::TransferId id : whole_) parts_.transport.Cancel(id);
}

void ApiSession::Hurry() {
  const TimePoint now = parts_.executor.Now();
  for (const auto& watched : watched_) {
    if (watched->reflector != nullptr) watched->reflector->Hurry(now);
  }
  if (getter_) getter_->Hurry(now);
  discovery_.AskAgain(now);
  credentials_due_.reset();
  parts_.credentials.Refused();
  Step();
}

void ApiSession::OnFiles() {
  if (IsInTrouble()) return Hurry();
  parts_.credentials.Refused();
  Step();
}

void ApiSession::SetConfigProblem(const std::string& problem) {
  if (config_problem_ == problem) return;
  config_problem_ = problem;
  parts_.on_state(State());
  PublishSoon();
}

bool ApiSession::IsInTrouble() const {
  if (!credentials_error_.empty()) return true;
  return std::any_of(watched_.begin(), watched_.end(), [](const auto& watched) {
    return watched->reflector != nullptr &&
           watched->reflector->trouble() != Reflector::Trouble::kNone;
  });
}

void ApiSession::ResourcesNotServed() {
  discovery_.OnNotServed(parts_.executor.Now());
  Step();
}

void ApiSession::Step() {
  if (is_in_step_) return;
  is_in_step_ = true;
  const TimePoint now = parts_.executor.Now();
  if (!credentials_due_ || now >= *credentials_due_) {
    credentials_due_.reset();
    looked_at_files_ = now;
    auto credentials = parts_.credentials.Current(now);
    const std::string error =
        credentials.ok() ? "" : MessageOf(credentials.status());
    if (std::exchange(credentials_error_, error) != error) PublishSoon();
    if (credentials.ok()) {
      credentials_delay_.OnGood(now);
      SendDue(*std::move(credentials));
    } else {
      credentials_due_ = now + credentials_delay_.OnFailure(now);
      AnswerRefreshes();
    }
  }
  is_in_step_ = false;
  parts_.on_state(State());
  SetTimer();
}

void ApiSession::SendDue(
    std::shared_ptr<const RequestCredentials> credentials) {
  const TimePoint now = parts_.executor.Now();
  const bool is_other_pair =
      credentials_ != nullptr &&
      (credentials_->certificate_pem != credentials->certificate_pem ||
       credentials_->ca_pem != credentials->ca_pem);
  credentials_ = std::move(credentials);
  Confirm();
  for (const auto& watched : watched_) {
    if (watched->reflector == nullptr) continue;
    if (is_other_pair) watched->reflector->CredentialsChanged(now);
    if (watched->reflector->IsOverdue(now)) {
      parts_.transport.Cancel(std::exchange(watched->transfer, 0));
    }
    SendWatched(*watched);
  }
  SendDiscovery();
  SendNode();
  while (getter_ && MayGet(now)) {
    const auto get = getter_->Next(now);
    if (!get) break;
    if (parts_.rate != nullptr) (void)parts_.rate->Take(now);
    SendGet(*get);
  }
}

bool ApiSession::MayGet(TimePoint now) const {
  return parts_.rate == nullptr || parts_.rate->WakeAt(now) <= now;
}

void ApiSession::SendWatched(Watched& watched) {
  const TimePoint now = parts_.executor.Now();
  const auto request = watched.reflector->Next(now);
  if (!request) return;
  const bool is_of_pods = &watched == watched_[0].get();
  const ApiRequest::Kind kind = request->kind;
  if (watched.reflector->phase() == Reflector::Phase::kListing) {
    if (is_of_pods) AskForNode();
  } else if (std::exchange(watched.was_watched, true)) {
    ++parts_.activity.watch_restarts;
  }
  if (is_of_pods) parts_.activity.is_watched = false;
  const auto had_head = std::make_shared<bool>(false);
  const std::string resource = ResourceOf(watched.reflector->collection());
  TransferEvents events;
  events.on_head = [=, this, &watched](const ResponseHead& head) {
    *had_head = true;
    Count(kind, resource, head.code);
    if (is_of_pods) {
      parts_.activity.is_watched =
          kind == ApiRequest::Kind::kWatch && head.code == 200;
    }
    watched.reflector->OnHead(parts_.executor.Now(), head);
    AfterReflector(watched);
  };
  events.on_data = [=, this, &watched](std::string_view bytes) {
    if (is_of_pods && kind == ApiRequest::Kind::kWatch) {
      parts_.activity.last_event = parts_.executor.Now();
      parts_.activity.known_at = parts_.activity.last_event;
    }
    if (!watched.reflector->OnData(parts_.executor.Now(), bytes)) {
      parts_.transport.Cancel(std::exchange(watched.transfer, 0));
    }
    AfterReflector(watched);
  };
  events.on_end = [=, this, &watched](const absl::Status& status) {
    if (!*had_head) Count(kind, resource, 0);
    if (is_of_pods && std::exchange(parts_.activity.is_watched, false) &&
        status.ok()) {
      parts_.activity.known_at = parts_.executor.Now();
    }
    watched.transfer = 0;
    watched.reflector->OnEnd(parts_.executor.Now(), status);
    AfterReflector(watched);
  };
  watched.transfer =
      parts_.transport.Start(*request, credentials_, std::move(events));
}

void ApiSession::SendDiscovery() {
  const auto request = discovery_.Next(parts_.executor.Now());
  if (!request) return;
  SendWhole(
      *request, "resource.k8s.io",
      [this](const ResponseHead& head, const std::string& body) {
        discovery_.OnAnswer(parts_.executor.Now(), head, body);
        FollowDiscovery();
      },
      [this](const std::string& error) {
        discovery_.OnFailure(parts_.executor.Now(), error);
      });
}

void ApiSession::SendGet(const ClaimGetter::Get& get) {
  const ObjectName claim = get.claim;
  SendWhole(
      get.request, "resourceclaims",
      [this, claim](const ResponseHead& head, const std::string& body) {
        getter_->OnAnswer(parts_.executor.Now(), claim, head, body);
      },
      [this, claim](const std::string& error) {
        getter_->OnFailure(parts_.executor.Now(), claim, error);
      });
}

/// Once before each list but those that confirm: what a list lacks is judged by
/// the node's UID.
void ApiSession::AskForNode() {
  if (!options_.reads_node || is_confirming_) return;
  if (node_asked_ == pods().lists()) return;
  node_asked_ = pods().lists();
  node_.AskAgain(parts_.executor.Now());
}

void ApiSession::SendNode() {
  const auto request = node_.Next(parts_.executor.Now());
  if (!request) return;
  SendWhole(
      *request, "nodes",
      [this](const ResponseHead& head, const std::string& body) {
        node_.OnAnswer(parts_.executor.Now(), head, body);
        if (node_.TakeRefused()) parts_.credentials.Refused();
        PublishSoon();
        Remember();
      },
      [this](const std::string& error) {
        node_.OnFailure(parts_.executor.Now(), error);
        PublishSoon();
      });
}

void ApiSession::Count(ApiRequest::Kind kind, const std::string& resource,
                       int code) {
  ++parts_.activity.requests[{std::string(VerbOf(kind)), resource, code}];
}

Transport::TransferId ApiSession::SendWhole(
    const ApiRequest& request, const std::string& resource,
    std::function<void(const ResponseHead&, const std::string& body)> answer,
    std::function<void(const std::string& error)> failure) {
  struct Whole {
    ResponseHead head;
    std::string body;
    Transport::TransferId id = 0;
  };
  const auto whole = std::make_shared<Whole>();
  TransferEvents events;
  events.on_head = [whole](const ResponseHead& head) { whole->head = head; };
  // The transport bounds it.
  events.on_data = [whole](std::string_view bytes) { whole->body += bytes; };
  events.on_end = [this, whole, resource, answer = std::move(answer),
                   failure = std::move(failure)](const absl::Status& status) {
    whole_.erase(whole->id);
    Count(ApiRequest::Kind::kGet, resource, whole->head.code);
    if (!status.ok()) {
      failure(MessageOf(status));
    } else if (whole->head.code == 0) {
      failure("there was no answer");
    } else {
      answer(whole->head, whole->body);
    }
    After();
  };
  whole->id = parts_.transport.Start(request, credentials_, std::move(events));
  whole_.insert(whole->id);
  return whole->id;
}

void ApiSession::AfterReflector(Watched& watched) {
  Reflector& reflector = *watched.reflector;
  if (reflector.TakeRefused()) parts_.credentials.Refused();
  if (reflector.errors() != watched.errors) {
    watched.errors = reflector.errors();
    parts_.warn(reflector.last_error());
    PublishSoon();
  }
  const bool had_trouble = watched.trouble != Reflector::Trouble::kNone;
  if (std::exchange(watched.trouble, reflector.trouble()) !=
      reflector.trouble()) {
    PublishSoon();
  }
  if (had_trouble && watched.trouble == Reflector::Trouble::kNone) {
    AfterBreak(watched);
  }
  const bool is_not_served =
      reflector.trouble() == Reflector::Trouble::kNotServed;
  if (is_not_served && !std::exchange(watched.was_not_served, is_not_served) &&
      &watched != watched_[0].get()) {
    discovery_.OnNotServed(parts_.executor.Now());
  }
  watched.was_not_served = is_not_served;
  if (&watched == watched_[0].get()) {
    TakePodChanges();
  } else if (!reflector.TakeChanges().empty()) {
    PublishSoon();
  }
  Step();
}

void ApiSession::AfterBreak(const Watched& watched) {
  // A server with an older state, as from a backup, lets a watch start from a
  // version that it has not reached, and sends nothing until it has.
  if (&watched == watched_[0].get() &&
      pods().phase() == Reflector::Phase::kWatching && !confirm_at_) {
    confirm_at_ = parts_.executor.Now() + kConfirmAfter;
  }
}

void ApiSession::TakePodChanges() {
  bool differs = false;
  bool has_changed = false;
  for (const ObjectChange& change : pods().TakeChanges()) {
    has_changed = true;
    if (change.kind == ObjectChange::Kind::kUpsert) {
      differs |= uids_before_.count(change.object->uid) == 0;
      gone_.Remove(change.object->uid);
    } else if (change.is_reported) {
      gone_.Add(change.object->uid);
    } else {
      differs = true;  // It was there a moment ago.
    }
  }
  if (pods().lists() != lists_) {
    has_changed = true;
    lists_ = pods().lists();
    parts_.activity.last_list = parts_.executor.Now();
    parts_.activity.known_at = parts_.activity.last_list;
    is_confirmed_ = std::exchange(is_confirming_, false) && !differs;
    confirm_at_.reset();
    if (!is_confirmed_) {
      confirm_at_ = parts_.executor.Now() + kConfirmAfter;
    }
    remembered_at_.reset();
  }
  if (has_changed) PublishSoon();
  Remember();
}

void ApiSession::Confirm() {
  const TimePoint now = parts_.executor.Now();
  if (!confirm_at_ || now < *confirm_at_) return;
  confirm_at_.reset();
  is_confirming_ = true;
  uids_before_.clear();
  for (const auto& [uid, pod] : pods().store().objects()) {
    uids_before_.insert(uid);
  }
  Watched& watched = *watched_[0];
  if (watched.transfer != 0) {
    parts_.transport.Cancel(std::exchange(watched.transfer, 0));
  }
  pods().ListAgain(now);
}

void ApiSession::FollowDiscovery() {
  if (discovery_.TakeRefused()) parts_.credentials.Refused();
  if (parts_.on_resource_version) {
    parts_.on_resource_version(discovery_.state(), discovery_.version());
  }
  if (discovery_.version() == version_ ||
      discovery_.state() == Discovery::State::kUnknown) {
    return;
  }
  version_ = discovery_.version();
  const TimePoint now = parts_.executor.Now();
  if (getter_) getter_->SetVersion(now, version_);
  for (std::size_t i = 1; i < watched_.size(); ++i) {
    Watched& watched = *watched_[i];
    if (watched.transfer != 0) {
      parts_.transport.Cancel(std::exchange(watched.transfer, 0));
    }
    watched.reflector.reset();
    watched.errors = 0;
    watched.was_not_served = false;
    if (version_.empty()) continue;
    Collection collection = ResourceCollection(version_, watched.kind);
    if (watched.kind == "ResourceSlice") {
      // Older ones have it at the top.
      collection.field_selector =
          (version_ == "v1alpha2" ? "nodeName=" : "spec.nodeName=") +
          options_.node_name;
    }
    watched.reflector = std::make_unique<Reflector>(
        collection, Reflector::Options{.stream_list = options_.stream_lists},
        parts_.random, now);
  }
  PublishSoon();
}

void ApiSession::After() {
  if (getter_) {
    if (getter_->TakeRefused()) parts_.credentials.Refused();
    if (getter_->TakeNotServed()) discovery_.OnNotServed(parts_.executor.Now());
    auto problems = getter_->problems();
    const bool has_others = problems != claim_problems_;
    claim_problems_ = std::move(problems);
    if (!getter_->TakeChanges().empty() || has_others || HasOtherUnread()) {
      PublishSoon();
    }
    if (!will_publish_) AnswerRefreshes();
  }
  Step();
}

void ApiSession::SetTimer() {
  const TimePoint now = parts_.executor.Now();
  std::optional<TimePoint> first = credentials_due_;
  if (!first) {
    first = looked_at_files_ + kLookAtFiles;
    for (const auto& watched : watched_) {
      if (watched->reflector) Earlier(first, watched->reflector->WakeAt());
    }
    Earlier(first, discovery_.WakeAt());
    Earlier(first, node_.WakeAt());
    Earlier(first, confirm_at_);
    if (auto due = getter_ ? getter_->WakeAt() : std::nullopt) {
      if (parts_.rate != nullptr)
        due = std::max(*due, parts_.rate->WakeAt(now));
      Earlier(first, due);
    }
  }
  parts_.executor.Cancel(timer_);
  const auto delay = std::chrono::ceil<milliseconds>(*first - now);
  timer_ = parts_.executor.PostAfter(std::max(delay, milliseconds(0)),
                                     [this] { Step(); });
}

void ApiSession::PublishSoon() {
  if (std::exchange(will_publish_, true)) return;
  // Together with what else has come.
  parts_.executor.Post([this, alive = alive_] {
    if (!*alive) return;
    will_publish_ = false;
    Publish();
    Step();
  });
}

/// Since the last snapshot.
bool ApiSession::HasOtherUnread() const {
  const auto unread = getter_->unread();
  return !std::equal(unread.begin(), unread.end(), unread_claims_.begin(),
                     unread_claims_.end(), [](const auto& a, const auto& b) {
                       return a.first == b.first && a.second == b.second.reason;
                     });
}

/// Claims that were never read, each with the time since when that is so.
void ApiSession::AddUnread(ObjectSnapshot* snapshot) {
  PersistentMap<ObjectName, UnreadObject> unread;
  for (auto& [name, reason] : getter_->unread()) {
    const UnreadObject* before = unread_claims_.Find(name);
    const auto since = before == nullptr ? parts_.wall_clock() : before->since;
    unread.insert_or_assign(name, {since, reason});
  }
  unread_claims_ = std::move(unread);
  snapshot->unread_claims = unread_claims_;
}

/// All but pods, and kinds that are watched and were listed.
std::set<ObjectKind> ApiSession::PartialKinds() const {
  std::set<ObjectKind> partial = {
      ObjectKind::kResourceClaim, ObjectKind::kResourceClaimTemplate,
      ObjectKind::kDeviceClass,   ObjectKind::kResourceSlice,
      ObjectKind::kNode,          ObjectKind::kDeviceTaintRule};
  for (const auto& watched : watched_) {
    if (watched->reflector == nullptr || !watched->reflector->IsComplete()) {
      continue;
    }
    if (watched->kind == "ResourceClaim") {
      partial.erase(ObjectKind::kResourceClaim);
    } else if (watched->kind == "DeviceClass") {
      partial.erase(ObjectKind::kDeviceClass);
    }  // Slices are those of this node only.
  }
  return partial;
}

bool ApiSession::Refresh(ObjectKind kind, const ObjectName& name,
                         std::function<void(const absl::Status&)> done) {
  if (kind != ObjectKind::kResourceClaim || !getter_) return false;
  const TimePoint now = parts_.executor.Now();
  refreshing_.push_back({name, now - kFresh, std::move(done)});
  if (!RefreshAnswer(refreshing_.back())) getter_->Refresh(now, name);
  if (!will_publish_) AnswerRefreshes();
  Step();
  return true;
}

std::optional<absl::Status> ApiSession::RefreshAnswer(
    const Refreshing& refreshing) const {
  if (!credentials_error_.empty())
    return UnavailableError("{}", credentials_error_);
  return getter_->AnswerSince(refreshing.since, refreshing.claim);
}

void ApiSession::AnswerRefreshes() {
  std::vector<Refreshing> waiting;
  waiting.swap(refreshing_);
  for (Refreshing& refreshing : waiting) {
    if (const auto answer = RefreshAnswer(refreshing)) {
      refreshing.done(*answer);
    } else {
      refreshing_.push_back(std::move(refreshing));
    }
  }
}

}  // namespace devmgr::apiserver
