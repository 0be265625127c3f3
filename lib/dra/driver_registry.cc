// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_registry.h"

#include <algorithm>
#include <utility>

#include "api/names.h"
#include "common/status.h"
#include "dra/claim_calls.h"
#include "dra/endpoint.h"

namespace devmgr::dra {

DriverRegistry::DriverRegistry(Executor& executor, Dialer dialer,
                               DriverRegistryOptions options)
    : executor_(executor),
      dialer_(std::move(dialer)),
      options_(std::move(options)),
      dials_(std::make_shared<peer::RateLimits>(options_.dials,
                                                options_.all_dials)),
      guards_(options_.flap) {}

DriverRegistry::~DriverRegistry() {
  for (auto& [name, instances] : drivers_) {
    for (const Registered& known : instances) known.instance->Close();
  }
}

absl::Status DriverRegistry::Validate(const registration::Plugin& plugin) {
  DEVMGR_ASSERT_ON(executor_);
  if (const std::string text = api::CheckDriverName(plugin.name);
      !text.empty()) {
    return InvalidArgumentError("{}", text);
  }
  DEVMGR_RETURN_IF_ERROR(
      CheckEndpoint(plugin.endpoint, options_.endpoint_dirs));
  return WithContext(
      ChooseApiVersions(plugin.name, plugin.supported_versions, options_.api)
          .status(),
      "invalid supported gRPC versions of DRA driver plugin {} at endpoint {}",
      plugin.name, plugin.endpoint);
}

absl::Status DriverRegistry::Register(const registration::Plugin& plugin) {
  DEVMGR_ASSERT_ON(executor_);
  DEVMGR_RETURN_IF_ERROR(Validate(plugin));
  DEVMGR_ASSIGN_OR_RETURN(
      auto versions,
      ChooseApiVersions(plugin.name, plugin.supported_versions, options_.api));
  auto& instances = drivers_[plugin.name];
  for (const Registered& known : instances) {
    if (known.instance->endpoint() == plugin.endpoint) {
      return FailedPreconditionError(
          "endpoint {} already registered for DRA driver plugin {}",
          plugin.endpoint, plugin.name);
    }
  }
  auto instance = std::make_shared<DriverInstance>(
      executor_, PacedDialer(plugin), options_.instance, plugin.name,
      plugin.endpoint, SpokenApi(std::move(versions)), options_.now(),
      guards_.Of(plugin.name, plugin.endpoint, executor_.Now()),
      [this, name = plugin.name](DriverInstance::Change change) {
        OnInstances(name, change);
      });
  instance->set_health_service(ChooseHealthService(plugin.supported_versions));
  // Behind those of the same time, so that of them the last one is the newest.
  const auto place = std::find_if(
      instances.begin(), instances.end(), [&](const Registered& known) {
        return known.socket_born_ns > plugin.socket_born_ns;
      });
  instances.insert(place,
                   {plugin.socket_born_ns, plugin.registration, instance});
  instance->Start();
  OnInstances(plugin.name, DriverInstance::Change::kGained);
  return absl::OkStatus();
}

Dialer DriverRegistry::PacedDialer(const registration::Plugin& plugin) const {
  return
      [dials = dials_, &executor = executor_,
       dialer =
           GuardedDialer(dialer_, options_.endpoint_dirs, plugin.socket_owner)](
          const std::filesystem::path& socket, std::function<void()> on_hang_up)
          -> absl::StatusOr<std::unique_ptr<rpc::Connection>> {
        if (dials->Take(socket.string(), executor.Now())) {
          return dialer(socket, std::move(on_hang_up));
        }
        return UnavailableError(
            "'{}' was connected to too often in a short time", socket.string());
      };
}

void DriverRegistry::Deregister(const registration::Plugin& plugin) {
  DEVMGR_ASSERT_ON(executor_);
  const auto driver = drivers_.find(plugin.name);
  if (driver == drivers_.end()) return;
  auto& instances = driver->second;
  const auto found = std::find_if(
      instances.begin(), instances.end(), [&](const Registered& known) {
        return known.registration == plugin.registration;
      });
  if (found == instances.end()) return;
  const std::shared_ptr<DriverInstance> instance = found->instance;
  instances.erase(found);
  if (instances.empty()) drivers_.erase(driver);
  instance->Close();
  OnInstances(plugin.name, DriverInstance::Change::kLost);
}

void DriverRegistry::OnInstances(const std::string& driver,
                                 DriverInstance::Change change) {
  if (health_ != nullptr) {
    std::shared_ptr<HealthWatch>& watch = watches_[driver];
    if (watch == nullptr) {
      watch = std::make_shared<HealthWatch>(
          executor_, driver,
          [this, driver] { return Pick(driver).value_or(nullptr); }, *health_);
    }
    watch->Update();
    if (!drivers_.contains(driver)) watches_.erase(driver);
  }
  // What another instance of it does is no loss of the driver.
  if (change == DriverInstance::Change::kLost && IsConnected(driver)) return;
  options_.on_change(driver);
}

bool DriverRegistry::IsRegistered(const std::string& driver) const {
  DEVMGR_ASSERT_ON(executor_);
  return drivers_.contains(driver);
}

bool DriverRegistry::IsConnected(const std::string& driver) const {
  DEVMGR_ASSERT_ON(executor_);
  const auto found = drivers_.find(driver);
  return found != drivers_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const Registered& known) {
                       return known.instance->MayAnswer();
                     });
}

