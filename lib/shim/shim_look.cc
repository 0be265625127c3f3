// SPDX-License-Identifier: Apache-2.0
//
// What the runtime is and what it runs, asked at the start and whenever that
// may have changed.
#include <iterator>
#include <utility>

#include "common/counted.h"
#include "common/status.h"
#include "shim/shim.h"

namespace devmgr::shim {

void Shim::Look(const HeldCall& held, Looked then) {
  LookFor(held, {std::move(then), true});
}

void Shim::LookFor(const HeldCall& held, Waiting waiting) {
  // Of the look and the end of the call's time the first counts.
  const auto then = std::make_shared<Looked>(std::move(waiting.then));
  const auto once = [then](const absl::Status& status) {
    if (const Looked first = std::exchange(*then, nullptr)) first(status);
  };
  const std::chrono::milliseconds left = TimeLeft(*held);
  const TimerId timer = executor_->PostAfter(left, [this, once, left] {
    once(UnavailableError("the runtime at '{}' has not answered within {}",
                          options_.proxy.backend.string(), SpanText(left)));
  });
  WaitForLook({[this, once, timer](const absl::Status& status) {
                 executor_->Cancel(timer);
                 once(status);
               },
               waiting.for_lists});
}

void Shim::WaitForLook(Waiting waiting) {
  // One that is under way may have begun before the runtime was back.
  (looking_ ? came_since_ : waiting_for_look_).push_back(std::move(waiting));
  if (!looking_) BeginLook();
}

void Shim::BeginLook() {
  looking_ = true;
  look_again_ = false;
  executor_->Cancel(std::exchange(retry_, 0));
  book_.BeginLook();
  client_.Look(
      [this](const RuntimeIdentity& identity) { OnIdentity(identity); },
      [this](const absl::StatusOr<RuntimeLists>& lists) {
        looking_ = false;
        lists.ok() ? OnLists(*lists) : OnLookFailed(lists.status());
        EndLook(lists.status());
      });
}

void Shim::EndLook(const absl::Status& status) {
  std::vector<Waiting> waiting = std::exchange(waiting_for_look_, {});
  std::vector<Waiting> late = std::exchange(came_since_, {});
  auto& to = status.ok() ? waiting : waiting_for_look_;
  to.insert(to.end(), late.begin(), late.end());
  for (const Waiting& one : waiting) one.then(status);
  if (looking_) return;
  if (!waiting_for_look_.empty() || (status.ok() && look_again_)) BeginLook();
  if (!looking_ && !status.ok()) RetryLook();
}

void Shim::RetryLook() {
  retry_ = executor_->PostAfter(look_back_off_.Next(), [this] { BeginLook(); });
}

void Shim::OnRuntimeLost() {
  runtime_known_ = false;
  if (looker_ != nullptr) looker_->OnLost();
  if (feed_ != nullptr) feed_->OnRuntimeLost();
  Doubt();
}

void Shim::Doubt() {
  look_again_ = true;
  if (sandbox_actuator_ != nullptr) sandbox_actuator_->OnDoubt();
  if (!looking_) BeginLook();
}

void Shim::OnIdentity(const RuntimeIdentity& identity) {
  const cri::VersionResponse& version = identity.version;
  runtime_known_ = true;
  const std::string name = version.runtime_name + " " + version.runtime_version;
  RuntimeSupport support =
      DecideRuntimeCdi(options_.runtime_cdi, version, identity.status_info);
  const bool news = name != runtime_name_ || support.reason != support_.reason;
  runtime_name_ = name;
  support_ = std::move(support);
  Count([&](CriShimInfo& info) {
    info.runtime_known = true;
    info.runtime_name = version.runtime_name;
    info.runtime_version = version.runtime_version;
  });
  CountSupport();
  if (news) TellOfRuntime();
  if (reporter_ != nullptr) reporter_->OnNews();
  std::vector<Waiting> served;
  for (auto* list : {&waiting_for_look_, &came_since_}) {
    const auto rest =
        std::stable_partition(list->begin(), list->end(),
                              [](const auto& one) { return one.for_lists; });
    std::move(rest, list->end(), std::back_inserter(served));
    list->erase(rest, list->end());
  }
  for (const Waiting& one : served) one.then(absl::OkStatus());
}

void Shim::TellOfRuntime() {
  Tell(false, "RuntimeCdi", {},
       fmt::format("{}: CDI device names are passed on as '{}', by {}: {}",
                   runtime_name_, RuntimeCdiName(support_.cdi), support_.source,
                   support_.reason));
  if (!support_.warning.empty()) {
    Tell(true, "RuntimeCdiOverridden", {}, support_.warning);
  }
}

void Shim::OnLists(const RuntimeLists& lists) {
  look_back_off_.Reset();
  Count([](CriShimInfo& info) { info.runtime_error.clear(); });
  look_error_.clear();
  const std::set<PodUid> gone =
      book_.Reconcile(lists.sandboxes, lists.containers);
  has_lists_ = true;
  CountBook();
  JudgePods(book_.Pods(), [this] {
    TellOfUnknownContainers();
    LookForHolders();
  });
  if (sandbox_actuator_ == nullptr) return;
  for (const PodUid& pod : gone) sandbox_actuator_->OnLastSandboxGone(pod);
  if (!look_again_) sandbox_actuator_->OnLook();
  if (!std::exchange(looked_, true)) TellOfStrays();
}

void Shim::OnLookFailed(const absl::Status& status) {
  const std::string error = MessageOf(status);
  Count([&](CriShimInfo& info) { info.runtime_error = error; });
  if (sandbox_actuator_ != nullptr) sandbox_actuator_->OnLookFailed(status);
  if (std::exchange(look_error_, error) == error) return;
  Tell(true, "RuntimeNotLookedAt", {},
       error + "; it is asked again until it has listed what it runs");
}

/// Nobody but who gave them knows whether they ran while we did not.
void Shim::TellOfStrays() {
  if (options_.pods_from_source) return;
  for (const PodInfo& pod : options_.manager->View()->Pods()) {
    if (pod.state == PodState::kRejected || book_.HasSandboxOf(pod.uid)) {
      continue;
    }
    Tell(false, "PodWithoutSandbox", {pod.uid, pod.name, 0},
         fmt::format("pod '{}' has no sandbox: it keeps its place until it "
                     "has run, or until it is not wanted any more",
                     pod.name.ToString()));
  }
}

bool Shim::KnowsHowToInject() {
  if (options_.runtime_cdi) return true;
  client_.CheckConnection();
  return runtime_known_;
}

void Shim::WhenRuntimeKnown(const HeldCall& held, std::function<void()> then) {
  if (KnowsHowToInject()) return then();
  const auto known = [this, held,
                      then = std::move(then)](const absl::Status& status) {
    if (status.ok()) return WhenRuntimeKnown(held, then);
    Fail(held, UnavailableError("{}", MessageOf(status)));
  };
  LookFor(held, {known, false});
}

}  // namespace devmgr::shim
