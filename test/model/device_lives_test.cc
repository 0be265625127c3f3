// SPDX-License-Identifier: Apache-2.0
//
// Random lives of a node with device plugins, on one thread and on a clock that
// moves when told: pods come and go, plugins come, tell their devices, flip
// them, drop out, refuse and hang, init containers end and start again, a
// resource is also had through claims, containers hold devices that no pod was
// given, managers restart, the machine reboots.
// What must hold at any moment is checked after each step; now and then
// everything is mended, and who can have devices must have them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/status.h"
#include "device/pod_needs.h"
#include "model/node_life.h"
#include "support/random_lives.h"

namespace devmgr::model {
namespace {

constexpr int kMostDevices = 6;
const std::vector<std::string> kResources = {"example.com/gpu",
                                             "example.com/nic"};
/// Some pods have devices of the first through a claim.
const std::string& kMappable = kResources.front();
constexpr char kDriver[] = "d.example.com";

/// What happened in all lives.
struct Counts {
  std::uint64_t ready = 0;  ///< Pods that became Ready.
  std::uint64_t allocations = 0;
  std::uint64_t claimed = 0;     ///< Steps with a claim for the resource.
  std::uint64_t given_back = 0;  ///< Looks at init containers without devices.
  std::uint64_t foreign = 0;     ///< Steps with containers of no pod's devices.
};

class DeviceLife : private NodeLife {
 public:
  DeviceLife(Luck& luck, Counts& counts) : NodeLife(luck), counts_(counts) {
    drivers_.Register(kDriver);
    Start();
  }
  ~DeviceLife() {
    counts_.allocations += plugins_.calls().size();
    Stop();
  }

  std::vector<RandomStep> Steps() {
    return {{"containers", 5, [this] { return DoContainers(); }},
            {"add pod", 20, [this] { return AddPod(); }},
            {"remove pod", 20, [this] { return RemovePod(); }},
            {"plugin", 30, [this] { return DoPlugin(); }},
            {"wait", 15, [this] { return Wait(); }},
            {"start container", 3, [this] { return StartContainer(); }},
            {"end init containers", 2, [this] { return EndInitContainers(); }},
            {"class", 1, [this] { return ToggleClass(); }},
            {"restart", 4, [this] { return Restart(); }}};
  }

  /// Works on, and holds what has come of it against what must hold.
  void Check() {
    Work(luck_.Chance(70) ? kAll : luck_.Below(12));
    CheckAlways();
    if (++steps_ % 80 == 0) Heal();
  }

 private:
  void Start() {
    NodeLife::Start({});
    connected_.clear();
  }

  std::string ToggleClass() {
    has_class_ = !has_class_;
    Publish();
    return has_class_ ? "a class" : "no class";
  }

  std::string Restart() {
    if (luck_.Chance(30)) ++boot_;
    Stop();
    Start();
    return fmt::format("boot {}", boot_);
  }

  /// Containers come, with what their pod may lack, or go, and the shim says
  /// so.
  std::string DoContainers() {
    if (luck_.Chance(15) && !containers_.empty()) {
      const std::string id = containers_.begin()->first;
      manager_->maintenance().StartFreeHolder(id, "why",
                                              [](const absl::Status&) {});
      return fmt::format("{} is freed", id);
    }
    if (luck_.Chance(50) && !containers_.empty()) {
      containers_.erase(containers_.begin());
    } else {
      ForeignHolder holder;
      holder.container_id = fmt::format("c{}", ++last_container_);
      const auto pod = pods_.find(fmt::format("p{}", luck_.Below(10)));
      holder.pod = {"default", pod == pods_.end() ? "stray" : pod->first};
      holder.pod_uid.value =
          pod == pods_.end() ? "stray" : pod->second.metadata.uid;
      holder.container = "c0";
      for (const std::string& resource : kResources) {
        std::set<std::string> ids;
        for (std::size_t i = luck_.Below(3); i > 0; --i) {
          ids.insert(std::to_string(luck_.Below(kMostDevices)));
        }
        if (ids.empty()) continue;
        holder.resources.push_back({resource, {ids.begin(), ids.end()}});
      }
      containers_[holder.container_id] = std::move(holder);
    }
    ReportContainers(luck_.Chance(80));
    return fmt::format("{} containers beyond the ledger", containers_.size());
  }

  void ReportContainers(bool all) {
    RuntimeReport report;
    report.session = "s";
    report.listen = "/run/shim.sock";
    report.endpoint = "/run/runtime.sock";
    report.all_holders = all;
    for (const auto& [id, holder] : containers_) {
      report.holders.push_back(holder);
    }
    const absl::Status taken = manager_->ReportRuntime(report);
    if (!taken.ok()) ADD_FAILURE() << taken.ToString();
  }

