// SPDX-License-Identifier: Apache-2.0
#include "upkeep/driver_news.h"

namespace devmgr::upkeep {

void DriverNews::OnDriverChange(const std::string& driver) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const bool registered = parts_.drivers.IsRegistered(driver);
  const bool connected = parts_.drivers.IsConnected(driver);
  parts_.slices.OnDriver(driver);
  const auto known = connected_.find(driver);
  if (!registered) {
    // Its connection ended, then it left: it is told once that it is gone.
    if (known == connected_.end()) return;
    connected_.erase(known);
    parts_.events.Add(false, "DriverGone", "Plugin", {"", driver},
                      "driver deregistered");
    parts_.wake(driver);
    return;
  }
  const bool is_new = known == connected_.end();
  const bool was_connected = !is_new && known->second;
  connected_[driver] = connected;
  // Nobody waits for that; it is dialled again.
  if (was_connected && !connected) return;
  // That another instance came or left is no news of the driver.
  if (is_new || connected != was_connected) Report(driver, connected);
  parts_.wake(driver);
  parts_.debts.OnDriver(driver);
}

void DriverNews::Report(const std::string& driver, bool connected) {
  if (connected) {
    parts_.events.Add(false, "DriverAvailable", "Plugin", {"", driver},
                      "driver is registered and connected");
  } else {
    parts_.events.Add(
        true, "DriverNotConnected", "Plugin", {"", driver},
        "driver is registered, and no connection to it could be made "
        "so far");
  }
}

}  // namespace devmgr::upkeep
