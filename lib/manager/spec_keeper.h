// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cdistore/scanner.h"
#include "common/executor.h"
#include "fsck/fsck.h"
#include "manager/event_log.h"
#include "manager/ledger.h"
#include "state/state.h"

namespace devmgr::manager {

/// Notices before a container starts that the CDI specs of its claims are gone,
/// as where their directory lies in memory and was emptied: no runtime could
/// find the devices. The ledger then takes the repair that fsck takes, and the
/// drivers are asked to prepare again; each once, since one that does not write
/// what is missing will not do so the next time either.
///
///            missing                     prepared again
///   fine ─────────────> asked (the pod ─────────────────> asked, still
///   missing:
///    ^                   is Preparing)         │          told, and let pass
///    └─────────────────────────────────────────┘
///                  defined again
///
/// What plugins answered is not looked after: they are not asked twice.
/// Lives on the manager's thread; directories are read on one of its own
/// (`devmgr-specs`), which sleeps in between.
class SpecKeeper {
 public:
  /// Borrowed things must outlive this.
  struct Parts {
    Executor& executor;
    Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    EventLog& events;
    std::string boot_id;
    std::vector<std::filesystem::path> directories;  ///< None: all is fine.
  };
  using Done = std::function<void(const absl::Status&)>;

  explicit SpecKeeper(Parts parts);
  ~SpecKeeper() { Stop(); }

  /// Looks for the specs of all claims that `container` of a Ready pod uses.
  /// Calls `done` at once when it uses none.
  ///   Unavailable  specs are missing, and drivers are being asked to prepare
  ///                again; names claims and devices
  ///   others       as the ledger says
  void BeforeStart(const state::PodRecord& pod, const std::string& container,
                   Done done);

  /// Unavailable while a driver is preparing again for the pod because of what
  /// was missing; the message names the claim.
  absl::Status Awaited(const state::PodRecord& pod) const;

  /// The claim left the ledger.
  void Forget(const ClaimUid& claim);

  /// Waits for the look that is under way; no `done` is called from now on.
  /// Not on the manager's thread.
  void Stop();

 private:
  using Claims = std::vector<std::shared_ptr<const state::ClaimRecord>>;
  using Key = std::pair<ClaimUid, std::string>;  ///< Claim and driver.
  struct Asked {
    bool is_recorded = false;  ///< The repair is in the ledger.
    bool is_told = false;      ///< That it did not help.
  };

  Claims ClaimsOf(const state::PodRecord& pod,
                  const std::string& container) const;
  void Look(Claims claims, Done done);
  void OnLooked(const Claims& claims, std::vector<fsck::Finding> missing,
                Done done);
  void Repair(const fsck::Finding& finding, const Key& key,
              const std::function<void(const absl::Status&)>& done);
  void TellInVain(const fsck::Finding& finding, Asked* asked);

  const Parts parts_;
  std::map<Key, Asked> asked_;
  /// Used on `disk_` only.
  cdistore::Scanner scanner_;
  std::unique_ptr<Executor> disk_;  ///< Null without directories.
};

}  // namespace devmgr::manager
