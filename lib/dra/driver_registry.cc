// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_registry.h"

#include <sys/un.h>

#include <algorithm>
#include <utility>

#include "api/names.h"
#include "common/status.h"
#include "dra/claim_calls.h"

namespace devmgr::dra {
namespace {

/// Lexical: `path` lies below `directory`; symbolic links are not followed.
bool IsInside(const std::filesystem::path& path,
              const std::filesystem::path& directory) {
  const auto cleaned = path.lexically_normal();
  const auto base = directory.lexically_normal();
  const auto relative = cleaned.lexically_relative(base);
  return !relative.empty() && *relative.begin() != ".." &&
         *relative.begin() != ".";
}

}  // namespace

DriverRegistry::DriverRegistry(Executor& executor, Dialer dialer,
                               DriverRegistryOptions options)
    : executor_(executor),
      dialer_(std::move(dialer)),
      options_(std::move(options)) {}

DriverRegistry::~DriverRegistry() {
  for (auto& [name, instances] : drivers_) {
    for (auto& instance : instances) instance->Close();
  }
}

absl::Status DriverRegistry::CheckEndpoint(const std::string& endpoint) const {
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (endpoint.empty())
    return InvalidArgumentError("empty DRA plugin endpoint");
  if (endpoint.front() != '/') {
    return InvalidArgumentError("endpoint '{}' must be an absolute path",
                                endpoint);
  }
  // The kernel would connect to what stands before it.
  if (endpoint.find('\0') != std::string::npos) {
    return InvalidArgumentError("endpoint of {} bytes has a NUL in it",
                                endpoint.size());
  }
  if (endpoint.size() > kMaxPath) {
    return InvalidArgumentError("endpoint '{}' is longer than {} bytes",
                                endpoint, kMaxPath);
  }
  if (options_.endpoint_dirs.empty()) return absl::OkStatus();
  for (const auto& directory : options_.endpoint_dirs) {
    if (IsInside(endpoint, directory)) return absl::OkStatus();
  }
  return InvalidArgumentError("endpoint '{}' is not inside {}", endpoint,
                              options_.endpoint_dirs.front().string());
}

absl::Status DriverRegistry::Validate(const registration::Plugin& plugin) {
  if (const std::string text = api::CheckDriverName(plugin.name);
      !text.empty()) {
    return InvalidArgumentError("{}", text);
  }
  DEVMGR_RETURN_IF_ERROR(CheckEndpoint(plugin.endpoint));
  return WithContext(
      ChooseApiVersions(plugin.name, plugin.supported_versions, options_.api)
          .status(),
      "invalid supported gRPC versions of DRA driver plugin {} at endpoint {}",
      plugin.name, plugin.endpoint);
}

absl::Status DriverRegistry::Register(const registration::Plugin& plugin) {
  DEVMGR_RETURN_IF_ERROR(Validate(plugin));
  auto& instances = drivers_[plugin.name];
  for (const auto& instance : instances) {
    if (instance->endpoint() == plugin.endpoint) {
      return FailedPreconditionError(
          "endpoint {} already registered for DRA driver plugin {}",
          plugin.endpoint, plugin.name);
    }
  }
  DEVMGR_ASSIGN_OR_RETURN(
      auto versions,
      ChooseApiVersions(plugin.name, plugin.supported_versions, options_.api));
  auto instance = std::make_shared<DriverInstance>(
      executor_, dialer_, options_.instance, plugin.name, plugin.endpoint,
      SpokenApi(std::move(versions)), options_.now(),
      [this, name = plugin.name] { OnInstances(name); });
  instance->set_health_service(ChooseHealthService(plugin.supported_versions));
  instances.push_back(instance);
  instance->Start();
  // A connection has told already.
  if (instance->state() != InstanceState::kConnected) {
    OnInstances(plugin.name);
  }
  return absl::OkStatus();
}

void DriverRegistry::Deregister(const registration::Plugin& plugin) {
  const auto driver = drivers_.find(plugin.name);
  if (driver == drivers_.end()) return;
  auto& instances = driver->second;
  const auto found = std::find_if(
      instances.begin(), instances.end(),
      [&](const auto& i) { return i->endpoint() == plugin.endpoint; });
  if (found == instances.end()) return;
  const std::shared_ptr<DriverInstance> instance = *found;
  instances.erase(found);
  if (instances.empty()) drivers_.erase(driver);
  instance->Close();
  OnInstances(plugin.name);
}

void DriverRegistry::OnInstances(const std::string& driver) {
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
  options_.on_change(driver);
}

bool DriverRegistry::IsRegistered(const std::string& driver) const {
  return drivers_.contains(driver);
}

bool DriverRegistry::IsConnected(const std::string& driver) const {
  const auto found = drivers_.find(driver);
  return found != drivers_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const auto& instance) {
                       return instance->state() == InstanceState::kConnected;
                     });
}

absl::StatusOr<std::shared_ptr<DriverInstance>> DriverRegistry::Pick(
    const std::string& driver) const {
  if (driver.empty()) return InvalidArgumentError("DRA driver name is empty");
  const auto found = drivers_.find(driver);
  if (found == drivers_.end() || found->second.empty()) {
    return UnavailableError("DRA driver {} is not registered", driver);
  }
  const auto& instances = found->second;
  const auto connected = std::find_if(
      instances.rbegin(), instances.rend(),
      [](const auto& i) { return i->state() == InstanceState::kConnected; });
  return connected != instances.rend() ? *connected : instances.back();
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
  const auto instance = Pick(driver);
  if (!instance.ok()) {
    return Refuse(instance.status(), claims, std::move(done));
  }
  PrepareClaims(*instance, std::move(claims), std::move(done));
}

void DriverRegistry::Unprepare(const std::string& driver,
                               std::vector<ClaimReference> claims,
                               std::function<void(UnprepareAnswer)> done) {
  const auto instance = Pick(driver);
  if (!instance.ok()) {
    return Refuse(instance.status(), claims, std::move(done));
  }
  UnprepareClaims(*instance, std::move(claims), std::move(done));
}

std::vector<PluginInfo> DriverRegistry::Plugins() const {
  std::vector<PluginInfo> plugins;
  for (const auto& [name, instances] : drivers_) {
    for (const auto& instance : instances) plugins.push_back(instance->Info());
  }
  return plugins;
}

}  // namespace devmgr::dra
