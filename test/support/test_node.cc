// SPDX-License-Identifier: Apache-2.0
#include "support/test_node.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/mutex.h"
#include "common/run_on.h"
#include "common/status.h"
#include "manager/manager.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

template <typename T>
void Add(ObjectMap<T>* map, const T& object) {
  map->insert_or_assign(object.metadata.FullName(),
                        std::make_shared<const T>(object));
}

/// Adds the same objects.
void AddAll(const ObjectSnapshot& from, ObjectSnapshot* to) {
  const auto add = [&](auto ObjectSnapshot::*kind) {
    for (const auto& [name, object] : from.*kind) {
      (to->*kind).insert_or_assign(name, object);
    }
  };
  add(&ObjectSnapshot::pods);
  add(&ObjectSnapshot::malformed_pods);
  add(&ObjectSnapshot::claims);
  add(&ObjectSnapshot::claim_templates);
  add(&ObjectSnapshot::device_classes);
  add(&ObjectSnapshot::resource_slices);
  add(&ObjectSnapshot::quotas);
  add(&ObjectSnapshot::device_taint_rules);
}

}  // namespace

ObjectSnapshot SnapshotOf(const std::string& yaml) {
  ObjectSnapshot snapshot;
  const DecodedManifest manifest = DecodeManifest(yaml, "test.yaml");
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  for (const DecodedObject& decoded : manifest.objects) {
    std::visit(
        [&](const auto& object) {
          using T = std::decay_t<decltype(object)>;
          if constexpr (std::is_same_v<T, Pod>) Add(&snapshot.pods, object);
          if constexpr (std::is_same_v<T, ResourceClaim>) {
            Add(&snapshot.claims, object);
          }
          if constexpr (std::is_same_v<T, ResourceClaimTemplate>) {
            Add(&snapshot.claim_templates, object);
          }
          if constexpr (std::is_same_v<T, DeviceClass>) {
            Add(&snapshot.device_classes, object);
          }
          if constexpr (std::is_same_v<T, ResourceSlice>) {
            Add(&snapshot.resource_slices, object);
          }
          if constexpr (std::is_same_v<T, ResourceQuota>) {
            Add(&snapshot.quotas, object);
          }
          if constexpr (std::is_same_v<T, DeviceTaintRule>) {
            Add(&snapshot.device_taint_rules, object);
          }
        },
        decoded.object);
  }
  for (const MalformedPod& pod : manifest.malformed_pods) {
    snapshot.malformed_pods.insert_or_assign(
        pod.pod.metadata.FullName(), std::make_shared<const MalformedPod>(pod));
  }
  snapshot.complete = true;
  return snapshot;
}

/// One manager's hold on the shared store.
class SharedStoreView final : public checkpoint::LedgerStore {
 public:
  explicit SharedStoreView(SharedStore& shared)
      : shared_(shared), store_(shared.store_) {}

  absl::StatusOr<state::State> Load() override { return store_->Load(); }

  absl::Status Append(std::span<const state::Batch> batches) override {
    ++shared_.appends_;
    shared_.batches_ += batches.size();
    const auto failure = shared_.failure_.exchange(SharedStore::Failure::kNone);
    if (failure != SharedStore::Failure::kLost) {
      DEVMGR_RETURN_IF_ERROR(store_->Append(batches));
    }
    return failure == SharedStore::Failure::kNone
               ? absl::OkStatus()
               : UnavailableError("input/output error");
  }

  absl::StatusOr<state::State> Reopen() override {
    if (shared_.fail_reopen_) return UnavailableError("disk is gone");
    return store_->Load();
  }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    return store_->History(after, most);
  }

 private:
  SharedStore& shared_;
  const std::shared_ptr<checkpoint::LedgerStore> store_;
};

SharedStore::SharedStore() : store_(checkpoint::NewInMemoryStore()) {}

std::unique_ptr<checkpoint::LedgerStore> SharedStore::Open() {
  return std::make_unique<SharedStoreView>(*this);
}

state::State SharedStore::Load() { return *store_->Load(); }

/// Wakes the test whenever something changes.
class TestNode::Waiter final : public DeviceManagerObserver {
 public:
  void OnPod(const PodInfo&, bool) override { Bump(); }
  void OnObjects() override { Bump(); }
  void OnEvent(const EventInfo&) override { Bump(); }
  void OnResourceHealth(const std::vector<PodUid>&) override { Bump(); }

