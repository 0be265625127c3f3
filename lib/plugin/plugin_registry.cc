// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_registry.h"

#include <algorithm>
#include <climits>
#include <string_view>

#include "api/names.h"
#include "api/quote.h"
#include "common/status.h"
#include "plugin/allocate_answer.h"

namespace devmgr::plugin {
namespace {

constexpr std::size_t kMaxEndpointBytes = 4096;

absl::Status CheckResourceName(const std::string& name) {
  if (api::IsExtendedResourceName(name)) return absl::OkStatus();
  return InvalidArgumentError("the ResourceName \"{}\" is invalid",
                              api::Readable(name, kMaxQuotedBytes));
}

/// The name of a file in the directory, and of no other place.
absl::Status CheckFileName(const std::string& name,
                           const std::filesystem::path& directory) {
  const bool plain =
      !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX &&
      name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (plain) return absl::OkStatus();
  return InvalidArgumentError("endpoint \"{}\" is not the name of a file in {}",
                              api::Readable(name, kMaxQuotedBytes),
                              directory.string());
}

absl::Status NoConnection(const ResourceName& resource, Generation generation) {
  return UnavailableError(
      "endpoint <plugin of '{}', connection {}> has been stopped", resource,
      generation);
}

absl::Status CheckEndpoint(const std::string& endpoint) {
  if (endpoint.starts_with('/') && endpoint.size() <= kMaxEndpointBytes &&
      endpoint.find('\0') == std::string::npos) {
    return absl::OkStatus();
  }
  return InvalidArgumentError("endpoint \"{}\" is not an absolute path",
                              api::Readable(endpoint, kMaxQuotedBytes));
}

}  // namespace

PluginInfo PluginInfoOf(const InstanceInfo& instance) {
  PluginInfo info;
  info.name = instance.resource;
  info.kind = PluginKind::kDevicePlugin;
  info.endpoint = instance.endpoint;
  info.version = instance.version;
  info.state = PublicOf(instance.state);
  info.registered_since = instance.registered_since;
  info.last_error = instance.last_error;
  info.via = instance.via;
  info.breaker = PublicOf(instance.breaker);
  info.quarantined_until = instance.quarantined_until;
  info.devices = instance.devices;
  info.calls = instance.calls;
  info.queued = instance.queued;
  return info;
}

Dialer UnixDialer(rpc::Runtime& runtime, int max_receive_bytes) {
  return [&runtime, max_receive_bytes](const std::filesystem::path& socket,
                                       std::function<void()> on_hang_up)
             -> absl::StatusOr<std::unique_ptr<rpc::Connection>> {
    auto connection =
        rpc::Dial(runtime, socket, std::move(on_hang_up), {max_receive_bytes});
    if (connection.ok()) return connection;
    return WithContext(connection.status(), "'{}'", socket.string());
  };
}

PluginRegistry::PluginRegistry(Executor& executor, Dialer dialer,
                               PluginRegistryOptions options,
                               PluginListener& listener)
    : executor_(executor),
      dialer_(std::move(dialer)),
      options_(std::move(options)),
      listener_(listener),
      guards_(options_.flap),
      registrations_(options_.registrations, options_.all_registrations) {}

PluginRegistry::~PluginRegistry() {
  closing_ = true;
  for (const auto& [id, waiter] : waiters_) executor_.Cancel(waiter.timer);
  for (const auto& [resource, instances] : instances_) {
    for (const Instance& instance : instances) {
      instance->Close("the manager stops");
    }
  }
}

void PluginRegistry::RegisterFromSocket(
    const RegisterRequest& request, const std::filesystem::path& directory,
    std::function<void(absl::Status)> done) {
  DEVMGR_ASSERT_ON(executor_);
  const absl::Status name = CheckResourceName(request.resource);
  listener_.OnRegistration(name.ok() ? request.resource : "invalid");
  const auto version = FindApiVersion(request.version);
  if (!version.ok()) return done(version.status());
  if (!name.ok()) return done(name);
  if (absl::Status status = CheckFileName(request.endpoint, directory);
      !status.ok()) {
    return done(status);
  }
  Connect({request.resource, (directory / request.endpoint).string(), **version,
           Via::kSocket, options_.now()},
          std::move(done));
}

absl::Status PluginRegistry::Validate(const registration::Plugin& plugin) {
  DEVMGR_ASSERT_ON(executor_);
  DEVMGR_RETURN_IF_ERROR(ChooseApiVersion(plugin.supported_versions).status());
  DEVMGR_RETURN_IF_ERROR(CheckResourceName(plugin.name));
  return CheckEndpoint(plugin.endpoint);
}

void PluginRegistry::Register(const registration::Plugin& plugin,
                              std::function<void(absl::Status)> done) {
  DEVMGR_ASSERT_ON(executor_);
  if (absl::Status status = Validate(plugin); !status.ok()) {
    return done(status);
  }
  Connect({plugin.name, plugin.endpoint,
           **ChooseApiVersion(plugin.supported_versions), Via::kDirectory,
           options_.now(), plugin.registration},
          std::move(done));
}

void PluginRegistry::Deregister(const registration::Plugin& plugin) {
  DEVMGR_ASSERT_ON(executor_);
  CloseIf(
      plugin.name,
      [&](const PluginInstance& instance) {
        return instance.identity().via == Via::kDirectory &&
               instance.identity().registration == plugin.registration;
      },
      "its registration socket is gone", PluginInstance::End::kLost);
}

void PluginRegistry::Connect(PluginInstance::Identity identity,
                             std::function<void(absl::Status)> done) {
  std::size_t known = 0;
  for (const auto& [resource, instances] : instances_) {
    known += instances.size();
  }
  if (known >= options_.max_instances) {
    return done(ResourceExhaustedError(
        "{} device plugins are registered, which is the limit", known));
  }
  if (!registrations_.Take(identity.endpoint, executor_.Now())) {
    return done(ResourceExhaustedError(
        "the device plugin of '{}' registers too often; try again later",
        identity.resource));
  }
  // One that is still connecting there has not become anything yet.
  CloseIf(
      identity.resource,
      [&](const PluginInstance& other) {
        return other.identity().endpoint == identity.endpoint &&
               other.generation() == 0;
      },
      "another registration came for the same socket",
      PluginInstance::End::kReplaced);
  InstanceOptions options = options_.instance;
  if (const auto own = options_.timeouts.find(identity.resource);
      own != options_.timeouts.end()) {
    options.timeouts = own->second;
  }
  auto& instances = instances_[identity.resource];
  const auto guard =
      guards_.Of(identity.resource, identity.endpoint, executor_.Now());
  const auto instance = std::make_shared<PluginInstance>(
      executor_, dialer_, parser_, options, std::move(identity), guard,
      static_cast<InstanceOwner&>(*this));
  instances.push_back(instance);
  instance->Start(std::move(done));
}

template <typename Which>
void PluginRegistry::CloseIf(const ResourceName& resource, Which which,
                             const std::string& why, PluginInstance::End end) {
  const auto found = instances_.find(resource);
  if (found == instances_.end()) return;
  const std::vector<Instance> instances = found->second;  // Closing takes away.
  for (const Instance& instance : instances) {
    if (which(*instance)) instance->Close(why, end);
  }
}

bool PluginRegistry::MayWaitForSocket(const PluginInstance& instance) const {
  std::size_t others = 0;
  for (const auto& [resource, instances] : instances_) {
    for (const Instance& other : instances) {
      if (other.get() != &instance && other->is_waiting_for_socket()) ++others;
    }
  }
  return others < options_.max_waiting_for_socket;
}

void PluginRegistry::OnConnected(PluginInstance& instance) {
  const auto& identity = instance.identity();
  // First the new one, so that the resource is never without.
  listener_.OnConnected(identity.resource, instance.generation(),
                        instance.plugin_options());
  CloseIf(
      identity.resource,
      [&](const PluginInstance& other) {
        return &other != &instance &&
               other.identity().endpoint == identity.endpoint;
      },
      "another registration came for the same socket",
      PluginInstance::End::kReplaced);
}

void PluginRegistry::OnList(PluginInstance& instance, DeviceList list) {
  listener_.OnList(instance.identity().resource, instance.generation(),
                   std::move(list.devices), list.problems);
  AnswerWaiters();
}

void PluginRegistry::OnOwnCall(PluginInstance& instance,
                               std::string_view method,
                               const absl::Status& status,
                               std::chrono::nanoseconds took) {
  if (closing_ || !options_.on_call) return;
  options_.on_call(instance.identity().resource, method, status, took);
}

void PluginRegistry::OnGone(PluginInstance& instance, Generation generation,
                            const std::string& why) {
  if (closing_) return;
  listener_.OnGone(instance.identity().resource, generation, why);
  AnswerWaiters();
}

void PluginRegistry::OnChange(PluginInstance& instance) {
  if (closing_) return;
  if (instance.state() == InstanceState::kClosed) {
    const auto found = instances_.find(instance.identity().resource);
    if (found != instances_.end()) {
      std::erase_if(found->second, [&](const Instance& known) {
        return known.get() == &instance;
      });
      if (found->second.empty()) instances_.erase(found);
    }
  }
  listener_.OnState(instance.Info(options_.now()));
}

PluginRegistry::Instance PluginRegistry::Find(const ResourceName& resource,
                                              Generation generation) const {
  const auto found = instances_.find(resource);
  if (found == instances_.end()) return nullptr;
  for (const Instance& instance : found->second) {
    if (generation != 0 && instance->generation() == generation) {
      return instance;
    }
  }
  return nullptr;
}

PluginRegistry::Metadata PluginRegistry::MetadataOf(
    const PodIdentity& pod) const {
  if (!options_.pod_identity_metadata) return {};
  return {{"devmgr-pod-uid", pod.uid},
          {"devmgr-pod-namespace", pod.ns},
          {"devmgr-pod-name", pod.name},
          {"devmgr-container", pod.container}};
}

void PluginRegistry::Call(
    const ResourceName& resource, Generation generation, const CallSpec& spec,
    const PodIdentity& pod,
    std::function<void(const ApiVersion&, absl::StatusOr<std::string>)> use) {
  const Instance instance = Find(resource, generation);
  if (instance == nullptr) {
    executor_.Post(
        [use = std::move(use), status = NoConnection(resource, generation)] {
          use(ApiVersions().front(), status);
        });
    return;
  }
  const ApiVersion& version = instance->identity().version;
  instance->Call(
      spec.method, spec.encode(version), instance->timeouts().*spec.timeout,
      MetadataOf(pod), spec.trust,
      [&version, &executor = executor_, on_call = options_.on_call, resource,
       method = spec.method, began = executor_.Now(),
       use = std::move(use)](absl::StatusOr<std::string> answer) {
        if (on_call) {
          on_call(resource, method, answer.status(), executor.Now() - began);
        }
        use(version, std::move(answer));
      });
}

void PluginRegistry::Allocate(
    const ResourceName& resource, Generation generation,
    const std::vector<DeviceId>& ids, const PodIdentity& pod,
    std::function<void(absl::StatusOr<device::ContainerEdits>)> done) {
  DEVMGR_ASSERT_ON(executor_);
  Call(
      resource, generation,
      {kAllocateMethod, &CallTimeouts::allocate, PluginInstance::Trust::kNeeded,
       [&](const ApiVersion& version) { return version.encode_allocate(ids); }},
      pod,
      [resource, done = std::move(done)](
          const ApiVersion& version,
          const absl::StatusOr<std::string>& answer) {
        if (!answer.ok()) return done(answer.status());
        auto edits = version.decode_allocate(*answer);
        const absl::Status checked =
            edits.ok() ? CheckEdits(*edits) : edits.status();
        if (checked.ok()) return done(*std::move(edits));
        done(WithContext(checked, "answer of the plugin of '{}'", resource));
      });
}

absl::Status PluginRegistry::CheckAllocate(const ResourceName& resource,
                                           Generation generation) const {
  DEVMGR_ASSERT_ON(executor_);
  const Instance instance = Find(resource, generation);
  return instance == nullptr
             ? NoConnection(resource, generation)
             : instance->CheckCall(PluginInstance::Trust::kNeeded);
}

void PluginRegistry::GetPreferredAllocation(
    const ResourceName& resource, Generation generation,
    const PreferredRequest& request, const PodIdentity& pod,
    std::function<void(absl::StatusOr<std::vector<DeviceId>>)> done) {
  DEVMGR_ASSERT_ON(executor_);
  Call(resource, generation,
       {kPreferredMethod, &CallTimeouts::preferred,
        PluginInstance::Trust::kNeeded,
        [&](const ApiVersion& version) {
          return version.encode_preferred(request);
        }},
       pod,
       [done = std::move(done)](const ApiVersion& version,
                                const absl::StatusOr<std::string>& answer) {
         auto ids =
             answer.ok() ? version.decode_preferred(*answer) : answer.status();
         if (ids.ok()) return done(*std::move(ids));
         done(WithContext(
             ids.status(),
             "device plugin GetPreferredAllocation rpc failed with err"));
       });
}

void PluginRegistry::PreStartContainer(const ResourceName& resource,
                                       Generation generation,
                                       const std::vector<DeviceId>& ids,
                                       const PodIdentity& pod,
                                       std::function<void(absl::Status)> done) {
  DEVMGR_ASSERT_ON(executor_);
  Call(resource, generation,
       {kPreStartMethod, &CallTimeouts::pre_start,
        PluginInstance::Trust::kNotNeeded,
        [&](const ApiVersion& version) {
          return version.encode_pre_start(ids);
        }},
       pod,
       [done = std::move(done)](const ApiVersion&,
                                const absl::StatusOr<std::string>& answer) {
         done(WithContext(answer.status(),
                          "device plugin PreStartContainer rpc failed with "
                          "err"));
       });
}

void PluginRegistry::WhenCurrent(std::vector<ResourceName> resources,
                                 CurrentDone done) {
  DEVMGR_ASSERT_ON(executor_);
  if (FindBehind(resources) == nullptr) return done(absl::OkStatus(), {});
  const WaiterId id = ++last_waiter_;
  const TimerId timer =
      executor_.PostAfter(options_.catch_up, [this, id] { GiveUpWaiting(id); });
  waiters_[id] = {std::move(resources), std::move(done), timer};
}

const ResourceName* PluginRegistry::FindBehind(
    const std::vector<ResourceName>& resources) const {
  for (const ResourceName& resource : resources) {
    const auto found = instances_.find(resource);
    if (found == instances_.end()) continue;
    if (IsBehind(found->second)) return &resource;
  }
  return nullptr;
}

bool PluginRegistry::IsBehind(const std::vector<Instance>& instances) const {
  Generation serves = 0;
  for (const Instance& instance : instances) {
    if (instance->state() == InstanceState::kLive) {
      serves = std::max(serves, instance->generation());
    }
  }
  return std::any_of(
      instances.begin(), instances.end(), [serves](const Instance& instance) {
        return instance->generation() >= serves && instance->is_behind();
      });
}

void PluginRegistry::AnswerWaiters() {
  // Each may make the lists of others known, or wait again.
  const WaiterId last = last_waiter_;
  for (auto next = waiters_.begin();
       next != waiters_.end() && next->first <= last;) {
    const WaiterId id = next->first;
    if (FindBehind(next->second.resources) == nullptr) {
      const Waiter waiter = std::move(next->second);
      waiters_.erase(next);
      executor_.Cancel(waiter.timer);
      waiter.done(absl::OkStatus(), {});
    }
    next = waiters_.upper_bound(id);
  }
}

void PluginRegistry::GiveUpWaiting(WaiterId id) {
  auto waiter = waiters_.extract(id);
  const ResourceName* late = FindBehind(waiter.mapped().resources);
  if (late == nullptr) return waiter.mapped().done(absl::OkStatus(), {});
  waiter.mapped().done(
      UnavailableError("the device plugin of '{}' sends lists faster than they "
                       "are taken in",
                       *late),
      *late);
}

std::vector<std::shared_ptr<const PluginInfo>> PluginRegistry::Shown(
    const Serves& serves) const {
  DEVMGR_ASSERT_ON(executor_);
  std::vector<std::shared_ptr<const PluginInfo>> shown;
  const WallTime now = options_.now();
  for (const auto& [resource, instances] : instances_) {
    for (const Instance& instance : instances) {
      const Generation generation = instance->generation();
      shown.push_back(instance->Shown(
          now, generation != 0 && serves(resource, generation)));
    }
  }
  return shown;
}

std::vector<InstanceInfo> PluginRegistry::Instances() const {
  DEVMGR_ASSERT_ON(executor_);
  std::vector<InstanceInfo> infos;
  const WallTime now = options_.now();
  for (const auto& [resource, instances] : instances_) {
    for (const Instance& instance : instances) {
      infos.push_back(instance->Info(now));
    }
  }
  return infos;
}

}  // namespace devmgr::plugin
