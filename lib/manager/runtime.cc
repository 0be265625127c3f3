// SPDX-License-Identifier: Apache-2.0
//
// What the container runtime runs, for the rooms that go by it.
#include <devmgr/runtime_source.h>

#include <memory>
#include <utility>

#include "manager/manager.h"

namespace devmgr::manager {

void Manager::StartRuntime() {
  if (host_.runtime == nullptr) return;
  runtime_news_ = std::make_unique<upkeep::RuntimeNews>(*executor_, events_,
                                                        *host_.runtime);
  host_.runtime->Subscribe(
      [this] { executor_->Post([this] { OnRuntime(); }); });
  // Whatever it says the view shows, and it may have said it before.
  runtime_news_->OnRuntime();
  ExpectRuns();
}

void Manager::OnRuntime() {
  runtime_news_->OnRuntime();
  if (actuator_ != nullptr) actuator_->OnRuntime();
  pod_status_->OnRuntime();
}

void Manager::ExpectRuns() {
  if (host_.runtime == nullptr) return;
  const bool pods = state_.pods.size() > 0;
  if (std::exchange(expects_runs_, pods) != pods) host_.runtime->Expect(pods);
}

}  // namespace devmgr::manager