  void Bump() {
    MutexLock lock(mutex_);
    ++version_;
    changed_.NotifyAll();
  }
  std::uint64_t version() {
    MutexLock lock(mutex_);
    return version_;
  }
  /// False when nothing happened until `deadline`.
  bool WaitAfter(std::uint64_t version,
                 std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(mutex_);
    while (version_ == version) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t version_ DEVMGR_GUARDED_BY(mutex_) = 0;
};

/// Counts judgements, and passes all on.
class TestNode::CountedMetrics final : public MetricsSink {
 public:
  void PassOn(MetricsSink* other) {
    other_ = other != nullptr ? other : &none_;
  }
  std::map<std::string, int> judgements() {
    MutexLock lock(mutex_);
    return judgements_;
  }
  int missed() {
    MutexLock lock(mutex_);
    return missed_;
  }

  void OnJudgement(std::string_view event, std::string_view result) override {
    {
      MutexLock lock(mutex_);
      ++judgements_[std::string(event) + "/" + std::string(result)];
    }
    other_->OnJudgement(event, result);
  }
  void OnMissedWakeup() override {
    {
      MutexLock lock(mutex_);
      ++missed_;
    }
    other_->OnMissedWakeup();
  }
  void OnRegistration(const ResourceName& resource) override {
    other_->OnRegistration(resource);
  }
  void OnAllocate(const ResourceName& resource, std::chrono::nanoseconds took,
                  bool failed) override {
    other_->OnAllocate(resource, took, failed);
  }
  void OnClaimsPrepared(std::chrono::nanoseconds took, bool failed) override {
    other_->OnClaimsPrepared(took, failed);
  }
  void OnClaimsUnprepared(std::chrono::nanoseconds took, bool failed) override {
    other_->OnClaimsUnprepared(took, failed);
  }
  void OnDriverCall(const std::string& driver, const std::string& method,
                    const std::string& code,
                    std::chrono::nanoseconds took) override {
    other_->OnDriverCall(driver, method, code, took);
  }
  void OnSearchFigures(const SearchFigures& figures) override {
    other_->OnSearchFigures(figures);
  }
  void OnQueueingHint(std::string_view plugin, std::string_view event,
                      bool queues, std::chrono::nanoseconds took) override {
    other_->OnQueueingHint(plugin, event, queues, took);
  }
  void OnPrepareSkipped(const std::string& driver) override {
    other_->OnPrepareSkipped(driver);
  }
  void OnUnprepareSkipped(const std::string& driver) override {
    other_->OnUnprepareSkipped(driver);
  }
  void OnPodAction(std::string_view action, const std::string& reason,
                   std::string_view outcome) override {
    other_->OnPodAction(action, reason, outcome);
  }
  void OnTaintEviction(std::chrono::nanoseconds late) override {
    other_->OnTaintEviction(late);
  }
  void OnTopologyAdmission(std::chrono::nanoseconds took,
                           bool refused) override {
    other_->OnTopologyAdmission(took, refused);
  }
  void OnAlignedContainers(bool pod_scope, bool aligned,
                           std::size_t containers) override {
    other_->OnAlignedContainers(pod_scope, aligned, containers);
  }
  void OnLedgerWriteFailed() override { other_->OnLedgerWriteFailed(); }

