// SPDX-License-Identifier: Apache-2.0
#include "device/probation.h"

#include <algorithm>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::device {

bool Probation::Note(const std::string& device, Health health,
                     std::int64_t now_ms) {
  if (rules_.healthy_for_ms <= 0) return false;
  const auto known = withheld_.find(device);
  const bool is_broken =
      health == Health::kUnhealthy ||
      (health == Health::kUnknown && rules_.unknown_is_unhealthy);
  if (is_broken) {
    withheld_[device] = std::nullopt;
    return known == withheld_.end();
  }
  if (known == withheld_.end()) return false;
  if (health == Health::kUnknown) {
    known->second.reset();
  } else if (!known->second.has_value()) {
    known->second = now_ms + rules_.healthy_for_ms;
  }
  return false;
}

std::vector<std::string> Probation::End(std::int64_t now_ms) {
  std::vector<std::string> ended;
  std::erase_if(withheld_, [&](const auto& item) {
    const bool is_over = item.second.has_value() && *item.second <= now_ms;
    if (is_over) ended.push_back(item.first);
    return is_over;
  });
  return ended;
}

std::optional<std::int64_t> Probation::NextEnd() const {
  std::optional<std::int64_t> next;
  for (const auto& [device, until] : withheld_) {
    if (until.has_value()) next = std::min(next.value_or(*until), *until);
  }
  return next;
}

std::vector<std::string> Probation::Recheck(const std::string& device) {
  std::vector<std::string> ended;
  std::erase_if(withheld_, [&](const auto& item) {
    const bool is_over =
        item.second.has_value() && (device.empty() || item.first == device);
    if (is_over) ended.push_back(item.first);
    return is_over;
  });
  return ended;
}

absl::Status Probation::CheckRecheck(const std::string& name,
                                     const std::string& device) const {
  bool any = false;
  for (const auto& [id, until] : withheld_) {
    if (!device.empty() && id != device) continue;
    if (until.has_value()) return absl::OkStatus();
    any = true;
  }
  if (!any) return NothingWithheld(name, device);
  return FailedPreconditionError(
      "{} of {} not work: that has to be reported as Healthy first",
      device.empty() ? "the devices" : "device " + api::Quoted(device),
      name + (device.empty() ? " do" : " does"));
}

absl::Status NothingWithheld(const std::string& name,
                             const std::string& device) {
  return NotFoundError(
      "{} of {} is withheld from pods",
      device.empty() ? "no device" : "no device " + api::Quoted(device), name);
}

}  // namespace devmgr::device
