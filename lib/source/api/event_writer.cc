// SPDX-License-Identifier: Apache-2.0
#include "source/api/event_writer.h"

#include <fmt/core.h>

#include <iterator>

#include "api/meta.h"
#include "api/quote.h"
#include "source/api/json_tree.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

constexpr char kComponent[] = "devmgrd";

std::string NamespaceOf(const InvolvedObject& object) {
  return object.name.ns.empty() ? "default" : object.name.ns;
}

std::string PathOf(const InvolvedObject& object) {
  return fmt::format("/api/v1/namespaces/{}/events",
                     PathSegment(NamespaceOf(object)));
}

std::string TimestampOf(WallTime time) {
  return api::TimestampOf(std::chrono::duration_cast<std::chrono::milliseconds>(
                              time.time_since_epoch())
                              .count());
}

api::ValuePtr Reference(const InvolvedObject& object) {
  JsonMap map;
  map.Put("apiVersion", object.api_version).Put("kind", object.kind);
  if (!object.name.ns.empty()) map.Put("namespace", object.name.ns);
  map.Put("name", object.name.name).Put("uid", object.uid);
  return map.value();
}

}  // namespace

template <typename KeyType, typename Value>
Value* EventWriter::Known<KeyType, Value>::Find(const KeyType& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->second;
}

