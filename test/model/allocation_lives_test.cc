// SPDX-License-Identifier: Apache-2.0
//
// Random lives of a node that allocates claims itself, on one thread and on a
// clock that moves when told: classes, slices and claims come and go, pools are
// incomplete for a while, drivers leave, refuse and hang, pods want devices of
// classes and of a device plugin by every way there is, writes fail, managers
// are killed or restart, the machine reboots.
// No device has two holders and no claim is without a user at any moment; now
// and then everything is mended, and then no pod waits that a fresh search
// would give its devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "control/local_objects.h"
#include "control/provide.h"
#include "device/pod_needs.h"
#include "model/allocation_manifests.h"
#include "model/node_life.h"
#include "support/random_lives.h"

namespace devmgr::model {
namespace {

constexpr int kNames = 8;  ///< Of pods.
constexpr int kNics = 2;
constexpr char kNic[] = "example.com/nic";

/// What happened in all lives.
struct Counts : MetricsSink {
  std::uint64_t ready = 0;      ///< Pods that became Ready.
  std::uint64_t allocated = 0;  ///< Claims that were seen with devices.
  std::uint64_t waited = 0;     ///< Pods that rightly waited at a rest.
  std::uint64_t failures = 0;   ///< Of writes.
  std::uint64_t missed = 0;     ///< Wake-ups, by the audit.

  void OnMissedWakeup() override { ++missed; }
};

class AllocationLife : private NodeLife {
 public:
  AllocationLife(Luck& luck, Counts& counts) : NodeLife(luck), counts_(counts) {
    for (const std::string& name : kPublishers)
      drivers_.Register(DriverName(name));
    Mend();
    Start();
  }
  ~AllocationLife() {
    counts_.allocated += allocated_.size();
    Stop();
  }

  std::vector<RandomStep> Steps() {
    return {{"add pod", 25, [this] { return AddPod(); }},
            {"remove pod", 18, [this] { return RemovePod(); }},
            {"slice", 12, [this] { return ChangePool(); }},
            {"class", 4, [this] { return Toggle(kClasses, &classes_); }},
            {"claim", 6, [this] { return ToggleClaim(); }},
            {"driver", 15, [this] { return DoDriver(); }},
            {"plugin", 6, [this] { return DoPlugin(); }},
            {"disk", 4, [this] { return FailDisk(); }},
            {"wait", 15, [this] { return Wait(); }},
            {"restart", 4, [this] { return Restart(); }}};
  }

  /// Works on, and holds what has come of it against what must hold.
  void Check() {
    Work(luck_.Chance(70) ? kAll : luck_.Below(12));
    CheckAlways();
    if (++steps_ % 60 == 0) Heal();
  }

 private:
  void Start() {
    manager::ManagerParts parts;
    parts.options.node_name = "node-1";
    parts.options.policies.audit_wakeups = true;
    parts.host.metrics = &counts_;
    NodeLife::Start(std::move(parts));
    has_plugin_ = false;
  }

  /// What was not written when the manager ends has not happened.
  std::string Restart() {
    const bool reboots = luck_.Chance(30);
    if (reboots) ++boot_;
    Stop();
    store_.FailNext(SharedStore::Failure::kNone);
    store_.FailReopen(false);
    Start();
    return reboots ? fmt::format("boot {}", boot_) : "the same boot";
  }

  std::string FailDisk() {
    ++counts_.failures;
    const bool written = luck_.Chance(50);
    store_.FailNext(written ? SharedStore::Failure::kWritten
                            : SharedStore::Failure::kLost);
    store_.FailReopen(luck_.Chance(20));
    return written ? "the next write fails, and is there"
                   : "the next write fails";
  }

