// SPDX-License-Identifier: Apache-2.0
//
// A node whose pods get devices of plugins, on one thread, over the RocksDB
// store: the power goes off before any call to the disk, or the disk fails at
// any call. What was answered holds, no plugin hears of a device that is not
// reserved on disk, and in the end everybody has got what he wants.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "manager/device_fixture.h"
#include "manager/disk_plan.h"
#include "manager/manager.h"
#include "model/objects.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

using checkpoint::DiskFault;
using checkpoint::DiskImage;
using checkpoint::DiskOperation;
using checkpoint::SimulatedDisk;
using checkpoint::Survival;
using std::chrono::seconds;
using ::testing::IsEmpty;
using Data = Survival::Data;
using Names = Survival::Names;

constexpr char kBoot[] = "boot-1";
const std::map<std::string, int> kPlugins = {{kGpu, 4}, {kNic, 2}};

/// By pod: what was answered for it.
using Answers = std::map<PodUid, std::shared_ptr<const PodDevices>>;

absl::StatusOr<std::unique_ptr<checkpoint::LedgerStore>> OpenOn(
    SimulatedDisk& disk, const TempFolder& folder) {
  rocksdb::Options database = checkpoint::LedgerOptions(disk.env());
  database.write_buffer_size = 64 * 1024;  // The least there can be.
  return checkpoint::OpenRocksDbStoreOn({folder.path() / "state", {}},
                                        database);
}

/// A manager with its actuator, on the calling thread.
class QuietNode {
 public:
  QuietNode(std::unique_ptr<checkpoint::LedgerStore> store,
            FakePlugins& plugins, const std::string& boot) {
    auto loop = std::make_unique<ManualExecutor>();
    auto ledger = std::make_unique<ManualExecutor>();
    loop_ = loop.get();
    ledger_ = ledger.get();
    manager::ManagerParts parts;
    parts.options.actuate = Actuate::kSource;
    parts.host.objects = &source_;
    parts.host.boot_id = [boot] { return boot; };
    parts.host.now = [executor = loop_] {
      return WallTime(std::chrono::hours(1) +
                      std::chrono::duration_cast<std::chrono::milliseconds>(
                          executor->Now().time_since_epoch()));
    };
    parts.state = *store->Load();
    parts.store = std::move(store);
    parts.drivers = [this](Executor& executor, auto on_change) {
      return drivers_.Make(executor, std::move(on_change));
    };
    parts.plugins = [&plugins](Executor& executor,
                               plugin::PluginListener& listener) {
      return plugins.Make(executor, listener);
    };
    parts.executor = std::move(loop);
    parts.ledger_executor = std::move(ledger);
    manager_ = manager::Manager::Start(std::move(parts));
  }
  ~QuietNode() { manager_.reset(); }

  void Publish(const std::string& yaml) { source_.Publish(SnapshotOf(yaml)); }
  /// False when nothing is left to do now.
  bool RunOne() { return loop_->RunOne() || ledger_->RunOne(); }
  void Pass(std::chrono::milliseconds time) { loop_->Advance(time); }
  DeviceManager& manager() { return *manager_; }

 private:
  FakeDrivers drivers_;
  model::DirectSource source_;
  ManualExecutor* loop_ = nullptr;
  ManualExecutor* ledger_ = nullptr;
  std::unique_ptr<DeviceManager> manager_;
};

/// What is wanted, and was answered, at some moment.
struct Moment {
  std::map<std::string, Limits> wanted;
  Answers answers;

  std::string Yaml() const {
    std::string text;
    for (const auto& [pod, limits] : wanted) text += DevicePod(pod, limits);
    return text;
  }
};

void ServeAll(FakePlugins& plugins) {
  for (const auto& [resource, count] : kPlugins) plugins.Serve(resource, count);
}

/// Everything that was answered is on disk.
void CheckKept(const state::State& state, const Answers& answers) {
  EXPECT_THAT(state::CheckInvariants(state), IsEmpty());
  for (const auto& [uid, answer] : answers) {
    const state::PodRecord* pod = state.FindPod(uid);
    ASSERT_NE(pod, nullptr) << uid.value;
    ASSERT_EQ(pod->phase, state::PodPhase::kReady) << uid.value;
    EXPECT_TRUE(*pod->answer == *answer) << uid.value;
  }
}