 private:
  MetricsSink none_;
  MetricsSink* other_ = &none_;
  Mutex mutex_;
  std::map<std::string, int> judgements_ DEVMGR_GUARDED_BY(mutex_);
  int missed_ DEVMGR_GUARDED_BY(mutex_) = 0;
};

TestNode::TestNode() : counted_(std::make_unique<CountedMetrics>()) {
  options.retries.first = std::chrono::milliseconds(5);
  options.policies.audit_wakeups = true;
}
TestNode::~TestNode() { Stop(); }

void TestNode::Start(bool with_actuator) {
  manager::ManagerParts parts;
  parts.options = options;
  if (!with_actuator) {
    parts.options.actuate = Actuate::kNone;
  } else if (options.actuate == Actuate::kNone) {
    parts.options.actuate = Actuate::kSource;
  }
  parts.host.objects = source.get();
  parts.host.boot_id = [id = boot_id] { return id; };
  parts.host.act_on_pod = act_on_pod;
  parts.host.now = [] { return std::chrono::system_clock::now(); };
  counted_->PassOn(metrics);
  parts.host.metrics = counted_.get();
  parts.host.runtime = runtime;
  parts.host.object_sink = object_sink;
  parts.host.topology_providers = topology_providers;
  if (!sysfs_dir.empty()) {
    parts.options.sysfs_dir = sysfs_dir;
    const absl::Status read = manager::ReadNuma(&parts);
    ASSERT_TRUE(read.ok()) << read;
  }
  parts.store = open_store();
  if (auto pods = parts.store->PodsFirst(); pods.has_value()) {
    parts.state = *std::move(pods);
    parts.has_pods_only = true;
  } else {
    parts.state = *parts.store->Load();
  }
  parts.drivers = [this](Executor& executor,
                         std::function<void(const std::string&)> on_change) {
    return drivers.Make(executor, std::move(on_change));
  };
  parts.plugins = [this](Executor& executor, plugin::PluginListener& listener) {
    return plugins.Make(executor, listener);
  };
  waiter_ = std::make_unique<Waiter>();
  parts.host.observers = observers;
  parts.host.observers.push_back(waiter_.get());
  parts.on_wake = [this](const std::vector<WaitingFor>& changes) {
    waiter_->Bump();
    if (on_wake) on_wake(changes);
  };
  parts.on_judge_again = on_judge_again;
  auto executor = ThreadExecutor::Start("devmgr-main");
  executor_ = executor.get();
  parts.executor = std::move(executor);
  manager_ = manager::Manager::Start(std::move(parts));
}

void TestNode::Stop() {
  manager_.reset();
  executor_ = nullptr;
  EXPECT_EQ(counted_->missed(), 0) << "pods that nothing woke";
}

std::map<std::string, int> TestNode::Judgements() {
  return counted_->judgements();
}

int TestNode::MissedWakeups() { return counted_->missed(); }

void TestNode::RunAndWait(const std::function<void()>& task) {
  RunOn(*executor_, task);
}

void TestNode::RunAfter(std::chrono::milliseconds delay,
                        std::function<void()> task) {
  executor_->PostAfter(delay, std::move(task));
}

void TestNode::Publish(const std::string& yaml) {
  std::map<std::string, ObjectSnapshot> documents;
  ObjectSnapshot all;
  all.complete = true;
  const std::vector<std::string> texts =
      absl::StrSplit(yaml, "---\n", absl::SkipEmpty());
  for (const std::string& text : texts) {
    const auto known = documents_.find(text);
    const ObjectSnapshot& document =
        documents
            .emplace(text, known != documents_.end() ? known->second
                                                     : SnapshotOf(text))
            .first->second;
    AddAll(document, &all);
  }
  documents_ = std::move(documents);
  source->Publish(std::move(all));
}

::testing::AssertionResult TestNode::WaitUntil(
    const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const std::uint64_t version = waiter_->version();
    Sync();  // What is posted is seen, too.
    if (condition()) return ::testing::AssertionSuccess();
    if (!waiter_->WaitAfter(version, deadline)) {
      auto failure = ::testing::AssertionFailure() << "never " << what << ":";
      for (const PodInfo& pod : manager_->View()->Pods()) {
        failure << "\n  " << pod.name.ToString() << " "
                << std::string(PodStateName(pod.state)) << " " << pod.reason
                << " " << pod.message;
      }
      return failure;
    }
  }
}

PodInfo TestNode::PodNamed(const std::string& name) {
  Sync();
  const auto uid = manager_->FindPod({"default", name});
  if (!uid.ok()) return {};
  for (const PodInfo& pod : manager_->View()->Pods()) {
    if (pod.uid == *uid) return pod;
  }
  return {};
}

PodUid TestNode::UidOf(const std::string& pod) { return PodNamed(pod).uid; }

::testing::AssertionResult TestNode::WaitFor(const std::string& pod,
                                             PodState state) {
  return WaitUntil(pod + " is " + std::string(PodStateName(state)), [&] {
    const PodInfo info = PodNamed(pod);
    return !info.uid.value.empty() && info.state == state;
  });
}

::testing::AssertionResult TestNode::WaitForAny(PodState state) {
  return WaitUntil("anybody is " + std::string(PodStateName(state)), [&] {
    const std::vector<PodInfo> pods = manager_->View()->Pods();
    return std::any_of(pods.begin(), pods.end(),
                       [&](const PodInfo& pod) { return pod.state == state; });
  });
}

::testing::AssertionResult TestNode::WaitForReason(const std::string& pod,
                                                   const std::string& reason) {
  return WaitUntil(pod + " has reason " + reason,
                   [&] { return PodNamed(pod).reason == reason; });
}

::testing::AssertionResult TestNode::WaitUntilGone(const std::string& pod) {
  return WaitUntil(pod + " is gone",
                   [&] { return PodNamed(pod).uid.value.empty(); });
}

std::vector<std::string> TestNode::Resolve(const std::string& pod,
                                           const std::string& container) {
  const auto uid = manager_->FindPod({"default", pod});
  if (!uid.ok()) return {MessageOf(uid.status())};
  const auto devices = manager_->ContainerDevicesOf(*uid, container);
  if (!devices.ok()) return {MessageOf(devices.status())};
  std::vector<std::string> ids;
  for (const CdiDevice& device : (*devices)->cdi_devices) {
    ids.push_back(device.name);
  }
  return ids;
}

}  // namespace devmgr
