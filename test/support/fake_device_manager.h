// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace devmgr {

/// A manager that knows what the test tells it. Views return what was set;
/// `Change...` set something and tell the observers, on the calling thread.
/// Operations fail with Unimplemented. Thread-safe.
class FakeDeviceManager : public DeviceManager, private Maintenance {
 public:
  using DeviceManager::Done;

  /// What the views return.
  struct World {
    NodeInfo node;
    std::vector<PodInfo> pods;
    std::vector<ClaimInfo> claims;
    std::vector<DebtInfo> debts;
    std::vector<PluginInfo> plugins;
    std::vector<std::string> decisions;  ///< Of an operator.
    absl::Status wish_status;            ///< Not OK: no wish is recorded.
    std::vector<std::string> wanted;     ///< `namespace/name`.
    std::vector<std::string> unwanted;   ///< UIDs.
    std::vector<RegistrationSocketInfo> registration_sockets;
    std::vector<DeviceInfo> devices;
    std::vector<ResourceInfo> resources;
    std::vector<DeviceClassInfo> classes;
    std::vector<SliceInfo> slices;
    NumaInfo numa;
    std::map<PodUid, PodAlignmentInfo> alignments;
    std::vector<RuntimeInfo> runtimes;
    std::vector<ForeignHolderInfo> holders;
    std::vector<DeviceHolderInfo> device_holders;
    std::vector<RuntimeReport> reports;  ///< That were taken.
    absl::Status report_status;          ///< Not OK: no report is taken.
    /// What views tell of pods, whatever is above.
    std::shared_ptr<const PodResourcesList> pod_resources =
        std::make_shared<PodResourcesList>();
    std::vector<ResourceDevices> allocatable;
    std::vector<EventInfo> events;
    std::function<absl::StatusOr<DeviceChanges>(const ChangesFrom&)> changes =
        [](const ChangesFrom&) { return DeviceChanges(); };
    absl::StatusOr<std::vector<DecisionInfo>> history =
        std::vector<DecisionInfo>();
    std::function<absl::StatusOr<LedgerView>(const LedgerPoint&)> state_at =
        [](const LedgerPoint&) { return LedgerView(); };
    absl::StatusOr<FsckReport> fsck = FsckReport();
    absl::StatusOr<Simulation> simulation = Simulation();
    SimulationCounts simulations;
    std::vector<FsckMode> fsck_modes;  ///< That were asked for.
    /// What a Ready pod resolves to; all else is Unavailable.
    std::map<PodUid, std::shared_ptr<const PodDevices>> answers;
    std::shared_ptr<const ObjectSnapshot> objects =
        std::make_shared<ObjectSnapshot>();
  };

  /// Changes the world silently.
  template <typename Change>
  void Set(Change change) {
    const MutexLock lock(mutex_);
    change(world_);
  }

  /// Adds or replaces a pod, by UID.
  void ChangePod(const PodInfo& pod) {
    Set([&](World& world) {
      std::erase_if(world.pods,
                    [&](const PodInfo& old) { return old.uid == pod.uid; });
      world.pods.push_back(pod);
    });
    Tell([&](DeviceManagerObserver& to) { to.OnPod(pod, false); });
  }

  void RemovePod(const PodUid& uid) {
    PodInfo pod;
    pod.uid = uid;
    Set([&](World& world) {
      std::erase_if(world.pods,
                    [&](const PodInfo& old) { return old.uid == uid; });
    });
    Tell([&](DeviceManagerObserver& to) { to.OnPod(pod, true); });
  }

  /// Appends an event; its sequence is the next one.
  void AddEvent(EventInfo event) {
    Set([&](World& world) {
      event.sequence = world.events.size() + 1;
      world.events.push_back(event);
    });
    Tell([&](DeviceManagerObserver& to) { to.OnEvent(event); });
  }

  void TellDeviceChanges() {
    Tell([](DeviceManagerObserver& to) { to.OnDeviceChanges(); });
  }

  std::size_t observers() const {
    const MutexLock lock(mutex_);
    return observers_.size();
  }

