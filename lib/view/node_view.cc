// SPDX-License-Identifier: Apache-2.0
#include "view/node_view.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "claim/held_claims.h"
#include "common/status.h"
#include "state/views.h"
#include "view/device_holders.h"
#include "view/device_views.h"
#include "view/numa_views.h"
#include "view/pod_resources.h"
#include "view/pod_views.h"
#include "view/slice_views.h"

namespace devmgr::view {
namespace {

/// Null when there is none of this UID.
const Pod* FindObject(const ObjectSnapshot& objects, const PodUid& uid) {
  for (const auto& [name, pod] : objects.pods) {
    if (pod->metadata.uid == uid.value) return pod.get();
  }
  for (const auto& [name, malformed] : objects.malformed_pods) {
    if (malformed->pod.metadata.uid == uid.value) return &malformed->pod;
  }
  return nullptr;
}

void CountPods(const Moment& moment, NodeInfo* node) {
  node->pods = static_cast<int>(moment.state.pods.size());
  for (const auto& [uid, pod] : moment.state.pods) {
    const PodState state = StateOf(moment, *pod);
    if (state == PodState::kReady) ++node->pods_ready;
    if (state == PodState::kWaiting) ++node->pods_waiting;
    if (state == PodState::kRejected) ++node->pods_rejected;
  }
}

template <typename T>
std::vector<T> CopiesOf(const std::vector<std::shared_ptr<const T>>& shared) {
  std::vector<T> copies;
  copies.reserve(shared.size());
  for (const std::shared_ptr<const T>& one : shared) copies.push_back(*one);
  return copies;
}

/// What is under way at the driver, and what waits for that.
void AddLoad(const Calls& calls, PluginInfo* driver) {
  std::set<std::uint64_t> under_way;
  std::int64_t oldest_ms = std::numeric_limits<std::int64_t>::max();
  driver->queued = 0;
  for (const auto& [asked, unanswered] : calls.unanswered) {
    if (asked.second != driver->name) continue;
    if (!unanswered.since_ms.has_value()) {
      ++driver->queued;
      continue;
    }
    under_way.insert(unanswered.call);
    oldest_ms = std::min(oldest_ms, *unanswered.since_ms);
  }
  driver->calls = static_cast<int>(under_way.size());
  if (!under_way.empty()) {
    driver->calling_since = state::WallTimeOf(oldest_ms);
  }
}

class MomentView final : public NodeView {
 public:
  MomentView(Moment moment, Surroundings surroundings)
      : moment_(std::move(moment)), surroundings_(std::move(surroundings)) {}

  const Moment& moment() const { return moment_; }

  std::uint64_t Sequence() const override { return surroundings_.sequence; }
  std::uint64_t LastEvent() const override { return surroundings_.last_event; }

  NodeInfo Node() const override {
    NodeInfo node;
    if (surroundings_.node != nullptr) node = *surroundings_.node;
    node.ledger_error = std::string(surroundings_.ledger.message());
    node.ledger_sequence = moment_.state.seq;
    node.runtime = surroundings_.runtime;
    CountPods(moment_, &node);
    node.claims = static_cast<int>(moment_.state.claims.size());
    node.plugins = static_cast<int>(surroundings_.plugins.size());
    if (moment_.objects == nullptr) return node;
    node.source_complete = moment_.objects->complete;
    for (const ManifestProblem& problem : moment_.objects->problems) {
      node.source_problems.push_back(problem.ToString());
    }
    node.object_problems = moment_.objects->object_problems;
    return node;
  }

  std::vector<PodInfo> Pods() const override {
    std::vector<PodInfo> pods;
    for (const auto& [uid, pod] : moment_.state.pods) {
      pods.push_back(InfoOf(moment_, *pod));
    }
    return pods;
  }

  absl::StatusOr<PodInfo> PodInfoOf(const PodUid& pod) const override {
    DEVMGR_ASSIGN_OR_RETURN(const state::PodRecord* const record, Find(pod));
    return InfoOf(moment_, *record);
  }

  std::vector<ClaimInfo> Claims() const override {
    std::vector<ClaimInfo> claims;
    for (const auto& [uid, claim] : moment_.state.claims) {
      claims.push_back(InfoOf(moment_, *claim));
    }
    return claims;
  }

