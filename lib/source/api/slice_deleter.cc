// SPDX-License-Identifier: Apache-2.0
#include "source/api/slice_deleter.h"

#include <fmt/core.h>

#include "common/status.h"
#include "source/api/limits.h"
#include "source/api/outgoing.h"

namespace devmgr::apiserver {

void SliceDeleter::Delete(TimePoint now, const std::string& driver, Done done) {
  Deletion& deletion = deletions_[driver];
  deletion.done = std::move(done);
  deletion.patient_until = now + kPatience;
}

void SliceDeleter::SetVersion(Discovery::State state,
                              const std::string& version) {
  state_ = state;
  version_ = version;
}

std::optional<SliceDeleter::Request> SliceDeleter::Next(TimePoint now) {
  // `done` may ask for another deletion.
  for (auto next = deletions_.begin(); next != deletions_.end();) {
    const auto& [driver, deletion] = *next++;
    if (deletion.is_asking) continue;
    const std::string name = driver;
    if (state_ == Discovery::State::kServed) {
      deletions_.at(name).is_asking = true;
      return Request{name, RequestFor(name)};
    }
    if (state_ != Discovery::State::kUnknown) {
      End(name, NotFoundError("the server has no resource slices"));
    } else if (now >= deletion.patient_until) {
      End(name, UnavailableError("which version of resource.k8s.io the server "
                                 "has is not known yet"));
    }
  }
  return std::nullopt;
}

ApiRequest SliceDeleter::RequestFor(const std::string& driver) const {
  const bool is_old = version_ == "v1alpha2";
  std::string selector = (is_old ? "nodeName=" : "spec.nodeName=") + node_;
  if (!driver.empty()) {
    selector += (is_old ? ",driverName=" : ",spec.driver=") + driver;
  }
  ApiRequest request;
  request.method = ApiRequest::Method::kDelete;
  request.target = TargetOf(ResourceCollection(version_, "ResourceSlice").path,
                            {{"fieldSelector", selector}});
  // The answer lists what was deleted.
  request.max_bytes = kMaxListBytes;
  return request;
}

std::optional<SliceDeleter::TimePoint> SliceDeleter::WakeAt() const {
  std::optional<TimePoint> first;
  for (const auto& [driver, deletion] : deletions_) {
    if (deletion.is_asking) continue;
    if (!first || deletion.patient_until < *first) {
      first = deletion.patient_until;
    }
  }
  return first;
}

void SliceDeleter::OnAnswer(const std::string& driver, const ResponseHead& head,
                            std::string_view body) {
  const ApiStatus status = StatusOfAnswer(head, body);
  switch (OutcomeOf(status)) {
    case WriteOutcome::kDone:
      return End(driver, absl::OkStatus());
    case WriteOutcome::kMissing:
      // Of the version, which may be served no more; slices of others may be
      // there still.
      not_served_ = true;
      break;
    case WriteOutcome::kUnauthorized:
      refused_ = true;
      break;
    default:
      break;
  }
  End(driver,
      UnavailableError("deleting resource slices: {}", DescribeStatus(status)));
}

void SliceDeleter::OnFailure(const std::string& driver,
                             const std::string& error) {
  End(driver, UnavailableError("deleting resource slices: {}", error));
}

void SliceDeleter::End(const std::string& driver, const absl::Status& status) {
  const auto found = deletions_.find(driver);
  if (found == deletions_.end()) return;
  const Done done = std::move(found->second.done);
  deletions_.erase(found);
  if (done) done(status);
}

}  // namespace devmgr::apiserver
