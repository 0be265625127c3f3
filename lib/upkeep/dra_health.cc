// SPDX-License-Identifier: Apache-2.0
#include "upkeep/dra_health.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>

#include "api/quote.h"
#include "claim/container_answer.h"
#include "claim/kept_health.h"
#include "common/status.h"
#include "view/health_views.h"

namespace devmgr::upkeep {
namespace {

using device::Health;
using std::chrono::milliseconds;

/// Between two writes of health. A driver whose texts change all the time does
/// not wear out the disk.
constexpr milliseconds kSavePause(1'000);

constexpr std::size_t kMostErrorBytes = 1'024;

state::DeviceKey KeyOf(const std::string& driver,
                       const device::PoolDevice& device) {
  return {driver, device.first, device.second};
}

std::string NameOf(const device::PoolDevice& device) {
  return device.first + "/" + device.second;
}

}  // namespace

DraHealth::~DraHealth() {
  parts_.executor.Cancel(save_again_);
  for (const auto& [driver, timer] : expiries_) parts_.executor.Cancel(timer);
}

std::int64_t DraHealth::SteadyMs() const {
  return std::chrono::duration_cast<milliseconds>(
             parts_.executor.Now().time_since_epoch())
      .count();
}

device::EffectiveHealth DraHealth::Told(const state::DeviceKey& device) const {
  const auto& [driver, pool, name] = device;
  const device::DriverHealth* health = known_.drivers.Find(driver);
  if (health == nullptr) return {};
  return health->Find({pool, name}, SteadyMs());
}

device::EffectiveHealth DraHealth::Find(const state::DeviceKey& device) const {
  return view::HealthOf(known_, device, SteadyMs());
}

std::shared_ptr<const state::HealthRecord> DraHealth::RecordOf(
    const state::DeviceKey& key) const {
  device::EffectiveHealth health = Told(key);
  if (health.health == Health::kUnknown && health.message.empty()) {
    return nullptr;
  }
  auto record = std::make_shared<state::HealthRecord>();
  std::tie(record->driver, record->pool, record->device) = key;
  record->health = health.health;
  record->message = std::move(health.message);
  record->lease_ms = health.lease_ms;
  record->since_ms = health.since_ms;
  record->boot_id = parts_.boot_id;
  const std::int64_t now = SteadyMs();
  const auto told = known_.drivers.at(record->driver)
                        .ToldAt({record->pool, record->device}, now);
  record->told_ms = parts_.boot_ms() - (now - told.value_or(now));
  return record;
}

void DraHealth::Restore() {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [key, record] : parts_.state.healths) {
    if (parts_.state.ClaimsOf(key).empty()) {
      unsaved_.insert(key);
      continue;
    }
    const device::KeptReport report{
        {record->health, record->message, record->lease_ms, record->since_ms},
        record->boot_id,
        record->told_ms};
    // Also where nothing counts: the driver is one that tells.
    const device::DriverHealth* known = known_.drivers.Find(record->driver);
    device::DriverHealth health =
        known != nullptr ? *known : device::DriverHealth();
    const std::int64_t boot_ms = parts_.boot_ms();
    std::string why = device::WhyOver(report, parts_.boot_id, boot_ms);
    if (why.empty()) {
      health.Restore({record->pool, record->device}, report.health,
                     SteadyMs() - (boot_ms - report.told_ms));
    } else {
      known_.over.insert_or_assign(
          key, {Health::kUnknown, std::move(why), 0, parts_.now_ms()});
    }
    known_.drivers.insert_or_assign(record->driver, std::move(health));
  }
  for (const auto& [name, driver] : known_.drivers) ArmExpiry(name);
  Save();
}

template <typename Change>
device::DriverHealth::Devices DraHealth::ChangeHealth(const std::string& driver,
                                                      Change change) {
  const device::DriverHealth* known = known_.drivers.Find(driver);
  device::DriverHealth health =
      known != nullptr ? *known : device::DriverHealth();
  auto changed = change(health);
  known_.drivers.insert_or_assign(driver, std::move(health));
  return changed;
}

void DraHealth::OnHealthReport(
    const std::string& driver,
    const std::vector<device::DeviceReport>& report) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const device::DeviceReport& one : report) {
    known_.over.erase(KeyOf(driver, one.device));
  }
  const auto changed = ChangeHealth(driver, [&](device::DriverHealth& health) {
    return health.Report(report, {SteadyMs(), parts_.now_ms()});
  });
  ArmExpiry(driver);
  OnChanged(driver, changed);
}

