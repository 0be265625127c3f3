// SPDX-License-Identifier: Apache-2.0
#include "testing/slice_publisher.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/status.h"
#include "source/api/limits.h"

namespace devmgr::testing {
namespace {

using JsonTree = nlohmann::json;

constexpr char kNodes[] = "/api/v1/nodes";
constexpr std::chrono::milliseconds kFirstRetry{200};
constexpr std::chrono::milliseconds kLastRetry{5'000};

apiserver::Collection SlicesOf(const std::string& driver,
                               const std::string& node) {
  auto slices = apiserver::ResourceCollection("v1", "ResourceSlice");
  slices.field_selector =
      fmt::format("spec.driver={},spec.nodeName={}", driver, node);
  return slices;
}

std::string MetaText(const JsonTree& object, const char* field) {
  const JsonTree::json_pointer path =
      JsonTree::json_pointer("/metadata") / field;
  if (!object.is_object() || !object.contains(path)) return "";
  const JsonTree& value = object.at(path);
  return value.is_string() ? value.get<std::string>() : "";
}

apiserver::ApiRequest RequestOf(const SliceWrite& write) {
  apiserver::ApiRequest request;
  request.target = apiserver::ResourceCollection("v1", "ResourceSlice").path;
  if (!write.name.empty()) {
    request.target += "/" + apiserver::PathSegment(write.name);
  }
  switch (write.kind) {
    case SliceWrite::Kind::kCreate:
      request.method = apiserver::ApiRequest::Method::kPost;
      break;
    case SliceWrite::Kind::kUpdate:
      request.method = apiserver::ApiRequest::Method::kPut;
      break;
    case SliceWrite::Kind::kDelete:
      request.method = apiserver::ApiRequest::Method::kDelete;
      break;
  }
  request.content_type = "application/json";
  request.content = write.content;
  request.max_bytes = apiserver::kMaxEventBytes;
  return request;
}

bool IsAtLeast(const std::string& version, const std::string& least) {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  // Where they are no numbers only the same will do.
  if (!absl::SimpleAtoi(version, &a) || !absl::SimpleAtoi(least, &b)) {
    return version == least;
  }
  return a >= b;
}

}  // namespace

template <typename Callback>
auto SlicePublisher::OfNow(Callback callback) {
  return [this, alive = alive_, epoch = epoch_,
          callback = std::move(callback)](auto&&... arguments) {
    if (!*alive || epoch != epoch_) return;
    callback(std::forward<decltype(arguments)>(arguments)...);
  };
}

SlicePublisher::SlicePublisher(Options options, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      api_(parts_.executor, options_.kubeconfig,
           {[this] { OnConnected(); }, parts_.on_failed}),
      delay_(parts_.random, kLastRetry, kFirstRetry) {}

SlicePublisher::~SlicePublisher() {
  *alive_ = false;
  parts_.executor.Cancel(timer_);
  if (transfer_ != 0) api_.Cancel(transfer_);
}

void SlicePublisher::OnConnected() {
  ++epoch_;
  transfer_ = 0;
  reflector_.reset();
  errors_ = 0;
  lists_needed_ = 0;
  unseen_.clear();
  is_asking_ = false;
  is_writing_ = false;
  pool_ = PublishedPool();
  published_ = -1;
  due_ = parts_.executor.Now();
  Step();
}

void SlicePublisher::Step() {
  if (!api_.is_connected()) return;
  if (parts_.executor.Now() >= due_) {
    if (pool_.node_uid.empty()) {
      AskForNode();
    } else {
      Follow();
    }
  }
  SetTimer();
}

void SlicePublisher::SetTimer() {
  parts_.executor.Cancel(timer_);
  const TimePoint now = parts_.executor.Now();
  std::optional<TimePoint> wake;
  if (due_ > now) {
    wake = due_;
  } else if (reflector_.has_value()) {
    wake = reflector_->WakeAt();
  }
  if (!wake.has_value()) return;
  const auto delay = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(*wake - now, TimePoint::duration::zero()));
  timer_ = parts_.executor.PostAfter(delay, [this] { Step(); });
}

void SlicePublisher::AskForNode() {
  if (is_asking_) return;
  is_asking_ = true;
  apiserver::ApiRequest request;
  request.target = kNodes;
  if (!options_.node_name.empty()) {
    request.target += "/" + apiserver::PathSegment(options_.node_name);
  }
  request.max_bytes = apiserver::kMaxPageBytes;
  api_.Send(request, OfNow([this](const auto& body) {
              is_asking_ = false;
              const absl::Status status =
                  body.ok() ? TakeNode(*body) : body.status();
              if (!status.ok()) {
                Fail(WithContext(status, "cannot read the node"));
              }
              Step();
            }));
}

absl::Status SlicePublisher::TakeNode(const std::string& body) {
  JsonTree node = JsonTree::parse(body, nullptr, /*allow_exceptions=*/false);
  if (options_.node_name.empty() && node.is_object()) {
    const JsonTree items = node.value("items", JsonTree::array());
    if (!items.is_array() || items.size() != 1) {
      return FailedPreconditionError(
          "the server shows {} nodes: which one this is has to be said by its "
          "name",
          items.is_array() ? items.size() : 0);
    }
    node = items.front();
  }
  PublishedPool pool{options_.driver, MetaText(node, "name"),
                     MetaText(node, "uid"), options_.devices};
  if (pool.node_name.empty() || pool.node_uid.empty()) {
    return FailedPreconditionError("the node has no name or no UID");
  }
  const bool is_another = pool.node_name != pool_.node_name;
  pool_ = std::move(pool);
  if (is_another || !reflector_.has_value()) {
    if (transfer_ != 0) api_.Cancel(std::exchange(transfer_, 0));
    lists_needed_ = 0;
    reflector_.emplace(SlicesOf(options_.driver, pool_.node_name),
                       apiserver::Reflector::Options{.stream_list = true},
                       parts_.random, parts_.executor.Now());
  }
  return absl::OkStatus();
}

void SlicePublisher::Follow() {
  const TimePoint now = parts_.executor.Now();
  if (reflector_->IsOverdue(now)) {
    api_.Cancel(std::exchange(transfer_, 0));
  }
  if (const auto request = reflector_->Next(now)) Watch(*request);
  Reconcile();
}

void SlicePublisher::Watch(const apiserver::ApiRequest& request) {
  apiserver::TransferEvents events;
  events.on_head = OfNow([this](const apiserver::ResponseHead& head) {
    reflector_->OnHead(parts_.executor.Now(), head);
    AfterWatch();
  });
  events.on_data = OfNow([this](std::string_view bytes) {
    if (!reflector_->OnData(parts_.executor.Now(), bytes)) {
      api_.Cancel(std::exchange(transfer_, 0));
    }
    AfterWatch();
  });
  events.on_end = OfNow([this](const absl::Status& status) {
    transfer_ = 0;
    reflector_->OnEnd(parts_.executor.Now(), status);
    AfterWatch();
  });
  auto started = api_.Start(request, std::move(events));
  if (started.ok()) {
    transfer_ = *started;
  } else {
    reflector_->OnEnd(parts_.executor.Now(), started.status());
    AfterWatch();
  }
}

void SlicePublisher::AfterWatch() {
  (void)reflector_->TakeChanges();
  if (std::exchange(errors_, reflector_->errors()) != reflector_->errors()) {
    parts_.on_failed(reflector_->last_error());
    api_.LookAgain();
  }
  Step();
}

/// Whether the watch has caught up with what was written here.
bool SlicePublisher::HasSeenWrites() {
  if (reflector_->lists() < lists_needed_) return false;
  for (const auto& [uid, stored] : reflector_->store().objects()) {
    const auto awaited = unseen_.find(stored->name.name);
    if (awaited == unseen_.end()) continue;
    if (awaited->second.empty() ||
        !IsAtLeast(stored->resource_version, awaited->second)) {
      return false;
    }
    unseen_.erase(awaited);
  }
  // What is not there is gone, or yet to come.
  std::erase_if(unseen_,
                [](const auto& entry) { return entry.second.empty(); });
  return unseen_.empty();
}

void SlicePublisher::Reconcile() {
  if (is_writing_ || !reflector_->IsComplete() || !HasSeenWrites()) return;
  plan_ = PlanSlices(pool_, reflector_->store().objects());
  next_ = 0;
  if (!plan_.writes.empty()) {
    is_writing_ = true;
    published_ = -1;
    return WriteNext();
  }
  delay_.OnGood(parts_.executor.Now());
  if (std::exchange(published_, plan_.generation) == plan_.generation) return;
  delay_.Reset();
  parts_.on_published(pool_, plan_);
}

void SlicePublisher::WriteNext() {
  const SliceWrite write = plan_.writes[next_++];
  api_.Send(RequestOf(write), OfNow([this, write](const auto& body) {
              OnWritten(write, body);
              Step();
            }));
}

void SlicePublisher::OnWritten(const SliceWrite& write,
                               const absl::StatusOr<std::string>& body) {
  const bool is_deletion = write.kind == SliceWrite::Kind::kDelete;
  const bool was_gone = is_deletion && absl::IsNotFound(body.status());
  if (!body.ok() && !was_gone) {
    is_writing_ = false;
    return Fail(WithContext(
        body.status(), "cannot {} slice '{}'",
        is_deletion                               ? "delete"
        : write.kind == SliceWrite::Kind::kCreate ? "create"
                                                  : "update",
        write.name.empty() ? pool_.node_name + "-" + pool_.driver + "-"
                           : write.name));
  }
  if (is_deletion) {
    unseen_[write.name] = "";
  } else {
    const JsonTree slice =
        JsonTree::parse(*body, nullptr, /*allow_exceptions=*/false);
    unseen_[MetaText(slice, "name")] = MetaText(slice, "resourceVersion");
  }
  if (next_ < plan_.writes.size()) return WriteNext();
  is_writing_ = false;
}

/// Nothing is known any more of what the server has, nor of the node.
void SlicePublisher::Fail(const absl::Status& status) {
  const TimePoint now = parts_.executor.Now();
  due_ = now + delay_.OnFailure(now);
  pool_.node_uid.clear();
  unseen_.clear();
  if (reflector_.has_value()) {
    if (transfer_ != 0) api_.Cancel(std::exchange(transfer_, 0));
    reflector_->ListAgain(now);
    lists_needed_ = reflector_->lists() + 1;
  }
  parts_.on_failed(MessageOf(status));
  if (absl::IsUnavailable(status)) api_.LookAgain();
}

}  // namespace devmgr::testing