  std::string AddPod() {
    const std::string name = fmt::format("p{}", luck_.Below(10));
    if (pods_.contains(name)) return "nothing";
    Pod pod;
    pod.metadata.ns = "default";
    pod.metadata.name = name;
    pod.metadata.uid = fmt::format("{}-{}", name, ++incarnations_);
    pod.spec.priority = luck_.Below(3);
    if (luck_.Chance(30)) pod.spec.init_containers.push_back(Container("i"));
    for (int i = 0; i <= luck_.Below(2); ++i) {
      pod.spec.containers.push_back(Container(fmt::format("c{}", i)));
    }
    if (luck_.Chance(20)) Map(&pod);
    pods_[name] = pod;
    Publish();
    return fmt::format("pod {} comes: {}{}", pod.metadata.uid, NeedsText(pod),
                       IsMapped(pod) ? ", and a claim" : "");
  }

  /// Its containers have the mappable resource through a claim.
  static void Map(Pod* pod) {
    PodExtendedResourceClaimStatus status;
    status.resource_claim_name = pod->metadata.uid;
    for (auto* containers :
         {&pod->spec.init_containers, &pod->spec.containers}) {
      for (devmgr::Container& container : *containers) {
        container.resources.limits[kMappable] = {1, 0, "1"};
        status.request_mappings.push_back({container.name, kMappable, "r"});
      }
    }
    pod->status.extended_resource_claim_status = std::move(status);
  }

  static bool IsMapped(const Pod& pod) {
    return pod.status.extended_resource_claim_status.has_value();
  }

  static ResourceClaim ClaimOf(const Pod& pod) {
    ResourceClaim claim;
    claim.metadata.ns = pod.metadata.ns;
    claim.metadata.name = pod.metadata.uid;
    claim.metadata.uid = "claim-" + pod.metadata.uid;
    claim.status.allocation.emplace();
    claim.status.allocation->results.push_back({"r", kDriver, "pool", "dev"});
    claim.status.reserved_for.push_back(
        {"", "pods", pod.metadata.name, pod.metadata.uid});
    return claim;
  }

  devmgr::Container Container(const std::string& name) {
    devmgr::Container container;
    container.name = name;
    for (const std::string& resource : kResources) {
      const std::int64_t count = luck_.Below(4);
      if (count == 0) continue;
      container.resources.limits[resource] = {count, 0, std::to_string(count)};
    }
    return container;
  }

  static std::string NeedsText(const Pod& pod) {
    std::string text = fmt::format("priority {}", pod.spec.priority);
    for (const auto& need : device::NeedsOf(pod, true)) {
      text += fmt::format(", {} {} of {}", need.container, need.count,
                          need.resource);
    }
    return text;
  }

  std::string RemovePod() {
    if (pods_.empty()) return "nothing";
    const auto pod =
        std::next(pods_.begin(), static_cast<int>(luck_.Below(pods_.size())));
    const std::string uid = pod->second.metadata.uid;
    pods_.erase(pod);
    Publish();
    return fmt::format("pod {} goes", uid);
  }

  void Publish() {
    ObjectSnapshot objects;
    for (const auto& [name, pod] : pods_) {
      // What does not change stays the same object, so that it wakes nobody.
      auto& [object, claim] = objects_[pod.metadata.uid];
      if (object == nullptr) {
        object = std::make_shared<const Pod>(pod);
        claim = std::make_shared<const ResourceClaim>(ClaimOf(pod));
      }
      objects.pods.insert_or_assign(pod.metadata.FullName(), object);
      if (IsMapped(pod))
        objects.claims.insert_or_assign(claim->metadata.FullName(), claim);
    }
    if (has_class_) {
      DeviceClass item;
      item.metadata.name = "class";
      item.extended_resource_name = kMappable;
      objects.device_classes.insert_or_assign(
          item.metadata.FullName(), std::make_shared<const DeviceClass>(item));
    }
    objects.complete = true;
    source_.Publish(objects);
  }

  std::string DoPlugin() {
    const std::string& resource = luck_.Pick(kResources);
    if (!connected_.contains(resource)) {
      connected_.insert(resource);
      plugins_.Connect(resource, {.pre_start_required = luck_.Chance(50),
                                  .preferred_allocation = luck_.Chance(50)});
      if (luck_.Chance(80)) plugins_.Report(resource, SomeDevices());
      return fmt::format("plugin of {} comes", resource);
    }
    switch (luck_.Below(6)) {
      case 0:
        connected_.erase(resource);
        plugins_.Lose(resource);
        return fmt::format("plugin of {} goes", resource);
      case 1:
        plugins_.Hold(resource);
        return fmt::format("plugin of {} hangs", resource);
      case 2:
        plugins_.Let(resource);
        return fmt::format("plugin of {} answers", resource);
      case 3: {
        const bool fails = luck_.Chance(50);
        plugins_.Answer(resource, fails ? Refuse : FakePlugins::Allocate());
        return fmt::format("plugin of {} {}", resource,
                           fails ? "refuses" : "serves");
      }
      default:
        plugins_.Report(resource, SomeDevices());
        return fmt::format("plugin of {} tells other devices", resource);
    }
  }

