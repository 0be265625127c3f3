// SPDX-License-Identifier: Apache-2.0
#include "support/fake_plugins.h"

#include <chrono>
#include <utility>

#include "common/status.h"
#include "support/mailbox.h"

namespace devmgr {

using device::ContainerEdits;
using plugin::Generation;

namespace {

plugin::InstanceInfo InfoOf(const ResourceName& resource,
                            plugin::InstanceState state) {
  plugin::InstanceInfo info;
  info.resource = resource;
  info.state = state;
  return info;
}

}  // namespace

/// What one manager sees. Completions go to its executor while it lives.
class FakePluginsView final : public plugin::Plugins {
 public:
  FakePluginsView(FakePlugins& fake, Executor& executor)
      : fake_(fake), executor_(executor) {}

  ~FakePluginsView() override {
    MutexLock lock(fake_.mutex_);
    fake_.listener_ = nullptr;
    fake_.executor_ = nullptr;
    fake_.waiters_.clear();
    for (auto& [name, plugin] : fake_.plugins_) {
      plugin.waiting.clear();
      plugin.arrived.reset();
    }
  }

  void Allocate(
      const ResourceName& resource, Generation generation,
      const std::vector<DeviceId>& ids, const plugin::PodIdentity& pod,
      std::function<void(absl::StatusOr<ContainerEdits>)> done) override {
    Call("Allocate", resource, ids, pod, [=, this]() -> Task {
      return [done, answer = AllocateNow(resource, generation, ids)] {
        done(answer);
      };
    });
  }

  absl::Status CheckAllocate(const ResourceName& resource,
                             Generation generation) const override {
    const auto plugin = Find(resource, generation);
    return plugin.ok() ? plugin->refusal : plugin.status();
  }

  void GetPreferredAllocation(
      const ResourceName& resource, Generation generation,
      const plugin::PreferredRequest& request, const plugin::PodIdentity& pod,
      std::function<void(absl::StatusOr<std::vector<DeviceId>>)> done)
      override {
    Call("GetPreferredAllocation", resource, request.available, pod,
         [=, this]() -> Task {
           return [done, answer = PreferNow(resource, generation, request)] {
             done(answer);
           };
         });
  }

  void PreStartContainer(const ResourceName& resource, Generation generation,
                         const std::vector<DeviceId>& ids,
                         const plugin::PodIdentity& pod,
                         std::function<void(absl::Status)> done) override {
    Call("PreStartContainer", resource, ids, pod, [=, this]() -> Task {
      return
          [done, answer = PreStartNow(resource, generation)] { done(answer); };
    });
  }

  void WhenCurrent(std::vector<ResourceName> resources,
                   CurrentDone done) override {
    {
      MutexLock lock(fake_.mutex_);
      if (fake_.IsBehindLocked(resources)) {
        fake_.waiters_.push_back({std::move(resources), std::move(done)});
        fake_.changed_.NotifyAll();
        return;
      }
    }
    done(absl::OkStatus(), {});
  }

  std::vector<std::shared_ptr<const PluginInfo>> Shown(
      const Serves& serves) const override {
    MutexLock lock(fake_.mutex_);
    std::vector<std::shared_ptr<const PluginInfo>> shown;
    for (const auto& [resource, plugin] : fake_.plugins_) {
      if (plugin.generation == 0) continue;
      PluginInfo info =
          plugin::PluginInfoOf(InfoOf(resource, plugin::InstanceState::kLive));
      info.serves = serves(resource, plugin.generation);
      shown.push_back(std::make_shared<const PluginInfo>(std::move(info)));
    }
    return shown;
  }

 private:
  void Call(const std::string& method, const ResourceName& resource,
            const std::vector<DeviceId>& ids, const plugin::PodIdentity& pod,
            std::function<Task()> answer) {
    {
      MutexLock lock(fake_.mutex_);
      fake_.calls_.push_back(
          {method, resource, ids, pod.ns + "/" + pod.name, pod.container});
      fake_.changed_.NotifyAll();
    }
    fake_.Reply(resource, [this, answer] { executor_.Post(answer()); });
  }

