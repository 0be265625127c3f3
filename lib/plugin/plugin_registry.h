// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "peer/rate_limit.h"
#include "plugin/limits.h"
#include "plugin/list_parser.h"
#include "plugin/plugin_instance.h"
#include "plugin/plugins.h"
#include "registration/plugin.h"
#include "rpc/connection.h"

namespace devmgr::plugin {

/// Dials Unix sockets. `runtime` is borrowed and must outlive what was dialled.
Dialer UnixDialer(rpc::Runtime& runtime, int max_receive_bytes = kMaxListBytes);

struct PluginRegistryOptions {
  InstanceOptions instance;
  /// Long lists are parsed on a thread of their own, so that they hold up no
  /// other plugin. Else where they come in, for tests that have one thread.
  bool long_lists_apart = false;
  /// In place of `instance.timeouts`, by resource.
  std::map<std::string, CallTimeouts> timeouts;
  peer::FlapOptions flap;
  std::size_t max_instances = 1024;
  /// Plugins that registered before they listen, at a time. Beyond that one
  /// that does not listen is refused at once.
  std::size_t max_waiting_for_socket = 32;
  /// Registrations of one endpoint, whatever the resource, and of all. Each is
  /// a connection, and perhaps the end of one before.
  peer::RateOptions registrations;
  peer::RateOptions all_registrations{1024, std::chrono::milliseconds(50)};
  /// Calls carry the pod that they are for: `devmgr-pod-uid`,
  /// `devmgr-pod-namespace`, `devmgr-pod-name`, `devmgr-container`.
  bool pod_identity_metadata = false;
  /// How long WhenCurrent waits.
  std::chrono::milliseconds catch_up{5'000};
  std::function<WallTime()> now;
  /// A call has ended, sent or not, or the first list has come; may be null.
  std::function<void(const ResourceName& resource, std::string_view method,
                     const absl::Status& status, std::chrono::nanoseconds took)>
      on_call;
};

/// The device plugins that registered, in either way, each connection with a
/// generation. Several instances may serve one resource. A registration at the
/// socket of another instance of that resource replaces it once it is
/// connected; the end of the old one is reported and touches nothing else.
/// Handler of plugins of type `DevicePlugin`. Follows the kubelet's
/// pkg/kubelet/cm/devicemanager/plugin. Lives on its executor.
class PluginRegistry final : public Plugins,
                             public registration::PluginHandler,
                             private InstanceOwner {
 public:
  static constexpr char kPluginType[] = "DevicePlugin";

  /// `executor` and `listener` are borrowed and must outlive the registry.
  PluginRegistry(Executor& executor, Dialer dialer,
                 PluginRegistryOptions options, PluginListener& listener);
  /// Closes all connections. Calls neither the listener nor those that wait.
  ~PluginRegistry() override;

  /// What a plugin sent to the registry socket in `directory`. `done` runs once
  /// with what it is answered.
  void RegisterFromSocket(const RegisterRequest& request,
                          const std::filesystem::path& directory,
                          std::function<void(absl::Status)> done);

  void Allocate(const ResourceName& resource, Generation generation,
                const std::vector<DeviceId>& ids, const PodIdentity& pod,
                std::function<void(absl::StatusOr<device::ContainerEdits>)>
                    done) override;
  absl::Status CheckAllocate(const ResourceName& resource,
                             Generation generation) const override;
  void GetPreferredAllocation(
      const ResourceName& resource, Generation generation,
      const PreferredRequest& request, const PodIdentity& pod,
      std::function<void(absl::StatusOr<std::vector<DeviceId>>)> done) override;
  void PreStartContainer(const ResourceName& resource, Generation generation,
                         const std::vector<DeviceId>& ids,
                         const PodIdentity& pod,
                         std::function<void(absl::Status)> done) override;
  void WhenCurrent(std::vector<ResourceName> resources,
                   CurrentDone done) override;
  std::vector<std::shared_ptr<const PluginInfo>> Shown(
      const Serves& serves) const override;
  /// By resource, then in the order of registration.
  std::vector<InstanceInfo> Instances() const;

  absl::Status Validate(const registration::Plugin& plugin) override;
  void Register(const registration::Plugin& plugin,
                std::function<void(absl::Status)> done) override;
  void Deregister(const registration::Plugin& plugin) override;

 private:
  using Instance = std::shared_ptr<PluginInstance>;
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  Generation NewGeneration() override { return ++last_generation_; }
  bool MayWaitForSocket(const PluginInstance& instance) const override;
  void OnConnected(PluginInstance& instance) override;
  void OnList(PluginInstance& instance, DeviceList list) override;
  void OnGone(PluginInstance& instance, Generation generation,
              const std::string& why) override;
  void OnChange(PluginInstance& instance) override;
  void OnOwnCall(PluginInstance& instance, std::string_view method,
                 const absl::Status& status,
                 std::chrono::nanoseconds took) override;

  /// The connect step of both ways.
  void Connect(PluginInstance::Identity identity,
               std::function<void(absl::Status)> done);
  Instance Find(const ResourceName& resource, Generation generation) const;
  /// Closes what `which` says of a resource.
  template <typename Which>
  void CloseIf(const ResourceName& resource, Which which,
               const std::string& why, PluginInstance::End end);
  Metadata MetadataOf(const PodIdentity& pod) const;

  /// Who waits for lists to be taken in.
  struct Waiter {
    std::vector<ResourceName> resources;
    CurrentDone done;
    TimerId timer = 0;
  };
  using WaiterId = std::uint64_t;
  /// The first of these of which a list has come that the listener does not
  /// know of; null: there is none.
  const ResourceName* FindBehind(
      const std::vector<ResourceName>& resources) const;
  /// Of one that serves, or will with the list that has come.
  bool IsBehind(const std::vector<Instance>& instances) const;
  void AnswerWaiters();
  void GiveUpWaiting(WaiterId waiter);

  /// Finds the instance and makes the call; `use` gets the bytes.
  struct CallSpec {
    std::string_view method;
    std::chrono::milliseconds CallTimeouts::*timeout;
    PluginInstance::Trust trust;
    std::function<std::string(const ApiVersion&)> encode;
  };
  void Call(
      const ResourceName& resource, Generation generation, const CallSpec& spec,
      const PodIdentity& pod,
      std::function<void(const ApiVersion&, absl::StatusOr<std::string>)> use);

  Executor& executor_;
  const Dialer dialer_;
  const PluginRegistryOptions options_;
  const std::shared_ptr<ListParser> parser_ =
      std::make_shared<ListParser>(options_.long_lists_apart);
  PluginListener& listener_;
  Generation last_generation_ = 0;
  /// By resource, in the order of registration; also those that connect.
  std::map<ResourceName, std::vector<Instance>> instances_;
  peer::FlapGuards guards_;  ///< By resource and endpoint.
  peer::RateLimits registrations_;
  std::map<WaiterId, Waiter> waiters_;
  WaiterId last_waiter_ = 0;
  bool closing_ = false;
};

}  // namespace devmgr::plugin