  std::string AddPod() {
    const std::string name = fmt::format("p{}", luck_.Below(kNames));
    if (pods_.contains(name)) return "nothing";
    const std::string uid = fmt::format("{}-{}", name, ++incarnations_);
    std::string claims;
    std::string uses;
    for (const std::string& source : kClasses) {
      if (!luck_.Chance(15)) continue;
      claims += fmt::format("{{name: {0}, resourceClaimTemplateName: {0}}}, ",
                            source);
      uses += fmt::format("{{name: {}}}, ", source);
    }
    for (const std::string& claim : kShared) {
      if (!luck_.Chance(15)) continue;
      claims += fmt::format("{{name: {0}, resourceClaimName: {0}}}, ", claim);
      uses += fmt::format("{{name: {}}}, ", claim);
    }
    std::string containers;
    for (int i = 0; i <= luck_.Below(2); ++i) {
      std::string limits;
      for (const std::string& device_class : kClasses) {
        if (!luck_.Chance(20)) continue;
        limits += fmt::format("example.com/{}: {}, ", device_class,
                              1 + luck_.Below(3));
      }
      if (luck_.Chance(20)) limits += fmt::format("{}: 1, ", kNic);
      containers += fmt::format(
          "{{name: c{}, resources: {{claims: [{}], limits: {{{}}}}}}}, ", i,
          uses, limits);
    }
    pods_[name] = fmt::format(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, uid: {}}}\nspec:\n"
        "  nodeName: node-1\n  priority: {}\n  resourceClaims: [{}]\n"
        "  containers: [{}]\n",
        name, uid, luck_.Below(3), claims, containers);
    Publish();
    return fmt::format("{}: claims {} containers {}", uid, claims, containers);
  }

  std::string RemovePod() {
    if (pods_.empty()) return "nothing";
    const auto pod =
        std::next(pods_.begin(), static_cast<int>(luck_.Below(pods_.size())));
    const std::string name = pod->first;
    pods_.erase(pod);
    Publish();
    return name;
  }

  std::string ChangePool() {
    const std::string& driver = luck_.Pick(kPublishers);
    if (luck_.Chance(10)) {
      pools_.erase(driver);
      Publish();
      return fmt::format("{} has none", driver);
    }
    Pool& pool = pools_[driver];
    ++pool.generation;
    pool.devices = 1 + luck_.Below(kMostGpus);
    pool.complete = luck_.Chance(80);
    Publish();
    return fmt::format("{} has {} devices{}", driver, pool.devices,
                       pool.complete ? "" : ", and more to come");
  }

  std::string Toggle(const std::vector<std::string>& names,
                     std::set<std::string>* there) {
    const std::string& name = luck_.Pick(names);
    const bool comes = there->erase(name) == 0;
    if (comes) there->insert(name);
    Publish();
    return fmt::format("{} {}", name, comes ? "comes" : "goes");
  }

  std::string ToggleClaim() {
    const std::string& name = luck_.Pick(kShared);
    const bool comes = shared_.erase(name) == 0;
    if (comes) shared_[name] = ++incarnations_;
    Publish();
    return fmt::format("{} {}", name, comes ? "comes" : "goes");
  }

  std::string DoDriver() {
    const std::string driver = DriverName(luck_.Pick(kPublishers));
    switch (luck_.Below(6)) {
      case 0:
        drivers_.Deregister(driver);
        return driver + " goes";
      case 1:
        drivers_.Hold(driver);
        return driver + " hangs";
      case 2:
        drivers_.Let(driver);
        return driver + " answers";
      case 3:
        drivers_.Answer(driver, [](bool, const dra::ClaimReference&) {
          return InternalError("no");
        });
        return driver + " refuses";
      case 4:
        drivers_.Answer(driver, nullptr);
        return driver + " serves";
      default:
        drivers_.Register(driver);
        return driver + " comes";
    }
  }

  std::string DoPlugin() {
    if (!has_plugin_) {
      plugins_.Serve(kNic, kNics);
      has_plugin_ = true;
      return "comes";
    }
    if (luck_.Chance(30)) {
      plugins_.Lose(kNic);
      has_plugin_ = false;
      return "goes";
    }
    const bool fails = luck_.Chance(30);
    plugins_.Answer(kNic, fails ? Refuse : FakePlugins::Allocate());
    return fails ? "refuses" : "serves";
  }

  void Publish() {
    ObjectSnapshot objects;
    for (const std::string& name : kClasses)
      manifests_.Add(TemplateText(name), &objects);
    for (const std::string& name : classes_)
      manifests_.Add(ClassText(name), &objects);
    for (const auto& [driver, pool] : pools_) {
      manifests_.Add(SliceText(driver, pool), &objects);
    }
    for (const auto& [name, incarnation] : shared_) {
      manifests_.Add(SharedClaimText(name, incarnation), &objects);
    }
    for (const auto& [name, text] : pods_) manifests_.Add(text, &objects);
    objects.complete = true;
    source_.Publish(objects);
  }

