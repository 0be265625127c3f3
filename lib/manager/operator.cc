// SPDX-License-Identifier: Apache-2.0
//
// What an operator may decide over the manager's head, and what clients wish.
#include <fmt/core.h>

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

void Manager::StartSetAuthority(Authority to, const std::string& reason,
                                Done done) {
  StartOnLoop(std::move(done),
              [this, to, reason](OperationId, const Done& end) {
                authority_->HandOver(to, reason, end);
              });
}

void Manager::StartFreeHolder(const std::string& container_id,
                              const std::string& reason, Done done) {
  StartOnLoop(std::move(done),
              [this, container_id, reason](OperationId, const Done& end) {
                foreign_->Free(container_id, reason, end);
              });
}

const device::Probation* Manager::WithheldOf(const std::string& name) const {
  const auto inventory = devices_->inventories().find(name);
  return inventory != devices_->inventories().end()
             ? &inventory->second.probation()
             : withheld_->Find(name);
}

void Manager::StartRecheckDevices(const std::string& name,
                                  const std::string& device,
                                  const std::string& reason, Done done) {
  StartOnLoop(std::move(done), [this, name, device, reason](OperationId,
                                                            const Done& end) {
    const device::Probation* probation = WithheldOf(name);
    const absl::Status status =
        reason.empty()         ? InvalidArgumentError("a reason is required")
        : probation == nullptr ? device::NothingWithheld(name, device)
                               : probation->CheckRecheck(name, device);
    if (!status.ok()) return end(status);
    ledger_->Submit(
        [name, device,
         reason](const state::State&) -> absl::StatusOr<state::Decision> {
          state::Decision decision;
          decision.kind = state::DecisionKind::kRecheck;
          decision.message = fmt::format(
              "an operator has {} of {} offered again: {}",
              device.empty() ? "all devices" : "device '" + device + "'", name,
              reason);
          return decision;
        },
        *executor_,
        [this, name, device, end](const absl::Status& recorded) {
          if (!recorded.ok()) return end(recorded);
          for (const std::string& id : devices_->Recheck(name, device)) {
            ReportRechecked(name, id);
          }
          for (const std::string& id : withheld_->Recheck(name, device)) {
            ReportRechecked(name, id);
          }
          end(absl::OkStatus());
        });
  });
}

void Manager::ReportRechecked(const std::string& name, const std::string& id) {
  events_.Add(false, "DeviceRechecked", "Resource", {"", name},
              fmt::format("device '{}' of {} is offered again by an operator",
                          id, name));
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