void DraHealth::OnHealthLost(const std::string& driver,
                             const std::string& why) {
  DEVMGR_ASSERT_ON(parts_.executor);
  parts_.events.Add(true, "DriverHealthLost", "Plugin", {"", driver},
                    api::Readable(why, kMostErrorBytes));
  if (!Knows(driver)) return;
  const auto changed = ChangeHealth(
      driver, [](device::DriverHealth& health) { return health.Clear(); });
  ArmExpiry(driver);
  OnChanged(driver, changed);
  // Who makes up ever new names of drivers leaves nothing behind.
  if (HeldCount(driver) == 0) known_.drivers.erase(driver);
}

void DraHealth::ArmExpiry(const std::string& driver) {
  if (const auto armed = expiries_.extract(driver); !armed.empty()) {
    parts_.executor.Cancel(armed.mapped());
  }
  const std::optional<std::int64_t> next =
      known_.drivers.at(driver).NextExpiry();
  if (!next.has_value()) return;
  const milliseconds delay(std::max<std::int64_t>(*next - SteadyMs(), 1));
  expiries_[driver] = parts_.executor.PostAfter(delay, [this, driver] {
    expiries_.erase(driver);
    const auto changed =
        ChangeHealth(driver, [&](device::DriverHealth& health) {
          return health.Expire(SteadyMs());
        });
    ArmExpiry(driver);
    OnChanged(driver, changed);
  });
}

void DraHealth::OnChanged(const std::string& driver,
                          const device::DriverHealth::Devices& devices) {
  if (parts_.on_changed) parts_.on_changed(driver, devices);
  std::set<PodUid> pods;
  for (const device::PoolDevice& device : devices) {
    const state::DeviceKey key = KeyOf(driver, device);
    if (parts_.on_device) parts_.on_device(driver, device, Find(key).health);
    for (const ClaimUid& uid : parts_.state.ClaimsOf(key)) {
      unsaved_.insert(key);
      const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
      pods.insert(claim->pods.begin(), claim->pods.end());
    }
  }
  Save();
  if (!pods.empty()) parts_.on_health(pods);
  if (!devices.empty()) parts_.on_devices(driver);
}

void DraHealth::OnClaim(const state::ClaimRecord* before,
                        const state::ClaimRecord* now) {
  for (const state::ClaimRecord* claim : {before, now}) {
    if (claim == nullptr) continue;
    for (const auto& [driver, record] : claim->drivers) {
      if (Knows(driver)) touched_.insert(driver);
      for (const state::PreparedDevice& device : record.devices) {
        const state::DeviceKey key(driver, device.pool, device.device);
        const bool is_kept = parts_.state.FindHealth(key) != nullptr;
        const bool is_held = !parts_.state.ClaimsOf(key).empty();
        if (is_kept != is_held) unsaved_.insert(key);
        // One that is to be prepared again, after a reboot, has it still.
        if (!is_held && now == nullptr) known_.over.erase(key);
      }
    }
  }
}

void DraHealth::OnCommitting(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& pod : changes.pods) {
    if (!ledger::BeginsRelease(pod)) continue;
    auto status =
        view::ClaimedResourcesOf(known_, SteadyMs(), parts_.state, *pod.now);
    if (!status.empty()) {
      known_.last.insert_or_assign(pod.now->uid, std::move(status));
    }
  }
}

void DraHealth::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) known_.last.erase(before->uid);
  }
  if (changes.claims.empty()) return;
  for (const auto& [before, now] : changes.claims) {
    OnClaim(before.get(), now.get());
  }
  Save();
  for (const std::string& driver : std::exchange(touched_, {})) {
    parts_.on_devices(driver);
  }
}

void DraHealth::JudgeRestored() {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& [key, record] : parts_.state.healths) {
    const device::PoolDevice device(record->pool, record->device);
    if (parts_.on_changed) parts_.on_changed(record->driver, {device});
    if (!parts_.on_device) continue;
    parts_.on_device(record->driver, device, Find(key).health);
  }
  for (const auto& [name, driver] : known_.drivers) parts_.on_devices(name);
}

void DraHealth::Save() {
  if (unsaved_.empty() || saving_ || save_again_ != 0) return;
  claim::HealthRecords records;
  for (const state::DeviceKey& key : unsaved_) {
    records[key] = RecordOf(key);
  }
  const auto decide =
      [records = std::move(records)](
          const state::State& state) -> absl::StatusOr<state::Decision> {
    return claim::KeepHealth(state, records, claim::Leases::kWithNews);
  };
  const auto devices = std::exchange(unsaved_, {});
  // Nearly always there is nothing to write.
  if (decide(parts_.state)->changes.empty()) return;
  saving_ = true;
  parts_.ledger.Submit(decide, parts_.executor,
                       [this, devices](const absl::Status& status) {
                         OnSaved(devices, status);
                       });
}