template <typename KeyType, typename Value>
Value& EventWriter::Known<KeyType, Value>::Put(const KeyType& key,
                                               Value value) {
  Erase(key);
  entries_.emplace_front(key, std::move(value));
  places_[key] = entries_.begin();
  if (entries_.size() > kMostKnown) {
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return entries_.front().second;
}

template <typename KeyType, typename Value>
void EventWriter::Known<KeyType, Value>::Erase(const KeyType& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return;
  entries_.erase(found->second);
  places_.erase(found);
}

EventWriter::EventWriter(std::string node, Random random)
    : node_(std::move(node)), retry_(std::move(random)) {}

void EventWriter::Add(TimePoint now, const EventInfo& event,
                      const InvolvedObject& object) {
  Key key{event.warning, event.reason, object.kind,
          object.name,   object.uid,   event.message};
  // What is under way has gone as it was.
  if (const auto found = places_.find(key); found != places_.end()) {
    found->second->event = event;
    return;
  }
  if (IsTooOften(now, key)) {
    ++dropped_;
    return;
  }
  if (waiting_.size() >= kMostWaiting) {
    const auto oldest = std::next(waiting_.begin(), is_asking_ ? 1 : 0);
    const auto place = places_.find(oldest->key);
    if (place != places_.end() && place->second == oldest) {
      places_.erase(place);
    }
    waiting_.erase(oldest);
    ++dropped_;
  }
  const std::string name = NewName(event, object);
  waiting_.push_back({key, event, object, name});
  places_[std::move(key)] = std::prev(waiting_.end());
  if (!is_asking_ && !due_) due_ = now;
}

bool EventWriter::IsTooOften(TimePoint now, const Key& key) {
  const auto object = std::make_pair(std::get<2>(key), std::get<3>(key));
  RequestRate* rate = rates_.Find(object);
  if (rate == nullptr) {
    const double seconds = std::chrono::duration<double>(kPeriod).count();
    rate = &rates_.Put(object, RequestRate(1 / seconds, kBurst));
  }
  return !rate->Take(now);
}

std::string EventWriter::NewName(const EventInfo& event,
                                 const InvolvedObject& object) {
  // A name has at most 253 characters, and ends in this.
  constexpr std::size_t kMostOfObject = 200;
  return fmt::format(
      "{}.{:x}.{:x}", object.name.name.substr(0, kMostOfObject),
      static_cast<std::uint64_t>(event.first_time.time_since_epoch().count()),
      ++last_number_);
}

std::optional<ApiRequest> EventWriter::Next(TimePoint now) {
  if (is_asking_ || waiting_.empty() || !due_ || now < *due_) {
    return std::nullopt;
  }
  due_.reset();
  is_asking_ = true;
  Waiting& waiting = waiting_.front();
  places_.erase(waiting.key);
  const std::string* stored = stored_.Find(waiting.key);
  is_creating_ = stored == nullptr;
  if (is_creating_) return Create(waiting);
  waiting.name = *stored;
  return Repeat(waiting);
}

std::optional<EventWriter::TimePoint> EventWriter::WakeAt() const {
  if (is_asking_ || waiting_.empty()) return std::nullopt;
  return due_;
}

ApiRequest EventWriter::Create(const Waiting& waiting) const {
  const EventInfo& event = waiting.event;
  JsonMap metadata;
  metadata.Put("name", waiting.name)
      .Put("namespace", NamespaceOf(waiting.object));
  JsonMap source;
  source.Put("component", kComponent).Put("host", node_);
  JsonMap map;
  map.Put("apiVersion", "v1")
      .Put("kind", "Event")
      .Put("metadata", metadata.value())
      .Put("involvedObject", Reference(waiting.object))
      .Put("type", event.warning ? "Warning" : "Normal")
      .Put("reason", event.reason)
      .Put("message", api::Readable(event.message, kMaxMessage))
      .Put("source", source.value())
      .Put("reportingComponent", kComponent)
      .Put("reportingInstance", node_)
      .Put("firstTimestamp", TimestampOf(event.first_time))
      .Put("lastTimestamp", TimestampOf(event.time))
      .Put("count", JsonInteger(event.count));
  ApiRequest request;
  request.target = PathOf(waiting.object);
  request.max_bytes = kMaxEventBytes;
  request.method = ApiRequest::Method::kPost;
  request.content_type = "application/json";
  request.content = map.Text();
  return request;
}

ApiRequest EventWriter::Repeat(const Waiting& waiting) const {
  JsonMap map;
  map.Put("count", JsonInteger(waiting.event.count))
      .Put("lastTimestamp", TimestampOf(waiting.event.time));
  ApiRequest request;
  request.target = PathOf(waiting.object) + "/" + PathSegment(waiting.name);
  request.max_bytes = kMaxEventBytes;
  request.method = ApiRequest::Method::kPatch;
  request.content_type = "application/strategic-merge-patch+json";
  request.content = map.Text();
  return request;
}

void EventWriter::OnAnswer(TimePoint now, const ResponseHead& head,
                           std::string_view body) {
  is_asking_ = false;
  const ApiStatus status = StatusOfAnswer(head, body);
  const WriteOutcome outcome = OutcomeOf(status);
  due_ = now;
  switch (outcome) {
    case WriteOutcome::kDone:
    case WriteOutcome::kExists:  // Its answer was lost before.
      last_error_.clear();
      retry_.OnDone(now);
      return End(true);
    case WriteOutcome::kUnauthorized:
      refused_ = true;
      [[fallthrough]];
    case WriteOutcome::kThrottled:
    case WriteOutcome::kFailed:
      last_error_ = "events: " + DescribeStatus(status);
      due_ = now + retry_.After(now, outcome, status.retry_after);
      return;
    case WriteOutcome::kMissing:
      // The server forgets events after a while; a namespace may be gone.
      if (!is_creating_) return stored_.Erase(waiting_.front().key);
      break;
    default:
      break;
  }
  last_error_ = "events: " + DescribeStatus(status);
  ++dropped_;
  End(false);
}

void EventWriter::OnFailure(TimePoint now, const std::string& error) {
  is_asking_ = false;
  last_error_ = error;
  due_ = now + retry_.After(now, WriteOutcome::kFailed);
}

void EventWriter::End(bool is_stored) {
  const Waiting& first = waiting_.front();
  if (is_stored) {
    stored_.Put(first.key, first.name);
  } else {
    stored_.Erase(first.key);
  }
  waiting_.pop_front();
}

void EventWriter::Hurry(TimePoint now) {
  if (!is_asking_) due_ = now;
}

}  // namespace devmgr::apiserver
