// SPDX-License-Identifier: Apache-2.0
#include "upkeep/slice_keeper.h"

#include <fmt/core.h>

#include <utility>

#include "common/status.h"

namespace devmgr::upkeep {

SliceKeeper::SliceKeeper(Parts parts)
    : parts_(std::move(parts)), gate_(parts_.executor) {}

SliceKeeper::~SliceKeeper() {
  for (const auto& [driver, pending] : pending_) {
    parts_.executor.Cancel(pending.timer);
  }
}

void SliceKeeper::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (parts_.sink == nullptr) return;
  pending_[""].number = ++last_number_;
  Delete("");
}

void SliceKeeper::OnDriver(const std::string& driver) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (parts_.sink == nullptr) return;
  const auto pending = pending_.find(driver);
  if (parts_.is_connected(driver)) {
    if (pending == pending_.end()) return;
    parts_.executor.Cancel(pending->second.timer);
    pending_.erase(pending);
    parts_.sink->KeepResourceSlices(driver);
  } else if (pending == pending_.end()) {
    pending_[driver].number = ++last_number_;
    Arm(driver, parts_.grace_period);
  }
}

void SliceKeeper::Arm(const std::string& driver,
                      std::chrono::milliseconds delay) {
  pending_[driver].timer =
      parts_.executor.PostAfter(delay, [this, driver] { Delete(driver); });
}

void SliceKeeper::Delete(const std::string& driver) {
  const std::uint64_t number = pending_.at(driver).number;
  parts_.sink->DeleteResourceSlices(
      driver,
      gate_.Pass<absl::Status>([this, driver, number](const absl::Status& s) {
        OnDeleted(driver, number, s);
      }));
}

void SliceKeeper::OnDeleted(const std::string& driver, std::uint64_t number,
                            const absl::Status& status) {
  const auto pending = pending_.find(driver);
  // It came back meanwhile, and maybe left again.
  if (pending == pending_.end() || pending->second.number != number) return;
  if (status.ok() || absl::IsNotFound(status)) {
    pending_.erase(pending);
    if (driver.empty()) return;
    parts_.events.Add(false, "ResourceSlicesDeleted", "Plugin", {"", driver},
                      "it has had no connection for the grace period");
    return;
  }
  parts_.events.Add(true, "ResourceSlicesNotDeleted", "Plugin", {"", driver},
                    MessageOf(status));
  Arm(driver, pending->second.back_off.Next());
}

}  // namespace devmgr::upkeep