void CheckResolves(const DeviceManager& manager, const Answers& answers) {
  for (const auto& [uid, answer] : answers) {
    const auto now = manager.PodDevicesOf(uid);
    ASSERT_TRUE(now.ok()) << uid.value << ": " << now.status();
    EXPECT_TRUE(**now == *answer) << uid.value;
  }
}

/// Who is not Ready cannot be, for want of free devices.
std::string UnhappyOf(DeviceManager& manager, const Moment& moment) {
  std::map<std::string, int> free = kPlugins;
  for (const DeviceInfo& device : manager.View()->Devices()) {
    if (!device.used_by.empty()) --free[device.resource];
  }
  const std::vector<PodInfo> pods = manager.View()->Pods();
  std::string unhappy;
  for (const PodInfo& pod : pods) {
    const auto wanted = moment.wanted.find(pod.name.name);
    const bool fits =
        wanted == moment.wanted.end() ||
        std::all_of(wanted->second.begin(), wanted->second.end(),
                    [&](const auto& l) { return free[l.first] >= l.second; });
    if (pod.state == PodState::kReady || !fits) continue;
    unhappy += fmt::format("{} is {}: {} {}; ", pod.name.ToString(),
                           PodStateName(pod.state), pod.reason, pod.message);
  }
  if (pods.size() != moment.wanted.size()) {
    unhappy +=
        fmt::format("{} pods, not {}", pods.size(), moment.wanted.size());
  }
  return unhappy;
}

/// Works until everybody has what he wants.
void Settle(QuietNode& node, const Moment& moment) {
  std::string unhappy = "not yet";
  for (int round = 0; round < 30 && !unhappy.empty(); ++round) {
    while (node.RunOne()) {
    }
    unhappy = UnhappyOf(node.manager(), moment);
    node.Pass(seconds(10));
  }
  EXPECT_EQ(unhappy, "");
}

bool HasEvent(const DeviceManager& manager, const std::string& reason,
              const ObjectName& pod) {
  const std::vector<EventInfo> events = manager.Events(0);
  return std::any_of(events.begin(), events.end(), [&](const EventInfo& e) {
    return e.reason == reason && e.object == pod;
  });
}

/// A node that starts on what a power failure, or a kill, has left.
void Revive(const DiskImage& image, bool reboot, Moment moment) {
  const TempFolder folder;
  checkpoint::WriteImage(image, folder.path());
  SimulatedDisk disk(folder.path());
  auto store = OpenOn(disk, folder);
  ASSERT_TRUE(store.ok()) << store.status();
  const state::State state = *(*store)->Load();
  ASSERT_NO_FATAL_FAILURE(CheckKept(state, moment.answers));
  FakePlugins plugins;
  QuietNode node(*std::move(store), plugins, reboot ? "boot-2" : kBoot);
  // Answers of this boot need no plugin.
  if (!reboot) CheckResolves(node.manager(), moment.answers);
  node.Publish(moment.Yaml());
  while (node.RunOne()) {
  }
  for (const auto& [uid, pod] : state.pods) {
    if (pod->phase != state::PodPhase::kAllocating) continue;
    EXPECT_TRUE(HasEvent(node.manager(), "AllocateOutcomeUnknown", pod->name))
        << uid.value;
  }
  ServeAll(plugins);
  Settle(node, moment);
  CheckResolves(node.manager(), moment.answers);
  moment = {};
  node.Publish("");
  Settle(node, moment);
  for (const DeviceInfo& device : node.manager().View()->Devices()) {
    EXPECT_THAT(device.used_by, IsEmpty()) << device.device;
  }
}

struct Variant {
  const char* name;
  Survival survival;
  bool reboot;
};

/// test/checkpoint/power_failure_test.cc has all that may be left.
constexpr Variant kVariants[] = {
    {"nothing unsynced is left", {Data::kLost, Names::kLost}, true},
    {"the process is killed", {Data::kWhole, Names::kAll}, false},
    {"names are left, data is torn", {Data::kTorn, Names::kAll}, true},
    {"data is left, names are not", {Data::kWhole, Names::kLost}, true},
};

constexpr DiskPlan kNodePlans[] = {
    {0, DiskFault::kError, false},
    {0, DiskFault::kError, true},
    {0, DiskFault::kShort, false},
    {0, DiskFault::kShortNoSpace, true},
};

