// SPDX-License-Identifier: Apache-2.0
//
// The rooms that follow the health of drivers' devices, and which devices no
// pod gets because they did not work.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "common/boot_id.h"
#include "manager/manager.h"
#include "view/health_views.h"

namespace devmgr::manager {

device::Probation::Rules Manager::ProbationOf(const std::string& name) const {
  const HealthOptions& health = options_.health;
  const bool unknown = health.unknown_is_unhealthy.contains(name);
  if (!unknown && !health.policies.contains(name)) return {};
  return {health.healthy_for.count(), unknown};
}

/// They had a taint for claims of this node.
void Manager::WakeForOffered(const std::string& driver,
                             const std::vector<std::string>& devices) {
  using Kind = WaitingFor::Kind;
  std::vector<WaitingFor> changed = {{Kind::kTaint, driver},
                                     {Kind::kTaint, WaitingFor::kAnyDriver}};
  for (const std::string& device : devices) {
    changed.push_back({Kind::kTaint, fmt::format("{}/{}", driver, device)});
  }
  Wake(changed);
}

void Manager::StartDraHealth() {
  withheld_ =
      std::make_unique<upkeep::WithheldDevices>(upkeep::WithheldDevices::Parts{
          *executor_,
          [this](const std::string& driver) { return ProbationOf(driver); },
          [this](const std::string& driver,
                 const std::vector<std::string>& devices) {
            WakeForOffered(driver, devices);
          }});
  dra_health_ = std::make_unique<upkeep::DraHealth>(upkeep::DraHealth::Parts{
      *executor_, *ledger_, state_, events_,
      [this] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
                   host_.now().time_since_epoch())
            .count();
      },
      boot_id_,
      // Not the function itself: its type would become a symbol that the
      // library exports.
      [] { return BootMs(); },
      [this](const std::set<PodUid>& pods) { health_->OnHealth(pods); },
      [this](const std::string& driver) { health_->OnDevices(driver); },
      [this](const std::string& driver, const device::PoolDevice& device,
             device::Health health) {
        withheld_->Note(driver, device, health);
      },
      [this](const std::string& driver,
             const device::DriverHealth::Devices& devices) {
        changes_->OnDriverHealth(
            driver, devices, [&](const device::PoolDevice& device) {
              return view::HealthOf(dra_health_->known(),
                                    {driver, device.first, device.second},
                                    dra_health_->SteadyMs());
            });
      }});
  if (!IsOn(Feature::kResourceHealthStatus)) return;
  dra_health_->Restore();
  drivers_->WatchHealth(*dra_health_);
}

}  // namespace devmgr::manager
