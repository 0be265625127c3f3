// SPDX-License-Identifier: Apache-2.0
//
// Which party serves the name of a resource, and the claims that this node
// allocates itself.
#include <memory>
#include <random>

#include "manager/manager.h"
#include "pods/local_claims.h"

namespace devmgr::manager {

/// The kubelet lets any party have a name that has it at the moment.
claim::Sharing Manager::SharingNow() const {
  return options_.policies.profile == Profile::kStrictKubelet
             ? claim::Sharing::kAsItComes
             : claim::Sharing::kOneOwner;
}

claim::Candidates Manager::CandidatesFor(const ResourceName& resource) const {
  return claim::CandidatesOf(resource, devices_->StateOf(resource), classes_);
}

void Manager::OnClasses() {
  const auto objects = objects_->Current();
  if (objects->device_classes == classes_) return;
  classes_ = objects->device_classes;
  ownership_->OnClasses();
}

bool Manager::IsServedByClass(const ResourceName& resource) const {
  return claim::IsServedByClass(state_, resource, CandidatesFor(resource),
                                SharingNow());
}

void Manager::ActOnPod(const PodAction& action) {
  pod_status_->OnAction(action);
  if (host_.act_on_pod) host_.act_on_pod(action);
}

void Manager::StartAuthority() {
  pods::AuthorityKeeper::Parts parts{*executor_, *ledger_, state_, events_,
                                     options_.policies.authority};
  parts.now_ms = [this] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               host_.now().time_since_epoch())
        .count();
  };
  parts.why_not_known = [this]() -> std::string {
    if (host_.objects == nullptr || objects_ == nullptr) return "";
    return objects_->Current()->complete
               ? ""
               : "the source has not listed all of its objects yet";
  };
  parts.on_changed = [this] { OnAuthority(); };
  authority_ = std::make_unique<pods::AuthorityKeeper>(std::move(parts));
}

bool Manager::HasLocalClaims() const {
  return authority_->Allocates() || !state_.local_claims.empty();
}

std::optional<std::int64_t> Manager::LocalSetOf(
    const ResourceName& resource) const {
  if (authority_->authority() != Authority::kSplit) return std::nullopt;
  const auto& sets = options_.policies.split_local;
  const auto set = sets.find(resource.value);
  return set != sets.end() ? set->second : 0;
}

void Manager::OnSourceForAuthority() {
  if (authority_->standing().to.has_value()) {
    node_ = NodeOf();
    authority_->OnObjects();
  }
  if (evictions_ != nullptr && HasLocalClaims()) evictions_->OnObjects();
}

/// Not amid what the other rooms hear of the batch.
void Manager::OnAuthority() {
  node_ = NodeOf();
  executor_->Post([this] {
    devices_->OnAuthority();
    if (node_status_ != nullptr) node_status_->OnResources();
    if (evictions_ != nullptr && HasLocalClaims()) evictions_->OnObjects();
    if (actuator_ != nullptr) actuator_->OnAuthority();
  });
}

void Manager::StartTaintEvictions() {
  pods::TaintEvictions::Parts parts{*executor_, *ledger_, state_,
                                    *objects_,  events_,  metrics_};
  parts.evicts = options_.policies.taint_eviction;
  parts.now_ms = [this] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               host_.now().time_since_epoch())
        .count();
  };
  parts.act_on_pod = [this](const PodAction& action) { ActOnPod(action); };
  parts.wake = [this](const std::vector<WaitingFor>& what) { Wake(what); };
  evictions_ = std::make_unique<pods::TaintEvictions>(std::move(parts));
  evictions_->Start();
}

void Manager::StartLocalClaims() {
  if (!loaded_.ok()) return;
  StartTaintEvictions();
  pods::LocalClaims::Parts parts{*executor_,  *ledger_, state_,  *objects_,
                                 *authority_, events_,  metrics_};
  parts.node_name = options_.node_name;
  parts.boot_id = boot_id_;
  parts.feature_gates = options_.feature_gates;
  parts.extended_resources = IsOn(Feature::kDraExtendedResource);
  parts.served_by_class = [this](const ResourceName& resource) {
    return IsServedByClass(resource);
  };
  parts.driver_registered = [this](const std::string& driver) {
    // Writes end after the drivers have gone, when the manager stops; pods that
    // waited for them get no device any more.
    return drivers_ != nullptr && drivers_->IsRegistered(driver);
  };
  parts.now_ms = [this] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               host_.now().time_since_epoch())
        .count();
  };
  parts.random = [bits = std::make_shared<std::mt19937_64>(
                      std::random_device()())] { return (*bits)(); };
  if (options_.hardware.one_holder) parts.hardware = hardware_.get();
  parts.on_decided = [this](const PodUid& pod) {
    if (actuator_ != nullptr) actuator_->OnClaimsDecided(pod);
  };
  parts.withheld = [this] { return withheld_->All(); };
  parts.withheld_version = [this] { return withheld_->version(); };
  parts.evictions = &evictions_->plan();
  if (alignment_ != nullptr) {
    parts.numa_nodes = alignment_->machine.nodes;
    parts.align = [this](const pods::DeviceRequest& request,
                         const admission::ClaimHints& hints, bool dry) {
      return device_admission_->AlignClaims(request, hints, dry);
    };
  }
  local_claims_ = std::make_unique<pods::LocalClaims>(std::move(parts));
  local_claims_->Start();
}

}  // namespace devmgr::manager