/// Some pods come, wait for each other, and go; a plugin hangs and refuses; a
/// manager ends in the middle of an allocation.
class Life {
 public:
  explicit Life(DiskPlan plan) : plan_(plan) {
    disk_.SetHook([this](const DiskOperation& operation) {
      if (std::this_thread::get_id() == thread_) NoteAnswers();
      if (watching_ && operation.changes()) LookBefore(operation);
      return FaultOf(operation);
    });
    for (const auto& [resource, count] : kPlugins) Serves(resource);
  }
  ~Life() {
    node_.reset();
    disk_.SetHook(nullptr);
  }

  void Run(bool watching) {
    watching_ = watching;
    Open();
    Want("a", {{kGpu, 2}, {kNic, 1}});
    Settle();
    plugins_.Hold(kGpu);
    Want("b", {{kGpu, 2}});
    Want("c", {{kGpu, 1}});
    Work();
    plugins_.Let(kGpu);
    Work();
    Drop("a");
    Settle();
    plugins_.Answer(kNic, [](const auto&) -> absl::StatusOr<Edits> {
      return InternalError("no");
    });
    Want("d", {{kGpu, 1}, {kNic, 1}});
    Work();
    Serves(kNic);
    Settle();
    Drop("c");
    Settle();
    plugins_.Hold(kGpu);
    Want("e", {{kGpu, 1}});
    Work();
    Close();
    plugins_.Let(kGpu);
    Open();
    Settle();
    LookAtAll("when all are served");
    for (const char* pod : {"b", "d", "e"}) Drop(pod);
    Settle();
    Close();
    CheckEnd();
  }

  std::uint64_t calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  std::uint64_t points() const { return points_; }
  std::uint64_t looks() const { return looks_; }
  std::size_t images() const { return revived_.size(); }
  std::uint64_t allocations() const { return allocations_; }

 private:
  using Edits = device::ContainerEdits;

  void Open() {
    auto store = OpenOn(disk_, folder_);
    if (!store.ok()) {
      Heal();
      store = OpenOn(disk_, folder_);
    }
    ASSERT_TRUE(store.ok()) << store.status();
    node_ = std::make_unique<QuietNode>(*std::move(store), plugins_, kBoot);
    CheckResolves(node_->manager(), moment_.answers);
    ServeAll(plugins_);
    node_->Publish(moment_.Yaml());
  }
  void Close() { node_ = nullptr; }

  void Want(const std::string& pod, const Limits& limits) {
    {
      std::lock_guard lock(mutex_);
      moment_.wanted[pod] = limits;
    }
    node_->Publish(moment_.Yaml());
  }
  void Drop(const std::string& pod) {
    {
      std::lock_guard lock(mutex_);
      moment_.wanted.erase(pod);
      moment_.answers.erase(PodUid{"u-" + pod});
    }
    node_->Publish(moment_.Yaml());
  }

  /// Works until there is nothing to do now.
  void Work() {
    while (node_->RunOne()) {
      CheckResolves(node_->manager(), moment_.answers);
      NoteAnswers();
    }
  }
  /// Each answer is noted as soon as it can be had. From then on it has to
  /// stay.
  void NoteAnswers() {
    if (node_ == nullptr) return;
    for (const auto& [pod, limits] : moment_.wanted) {
      const PodUid uid{"u-" + pod};
      const auto answer = node_->manager().PodDevicesOf(uid);
      if (!answer.ok()) continue;
      std::lock_guard lock(mutex_);
      moment_.answers.emplace(uid, *answer);
    }
  }
  void Settle() {
    for (int round = 0; round < 30; ++round) {
      Work();
      if (UnhappyOf(node_->manager(), moment_).empty()) return;
      if (round == 2) Heal();
      node_->Pass(seconds(10));
    }
    FAIL() << UnhappyOf(node_->manager(), moment_);
  }

  void Heal() {
    std::lock_guard lock(mutex_);
    if (plan_.for_good) plan_.call = 0;
  }
  DiskFault FaultOf(const DiskOperation& operation) {
    std::lock_guard lock(mutex_);
    calls_ = operation.number;
    return plan_.FaultOf(operation.number);
  }