  /// The script of the connection, unless it is gone.
  absl::StatusOr<FakePlugins::Plugin> Find(const ResourceName& resource,
                                           Generation generation) const {
    MutexLock lock(fake_.mutex_);
    const auto found = fake_.plugins_.find(resource);
    if (found == fake_.plugins_.end() || generation == 0 ||
        found->second.generation != generation) {
      return UnavailableError("{}: no such connection", resource);
    }
    return found->second;
  }

  absl::StatusOr<ContainerEdits> AllocateNow(
      const ResourceName& resource, Generation generation,
      const std::vector<DeviceId>& ids) const {
    DEVMGR_ASSIGN_OR_RETURN(const auto plugin, Find(resource, generation));
    if (plugin.allocate) return plugin.allocate(ids);
    ContainerEdits edits;
    const std::string prefix = resource.value + "=";
    for (const std::string& id : ids) edits.cdi_devices.push_back(prefix + id);
    return edits;
  }

  absl::StatusOr<std::vector<DeviceId>> PreferNow(
      const ResourceName& resource, Generation generation,
      const plugin::PreferredRequest& request) const {
    DEVMGR_ASSIGN_OR_RETURN(const auto plugin, Find(resource, generation));
    if (plugin.prefer) return plugin.prefer(request);
    return std::vector<DeviceId>();
  }

  absl::Status PreStartNow(const ResourceName& resource,
                           Generation generation) const {
    DEVMGR_ASSIGN_OR_RETURN(const auto plugin, Find(resource, generation));
    return plugin.pre_start;
  }

  FakePlugins& fake_;
  Executor& executor_;
};

void FakePlugins::CallRegister(const ResourceName& resource) {
  Tell([=](plugin::PluginListener& listener) {
    listener.OnRegistration(resource);
  });
}

void FakePlugins::Connect(const ResourceName& resource,
                          plugin::PluginOptions options) {
  Generation generation = 0;
  {
    MutexLock lock(mutex_);
    generation = ++last_generation_;
    plugins_[resource].generation = generation;
  }
  Tell([=](plugin::PluginListener& listener) {
    listener.OnConnected(resource, generation, options);
    listener.OnState(InfoOf(resource, plugin::InstanceState::kListening));
  });
}

void FakePlugins::Report(const ResourceName& resource,
                         std::vector<device::Device> devices) {
  Generation generation = 0;
  {
    MutexLock lock(mutex_);
    Plugin& plugin = plugins_[resource];
    if (plugin.lists_held) {
      plugin.arrived = std::move(devices);
      return;
    }
    generation = plugin.generation;
  }
  Tell([=](plugin::PluginListener& listener) {
    listener.OnList(resource, generation, devices, {});
  });
}

void FakePlugins::HoldLists(const ResourceName& resource) {
  MutexLock lock(mutex_);
  plugins_[resource].lists_held = true;
}

void FakePlugins::LetLists(const ResourceName& resource) {
  std::optional<std::vector<device::Device>> arrived;
  {
    MutexLock lock(mutex_);
    plugins_[resource].lists_held = false;
    arrived = std::exchange(plugins_[resource].arrived, std::nullopt);
  }
  if (arrived.has_value()) Report(resource, *std::move(arrived));
}

std::size_t FakePlugins::waiting_for_lists() const {
  MutexLock lock(mutex_);
  return waiters_.size();
}

void FakePlugins::GiveUpOnLists(const ResourceName& resource) {
  std::vector<Waiter> waiters;
  {
    MutexLock lock(mutex_);
    waiters = std::exchange(waiters_, {});
  }
  Tell([=](plugin::PluginListener&) {
    for (const Waiter& waiter : waiters) {
      waiter.done(UnavailableError("{} sends too many lists", resource),
                  resource);
    }
  });
}

bool FakePlugins::IsBehindLocked(
    const std::vector<ResourceName>& resources) const {
  for (const std::string& name : resources) {
    const auto plugin = plugins_.find(name);
    if (plugin != plugins_.end() && plugin->second.arrived.has_value()) {
      return true;
    }
  }
  return false;
}

std::vector<FakePlugins::Waiter> FakePlugins::TakeReadyWaiters() {
  MutexLock lock(mutex_);
  std::vector<Waiter> ready;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    if (IsBehindLocked(waiter->resources)) {
      ++waiter;
    } else {
      ready.push_back(std::move(*waiter));
      waiter = waiters_.erase(waiter);
    }
  }
  return ready;
}