  std::vector<DebtInfo> Debts() const override { return DebtsOf(moment_); }
  std::vector<PluginInfo> Plugins() const override {
    std::vector<PluginInfo> plugins = CopiesOf(surroundings_.plugins);
    for (PluginInfo& plugin : plugins) {
      const bool is_called = plugin.serves && plugin.kind == PluginKind::kDra;
      if (is_called) AddLoad(moment_.calls, &plugin);
    }
    return plugins;
  }
  std::vector<RegistrationSocketInfo> RegistrationSockets() const override {
    return CopiesOf(surroundings_.sockets);
  }
  std::vector<DeviceInfo> Devices() const override {
    return DevicesOf(moment_);
  }
  std::vector<ResourceInfo> Resources() const override {
    return ResourcesOf(moment_);
  }
  std::vector<DeviceClassInfo> DeviceClasses() const override {
    return moment_.objects != nullptr ? DeviceClassesOf(*moment_.objects)
                                      : std::vector<DeviceClassInfo>();
  }
  std::vector<SliceInfo> Slices() const override {
    if (moment_.objects == nullptr) return {};
    PoolProblems problems;
    if (moment_.terms != nullptr && moment_.terms->pool_problems) {
      problems = moment_.terms->pool_problems(*moment_.objects);
    }
    return SlicesOf(
        *moment_.objects,
        moment_.terms != nullptr ? moment_.terms->node_name : "",
        [this](std::string_view driver) { return IsHidden(driver); }, problems);
  }
  std::vector<RuntimeInfo> Runtimes() const override {
    return CopiesOf(surroundings_.runtimes);
  }
  std::vector<ForeignHolderInfo> ForeignHolders() const override {
    return state::ForeignHoldersOf(moment_.state);
  }

  std::vector<DeviceHolderInfo> DeviceHolders() const override {
    return DeviceHoldersOf(moment_, surroundings_.runs.get());
  }

  absl::StatusOr<std::vector<ResourceDevices>> HeldDevices(
      const PodUid& pod, const ContainerName& container) const override {
    DEVMGR_ASSIGN_OR_RETURN(const state::PodRecord* const record, Find(pod));
    return state::HeldDevicesOf(*record, container);
  }

  absl::StatusOr<ContainerClaims> HeldClaims(
      const PodUid& pod, const ContainerName& container) const override {
    const state::PodRecord* record = moment_.state.FindPod(pod);
    // Its needs are booked with its claims.
    if (record != nullptr && !record->needs.empty()) {
      return claim::HeldClaimsOf(moment_.state, *record, container);
    }
    const Pod* object = moment_.objects != nullptr
                            ? FindObject(*moment_.objects, pod)
                            : nullptr;
    if (object != nullptr) {
      return claim::MissingClaimsOf(*object, container, *moment_.objects,
                                    moment_.terms != nullptr
                                        ? moment_.terms->plan_options
                                        : claim::PlanOptions());
    }
    if (record != nullptr) return ContainerClaims();
    return NotKnown(pod);
  }

  std::shared_ptr<const PodResourcesList> ResourcesOfPods(
      const std::shared_ptr<const PodResourcesList>& before) const override {
    return PodResourcesOf(moment_, before);
  }

  absl::StatusOr<std::shared_ptr<const PodResources>> ResourcesOfPod(
      const ObjectName& pod) const override {
    auto resources = PodResourcesOf(moment_, pod);
    if (resources != nullptr) return resources;
    return NotFoundError("pod {} in namespace {} not found", pod.name, pod.ns);
  }

  std::vector<ResourceDevices> AllocatableDevices() const override {
    return AllocatableOf(moment_);
  }

  NumaInfo Numa() const override { return NumaOf(moment_); }

  absl::StatusOr<PodAlignmentInfo> AlignmentOf(
      const PodUid& pod) const override {
    const auto* alignment = moment_.alignments.Find(pod);
    if (alignment != nullptr) return **alignment;
    const state::PodRecord* record = moment_.state.FindPod(pod);
    if (record != nullptr && record->alignment != nullptr) {
      return *record->alignment;
    }
    return NotFoundError(
        "pod with UID '{}' has no devices that were aligned to NUMA nodes, and "
        "was not judged by that since this process began",
        pod.value);
  }

 private:
  bool IsHidden(std::string_view driver) const {
    if (surroundings_.node == nullptr ||
        surroundings_.node->authority != Authority::kNode) {
      return false;
    }
    return std::none_of(surroundings_.plugins.begin(),
                        surroundings_.plugins.end(), [&](const auto& plugin) {
                          return plugin->kind == PluginKind::kDra &&
                                 plugin->name == driver;
                        });
  }

  static absl::Status NotKnown(const PodUid& pod) {
    return NotFoundError("pod with UID '{}' is not known", pod.value);
  }

  absl::StatusOr<const state::PodRecord*> Find(const PodUid& pod) const {
    const state::PodRecord* record = moment_.state.FindPod(pod);
    if (record == nullptr) return NotKnown(pod);
    return record;
  }

  const Moment moment_;
  const Surroundings surroundings_;
};

}  // namespace

const Moment* MomentOf(const NodeView& view) {
  const auto* ours = dynamic_cast<const MomentView*>(&view);
  return ours != nullptr ? &ours->moment() : nullptr;
}

std::shared_ptr<const NodeView> NodeViewOf(Moment moment,
                                           Surroundings surroundings) {
  return std::make_shared<const MomentView>(std::move(moment),
                                            std::move(surroundings));
}

}  // namespace devmgr::view
