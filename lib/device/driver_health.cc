// SPDX-License-Identifier: Apache-2.0
#include "device/driver_health.h"

#include <algorithm>
#include <map>
#include <vector>

#include "api/quote.h"

namespace devmgr::device {
namespace {

/// At most so many bytes with the dots, and whole characters.
std::string Shortened(const std::string& message) {
  constexpr std::size_t kMost = DriverHealth::kMaxMessageBytes;
  std::string text = api::Readable(message, kMost);
  if (text.size() > kMost) text = api::Readable(message, kMost - 3);
  return text;
}

std::int64_t LeaseOf(const DeviceReport& report) {
  if (report.lease_ms <= 0) return DriverHealth::kDefaultLeaseMs;
  return std::min(report.lease_ms, DriverHealth::kMaxLeaseMs);
}

/// Of a ledger that may say anything.
std::int64_t KeptLease(std::int64_t lease_ms) {
  return std::clamp<std::int64_t>(lease_ms, 1, DriverHealth::kMaxLeaseMs);
}

}  // namespace

std::string WhyOver(const KeptReport& report, const std::string& boot_id,
                    std::int64_t boot_ms) {
  if (report.boot_id != boot_id) {
    return "the driver has not reported it since the node booted";
  }
  const bool in_time =
      report.told_ms >= 0 && report.told_ms <= boot_ms &&
      boot_ms - report.told_ms <= KeptLease(report.health.lease_ms);
  if (in_time) return "";
  return "the driver's last report ran out while the manager was not running";
}

template <typename Map>
DriverHealth::Devices DriverHealth::Drop(std::int64_t steady_ms,
                                         const Map& spared) {
  Devices lost;
  std::vector<PoolDevice> over;
  for (const auto& [device, record] : records_) {
    if (record.Counts(steady_ms) || spared.contains(device)) continue;
    if (record.health.health != Health::kUnknown) lost.insert(device);
    over.push_back(device);
  }
  for (const PoolDevice& device : over) records_.erase(device);
  return lost;
}

DriverHealth::Devices DriverHealth::Report(
    const std::vector<DeviceReport>& report, Moment now) {
  std::map<PoolDevice, const DeviceReport*> last;
  for (const DeviceReport& one : report) last[one.device] = &one;
  Devices changed = Drop(now.steady_ms, last);
  for (const auto& [device, told] : last) {
    if (records_.size() >= kMaxDevices && !records_.contains(device)) continue;
    const EffectiveHealth before = Find(device, now.steady_ms);
    EffectiveHealth health{told->health, Shortened(told->message),
                           LeaseOf(*told), before.since_ms};
    if (health.health != before.health || health.message != before.message ||
        before.since_ms == 0) {
      health.since_ms = now.unix_ms;
    }
    if (health != before) changed.insert(device);
    records_.insert_or_assign(device, {std::move(health), now.steady_ms});
  }
  return changed;
}

DriverHealth::Devices DriverHealth::Expire(std::int64_t steady_ms) {
  return Drop(steady_ms, Devices());
}

DriverHealth::Devices DriverHealth::Clear() {
  Devices lost;
  for (const auto& [device, record] : records_) {
    if (record.health.health != Health::kUnknown) lost.insert(device);
  }
  records_.clear();
  return lost;
}

void DriverHealth::Restore(const PoolDevice& device, EffectiveHealth health,
                           std::int64_t told_ms) {
  health.lease_ms = KeptLease(health.lease_ms);
  records_.insert_or_assign(device, {std::move(health), told_ms});
}

std::optional<std::int64_t> DriverHealth::ToldAt(const PoolDevice& device,
                                                 std::int64_t steady_ms) const {
  const Record* found = records_.Find(device);
  if (found == nullptr || !found->Counts(steady_ms)) return std::nullopt;
  return found->told_ms;
}

EffectiveHealth DriverHealth::Find(const PoolDevice& device,
                                   std::int64_t steady_ms) const {
  const Record* found = records_.Find(device);
  if (found == nullptr || !found->Counts(steady_ms)) return {};
  return found->health;
}

std::optional<std::int64_t> DriverHealth::NextExpiry() const {
  std::optional<std::int64_t> next;
  for (const auto& [device, record] : records_) {
    const std::int64_t end = record.told_ms + record.health.lease_ms + 1;
    next = std::min(next.value_or(end), end);
  }
  return next;
}

}  // namespace devmgr::device