  /// At any moment, also in the middle of what is being done.
  void CheckAlways() {
    const state::State state = store_.Load();
    CheckPods(state, [&](const PodInfo& pod) { CheckReady(pod, state); });
    std::map<state::DeviceKey, std::string> holders;
    for (const auto& [uid, record] : state.local_claims) {
      const ResourceClaim& claim = *record->object;
      if (!claim.status.allocation.has_value()) continue;
      allocated_.insert(claim.metadata.uid);
      for (const auto& result : claim.status.allocation->results) {
        const auto [other, is_new] = holders.emplace(
            state::DeviceKey{result.driver, result.pool, result.device},
            claim.metadata.name);
        if (!is_new) {
          ADD_FAILURE() << fmt::format("device {} of {} is of {} and of {}",
                                       result.device, result.driver,
                                       other->second, claim.metadata.name);
        }
      }
    }
  }

  std::shared_ptr<const Pod> ObjectOf(const PodInfo& info) const {
    const auto objects = source_.Snapshot();
    const auto* pod = objects->pods.Find(info.name);
    if (pod == nullptr || (*pod)->metadata.uid != info.uid.value)
      return nullptr;
    return *pod;
  }

  /// It has as many devices allocated as it wants, and each container answers.
  void CheckReady(const PodInfo& info, const state::State& state) {
    const auto pod = ObjectOf(info);
    if (pod == nullptr) return;
    if (seen_ready_.insert(info.uid.value).second) ++counts_.ready;
    const auto answer = manager_->PodDevicesOf(info.uid);
    ASSERT_TRUE(answer.ok()) << info.uid.value << ": " << answer.status();
    std::int64_t wanted = 0;
    for (const PodResourceClaim& claim : pod->spec.resource_claims) {
      wanted += claim.name == "any" ? 2 : 1;
    }
    std::int64_t nics = 0;
    for (const auto& need : device::NeedsOf(*pod, true)) {
      (need.resource == ResourceName(kNic) ? nics : wanted) += need.count;
    }
    std::int64_t has = 0;
    for (const auto& [uid, record] : state.local_claims) {
      const ResourceClaimStatus& status = record->object->status;
      const bool is_its = std::any_of(
          status.reserved_for.begin(), status.reserved_for.end(),
          [&](const auto& user) { return user.uid == info.uid.value; });
      if (is_its) has += std::ssize(status.allocation->results);
    }
    if (has != wanted) {
      ADD_FAILURE() << fmt::format("{} is Ready with {} devices, not {}",
                                   info.uid.value, has, wanted);
    }
    for (const ContainerDevices& container : (*answer)->containers) {
      for (const HeldResource& held : container.resources) {
        if (held.name == ResourceName(kNic)) nics -= std::ssize(held.devices);
      }
    }
    if (nics != 0) {
      ADD_FAILURE() << fmt::format("{} is Ready and lacks {} of {}",
                                   info.uid.value, nics, kNic);
    }
  }

  void Mend() {
    for (const std::string& name : kPublishers) {
      drivers_.Answer(DriverName(name), nullptr);
      drivers_.Let(DriverName(name));
      drivers_.Register(DriverName(name));
      Pool& pool = pools_[name];
      ++pool.generation;
      pool.devices = kMostGpus;
      pool.complete = true;
    }
    classes_ = {kClasses.begin(), kClasses.end()};
    for (const std::string& name : kShared) {
      if (!shared_.contains(name)) shared_[name] = ++incarnations_;
    }
    plugins_.Answer(kNic, nullptr);
    store_.FailNext(SharedStore::Failure::kNone);
    store_.FailReopen(false);
    Publish();
  }

  /// Everything works, and time passes until nothing moves any more.
  void Heal() {
    Mend();
    if (!std::exchange(has_plugin_, true)) plugins_.Serve(kNic, kNics);
    if (!WorkToRest()) return;
    CheckAlways();
    CheckRest();
    if (counts_.missed > 0) ADD_FAILURE() << "a pod was not woken in time";
  }

  /// Pods that are gone hold nothing, no claim is without a user, and what
  /// waits cannot be helped.
  void CheckRest() {
    const state::State state = store_.Load();
    std::set<std::string> users;
    for (const auto& [uid, record] : state.pods) {
      users.insert(uid.value);
      const auto info = manager_->View()->PodInfoOf(uid);
      if (!info.ok() || ObjectOf(*info) == nullptr) {
        ADD_FAILURE() << fmt::format("{} is still there, {}", uid.value,
                                     PodPhaseName(record->phase));
      }
    }
    for (const auto& [uid, record] : state.local_claims) {
      const auto& reserved = record->object->status.reserved_for;
      if (std::none_of(reserved.begin(), reserved.end(), [&](const auto& user) {
            return users.contains(user.uid);
          })) {
        ADD_FAILURE() << fmt::format("claim {} is of no pod",
                                     record->object->metadata.name);
      }
    }
    for (const auto& [uid, record] : state.claims) {
      if (record->pods.empty()) {
        ADD_FAILURE() << fmt::format("claim {} is prepared for no pod",
                                     uid.value);
      }
    }
    CheckWaiting(state);
  }

