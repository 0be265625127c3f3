// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/executor.h"
#include "common/mutex.h"
#include "plugin/plugins.h"

namespace devmgr {

/// Device plugins whose answers a test scripts. Outlives managers: each manager
/// gets its own `Plugins` from `Make`, over this one script, and knows of none
/// until one connects. Thread-safe.
class FakePlugins {
 public:
  struct Call {
    std::string method;  ///< `Allocate`, `GetPreferredAllocation`, ...
    ResourceName resource;
    std::vector<DeviceId> ids;
    std::string pod;  ///< `namespace/name`.
    ContainerName container;
    friend bool operator==(const Call&, const Call&) = default;
  };
  using Allocate = std::function<absl::StatusOr<device::ContainerEdits>(
      const std::vector<DeviceId>& ids)>;
  using Prefer = std::function<absl::StatusOr<std::vector<DeviceId>>(
      const plugin::PreferredRequest&)>;

  /// A call of Register, whatever becomes of it.
  void CallRegister(const ResourceName& resource);
  /// A new connection, which becomes the one that Report and Lose concern.
  void Connect(const ResourceName& resource,
               plugin::PluginOptions options = {});
  void Report(const ResourceName& resource,
              std::vector<device::Device> devices);
  void Lose(const ResourceName& resource);
  /// Connects with `count` healthy devices, `0` to `count - 1`.
  void Serve(const ResourceName& resource, int count,
             plugin::PluginOptions options = {});

  /// In place of the default answer: a CDI device `resource=id` for each.
  void Answer(const ResourceName& resource, Allocate script);
  void AnswerPreferred(const ResourceName& resource, Prefer script);
  void AnswerPreStart(const ResourceName& resource, absl::Status answer);
  /// Allocate calls are refused with nothing sent, as in quarantine; OK: not.
  void Refuse(const ResourceName& resource, absl::Status why);
  /// Lists of this plugin have come, but are not taken in, until `LetLists`;
  /// then the newest one is.
  void HoldLists(const ResourceName& resource);
  void LetLists(const ResourceName& resource);
  /// How many WhenCurrent wait for such lists.
  std::size_t waiting_for_lists() const;
  /// Ends that wait as if it had been too long.
  void GiveUpOnLists(const ResourceName& resource);
  /// Holds answers of this plugin back until `Let`.
  void Hold(const ResourceName& resource);
  void Let(const ResourceName& resource);

  std::vector<Call> calls() const;
  bool WaitForCalls(std::size_t count) const;

  std::unique_ptr<plugin::Plugins> Make(Executor& executor,
                                        plugin::PluginListener& listener);

 private:
  friend class FakePluginsView;
  struct Plugin {
    plugin::Generation generation = 0;  ///< 0: not connected.
    bool held = false;
    Allocate allocate;
    Prefer prefer;
    absl::Status pre_start;
    absl::Status refusal;
    std::vector<Task> waiting;
    bool lists_held = false;
    std::optional<std::vector<device::Device>> arrived;  ///< While held.
  };
  struct Waiter {
    std::vector<ResourceName> resources;
    plugin::Plugins::CurrentDone done;
  };

  bool IsBehindLocked(const std::vector<ResourceName>& resources) const
      DEVMGR_REQUIRES(mutex_);
  /// Takes out those whose plugins are not behind.
  std::vector<Waiter> TakeReadyWaiters();
  /// Runs on the manager's executor, if there is one.
  void Tell(std::function<void(plugin::PluginListener&)> what);
  /// Runs `answer` now, or when the plugin is let go.
  void Reply(const ResourceName& resource, Task answer);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  plugin::Generation last_generation_ DEVMGR_GUARDED_BY(mutex_) = 0;
  std::map<ResourceName, Plugin> plugins_ DEVMGR_GUARDED_BY(mutex_);
  std::vector<Call> calls_ DEVMGR_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ DEVMGR_GUARDED_BY(mutex_);
  Executor* executor_ DEVMGR_GUARDED_BY(mutex_) = nullptr;
  /// Of the manager that lives; posted tasks hold it weakly.
  std::shared_ptr<plugin::PluginListener*> listener_ DEVMGR_GUARDED_BY(mutex_);
};

/// Devices `0` to `count - 1`, healthy, on no NUMA node.
std::vector<device::Device> HealthyDevices(int count);

}  // namespace devmgr
