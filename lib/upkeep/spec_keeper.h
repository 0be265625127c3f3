// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/prepare_intent.h"
#include "common/executor.h"
#include "events/event_log.h"
#include "fsck/fsck.h"
#include "ledger/changes.h"
#include "ledger/container_use.h"
#include "ledger/ledger.h"
#include "state/state.h"
#include "upkeep/spec_directories.h"

namespace devmgr::upkeep {

/// Notices that the CDI specs of claims are gone, as where their directory lies
/// in memory and was emptied: no runtime could find the devices. It looks
/// before a container starts, and when a driver has answered whose earlier
/// answer became void (a reboot, a repair), before that is recorded. The ledger
/// then takes the repair that fsck takes, and the driver is asked:
///
///   missing --> prepare again --> missing --> unprepare, prepare --> missing
///                                    |                                  |
///                      containers may run: an event,           an event; let
///                      let pass                                pass
///
/// Each once, until the specs are seen again: a driver that does not write what
/// is missing will not do so the next time either. The record says how far that
/// has come (DriverRecord::spec_recovery), so that a restart repeats nothing.
///
/// What plugins answered is not looked after: they are not asked twice.
/// Lives on the manager's thread; directories are read elsewhere.
class SpecKeeper {
 public:
  /// Borrowed things must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    ledger::ContainerUse& use;
    events::EventLog& events;
    std::string boot_id;
    std::vector<std::filesystem::path> directories;  ///< None: all is fine.
  };
  using Done = std::function<void(const absl::Status&)>;
  using PreparedClaims = std::map<ClaimUid, std::vector<state::PreparedDevice>>;

  /// What a driver's answer was found to be worth.
  struct Answer {
    claim::SpecLook look;
    struct Renewal {
      claim::KnownIdle idle;
      std::string message;  ///< For the history.
    };
    /// Of those that are missing: the driver is to unprepare these first.
    std::map<ClaimUid, Renewal> renewals;
  };

  explicit SpecKeeper(Parts parts);
  ~SpecKeeper() { Stop(); }

  /// Looks for the specs of all claims that `container` of a Ready pod uses.
  /// Calls `done` at once when it uses none. With OK the container counts as
  /// one that may run.
  ///   Unavailable  specs are missing, and drivers are being asked to prepare
  ///                again; names claims and devices
  ///   others       as the ledger says
  void BeforeStart(const state::PodRecord& pod, const ContainerName& container,
                   Done done);

  /// Unavailable while a driver is preparing again for the pod because of what
  /// was missing; the message names the claim.
  absl::Status Awaited(const state::PodRecord& pod) const;

  /// The driver says that it prepared these claims. Of those that it had
  /// prepared before, looks for the specs of what it answered; calls `done` at
  /// once when there are none of these.
  void LookAtAnswer(const std::string& driver, const PreparedClaims& prepared,
                    std::function<void(const Answer&)> done);

  /// What the CDI directories hold now, on the thread that reads; false when
  /// there are none.
  bool ReadSpecs(std::function<void(const CdiRegistry&)> done) {
    if (directories_.any()) directories_.Read(std::move(done));
    return directories_.any();
  }

  /// Until EndRenewal no container that uses the claim is let through. Tells
  /// which of its pods have none that runs.
  claim::KnownIdle BeginRenewal(const ClaimUid& claim);
  void EndRenewal(const ClaimUid& claim);

  /// Claims that left the ledger are forgotten.
  void OnCommitted(const ledger::Changes& changes);

  /// Waits for the look that is under way; no `done` is called from now on.
  /// Not on the manager's thread.
  void Stop();

 private:
  void Forget(const ClaimUid& claim);
  using Claims = std::vector<std::shared_ptr<const state::ClaimRecord>>;
  using Key = std::pair<ClaimUid, std::string>;  ///< Claim and driver.
  /// Of one look: for each claim what is missing, and whether that is known.
  struct Seen {
    std::map<ClaimUid, fsck::IdsByDriver> missing;
    bool is_complete = true;
  };

  Claims ClaimsOf(const state::PodRecord& pod,
                  const ContainerName& container) const;
  bool IsBeingRenewed(const Claims& claims) const;
  /// Reads the directories elsewhere.
  void Look(Claims claims, std::function<void(const Seen&)> done);
  void OnLooked(const Claims& claims, const Seen& seen, const Done& done);
  void OnAnswerLooked(const std::string& driver, const Claims& answered,
                      const Seen& seen,
                      const std::function<void(const Answer&)>& done);
  fsck::Finding FindingOf(const state::ClaimRecord& claim,
                          const std::string& driver,
                          const std::set<std::string>& ids) const;
  std::map<Key, fsck::Finding> FindingsOf(const Claims& claims,
                                          const Seen& seen) const;
  void MendAll(const std::map<Key, fsck::Finding>& findings, Done done);
  void Repair(const fsck::Finding& finding, const Key& key,
              const std::function<void(const absl::Status&)>& done);
  void OnFound(const Claims& claims, const Done& done);
  void TellInVain(const fsck::Finding& finding, const Key& key);

  const Parts parts_;
  std::set<Key> under_way_;  ///< Repairs that are not in the ledger yet.
  std::set<Key> told_;       ///< That nothing has helped.
  std::multiset<ClaimUid> renewing_;
  SpecDirectories directories_;
};

}  // namespace devmgr::upkeep
