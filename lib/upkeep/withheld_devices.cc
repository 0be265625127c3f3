// SPDX-License-Identifier: Apache-2.0
#include "upkeep/withheld_devices.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace devmgr::upkeep {
namespace {

using std::chrono::milliseconds;

}  // namespace

WithheldDevices::~WithheldDevices() {
  for (const auto& [driver, timer] : timers_) parts_.executor.Cancel(timer);
}

std::int64_t WithheldDevices::SteadyMs() const {
  return std::chrono::duration_cast<milliseconds>(
             parts_.executor.Now().time_since_epoch())
      .count();
}

void WithheldDevices::Note(const std::string& driver,
                           const device::PoolDevice& device,
                           device::Health health) {
  DEVMGR_ASSERT_ON(parts_.executor);
  auto found = drivers_.find(driver);
  if (found == drivers_.end()) {
    const device::Probation::Rules rules = parts_.rules(driver);
    if (rules.healthy_for_ms <= 0) return;
    found = drivers_.try_emplace(driver, rules).first;
  }
  const bool changed = found->second.Note(device.first + "/" + device.second,
                                          health, SteadyMs());
  if (found->second.size() == 0) {
    drivers_.erase(found);
    return;
  }
  if (changed) ++version_;
  Arm(driver);
}

std::vector<std::string> WithheldDevices::Recheck(const std::string& driver,
                                                  const std::string& device) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return {};
  std::vector<std::string> offered = found->second.Recheck(device);
  Arm(driver);
  Offer(driver, offered);
  return offered;
}

const device::Probation* WithheldDevices::Find(
    const std::string& driver) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const auto found = drivers_.find(driver);
  return found == drivers_.end() ? nullptr : &found->second;
}

std::set<state::DeviceKey> WithheldDevices::All() const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::set<state::DeviceKey> all;
  for (const auto& [driver, probation] : drivers_) {
    for (const auto& [name, until] : probation.withheld()) {
      // Names of pools have slashes, those of devices have none.
      const std::size_t slash = name.rfind('/');
      all.emplace(driver, name.substr(0, slash), name.substr(slash + 1));
    }
  }
  return all;
}

void WithheldDevices::Offer(const std::string& driver,
                            const std::vector<std::string>& devices) {
  if (devices.empty()) return;
  ++version_;
  parts_.on_offered(driver, devices);
}

void WithheldDevices::Arm(const std::string& driver) {
  if (const auto armed = timers_.extract(driver); !armed.empty()) {
    parts_.executor.Cancel(armed.mapped());
  }
  const auto next = drivers_.at(driver).NextEnd();
  if (!next.has_value()) return;
  const milliseconds delay(std::max<std::int64_t>(*next - SteadyMs(), 1));
  timers_[driver] = parts_.executor.PostAfter(delay, [this, driver] {
    timers_.erase(driver);
    const auto offered = drivers_.at(driver).End(SteadyMs());
    Arm(driver);
    Offer(driver, offered);
  });
}

}  // namespace devmgr::upkeep