void FakePlugins::Lose(const ResourceName& resource) {
  Generation generation = 0;
  {
    MutexLock lock(mutex_);
    generation = std::exchange(plugins_[resource].generation, 0);
  }
  Tell([=](plugin::PluginListener& listener) {
    listener.OnGone(resource, generation, "connection lost");
    listener.OnState(InfoOf(resource, plugin::InstanceState::kClosed));
  });
}

void FakePlugins::Serve(const ResourceName& resource, int count,
                        plugin::PluginOptions options) {
  Connect(resource, options);
  Report(resource, HealthyDevices(count));
}

void FakePlugins::Answer(const ResourceName& resource, Allocate script) {
  MutexLock lock(mutex_);
  plugins_[resource].allocate = std::move(script);
}

void FakePlugins::AnswerPreferred(const ResourceName& resource, Prefer script) {
  MutexLock lock(mutex_);
  plugins_[resource].prefer = std::move(script);
}

void FakePlugins::Refuse(const ResourceName& resource, absl::Status why) {
  MutexLock lock(mutex_);
  plugins_[resource].refusal = std::move(why);
}

void FakePlugins::AnswerPreStart(const ResourceName& resource,
                                 absl::Status answer) {
  MutexLock lock(mutex_);
  plugins_[resource].pre_start = std::move(answer);
}

void FakePlugins::Hold(const ResourceName& resource) {
  MutexLock lock(mutex_);
  plugins_[resource].held = true;
}

void FakePlugins::Let(const ResourceName& resource) {
  std::vector<Task> waiting;
  {
    MutexLock lock(mutex_);
    plugins_[resource].held = false;
    waiting = std::exchange(plugins_[resource].waiting, {});
  }
  for (const Task& answer : waiting) answer();
}

void FakePlugins::Tell(std::function<void(plugin::PluginListener&)> what) {
  MutexLock lock(mutex_);
  if (executor_ == nullptr) return;
  executor_->Post(
      [this, what = std::move(what), listener = std::weak_ptr(listener_)] {
        const auto alive = listener.lock();
        if (alive == nullptr) return;
        what(**alive);
        for (const Waiter& waiter : TakeReadyWaiters()) {
          waiter.done(absl::OkStatus(), {});
        }
      });
}

void FakePlugins::Reply(const ResourceName& resource, Task answer) {
  {
    MutexLock lock(mutex_);
    if (plugins_[resource].held) {
      plugins_[resource].waiting.push_back(std::move(answer));
      return;
    }
  }
  answer();
}

std::vector<FakePlugins::Call> FakePlugins::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

bool FakePlugins::WaitForCalls(std::size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (calls_.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
  return true;
}

std::unique_ptr<plugin::Plugins> FakePlugins::Make(
    Executor& executor, plugin::PluginListener& listener) {
  MutexLock lock(mutex_);
  executor_ = &executor;
  listener_ = std::make_shared<plugin::PluginListener*>(&listener);
  for (auto& [resource, plugin] : plugins_) plugin.generation = 0;
  return std::make_unique<FakePluginsView>(*this, executor);
}

std::vector<device::Device> HealthyDevices(int count) {
  std::vector<device::Device> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({std::to_string(i), device::Health::kHealthy, {}});
  }
  return devices;
}

}  // namespace devmgr
