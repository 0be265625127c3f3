// SPDX-License-Identifier: Apache-2.0
//
// One piece of hardware, one pod: the rooms that find out which hardware a
// device is.
#include <utility>

#include "manager/manager.h"

namespace devmgr::manager {

void Manager::StartHardware(std::optional<upkeep::HardwareHost> host) {
  hardware_ = std::make_unique<claim::PublishedHardware>(options_.hardware,
                                                         options_.node_name);
  if (!host.has_value() || !options_.hardware.one_holder) return;
  hardware_look_ =
      std::make_unique<upkeep::HardwareLook>(upkeep::HardwareLook::Parts{
          *executor_, state_, options_.hardware, *std::move(host),
          [this](std::function<void(const CdiRegistry&)> done) {
            return specs_->ReadSpecs(std::move(done));
          }});
}

void Manager::LookAtNodes(
    std::vector<upkeep::NodeQuestion> questions,
    const std::function<void(const upkeep::HardwareLook::Facts&)>& done) {
  if (hardware_look_ == nullptr) {
    return done(upkeep::HardwareLook::Facts(questions.size()));
  }
  hardware_look_->Look(std::move(questions), done);
}

void Manager::IdentifyPrepared(
    const std::string& driver, pods::DriverCalls::PreparedClaims prepared,
    const std::function<void(pods::DriverCalls::PreparedClaims)>& done) {
  if (hardware_look_ == nullptr) return done(std::move(prepared));
  hardware_look_->Identify(driver, std::move(prepared), done);
}

}  // namespace devmgr::manager
