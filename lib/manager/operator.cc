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
  StartOnLoop(std::move(done),
              [this, claim, reason](OperationId, const Done& end) {
                ledger_->Submit(
                    [claim, reason](const state::State& state) {
                      return claim::ForceRelease(state, claim, reason);
                    },
                    *executor_, end);
              });
}

void Manager::StartHandOverResource(const ResourceName& resource,
                                    ResourceOwner owner,
                                    const std::string& reason, Done done) {
  StartOnLoop(std::move(done),
              [this, resource, owner, reason](OperationId, const Done& end) {
                ownership_->HandOver(resource, owner, reason, end);
              });
}

void Manager::StartConfirmSource(const std::string& reason, Done done) {
  StartOnLoop(std::move(done), [this, reason](OperationId, const Done& end) {
    objects_->Confirm(reason, end);
  });
}

void Manager::StartFreeHolder(const std::string& container_id,
                              const std::string& reason, Done done) {
  StartOnLoop(std::move(done),
              [this, container_id, reason](OperationId, const Done& end) {
                foreign_->Free(container_id, reason, end);
              });
}

void Manager::StartRecordWish(const PodWish& wish, Done done) {
  StartOnLoop(std::move(done), [this, wish](OperationId, const Done& end) {
    if (wish.uid.value.empty()) {
      return end(InvalidArgumentError("the pod has no UID"));
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
        *executor_, end);
  });
}

void Manager::StartRecordSliceDeletion(const SliceDeletion& deletion,
                                       Done done) {
  StartOnLoop(std::move(done), [this, deletion](OperationId, const Done& end) {
    if (deletion.driver.empty()) {
      return end(InvalidArgumentError("no driver is named"));
    }
    ledger_->Submit(
        [deletion](const state::State&) -> absl::StatusOr<state::Decision> {
          state::Decision decision;
          decision.kind = state::DecisionKind::kSlicesDeleted;
          decision.message =
              fmt::format("slices of driver '{}' are deleted by {}: {}",
                          deletion.driver, deletion.caller, deletion.reason);
          return decision;
        },
        *executor_, end);
  });
}

}  // namespace devmgr::manager
