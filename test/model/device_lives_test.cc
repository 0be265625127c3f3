// SPDX-License-Identifier: Apache-2.0
//
// Random lives of a node with device plugins, on one thread and on a clock that
// moves when told: pods come and go, plugins come, tell their devices, flip
// them, drop out, refuse and hang, managers restart, the machine reboots. What
// must hold at any moment is checked after each step; now and then everything
// is mended, and who can have devices must have them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "common/status.h"
#include "device/pod_needs.h"
#include "manager/manager.h"
#include "model/luck.h"
#include "model/objects.h"
#include "support/fake_plugins.h"
#include "support/test_node.h"
#include "support/test_scale.h"

namespace devmgr::model {
namespace {

using std::chrono::milliseconds;

constexpr int kMostDevices = 6;
const std::vector<std::string> kResources = {"example.com/gpu",
                                             "example.com/nic"};

class DeviceLife {
 public:
  explicit DeviceLife(std::uint32_t seed) : luck_(seed) { Start(); }
  ~DeviceLife() { Stop(); }

  /// Empty, or what went wrong and how it came to that.
  std::string Run(int steps) {
    for (step_ = 0; step_ < steps && problem_.empty(); ++step_) {
      Tell(Do());
      Work(luck_.Chance(70) ? kAll : luck_.Below(12));
      CheckAlways();
      if (step_ % 80 == 79) Heal();
    }
    if (problem_.empty()) return "";
    std::string text = problem_ + "\n";
    for (const std::string& line : story_) text += "  " + line + "\n";
    return text;
  }

  std::uint64_t ready = 0;  ///< Pods that became Ready.
  std::uint64_t allocations = 0;

 private:
  static constexpr std::size_t kAll = 100'000;

  void Tell(const std::string& line) {
    story_.push_back(fmt::format("{}: {}", step_, line));
    if (story_.size() > 60) story_.pop_front();
  }
  void Complain(const std::string& text) {
    if (problem_.empty()) problem_ = fmt::format("step {}: {}", step_, text);
  }

  void Start() {
    auto loop = std::make_unique<ManualExecutor>();
    auto ledger = std::make_unique<ManualExecutor>();
    loop_ = loop.get();
    ledger_ = ledger.get();
    manager::ManagerParts parts;
    parts.options.max_events = 50;
    parts.host.objects = &source_;
    parts.host.boot_id = [this] { return fmt::format("boot-{}", boot_); };
    parts.host.now = [this, executor = loop_] {
      return WallTime(clock_ + std::chrono::duration_cast<milliseconds>(
                                   executor->Now().time_since_epoch()));
    };
    parts.store = store_.Open();
    parts.state = store_.Load();
    parts.drivers = [this](Executor& executor, auto on_change) {
      return drivers_.Make(executor, std::move(on_change));
    };
    parts.plugins = [this](Executor& executor,
                           plugin::PluginListener& listener) {
      return plugins_.Make(executor, listener);
    };
    parts.executor = std::move(loop);
    parts.ledger_executor = std::move(ledger);
    manager_ = manager::Manager::Start(std::move(parts));
    actuator_ = Actuator::Start(*manager_);
    connected_.clear();
  }

  void Stop() {
    clock_ += std::chrono::duration_cast<milliseconds>(
        loop_->Now().time_since_epoch());
    actuator_.reset();
    manager_.reset();
  }

  /// Runs up to so many tasks of the manager and the ledger.
  void Work(std::size_t tasks) {
    for (; tasks > 0; --tasks) {
      if (!loop_->RunOne() && !ledger_->RunOne()) return;
    }
  }