  std::vector<device::Device> SomeDevices() {
    std::vector<device::Device> devices =
        HealthyDevices(luck_.Below(kMostDevices + 1));
    for (device::Device& device : devices) {
      if (luck_.Chance(20)) device.health = device::Health::kUnhealthy;
    }
    return devices;
  }

  std::optional<PodInfo> AnyReady() {
    std::vector<PodInfo> pods = manager_->View()->Pods();
    std::erase_if(
        pods, [](const auto& pod) { return pod.state != PodState::kReady; });
    if (pods.empty()) return std::nullopt;
    return pods[luck_.Below(pods.size())];
  }

  std::string StartContainer() {
    const auto pod = AnyReady();
    if (!pod) return "nothing";
    const std::string container =
        pod->containers[luck_.Below(pod->containers.size())];
    manager_->StartBeforeContainerStart(
        pod->uid, container,
        [this, uid = pod->uid, container,
         ends = ends_[pod->uid]](const absl::Status& status) {
          // Its plugin may have answered long after the init containers ended.
          if (status.ok() && ends == ends_[uid]) CheckStarts(uid, container);
        });
    return fmt::format("{} of {} starts", container, pod->uid.value);
  }

  /// A container that may start has what it needs, unless somebody says at the
  /// same time that its pod is over, or that its init containers have ended.
  void CheckStarts(const PodUid& uid, const std::string& container) {
    const auto answer = manager_->ContainerDevicesOf(uid, container);
    if (!absl::IsFailedPrecondition(answer.status())) return;
    if (ending_.contains(uid)) return;
    ADD_FAILURE() << fmt::format("{} of {} may start: {}", container, uid.value,
                                 MessageOf(answer.status()));
  }

  std::string EndInitContainers() {
    const auto pod = AnyReady();
    if (!pod) return "nothing";
    ++ending_[pod->uid];
    ++ends_[pod->uid];
    manager_->StartReleaseInitContainers(
        pod->uid, [this, uid = pod->uid](const absl::Status&) {
          if (--ending_[uid] == 0) ending_.erase(uid);
        });
    return fmt::format("init containers of {} ended", pod->uid.value);
  }

  void CheckAlways() {
    const state::State state = store_.Load();
    CheckPods(state, [this](const PodInfo& pod) { CheckReady(pod); });
    CheckOwners(state);
    if (!state.foreign_devices.empty()) ++counts_.foreign;
  }

  /// By the plugin and through claims it may be the same device.
  void CheckOwners(const state::State& state) {
    const std::vector<PodUid> by_claim = state.ClassHoldersOf(kMappable, 100);
    for (const PodUid& pod : state.PluginHoldersOf(kMappable, 100)) {
      for (const PodUid& other : by_claim) {
        ADD_FAILURE() << fmt::format(
            "{} holds devices of {}, and {} claims for it", pod.value,
            kMappable, other.value);
      }
    }
    if (!by_claim.empty()) ++counts_.claimed;
  }

  /// A Ready pod resolves, and each container to as many as it wants.
  void CheckReady(const PodInfo& info) {
    const auto answer = manager_->PodDevicesOf(info.uid);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const auto pod = pods_.find(info.name.name);
    if (pod == pods_.end() || pod->second.metadata.uid != info.uid.value) {
      return;
    }
    if (seen_ready_.insert(info.uid.value).second) ++counts_.ready;
    std::map<device::NeedKey, std::size_t> gets;
    std::set<std::string> ended;
    for (const ContainerDevices& container : (*answer)->containers) {
      if (container.devices_released) ended.insert(container.name);
      for (const HeldResource& held : container.resources) {
        gets[{container.name, held.name}] = held.devices.size();
      }
    }
    for (const auto& need : device::NeedsOf(pod->second, true)) {
      const std::size_t got = gets[{need.container, need.resource}];
      if (got == static_cast<std::size_t>(need.count)) continue;
      if (got == 0 && ended.contains(need.container)) {
        ++counts_.given_back;
        continue;
      }
      ADD_FAILURE() << fmt::format("{} is Ready with {} of {} in {}, not {}",
                                   info.uid.value, got, need.resource,
                                   need.container, need.count);
    }
  }