  OperationId StartAdmitPod(const Pod&, AdmitDone done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartPreparePod(const PodUid&, Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartUnpreparePod(const PodUid&, Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartReleasePod(const PodUid&, Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartEndPod(const PodUid&, Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartBeforeContainerStart(const PodUid&, const ContainerName&,
                                        Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  OperationId StartReleaseInitContainers(const PodUid&, Done done) override {
    done(absl::UnimplementedError("fake"));
    return 0;
  }
  absl::Status WantPod(const Pod& pod) override {
    Set([&](World& world) {
      world.wanted.push_back(pod.metadata.FullName().ToString());
    });
    return absl::OkStatus();
  }
  absl::Status UnwantPod(const PodUid& pod) override {
    Set([&](World& world) { world.unwanted.push_back(pod.value); });
    return absl::OkStatus();
  }
  std::vector<std::string> wanted() const { return Get(&World::wanted); }
  std::vector<std::string> unwanted() const { return Get(&World::unwanted); }

  absl::Status ReportRuntime(const RuntimeReport& report) override {
    const MutexLock lock(mutex_);
    if (world_.report_status.ok()) world_.reports.push_back(report);
    return world_.report_status;
  }
  void Cancel(OperationId) override {}

  absl::StatusOr<std::shared_ptr<const ContainerDevices>> ContainerDevicesOf(
      const PodUid&, const ContainerName&) const override {
    return absl::UnimplementedError("fake");
  }
  absl::StatusOr<std::shared_ptr<const PodDevices>> PodDevicesOf(
      const PodUid& pod) const override {
    const MutexLock lock(mutex_);
    const auto found = world_.answers.find(pod);
    if (found == world_.answers.end()) {
      return absl::UnavailableError("not prepared");
    }
    return found->second;
  }
  absl::StatusOr<PodUid> FindPod(const ObjectName& name) const override {
    const MutexLock lock(mutex_);
    const auto newest =
        std::find_if(world_.pods.rbegin(), world_.pods.rend(),
                     [&](const PodInfo& pod) { return pod.name == name; });
    if (newest == world_.pods.rend()) {
      return absl::NotFoundError("no pod '" + name.ToString() + "'");
    }
    return newest->uid;
  }
  std::shared_ptr<const ObjectSnapshot> Objects() const override {
    return Get(&World::objects);
  }
  std::shared_ptr<const NodeView> View() const override {
    const MutexLock lock(mutex_);
    return std::make_shared<const WorldView>(world_);
  }
  absl::StatusOr<Simulation> Simulate(
      const SimulationRequest& request) const override {
    const MutexLock lock(mutex_);
    simulation_requests_.push_back(request);
    return world_.simulation;
  }
  SimulationCounts Simulations() const override {
    return Get(&World::simulations);
  }
  /// Those that were asked for.
  std::vector<SimulationRequest> simulation_requests() const {
    const MutexLock lock(mutex_);
    return simulation_requests_;
  }
  std::vector<EventInfo> Events(std::uint64_t after) const override {
    std::vector<EventInfo> events = Get(&World::events);
    std::erase_if(events, [&](const EventInfo& event) {
      return event.sequence <= after;
    });
    return events;
  }
  absl::StatusOr<DeviceChanges> Changes(
      const ChangesFrom& from, std::chrono::milliseconds) const override {
    return Get(&World::changes)(from);
  }
  Maintenance& maintenance() override { return *this; }
  std::unique_ptr<Observation> Observe(
      DeviceManagerObserver& observer) override {
    const MutexLock lock(mutex_);
    observers_.push_back(&observer);
    return std::make_unique<Handle>(*this, observer);
  }

 private:
  /// The world as it was.
  class WorldView : public NodeView {
   public:
    explicit WorldView(World world) : world_(std::move(world)) {}
    std::uint64_t Sequence() const override { return 0; }
    std::uint64_t LastEvent() const override { return world_.events.size(); }
    NodeInfo Node() const override { return world_.node; }
    std::vector<PodInfo> Pods() const override { return world_.pods; }
    absl::StatusOr<PodInfo> PodInfoOf(const PodUid& uid) const override {
      for (const PodInfo& pod : world_.pods) {
        if (pod.uid == uid) return pod;
      }
      return absl::NotFoundError("no such pod");
    }
    std::vector<ClaimInfo> Claims() const override { return world_.claims; }
    std::vector<DebtInfo> Debts() const override { return world_.debts; }
    std::vector<PluginInfo> Plugins() const override { return world_.plugins; }
    std::vector<RegistrationSocketInfo> RegistrationSockets() const override {
      return world_.registration_sockets;
    }
    std::vector<DeviceInfo> Devices() const override { return world_.devices; }
    std::vector<ResourceInfo> Resources() const override {
      return world_.resources;
    }
    std::vector<DeviceClassInfo> DeviceClasses() const override {
      return world_.classes;
    }
    std::vector<SliceInfo> Slices() const override { return world_.slices; }
    std::vector<ForeignHolderInfo> ForeignHolders() const override {
      return world_.holders;
    }
    std::vector<DeviceHolderInfo> DeviceHolders() const override {
      return world_.device_holders;
    }
    std::vector<RuntimeInfo> Runtimes() const override {
      return world_.runtimes;
    }
    absl::StatusOr<std::vector<ResourceDevices>> HeldDevices(
        const PodUid&, const ContainerName&) const override {
      return absl::UnimplementedError("fake");
    }
    absl::StatusOr<ContainerClaims> HeldClaims(
        const PodUid&, const ContainerName&) const override {
      return absl::UnimplementedError("fake");
    }
    std::shared_ptr<const PodResourcesList> ResourcesOfPods(
        const std::shared_ptr<const PodResourcesList>&) const override {
      return world_.pod_resources;
    }
    absl::StatusOr<std::shared_ptr<const PodResources>> ResourcesOfPod(
        const ObjectName& name) const override {
      for (const auto& pod : world_.pod_resources->pods) {
        if (pod->name == name) return pod;
      }
      return absl::NotFoundError("pod " + name.name + " in namespace " +
                                 name.ns + " not found");
    }
    std::vector<ResourceDevices> AllocatableDevices() const override {
      return world_.allocatable;
    }
    NumaInfo Numa() const override { return world_.numa; }
    absl::StatusOr<PodAlignmentInfo> AlignmentOf(
        const PodUid& pod) const override {
      const auto found = world_.alignments.find(pod);
      if (found != world_.alignments.end()) return found->second;
      return absl::NotFoundError("not judged by alignment");
    }

   private:
    const World world_;
  };

  struct Handle : Observation {
    Handle(FakeDeviceManager& from, DeviceManagerObserver& observer)
        : manager(from), observed(observer) {}
    ~Handle() override {
      const MutexLock lock(manager.mutex_);
      std::erase(manager.observers_, &observed);
    }
    FakeDeviceManager& manager;
    DeviceManagerObserver& observed;
  };

  // Maintenance.
  void StartForceReleaseClaim(const ObjectName& claim,
                              const std::string& reason, Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("release " + claim.ToString() + ": " + reason);
    });
    done(absl::OkStatus());
  }
  void StartFreeHolder(const std::string& container_id,
                       const std::string& reason, Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("free holder " + container_id + ": " + reason);
    });
    done(absl::OkStatus());
  }
  void StartRecheckDevices(const std::string& name, const std::string& device,
                           const std::string& reason, Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("recheck " + name + " " + device + ": " +
                                reason);
    });
    done(absl::OkStatus());
  }
  void StartRecordWish(const PodWish& wish, Done done) override {
    absl::Status status;
    Set([&](World& world) {
      status = world.wish_status;
      if (!status.ok()) return;
      world.decisions.push_back((wish.wanted ? "wanted " : "unwanted ") +
                                wish.uid.value + " (" + wish.name.ToString() +
                                ") by " + wish.caller);
    });
    done(status);
  }
  void StartRecordSliceDeletion(const SliceDeletion& deletion,
                                Done done) override {
    absl::Status status;
    Set([&](World& world) {
      status = world.wish_status;
      if (!status.ok()) return;
      world.decisions.push_back("delete slices of " + deletion.driver + " by " +
                                deletion.caller + ": " + deletion.reason);
    });
    done(status);
  }
  void StartConfirmSource(const std::string& reason, Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("confirm source: " + reason);
    });
    done(absl::OkStatus());
  }
  void StartSetAuthority(Authority to, const std::string& reason,
                         Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("authority " + std::string(AuthorityName(to)) +
                                ": " + reason);
    });
    done(absl::OkStatus());
  }
  void StartHandOverResource(const ResourceName& resource, ResourceOwner,
                             const std::string& reason, Done done) override {
    Set([&](World& world) {
      world.decisions.push_back("hand-over " + resource.value + ": " + reason);
    });
    done(absl::OkStatus());
  }
  absl::StatusOr<std::vector<DecisionInfo>> History(
      std::uint64_t after, std::size_t most) const override {
    auto history = Get(&World::history);
    if (history.ok()) {
      std::erase_if(*history, [&](const DecisionInfo& decision) {
        return decision.sequence <= after;
      });
      history->resize(std::min(history->size(), most));
    }
    return history;
  }
  absl::StatusOr<LedgerView> StateAt(const LedgerPoint& at) const override {
    return Get(&World::state_at)(at);
  }
  absl::StatusOr<FsckReport> Fsck(FsckMode mode) override {
    Set([&](World& world) { world.fsck_modes.push_back(mode); });
    return Get(&World::fsck);
  }
  template <typename T>
  T Get(T World::*member) const {
    const MutexLock lock(mutex_);
    return world_.*member;
  }

  template <typename Call>
  void Tell(Call call) {
    std::vector<DeviceManagerObserver*> observers;
    {
      const MutexLock lock(mutex_);
      observers = observers_;
    }
    for (DeviceManagerObserver* observer : observers) call(*observer);
  }

  mutable Mutex mutex_;
  World world_ DEVMGR_GUARDED_BY(mutex_);
  mutable std::vector<SimulationRequest> simulation_requests_
      DEVMGR_GUARDED_BY(mutex_);
  std::vector<DeviceManagerObserver*> observers_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr
