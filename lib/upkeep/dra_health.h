// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/executor.h"
#include "device/driver_health.h"
#include "device/health_policy.h"
#include "dra/drivers.h"
#include "dra/health_listener.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::upkeep {

/// What drivers say of the health of devices that claims hold: which pods it
/// concerns, what they show, and what the ledger keeps of it. Lives on the
/// manager's thread.
class DraHealth final : public dra::HealthListener {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    std::function<std::int64_t()> now_ms;
    std::string boot_id;
    std::function<std::int64_t()> boot_ms;  ///< As BootMs of common/boot_id.h.
    /// The health of devices that these pods hold is another.
    std::function<void(const std::set<PodUid>& pods)> on_health;
    /// Something about held devices of the driver changed.
    std::function<void(const std::string& driver)> on_devices;
    /// The health of any device, held or not, is another; may be null.
    std::function<void(const std::string& driver, const device::PoolDevice&,
                       device::Health)>
        on_device = {};
    /// The health of these devices, held or not, or what is said of it, may be
    /// another; may be null.
    std::function<void(const std::string& driver,
                       const device::DriverHealth::Devices&)>
        on_changed = {};
  };
  explicit DraHealth(Parts parts) : parts_(std::move(parts)) {}
  ~DraHealth() override;

  /// Goes on with what the ledger holds: that counts for the rest of its lease.
  /// What was said in another boot, or has run out since, is Unknown until the
  /// driver reports again. To be called once.
  void Restore();

  /// Has the ledger keep since when leases run, for the next process to go on
  /// with. To be called once, at last.
  void KeepLeases();

  void OnHealthReport(const std::string& driver,
                      const std::vector<device::DeviceReport>& report) override;
  void OnHealthLost(const std::string& driver, const std::string& why) override;

  /// What health policies make of what was restored. To be called once.
  void JudgeRestored();

  /// Before the projection has these changes: a pod that gives up its claims
  /// shows what holds now until it is forgotten.
  void OnCommitting(const ledger::Changes& changes);
  /// Other devices are held, or by others.
  void OnCommitted(const ledger::Changes& changes);

  // What health policies ask.

  /// Has the driver reported devices?
  bool Knows(const std::string& driver) const {
    return known_.drivers.contains(driver);
  }
  /// Who holds what that does not work; devices as `pool/device`. Of one that
  /// is Unknown it may not be known since when: 0.
  std::vector<device::FaultyDevice> Faulty(
      const std::string& driver, bool unknown_is_unhealthy = false) const;
  /// Does a device (`pool/device`) that the pod holds work?
  bool Works(const std::string& driver, const PodUid& pod,
             const std::string& device) const;
  /// Held devices, once for each pod.
  std::size_t HeldCount(const std::string& driver) const;
  /// May a container with these devices start? `fails`: of a driver, whether
  /// pods with unhealthy devices are to fail.
  ///   FailedPrecondition  one is Unhealthy, and such pods are to fail
  absl::Status CheckStart(
      const state::PodRecord& pod, const ContainerName& container,
      const std::function<bool(const std::string&)>& fails) const;

  /// Claims of which the container has a device that does not work, of drivers
  /// of which that `replaces` it.
  std::set<ClaimUid> FaultyClaims(
      const state::PodRecord& pod, const ContainerName& container,
      const std::function<bool(const std::string&)>& replaces) const;

  /// What can be seen of it, at SteadyMs.
  const view::DriversHealth& known() const { return known_; }
  std::int64_t SteadyMs() const;

 private:
  using Holdings =
      std::map<std::pair<PodUid, device::PoolDevice>, device::EffectiveHealth>;
  struct FaultyDevice {
    const ClaimUid& claim;
    const std::string& driver;
    const state::PreparedDevice& device;
  };

  /// Visits the devices of the container that do not work, of the drivers that
  /// `counts` names.
  void ForEachFaulty(
      const state::PodRecord& pod, const ContainerName& container,
      const std::function<bool(const std::string&)>& counts,
      const std::function<void(const FaultyDevice&)>& visit) const;
  void OnClaim(const state::ClaimRecord* before, const state::ClaimRecord* now);
  device::EffectiveHealth Find(const state::DeviceKey& device) const;
  /// What the driver reported that counts now.
  device::EffectiveHealth Told(const state::DeviceKey& device) const;
  /// For the ledger; null: not to be kept.
  std::shared_ptr<const state::HealthRecord> RecordOf(
      const state::DeviceKey& device) const;
  Holdings HoldingsOf(const std::string& driver) const;
  /// Tells whom it concerns, and has it kept.
  void OnChanged(const std::string& driver,
                 const device::DriverHealth::Devices& devices);
  void ArmExpiry(const std::string& driver);
  /// Has the ledger keep what holds for `unsaved_`, at most once in a while.
  void Save();
  void OnSaved(const std::set<state::DeviceKey>& devices,
               const absl::Status& status);
  /// Changes what is known of the driver; gives what `change` returns.
  template <typename Change>
  device::DriverHealth::Devices ChangeHealth(const std::string& driver,
                                             Change change);

  const Parts parts_;
  view::DriversHealth known_;
  std::map<std::string, TimerId> expiries_;  ///< By driver.
  std::set<state::DeviceKey> unsaved_;
  std::set<std::string> touched_;  ///< Drivers of the claims of OnCommitted.
  bool saving_ = false;
  TimerId save_again_ = 0;
};

}  // namespace devmgr::upkeep