  /// A fresh search finds nothing for them. Of pods that want devices of the
  /// plugin as well, those that are free come into it, too.
  void CheckWaiting(const state::State& state) {
    std::int64_t free_nics = kNics;
    free_nics -= std::ssize(state.device_holders);
    for (const PodInfo& info : manager_->View()->Pods()) {
      if (info.state == PodState::kReady) continue;
      const auto pod = ObjectOf(info);
      if (pod == nullptr) continue;
      std::int64_t nics = 0;
      for (const auto& need : device::NeedsOf(*pod, true)) {
        if (need.resource == ResourceName(kNic)) nics += need.count;
      }
      if (nics > free_nics || WaitsForNamesake(*pod, state) ||
          !WouldBeProvided(*pod, state)) {
        ++counts_.waited;
        continue;
      }
      ADD_FAILURE() << fmt::format("{} could have its devices and is {} {}: {}",
                                   info.uid.value, PodStateName(info.state),
                                   info.reason, info.message);
    }
  }

  /// Another pod runs with an older claim of a name that it refers to.
  bool WaitsForNamesake(const Pod& pod, const state::State& state) const {
    const auto objects = source_.Snapshot();
    for (const PodResourceClaim& claim : pod.spec.resource_claims) {
      if (!claim.resource_claim_name.has_value()) continue;
      const ObjectName name{pod.metadata.ns, *claim.resource_claim_name};
      const auto* object = objects->claims.Find(name);
      for (const ClaimUid& held : state.ClaimsNamed(name)) {
        if (object != nullptr && (*object)->metadata.uid != held.value) {
          return true;
        }
      }
    }
    return false;
  }

  static bool WouldBeProvided(const Pod& pod, const state::State& state,
                              ObjectSnapshot objects) {
    control::LocalObjects().Show(state, &objects);
    control::ClaimProvider provider({}, 1'000'000);
    const auto provision = provider.Provide(
        control::WithLocalStatus(pod, state),
        {state, objects, "node-1",
         [](const ResourceName& name) { return name != ResourceName(kNic); },
         [](const std::string&) { return true; }, true, 0,
         [made = std::uint64_t{0}]() mutable { return ++made; }});
    return provision.ok() && provision->verdict.kind == Verdict::Kind::kAdmit;
  }
  bool WouldBeProvided(const Pod& pod, const state::State& state) const {
    return WouldBeProvided(pod, state, *source_.Snapshot());
  }

  Counts& counts_;
  int steps_ = 0;
  int incarnations_ = 0;
  std::map<std::string, std::string> pods_;  ///< Manifests by name.
  std::map<std::string, Pool> pools_;        ///< By driver.
  std::set<std::string> classes_;
  std::map<std::string, int> shared_;  ///< Claims, and which incarnation.
  ReadManifests manifests_;
  bool has_plugin_ = false;
  std::set<std::string> seen_ready_;
  std::set<std::string> allocated_;
};

TEST(AllocationLivesTest, NoDeviceHasTwoHoldersAndNoPodWaitsForWhatIsFree) {
  constexpr int kSteps = 300;
  constexpr RandomLives kLives = {20'261'128, 40};
  Counts all;
  const bool whole = LiveEach(kLives, [&](Luck& luck) {
    AllocationLife life(luck, all);
    TakeSteps(kSteps, luck, life.Steps(), [&] { life.Check(); });
  });
  if (!whole) return;
  const auto lives = static_cast<std::uint64_t>(kLives.count());
  fmt::print(
      "{} pods Ready, {} claims allocated, {} rightly waiting, {} failed "
      "writes\n",
      all.ready, all.allocated, all.waited, all.failures);
  // The lives are worth something only if much happens in them.
  EXPECT_GT(all.ready, lives * kSteps / 20);
  EXPECT_GT(all.allocated, lives * kSteps / 20);
  EXPECT_GT(all.waited, lives);
  EXPECT_GT(all.failures, lives * kSteps / 100);
}

}  // namespace
}  // namespace devmgr::model
