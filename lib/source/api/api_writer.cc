// SPDX-License-Identifier: Apache-2.0
#include "source/api/api_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/status.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMostUids = 4'096;
constexpr char kPod[] = "Pod";
constexpr char kNode[] = "Node";
constexpr char kClaim[] = "ResourceClaim";

const char* VerbOf(std::string_view resource, const ApiRequest& request) {
  switch (request.method) {
    case ApiRequest::Method::kGet:
      return "get";
    case ApiRequest::Method::kPost:
      return "create";
    case ApiRequest::Method::kPut:
      return "update";
    case ApiRequest::Method::kPatch:
      return "patch";
    case ApiRequest::Method::kDelete:
      return resource == "pods" ? "delete" : "deletecollection";
  }
  return "";
}

}  // namespace

ApiWriter::ApiWriter(Options options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      node_(options_.node_name, parts_.random),
      slices_(options_.node_name),
      events_(options_.node_name, parts_.random),
      pods_(parts_.random),
      credentials_delay_(parts_.random, RetryDelay::kLast) {}

ApiWriter::~ApiWriter() {
  parts_.executor.Cancel(timer_);
  for (const auto& [id, failure] : transfers_) transport_->Cancel(id);
}

void ApiWriter::Connect(Transport* transport, Credentials* credentials) {
  is_in_step_ = true;
  for (const auto& [id, failure] : std::exchange(transfers_, {})) {
    transport_->Cancel(id);
    failure("the connection was given up for another one");
  }
  is_in_step_ = false;
  transport_ = transport;
  files_ = credentials;
  credentials_due_.reset();
  credentials_error_.clear();
  SetVersion(Discovery::State::kUnknown, "");
  Hurry();
}

void ApiWriter::SetVersion(Discovery::State state, const std::string& version) {
  version_ = version;
  slices_.SetVersion(state, version);
  Step();
}

void ApiWriter::SetNodeStatus(const NodeDeviceStatus& status) {
  node_.Want(parts_.executor.Now(), status);
  Step();
}

void ApiWriter::DeleteSlices(const std::string& driver,
                             SliceDeleter::Done done) {
  slices_.Delete(parts_.executor.Now(), driver, std::move(done));
  Step();
}

void ApiWriter::KeepSlices(const std::string& driver) {
  slices_.Keep(driver);
  const auto found = deletions_.find(driver);
  if (found == deletions_.end()) return;
  transport_->Cancel(found->second);
  transfers_.erase(found->second);
  deletions_.erase(found);
}

void ApiWriter::RecordEvent(const EventInfo& event) {
  const auto object = ObjectOf(event);
  if (!object) return;
  EventInfo sent = event;
  if (object->kind == kNode && event.object_kind != kNode) {
    sent.message = fmt::format("{} {}: {}", event.object_kind,
                               event.object.ToString(), event.message);
  }
  events_.Add(parts_.executor.Now(), sent, *object);
  Step();
}

void ApiWriter::SetPodStatus(const ObjectName& name, const PodUid& pod,
                             const ReportedPodStatus& status) {
  pods_.Want(parts_.executor.Now(), name, pod, status);
  Step();
}

void ApiWriter::FinishPod(const ObjectName& name, const PodUid& pod) {
  pods_.Finish(parts_.executor.Now(), name, pod);
  Step();
}

std::optional<InvolvedObject> ApiWriter::ObjectOf(const EventInfo& event) {
  const std::string& kind = event.object_kind;
  if (kind != kPod && kind != kClaim) {
    // By its name, as kubelets name the node in events.
    return InvolvedObject{
        "v1", kNode, {"", options_.node_name}, options_.node_name};
  }
  const auto key = std::make_pair(kind, event.object);
  std::string uid = parts_.uid_of(kind, event.object);
  if (!uid.empty()) {
    if (uids_.size() >= kMostUids) uids_.erase(uids_.begin());
    uids_[key] = uid;
  } else if (const auto known = uids_.find(key); known != uids_.end()) {
    uid = known->second;
  } else {
    return std::nullopt;
  }
  const std::string version = version_.empty() ? "v1" : version_;
  return InvolvedObject{kind == kPod ? "v1" : "resource.k8s.io/" + version,
                        kind, event.object, uid};
}

void ApiWriter::Hurry() {
  const TimePoint now = parts_.executor.Now();
  node_.Hurry(now);
  events_.Hurry(now);
  pods_.Hurry(now);
  credentials_due_.reset();
  Step();
}

std::optional<ApiWriter::TimePoint> ApiWriter::WakeAt(TimePoint now) {
  if (transport_ == nullptr) return slices_.WakeAt();
  std::optional<TimePoint> first;
  for (const auto& due : {node_.WakeAt(), pods_.WakeAt(), events_.WakeAt()}) {
    if (due && (!first || *due < *first)) first = due;
  }
  if (first) first = std::max(*first, parts_.rate.WakeAt(now));
  if (const auto due = slices_.WakeAt(); due && (!first || *due < *first)) {
    first = due;
  }
  // Without credentials nothing is sent.
  if (first && credentials_due_) first = std::max(*first, *credentials_due_);
  return first;
}

void ApiWriter::Step() {
  if (is_in_step_) return;
  is_in_step_ = true;
  const TimePoint now = parts_.executor.Now();
  if (!credentials_due_ || now >= *credentials_due_) SendDue();
  is_in_step_ = false;
  parts_.on_state(State());
  parts_.executor.Cancel(std::exchange(timer_, 0));
  const auto wake = WakeAt(parts_.executor.Now());
  if (!wake) return;
  const auto delay = std::chrono::ceil<std::chrono::milliseconds>(
      *wake - parts_.executor.Now());
  timer_ = parts_.executor.PostAfter(
      std::max(delay, std::chrono::milliseconds(0)), [this] { Step(); });
}

bool ApiWriter::MaySend(TimePoint now, const std::optional<TimePoint>& due) {
  return due && now >= *due && parts_.rate.Take(now);
}

void ApiWriter::SendDue() {
  const TimePoint now = parts_.executor.Now();
  if (transport_ == nullptr) {
    // Those that have waited long enough end.
    (void)slices_.Next(now);
    return;
  }
  if (!node_.WakeAt() && !events_.WakeAt() && !slices_.WakeAt() &&
      !pods_.WakeAt()) {
    return;
  }
  auto credentials = files_->Current(now);
  if (!credentials.ok()) {
    credentials_error_ = MessageOf(credentials.status());
    credentials_due_ = now + credentials_delay_.OnFailure(now);
    return;
  }
  credentials_ = *std::move(credentials);
  credentials_error_.clear();
  credentials_due_.reset();
  credentials_delay_.OnGood(now);
  if (MaySend(now, node_.WakeAt())) {
    if (const auto request = node_.Next(now)) {
      Send(
          request->method == ApiRequest::Method::kGet ? "nodes"
                                                      : "nodes/status",
          *request,
          [this](const ResponseHead& head, const std::string& body) {
            node_.OnAnswer(parts_.executor.Now(), head, body);
          },
          [this](const std::string& error) {
            node_.OnFailure(parts_.executor.Now(), error);
          });
    }
  }
  // Few, and not to be late.
  while (const auto next = slices_.Next(now)) {
    const std::string driver = next->driver;
    deletions_[driver] = Send(
        "resourceslices", next->request,
        [this, driver](const ResponseHead& head, const std::string& body) {
          deletions_.erase(driver);
          slices_.OnAnswer(driver, head, body);
        },
        [this, driver](const std::string& error) {
          deletions_.erase(driver);
          slices_.OnFailure(driver, error);
        });
  }
  SendPods(now);
  if (MaySend(now, events_.WakeAt())) {
    if (const auto request = events_.Next(now)) {
      Send(
          "events", *request,
          [this](const ResponseHead& head, const std::string& body) {
            events_.OnAnswer(parts_.executor.Now(), head, body);
          },
          [this](const std::string& error) {
            events_.OnFailure(parts_.executor.Now(), error);
          });
    }
  }
}

void ApiWriter::SendPods(TimePoint now) {
  const auto is_there = [this](const ObjectName& name, const PodUid& pod) {
    return parts_.uid_of(kPod, name) == pod.value;
  };
  while (MaySend(now, pods_.WakeAt())) {
    const auto next = pods_.Next(now, is_there);
    if (!next) return;
    const PodUid pod = next->pod;
    Send(
        next->resource, next->request,
        [this, pod](const ResponseHead& head, const std::string& body) {
          pods_.OnAnswer(parts_.executor.Now(), pod, head, body);
        },
        [this, pod](const std::string& error) {
          pods_.OnFailure(parts_.executor.Now(), pod, error);
        });
  }
}

Transport::TransferId ApiWriter::Send(const char* resource,
                                      const ApiRequest& request, Answer answer,
                                      Failure failure) {
  struct Whole {
    ResponseHead head;
    std::string body;
    Transport::TransferId id = 0;
  };
  const auto whole = std::make_shared<Whole>();
  // What was deleted is not looked at.
  const std::size_t most = request.method == ApiRequest::Method::kDelete
                               ? kMaxStatusBytes
                               : kMaxEventBytes;
  TransferEvents events;
  events.on_head = [whole](const ResponseHead& head) { whole->head = head; };
  events.on_data = [whole, most](std::string_view bytes) {
    whole->body += bytes.substr(0, most - std::min(most, whole->body.size()));
  };
  events.on_end = [this, whole, resource, request, answer = std::move(answer),
                   failure](const absl::Status& status) {
    transfers_.erase(whole->id);
    const bool has_answer = status.ok() && whole->head.code != 0;
    Count(resource, request, has_answer ? whole->head.code : 0);
    if (has_answer) {
      answer(whole->head, whole->body);
    } else {
      failure(status.ok() ? "there was no answer" : MessageOf(status));
    }
    After();
  };
  whole->id = transport_->Start(request, credentials_, std::move(events));
  transfers_.emplace(whole->id, std::move(failure));
  return whole->id;
}

void ApiWriter::Count(const char* resource, const ApiRequest& request,
                      int code) const {
  if (parts_.on_request)
    parts_.on_request({VerbOf(resource, request), resource, code});
}

void ApiWriter::After() {
  // Each has its own.
  const bool is_refused = static_cast<int>(node_.TakeRefused()) +
                              static_cast<int>(slices_.TakeRefused()) +
                              static_cast<int>(pods_.TakeRefused()) +
                              static_cast<int>(events_.TakeRefused()) >
                          0;
  if (is_refused && files_ != nullptr) files_->Refused();
  for (const auto& problem : node_.TakeProblems()) {
    parts_.on_problem(problem.reason, problem.message);
  }
  for (const auto& problem : pods_.TakeProblems()) {
    parts_.on_problem(problem.reason, problem.message);
  }
  if (slices_.TakeNotServed()) parts_.on_not_served();
  Step();
}

std::string ApiWriter::State() const {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (part.empty()) return;
    text += (text.empty() ? "" : "; ") + part;
  };
  if (events_.waiting() > 0) {
    add(fmt::format("{} events wait", events_.waiting()));
  }
  if (events_.dropped() > 0) {
    add(fmt::format("{} events were dropped", events_.dropped()));
  }
  const std::string pod_error = pods_.last_error();
  if (!pod_error.empty()) {
    add(fmt::format("the status of {} pods waits", pods_.waiting()));
  }
  add(credentials_error_);
  add(node_.last_error());
  if (pod_error != node_.last_error()) add(pod_error);
  if (events_.last_error() != node_.last_error() &&
      events_.last_error() != pod_error) {
    add(events_.last_error());
  }
  return text;
}

}  // namespace devmgr::apiserver
