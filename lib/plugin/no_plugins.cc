// SPDX-License-Identifier: Apache-2.0
#include "plugin/no_plugins.h"

#include <utility>

#include "common/status.h"

namespace devmgr::plugin {
namespace {

absl::Status NoPluginFor(const ResourceName& resource) {
  return UnavailableError("no device plugin serves '{}'", resource);
}

class NoPlugins final : public Plugins {
 public:
  explicit NoPlugins(Executor& executor) : executor_(executor) {}

  void Allocate(const ResourceName& resource, Generation,
                const std::vector<DeviceId>&, const PodIdentity&,
                std::function<void(absl::StatusOr<device::ContainerEdits>)>
                    done) override {
    Refuse(resource, std::move(done));
  }
  absl::Status CheckAllocate(const ResourceName& resource,
                             Generation) const override {
    return NoPluginFor(resource);
  }
  void GetPreferredAllocation(
      const ResourceName& resource, Generation, const PreferredRequest&,
      const PodIdentity&,
      std::function<void(absl::StatusOr<std::vector<DeviceId>>)> done)
      override {
    Refuse(resource, std::move(done));
  }
  void PreStartContainer(const ResourceName& resource, Generation,
                         const std::vector<DeviceId>&, const PodIdentity&,
                         std::function<void(absl::Status)> done) override {
    Refuse(resource, std::move(done));
  }
  void WhenCurrent(std::vector<ResourceName>, CurrentDone done) override {
    done(absl::OkStatus(), {});
  }
  std::vector<std::shared_ptr<const PluginInfo>> Shown(
      const Serves& /*serves*/) const override {
    return {};
  }

 private:
  template <typename Done>
  void Refuse(const ResourceName& resource, Done done) {
    executor_.Post(
        [done = std::move(done), resource] { done(NoPluginFor(resource)); });
  }

  Executor& executor_;
};

}  // namespace

std::unique_ptr<Plugins> NewNoPlugins(Executor& executor) {
  return std::make_unique<NoPlugins>(executor);
}

}  // namespace devmgr::plugin