void DraHealth::OnSaved(const std::set<state::DeviceKey>& devices,
                        const absl::Status& status) {
  saving_ = false;
  // The ledger says itself what is wrong with it.
  if (!status.ok()) unsaved_.insert(devices.begin(), devices.end());
  save_again_ = parts_.executor.PostAfter(kSavePause, [this] {
    save_again_ = 0;
    Save();
  });
}

void DraHealth::KeepLeases() {
  DEVMGR_ASSERT_ON(parts_.executor);
  claim::HealthRecords records;
  for (const state::ByDevice& item : parts_.state.device_claims) {
    const state::DeviceKey key = item.Key();
    if (Told(key) != device::EffectiveHealth()) records[key] = RecordOf(key);
  }
  for (const state::DeviceKey& key : unsaved_) records[key] = RecordOf(key);
  if (claim::KeepHealth(parts_.state, records, claim::Leases::kAll)
          .changes.empty())
    return;
  // After a failure, the next process takes for Unknown what it cannot read.
  parts_.ledger.Submit([records = std::move(records)](const state::State& state)
                           -> absl::StatusOr<state::Decision> {
    return claim::KeepHealth(state, records, claim::Leases::kAll);
  });
}

DraHealth::Holdings DraHealth::HoldingsOf(const std::string& driver) const {
  Holdings holdings;
  const auto& prepared = parts_.state.device_claims;
  for (auto item = prepared.lower_bound(state::DeviceKey(driver, "", ""));
       item != prepared.end() && *item->driver == driver; ++item) {
    const state::DeviceKey key = item->Key();
    const device::EffectiveHealth health = Find(key);
    for (const PodUid& pod : item->claim->pods) {
      holdings[{pod, {std::get<1>(key), std::get<2>(key)}}] = health;
    }
  }
  return holdings;
}

std::vector<device::FaultyDevice> DraHealth::Faulty(
    const std::string& driver, bool unknown_is_unhealthy) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::vector<device::FaultyDevice> faulty;
  for (const auto& [holding, health] : HoldingsOf(driver)) {
    const bool counts =
        health.health == Health::kUnhealthy ||
        (health.health == Health::kUnknown && unknown_is_unhealthy);
    if (!counts) continue;
    faulty.push_back({holding.first, NameOf(holding.second), health.since_ms,
                      health.message});
  }
  return faulty;
}

bool DraHealth::Works(const std::string& driver, const PodUid& pod,
                      const std::string& device) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const Holdings holdings = HoldingsOf(driver);
  return std::any_of(holdings.begin(), holdings.end(),
                     [&](const auto& holding) {
                       return holding.first.first == pod &&
                              NameOf(holding.first.second) == device &&
                              holding.second.health == Health::kHealthy;
                     });
}

std::size_t DraHealth::HeldCount(const std::string& driver) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return HoldingsOf(driver).size();
}

absl::Status DraHealth::CheckStart(
    const state::PodRecord& pod, const ContainerName& container,
    const std::function<bool(const std::string&)>& fails) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  absl::Status status;
  ForEachFaulty(pod, container, fails, [&](const FaultyDevice& faulty) {
    status.Update(FailedPreconditionError(
        "device '{}/{}' of {} in container '{}' of pod '{}' does "
        "not work",
        faulty.device.pool, faulty.device.device, faulty.driver, container,
        pod.name.ToString()));
  });
  return status;
}

std::set<ClaimUid> DraHealth::FaultyClaims(
    const state::PodRecord& pod, const ContainerName& container,
    const std::function<bool(const std::string&)>& replaces) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  std::set<ClaimUid> claims;
  ForEachFaulty(pod, container, replaces, [&](const FaultyDevice& faulty) {
    claims.insert(faulty.claim);
  });
  return claims;
}

void DraHealth::ForEachFaulty(
    const state::PodRecord& pod, const ContainerName& container,
    const std::function<bool(const std::string&)>& counts,
    const std::function<void(const FaultyDevice&)>& visit) const {
  for (const state::ContainerNeed& need : pod.needs) {
    if (need.name != container) continue;
    for (const state::Want& want : need.wants) {
      const state::ClaimRecord* claim = parts_.state.FindClaim(want.claim);
      if (claim == nullptr) continue;
      for (const auto& [driver, record] : claim->drivers) {
        if (!counts(driver)) continue;
        for (const state::PreparedDevice& device : record.devices) {
          if (claim::Serves(device, want.request) &&
              Find({driver, device.pool, device.device}).health ==
                  Health::kUnhealthy) {
            visit({want.claim, driver, device});
          }
        }
      }
    }
  }
}

}  // namespace devmgr::upkeep
