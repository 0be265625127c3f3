// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/executor.h"
#include "dra/driver_instance.h"
#include "dra/drivers.h"
#include "dra/health_watch.h"
#include "peer/flap_guard.h"
#include "peer/rate_limit.h"
#include "registration/plugin.h"

namespace devmgr::dra {

struct DriverRegistryOptions {
  InstanceOptions instance;
  ApiOptions api;  ///< CheckApiOptions finds nothing.
  /// Endpoints must lie below one of these (endpoint.h); empty: anywhere.
  std::vector<std::filesystem::path> endpoint_dirs;
  std::function<WallTime()> now;
  peer::FlapOptions flap;
  /// Connections to one endpoint, under whatever name it registers, and to all:
  /// other drivers wait while one is made.
  peer::RateOptions dials;
  peer::RateOptions all_dials{1024, std::chrono::milliseconds(50)};
  /// A driver registered, answers or is trusted again, lost its last
  /// connection, or left. Runs on the executor.
  std::function<void(const std::string& driver)> on_change;
};

/// The drivers that registered, each with its instances. The newest one that
/// answers gets the calls: the one whose registration socket was made last, so
/// that it does not matter in which order they are found. One that is silent,
/// or comes and goes, comes behind those that do not. Handler of plugins of
/// type `DRAPlugin`. Follows the kubelet's pkg/kubelet/cm/dra/plugin. Lives on
/// its executor.
class DriverRegistry final : public Drivers,
                             public registration::PluginHandler {
 public:
  static constexpr char kPluginType[] = "DRAPlugin";

  /// `executor` is borrowed and must outlive the registry.
  DriverRegistry(Executor& executor, Dialer dialer,
                 DriverRegistryOptions options);
  ~DriverRegistry() override;

  bool IsRegistered(const std::string& driver) const override;
  bool IsConnected(const std::string& driver) const override;
  void Prepare(const std::string& driver, std::vector<ClaimReference> claims,
               std::function<void(PrepareAnswer)> done) override;
  void Unprepare(const std::string& driver, std::vector<ClaimReference> claims,
                 std::function<void(UnprepareAnswer)> done) override;
  std::vector<std::shared_ptr<const PluginInfo>> Plugins() const override;
  void WatchHealth(HealthListener& listener) override { health_ = &listener; }

  absl::Status Validate(const registration::Plugin& plugin) override;
  void Register(const registration::Plugin& plugin,
                std::function<void(absl::Status)> done) override {
    done(Register(plugin));
  }
  absl::Status Register(const registration::Plugin& plugin);
  void Deregister(const registration::Plugin& plugin) override;

 private:
  struct Registered {
    std::int64_t socket_born_ns = 0;
    std::uint64_t registration = 0;
    std::shared_ptr<DriverInstance> instance;
  };
  /// The answer when there is no instance to be asked.
  template <typename Answer>
  void Refuse(const absl::Status& status,
              const std::vector<ClaimReference>& claims,
              std::function<void(Answer)> done);

  /// The instance to call.
  ///   InvalidArgument  the name is empty
  ///   Unavailable      no instance is registered
  absl::StatusOr<std::shared_ptr<DriverInstance>> Pick(
      const std::string& driver) const;
  /// An instance came, left, or has another standing.
  void OnInstances(const std::string& driver, DriverInstance::Change change);

  /// The dialer of an instance: as often as `dials_` lets it.
  Dialer PacedDialer(const registration::Plugin& plugin) const;

  Executor& executor_;
  const Dialer dialer_;
  const DriverRegistryOptions options_;
  /// By endpoint; shared with instances, which may outlive this.
  const std::shared_ptr<peer::RateLimits> dials_;
  peer::FlapGuards guards_;  ///< By driver and endpoint.
  /// Oldest first; shared with completions under way.
  std::map<std::string, std::vector<Registered>> drivers_;
  HealthListener* health_ = nullptr;  ///< Null: no driver is asked for health.
  std::map<std::string, std::shared_ptr<HealthWatch>> watches_;
};

}  // namespace devmgr::dra