absl::StatusOr<std::shared_ptr<DriverInstance>> DriverRegistry::Pick(
    const std::string& driver) const {
  if (driver.empty()) return InvalidArgumentError("DRA driver name is empty");
  const auto found = drivers_.find(driver);
  if (found == drivers_.end() || found->second.empty()) {
    return UnavailableError("DRA driver {} is not registered", driver);
  }
  // Of those that stand alike the newest.
  return std::max_element(found->second.rbegin(), found->second.rend(),
                          [](const Registered& a, const Registered& b) {
                            return a.instance->standing() <
                                   b.instance->standing();
                          })
      ->instance;
}

template <typename Answer>
void DriverRegistry::Refuse(const absl::Status& status,
                            const std::vector<ClaimReference>& claims,
                            std::function<void(Answer)> done) {
  Answer answer;
  for (const ClaimReference& claim : claims) answer.emplace(claim.uid, status);
  executor_.Post(
      [answer = std::move(answer), done = std::move(done)] { done(answer); });
}

void DriverRegistry::Prepare(const std::string& driver,
                             std::vector<ClaimReference> claims,
                             std::function<void(PrepareAnswer)> done) {
  DEVMGR_ASSERT_ON(executor_);
  const auto instance = Pick(driver);
  if (!instance.ok()) {
    return Refuse(instance.status(), claims, std::move(done));
  }
  PrepareClaims(*instance, std::move(claims), std::move(done));
}

void DriverRegistry::Unprepare(const std::string& driver,
                               std::vector<ClaimReference> claims,
                               std::function<void(UnprepareAnswer)> done) {
  DEVMGR_ASSERT_ON(executor_);
  const auto instance = Pick(driver);
  if (!instance.ok()) {
    return Refuse(instance.status(), claims, std::move(done));
  }
  UnprepareClaims(*instance, std::move(claims), std::move(done));
}

std::vector<std::shared_ptr<const PluginInfo>> DriverRegistry::Plugins() const {
  DEVMGR_ASSERT_ON(executor_);
  std::vector<std::shared_ptr<const PluginInfo>> plugins;
  const WallTime now = options_.now();
  for (const auto& [name, instances] : drivers_) {
    const auto called = Pick(name);
    for (const Registered& known : instances) {
      const bool serves = called.ok() && *called == known.instance;
      plugins.push_back(known.instance->Shown(now, serves));
    }
  }
  return plugins;
}

}  // namespace devmgr::dra