  std::string Do() {
    const std::size_t kind = luck_.Below(100);
    if (kind < 25) return AddPod();
    if (kind < 45) return RemovePod();
    if (kind < 75) return DoPlugin(kResources[luck_.Below(2)]);
    if (kind < 90) {
      const milliseconds time(luck_.Below(20'000));
      loop_->Advance(time);
      return fmt::format("{} ms pass", time.count());
    }
    if (kind < 94) return StartContainer();
    if (luck_.Chance(30)) ++boot_;
    Stop();
    Start();
    return fmt::format("restart, boot {}", boot_);
  }

  std::string AddPod() {
    const std::string name = fmt::format("p{}", luck_.Below(10));
    if (pods_.contains(name)) return "nothing";
    Pod pod;
    pod.metadata.ns = "default";
    pod.metadata.name = name;
    pod.metadata.uid = fmt::format("{}-{}", name, ++incarnations_);
    pod.spec.priority = static_cast<std::int32_t>(luck_.Below(3));
    if (luck_.Chance(30)) pod.spec.init_containers.push_back(Container("i"));
    for (std::size_t i = 0; i <= luck_.Below(2); ++i) {
      pod.spec.containers.push_back(Container(fmt::format("c{}", i)));
    }
    pods_[name] = pod;
    Publish();
    return fmt::format("pod {} comes: {}", pod.metadata.uid, NeedsText(pod));
  }

  devmgr::Container Container(const std::string& name) {
    devmgr::Container container;
    container.name = name;
    for (const std::string& resource : kResources) {
      const auto count = static_cast<std::int64_t>(luck_.Below(4));
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
      objects.pods[pod.metadata.FullName()] = std::make_shared<const Pod>(pod);
    }
    objects.complete = true;
    source_.Publish(objects);
  }

  std::string DoPlugin(const std::string& resource) {
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

  static absl::StatusOr<device::ContainerEdits> Refuse(
      const std::vector<std::string>&) {
    return InternalError("no");
  }

  std::vector<device::Device> SomeDevices() {
    std::vector<device::Device> devices =
        HealthyDevices(static_cast<int>(luck_.Below(kMostDevices + 1)));
    for (device::Device& device : devices) {
      if (luck_.Chance(20)) device.health = device::Health::kUnhealthy;
    }
    return devices;
  }

  std::string StartContainer() {
    for (const PodInfo& pod : manager_->Pods()) {
      if (pod.state != PodState::kReady) continue;
      manager_->StartBeforeContainerStart(pod.uid, pod.containers.front(),
                                          [](const absl::Status&) {});
      return fmt::format("{} starts", pod.uid.value);
    }
    return "nothing";
  }

  void CheckAlways() {
    const state::State state = store_.Load();
    for (const std::string& violation : state::CheckInvariants(state)) {
      Complain(violation);
    }
    for (const PodInfo& pod : manager_->Pods()) {
      if (pod.state == PodState::kRejected) {
        Complain(fmt::format("{} is rejected: {}", pod.uid.value, pod.message));
      }
      // What it shows may be behind what is on disk.
      const auto* record = state.FindPod(pod.uid);
      if (record == nullptr || record->phase != state::PodPhase::kReady) {
        continue;
      }
      if (pod.state == PodState::kReady) CheckReady(pod);
    }
  }

  /// A Ready pod resolves, and each container to as many as it wants.
  void CheckReady(const PodInfo& info) {
    const auto answer = manager_->PodDevicesOf(info.uid);
    if (!answer.ok()) return Complain(answer.status().ToString());
    const auto pod = pods_.find(info.name.name);
    if (pod == pods_.end() || pod->second.metadata.uid != info.uid.value) {
      return;
    }
    if (seen_ready_.insert(info.uid.value).second) ++ready;
    std::map<device::NeedKey, std::size_t> gets;
    for (const ContainerDevices& container : (*answer)->containers) {
      for (const HeldResource& held : container.resources) {
        gets[{container.name, held.name}] = held.devices.size();
      }
    }
    for (const auto& need : device::NeedsOf(pod->second, true)) {
      const std::size_t got = gets[{need.container, need.resource}];
      if (got == static_cast<std::size_t>(need.count)) continue;
      Complain(fmt::format("{} is Ready with {} of {} in {}, not {}",
                           info.uid.value, got, need.resource, need.container,
                           need.count));
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
    Publish();
    for (int i = 0; i < 60; ++i) {
      Work(kAll);
      loop_->Advance(milliseconds(10'000));
    }
    Work(kAll);
    Tell("healed");
    CheckAlways();
    CheckRest();
    allocations = plugins_.calls().size();
  }

  /// Who is gone holds nothing, and of those who wait the first cannot be
  /// helped.
  void CheckRest() {
    const state::State state = store_.Load();
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
        const auto info = manager_->PodInfoOf(uid);
        Complain(fmt::format("{} is still there, {} {}: {}", uid.value,
                             PodPhaseName(record->phase), info->reason,
                             info->message));
        continue;
      }
      if (manager_->PodInfoOf(uid)->state == PodState::kReady) continue;
      if (!CanEver(pod->second)) continue;
      waiting[{-pod->second.spec.priority, record->first_seen_ms, uid.value}] =
          &pod->second;
    }
    if (waiting.empty()) return;
    const Pod& first = *waiting.begin()->second;
    const auto needs = device::EffectiveNeeds(device::NeedsOf(first, true));
    if (std::all_of(needs.begin(), needs.end(), [&](const auto& need) {
          return need.second <= free[need.first];
        })) {
      Complain(fmt::format(
          "{} could have its devices and is {}: {}", first.metadata.uid,
          PodStateName(manager_->PodInfoOf(PodUid{first.metadata.uid})->state),
          manager_->PodInfoOf(PodUid{first.metadata.uid})->message));
    }
  }

  static bool CanEver(const Pod& pod) {
    for (const auto& [resource, count] :
         device::EffectiveNeeds(device::NeedsOf(pod, true))) {
      if (count > kMostDevices) return false;
    }
    return true;
  }

  Luck luck_;
  int step_ = 0;
  int boot_ = 1;
  int incarnations_ = 0;
  std::string problem_;
  std::deque<std::string> story_;
  milliseconds clock_{std::chrono::hours(1)};
  std::map<std::string, Pod> pods_;
  std::set<std::string> connected_;
  std::set<std::string> seen_ready_;
  SharedStore store_;
  FakeDrivers drivers_;
  FakePlugins plugins_;
  DirectSource source_;
  ManualExecutor* loop_ = nullptr;
  ManualExecutor* ledger_ = nullptr;
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<Actuator> actuator_;
};

TEST(DeviceLivesTest, NobodyGetsTooLittleAndNoDeviceIsGivenTwice) {
  constexpr int kSteps = 400;
  const std::uint32_t seed = TestSeed(20'261'122);
  const std::uint32_t lives = 100 * TestScale();
  std::printf("seeds %u to %u\n", seed, seed + lives - 1);
  std::uint64_t ready = 0;
  std::uint64_t allocations = 0;
  for (std::uint32_t i = 0; i < lives; ++i) {
    DeviceLife life(seed + i);
    const std::string problem = life.Run(kSteps);
    ASSERT_EQ(problem, "") << "DEVMGR_TEST_SEED=" << seed + i;
    ready += life.ready;
    allocations += life.allocations;
  }
  std::printf("%lu pods Ready, %lu calls of plugins\n", ready, allocations);
  // The lives are worth something only if much happens in them.
  EXPECT_GT(ready, lives * kSteps / 40);
  EXPECT_GT(allocations, lives * kSteps / 10);
}

}  // namespace
}  // namespace devmgr::model