  /// The plugin allocates, and looks whether the disk knows for whom.
  void Serves(const std::string& resource) {
    plugins_.Answer(resource, [this, resource](const auto& ids) {
      ++allocations_;
      if (watching_) CheckReserved(resource, ids);
      Edits edits;
      for (const std::string& id : ids) {
        edits.cdi_devices.push_back(fmt::format("{}={}", resource, id));
      }
      return absl::StatusOr<Edits>(edits);
    });
  }
  void CheckReserved(const std::string& resource,
                     const std::vector<DeviceId>& ids) {
    const TempFolder folder;
    checkpoint::WriteImage(disk_.AfterPowerFailure({}), folder.path());
    SimulatedDisk disk(folder.path());
    const auto store = OpenOn(disk, folder);
    ASSERT_TRUE(store.ok()) << store.status();
    const state::State state = *(*store)->Load();
    for (const std::string& id : ids) {
      const PodUid* pod = state.HolderOf(resource, id);
      ASSERT_NE(pod, nullptr) << resource << " " << id;
      EXPECT_EQ(state.FindPod(*pod)->phase, state::PodPhase::kAllocating);
    }
  }

  void LookBefore(const DiskOperation& operation) {
    // With scale 1 each variant is looked at before one call out of eight.
    const std::uint64_t stride = std::max(1, 8 / TestScale());
    ++points_;
    for (std::size_t i = 0; i < std::size(kVariants); ++i) {
      if ((points_ + i) % stride != 0) continue;
      Look(kVariants[i],
           fmt::format("before call {}: {} '{}'", operation.number,
                       NameOf(operation.kind), operation.path));
    }
  }
  void LookAtAll(const std::string& when) {
    for (const Variant& variant : kVariants) Look(variant, when);
  }
  void Look(const Variant& variant, const std::string& when) {
    const DiskImage image = disk_.AfterPowerFailure(variant.survival);
    Moment moment;
    {
      std::lock_guard lock(mutex_);
      moment = moment_;
    }
    ++looks_;
    std::string key = moment.Yaml() + (variant.reboot ? "+" : "-");
    for (const auto& [uid, answer] : moment.answers) key += uid.value;
    for (const auto& [path, contents] : image) {
      key += path + contents.value_or("/");
    }
    if (!revived_.insert(std::hash<std::string>()(key)).second) return;
    SCOPED_TRACE(fmt::format("{}: {}", when, variant.name));
    Revive(image, variant.reboot, moment);
  }

  void CheckEnd() const {
    const auto contents =
        checkpoint::ReadStoppedStore(folder_.path() / "state");
    ASSERT_TRUE(contents.ok()) << contents.status();
    CheckKept(contents->state, {});
    EXPECT_THAT(contents->state.pods, IsEmpty());
    EXPECT_THAT(contents->state.device_holders, IsEmpty());
    EXPECT_EQ(contents->state.resources.size(), kPlugins.size());
  }

  const TempFolder folder_;
  SimulatedDisk disk_{folder_.path()};
  const std::thread::id thread_ = std::this_thread::get_id();
  FakePlugins plugins_;
  std::atomic<bool> watching_ = false;
  std::uint64_t allocations_ = 0;

  // Used by RocksDB's threads as well. Never held over a call to the disk.
  mutable std::mutex mutex_;
  DiskPlan plan_;
  Moment moment_;  ///< Changed by the test's thread only.
  std::uint64_t calls_ = 0;

  // Of the hook, which runs once at a time.
  std::uint64_t points_ = 0;
  std::uint64_t looks_ = 0;
  std::set<std::size_t> revived_;

  std::unique_ptr<QuietNode> node_;
};

TEST(DeviceDiskTest, APowerFailureAtAnyCallLosesNoDevice) {
  Life life({});
  life.Run(/*watching=*/true);
  EXPECT_GT(life.allocations(), 5u);
  if (TestScale() == 1) return;
  fmt::print("{} calls, {} looks, {} different nodes revived\n", life.points(),
             life.looks(), life.images());
}

TEST(DeviceDiskTest, ADiskErrorAtAnyCallLosesNoDevice) {
  Life flawless({});
  flawless.Run(/*watching=*/false);
  const std::uint64_t stride = std::max(1, 24 / TestScale());
  int lives = 0;
  for (std::uint64_t call = 1; call <= flawless.calls(); ++call) {
    for (std::size_t i = 0; i < std::size(kNodePlans); ++i) {
      if ((call + i) % stride != 0) continue;
      DiskPlan plan = kNodePlans[i];
      plan.call = call;
      SCOPED_TRACE(fmt::format("plan {}, from call {}", i, call));
      Life(plan).Run(/*watching=*/false);
      ++lives;
      if (::testing::Test::HasFailure()) return;
    }
  }
  if (TestScale() == 1) return;
  fmt::print("{} calls, {} lives\n", flawless.calls(), lives);
}

}  // namespace
}  // namespace devmgr
