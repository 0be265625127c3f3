// SPDX-License-Identifier: Apache-2.0
//
// What the runtime is and what it runs, asked at the start and whenever that
// may have changed.
#include <algorithm>
#include <utility>

#include "common/status.h"
#include "shim/shim.h"

namespace devmgr::shim {

void Shim::Look(Looked then) {
  // One that is under way may have begun before the runtime was back.
  (looking_ ? came_since_ : waiting_for_look_).push_back(std::move(then));
  if (!looking_) BeginLook();
}

void Shim::BeginLook() {
  looking_ = true;
  look_again_ = false;
  executor_->Cancel(std::exchange(retry_, 0));
  book_.BeginLook();
  client_.Look([this](const absl::StatusOr<RuntimeView>& view) {
    looking_ = false;
    OnLook(view);
    EndLook(view.status());
  });
}

void Shim::EndLook(const absl::Status& status) {
  std::vector<Looked> waiting = std::exchange(waiting_for_look_, {});
  std::vector<Looked> late = std::exchange(came_since_, {});
  auto& to = status.ok() ? waiting : waiting_for_look_;
  to.insert(to.end(), late.begin(), late.end());
  for (const Looked& then : waiting) then(status);
  if (looking_) return;
  if (!waiting_for_look_.empty() || (status.ok() && look_again_)) BeginLook();
  if (!looking_ && !status.ok()) RetryLook();
}

void Shim::RetryLook() {
  retry_ = executor_->PostAfter(retry_delay_, [this] { BeginLook(); });
  retry_delay_ = std::min(2 * retry_delay_, kLastRetry);
}

void Shim::OnRuntimeLost() {
  runtime_known_ = false;
  Doubt();
}

void Shim::Doubt() {
  look_again_ = true;
  if (gate_ != nullptr) gate_->OnDoubt();
  if (!looking_) BeginLook();
}

void Shim::OnLook(const absl::StatusOr<RuntimeView>& view) {
  if (!view.ok()) {
    Count([&](CriShimInfo& info) {
      info.runtime_error = MessageOf(view.status());
    });
    return;
  }
  retry_delay_ = kFirstRetry;
  const std::set<PodUid> gone =
      book_.Reconcile(view->sandboxes, view->containers);
  CountBook();
  if (gate_ != nullptr) {
    for (const PodUid& pod : gone) gate_->OnLastSandboxGone(pod);
    if (!look_again_) gate_->OnLook();
    if (!std::exchange(looked_, true)) TellOfStrays();
  }
  runtime_known_ = true;
  runtime_name_ =
      view->version.runtime_name + " " + view->version.runtime_version;
  RuntimeSupport support =
      DecideRuntimeCdi(options_.runtime_cdi, view->version, view->status_info);
  const bool news = support.reason != support_.reason;
  support_ = std::move(support);
  Count([&](CriShimInfo& info) {
    info.runtime_known = true;
    info.runtime_name = view->version.runtime_name;
    info.runtime_version = view->version.runtime_version;
    info.runtime_cdi = support_.cdi;
    info.runtime_cdi_source = support_.source;
    info.runtime_cdi_reason = support_.reason;
    info.runtime_error.clear();
  });
  if (!news) return;
  Tell(false, "RuntimeCdi", {},
       fmt::format("{}: CDI device names are passed on as '{}', by {}: {}",
                   runtime_name_, RuntimeCdiName(support_.cdi), support_.source,
                   support_.reason));
  if (!support_.warning.empty()) {
    Tell(true, "RuntimeCdiOverridden", {}, support_.warning);
  }
}

/// Nobody but who gave them knows whether they ran while we did not.
void Shim::TellOfStrays() {
  if (options_.pods_from_source) return;
  for (const PodInfo& pod : options_.manager->Pods()) {
    if (pod.state == PodState::kRejected || book_.HasSandboxOf(pod.uid)) {
      continue;
    }
    Tell(false, "PodWithoutSandbox", {pod.uid, pod.name, 0},
         fmt::format("pod '{}' has no sandbox: it keeps its place until it "
                     "has run, or until it is not wanted any more",
                     pod.name.ToString()));
  }
}

void Shim::WhenRuntimeKnown(const HeldCall& held, std::function<void()> then) {
  client_.CheckConnection();
  if (runtime_known_) return then();
  Look([this, held, then = std::move(then)](const absl::Status& status) {
    if (runtime_known_) return then();
    Fail(held, UnavailableError("{}", MessageOf(status)));
  });
}

}  // namespace devmgr::shim