  /// Everything works, and time passes until nothing moves any more.
  void Heal() {
    for (const std::string& resource : kResources) {
      plugins_.Answer(resource, nullptr);
      plugins_.Let(resource);
      if (connected_.insert(resource).second) plugins_.Connect(resource);
      plugins_.Report(resource, HealthyDevices(kMostDevices));
    }
    containers_.clear();
    ReportContainers(/*all=*/true);
    Publish();
    if (!WorkToRest()) return;
    CheckAlways();
    CheckRest();
  }

  /// Who is gone holds nothing, and of those who wait the first cannot be
  /// helped.
  void CheckRest() {
    const state::State state = store_.Load();
    if (!state.foreign_holders.empty()) {
      ADD_FAILURE() << "containers that have gone hold devices";
    }
    std::map<std::string, std::int64_t> free;
    for (const std::string& resource : kResources)
      free[resource] = kMostDevices;
    for (const auto& [resource, id, uid] : state.device_holders) {
      --free[resource];
    }
    using Order = std::tuple<std::int32_t, std::int64_t, std::string>;
    std::map<Order, const Pod*> waiting;
    for (const auto& [uid, record] : state.pods) {
      const auto pod = pods_.find(record->name.name);
      if (pod == pods_.end() || pod->second.metadata.uid != uid.value) {
        const auto info = manager_->View()->PodInfoOf(uid);
        ADD_FAILURE() << fmt::format("{} is still there, {} {}: {}", uid.value,
                                     PodPhaseName(record->phase), info->reason,
                                     info->message);
        continue;
      }
      if (manager_->View()->PodInfoOf(uid)->state == PodState::kReady) continue;
      if (!CanEver(pod->second) || IsBlocked(pod->second, state)) continue;
      waiting[{-pod->second.spec.priority, record->first_seen_ms, uid.value}] =
          &pod->second;
    }
    if (waiting.empty()) return;
    const Pod& first = *waiting.begin()->second;
    const auto needs = device::EffectiveNeeds(device::NeedsOf(first, true));
    if (std::all_of(needs.begin(), needs.end(), [&](const auto& need) {
          return need.second <= free[need.first];
        })) {
      ADD_FAILURE() << fmt::format(
          "{} could have its devices and is {}: {}", first.metadata.uid,
          PodStateName(
              manager_->View()->PodInfoOf(PodUid{first.metadata.uid})->state),
          manager_->View()->PodInfoOf(PodUid{first.metadata.uid})->message);
    }
  }

  /// Somebody else has the resource the other way.
  static bool IsBlocked(const Pod& pod, const state::State& state) {
    if (IsMapped(pod)) return !state.PluginHoldersOf(kMappable, 1).empty();
    return device::EffectiveNeeds(device::NeedsOf(pod, true))
               .contains(kMappable) &&
           !state.ClassHoldersOf(kMappable, 1).empty();
  }

  static bool CanEver(const Pod& pod) {
    for (const auto& [resource, count] :
         device::EffectiveNeeds(device::NeedsOf(pod, true))) {
      if (count > kMostDevices) return false;
    }
    return true;
  }

  Counts& counts_;
  int steps_ = 0;
  int incarnations_ = 0;
  std::map<std::string, Pod> pods_;
  /// A pod and its claim, by the pod's UID.
  std::map<std::string, std::pair<std::shared_ptr<const Pod>,
                                  std::shared_ptr<const ResourceClaim>>>
      objects_;
  std::set<std::string> connected_;
  /// That run with devices their pods were perhaps not given.
  std::map<std::string, ForeignHolder> containers_;
  int last_container_ = 0;
  bool has_class_ = false;
  std::map<PodUid, int> ending_;  ///< What is told of init containers.
  std::map<PodUid, int> ends_;    ///< How often they ended.
  std::set<std::string> seen_ready_;
};

TEST(DeviceLivesTest, NobodyGetsTooLittleAndNoDeviceIsGivenTwice) {
  constexpr int kSteps = 400;
  constexpr RandomLives kLives = {20'261'122, 100};
  Counts all;
  const bool whole = LiveEach(kLives, [&](Luck& luck) {
    DeviceLife life(luck, all);
    TakeSteps(kSteps, luck, life.Steps(), [&] { life.Check(); });
  });
  if (!whole) return;
  const auto lives = static_cast<std::uint64_t>(kLives.count());
  fmt::print(
      "{} pods Ready, {} calls of plugins, {} steps with claims, init "
      "containers without devices seen {} times, {} steps with foreign "
      "containers\n",
      all.ready, all.allocations, all.claimed, all.given_back, all.foreign);
  // The lives are worth something only if much happens in them.
  EXPECT_GT(all.ready, lives * kSteps / 40);
  EXPECT_GT(all.allocations, lives * kSteps / 10);
  EXPECT_GT(all.claimed, lives * kSteps / 20);
  EXPECT_GT(all.given_back, lives);
  EXPECT_GT(all.foreign, lives * kSteps / 20);
}

}  // namespace
}  // namespace devmgr::model
