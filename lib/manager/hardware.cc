// SPDX-License-Identifier: Apache-2.0
//
// One piece of hardware, one pod: who says which hardware a device is, and who
// is asked for it.
#include "device/hardware.h"

#include <algorithm>
#include <utility>

#include "manager/manager.h"

namespace devmgr::manager {
namespace {

/// What the claim has for itself of the driver's answer. What is shared keeps
/// nothing from others.
bool IsOwn(const state::ClaimRecord* claim, const std::string& driver,
           const state::PreparedDevice& device) {
  if (claim == nullptr || !device.share_id.empty()) return false;
  const auto part = claim->drivers.find(driver);
  if (part == claim->drivers.end()) return false;
  const auto& allocated = part->second.allocated;
  return std::none_of(allocated.begin(), allocated.end(),
                      [&](const state::AllocatedDevice& each) {
                        return each.shared && each.pool == device.pool &&
                               each.device == device.device;
                      });
}

/// What is published says whether it is a part.
bool IsPart(const state::ClaimRecord& claim, const std::string& driver,
            const state::PreparedDevice& device) {
  const auto& allocated = claim.drivers.at(driver).allocated;
  return std::any_of(allocated.begin(), allocated.end(),
                     [&](const state::AllocatedDevice& each) {
                       return each.pool == device.pool &&
                              each.device == device.device &&
                              each.hardware.part;
                     });
}

}  // namespace

void Manager::StartHardware(std::optional<upkeep::HardwareHost> host) {
  hardware_ = std::make_unique<claim::PublishedHardware>(options_.hardware,
                                                         options_.node_name);
  if (!host.has_value() || !options_.hardware.one_holder) return;
  hardware_look_ = std::make_unique<upkeep::HardwareLook>(
      *executor_, *std::move(host),
      [this](std::function<void(const CdiRegistry&)> done) {
        return specs_->ReadSpecs(std::move(done));
      });
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
  if (hardware_look_ == nullptr ||
      device::IsSharedByIntent(driver, options_.hardware)) {
    return done(std::move(prepared));
  }
  std::vector<upkeep::NodeQuestion> questions;
  for (const auto& [uid, devices] : prepared) {
    const state::ClaimRecord* claim = state_.FindClaim(uid);
    for (const state::PreparedDevice& device : devices) {
      questions.emplace_back();
      if (!IsOwn(claim, driver, device)) continue;
      questions.back().cdi_devices = device.cdi_device_ids;
    }
  }
  LookAtNodes(std::move(questions),
              [this, driver, prepared = std::move(prepared),
               done](const upkeep::HardwareLook::Facts& facts) mutable {
                std::size_t next = 0;
                for (auto& [uid, devices] : prepared) {
                  const state::ClaimRecord* claim = state_.FindClaim(uid);
                  for (state::PreparedDevice& device : devices) {
                    device.hardware =
                        device::HardwareOf(facts.at(next++), options_.hardware);
                    device.hardware.part = claim != nullptr &&
                                           claim->drivers.contains(driver) &&
                                           IsPart(*claim, driver, device);
                  }
                }
                done(std::move(prepared));
              });
}

}  // namespace devmgr::manager
