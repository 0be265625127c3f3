// SPDX-License-Identifier: Apache-2.0
//
// What an operator may decide over the manager's head, and what clients wish.
#include <utility>

#include "claim/release.h"
#include "common/status.h"
#include "manager/manager.h"

namespace devmgr::manager {

void Manager::StartForceReleaseClaim(const ObjectName& claim,
                                     const std::string& reason, Done done) {
  executor_->Post([this, claim, reason, done = Completion(std::move(done))] {
    ledger_->Submit(
        [claim, reason](const state::State& state) {
          return claim::ForceRelease(state, claim, reason);
        },
        *executor_, done);
  });
}

void Manager::StartHandOverResource(const ResourceName& resource,
                                    ResourceOwner owner,
                                    const std::string& reason, Done done) {
  executor_->Post(
      [this, resource, owner, reason, done = Completion(std::move(done))] {
        ownership_->HandOver(resource, owner, reason, done);
      });
}

void Manager::StartConfirmSource(const std::string& reason, Done done) {
  executor_->Post([this, reason, done = Completion(std::move(done))] {
    objects_->Confirm(reason, done);
  });
}

void Manager::StartFreeHolder(const std::string& container_id,
                              const std::string& reason, Done done) {
  executor_->Post(
      [this, container_id, reason, done = Completion(std::move(done))] {
        foreign_->Free(container_id, reason, done);
      });
}

void Manager::StartRecordWish(const PodWish& wish, Done done) {
  executor_->Post([this, wish, done = Completion(std::move(done))] {
    if (wish.uid.value.empty()) {
      return done(InvalidArgumentError("the pod has no UID"));
    }
    ledger_->Submit(
        [wish](const state::State&) -> absl::StatusOr<state::Decision> {
          state::Decision decision;
          decision.kind = wish.wanted ? state::DecisionKind::kWanted
                                      : state::DecisionKind::kUnwanted;
          if (!wish.name.name.empty()) decision.pods = {wish.name};
          decision.message =
              fmt::format("the pod with UID '{}' is {} by {}", wish.uid.value,
                          wish.wanted ? "wanted" : "not wanted", wish.caller);
          return decision;
        },
        *executor_, done);
  });
}

}  // namespace devmgr::manager
