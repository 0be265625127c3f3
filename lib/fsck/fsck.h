// SPDX-License-Identifier: Apache-2.0
//
// Checks of the ledger against itself and against the node. Pure functions
// from values to findings; README.md says how to add one.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/cdi_registry.h>
#include <devmgr/fsck.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "claim/prepare_intent.h"
#include "device/device.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::fsck {

/// Of the held devices of a resource those that its plugin lists, by ID.
using PluginView = std::map<std::string, device::Health>;

/// Devices of several drivers or device plugins that are one piece of hardware.
struct Overlap {
  std::string identity;           ///< For people.
  std::set<std::string> devices;  ///< `driver/pool/device`, `resource/ID`.
};

/// What only a running manager knows.
struct RunningView {
  std::set<std::string> registered;  ///< Drivers, by name.
  /// Why a driver that is not being asked right now has not prepared or
  /// unprepared a claim: its last error.
  std::map<std::pair<ClaimUid, std::string>, std::string> refusals;
  /// By resource; only those whose plugin is there and has reported its
  /// devices.
  std::map<std::string, PluginView> plugins;
  /// Pods of the source, once it is complete.
  std::optional<std::set<PodUid>> source_pods;
  /// By claim: its pods of which no container runs with it, though they were
  /// Ready in this boot. Claims whose specs were not missed may be left out.
  std::map<ClaimUid, std::set<PodUid>> idle_pods;
  std::vector<Overlap> overlaps = {};
};

/// Which CDI devices were made for which claims, be they released by now.
/// Learns it batch by batch, so that the history need not be in memory.
class PastDevices {
 public:
  struct Claim {
    ClaimUid uid;
    ObjectName name;
  };
  void Learn(const state::Batch& batch);
  void Learn(const state::ClaimRecord& claim);
  /// By CDI device ID, of those that carry the UID of their claim.
  const std::map<std::string, Claim>& claims() const { return claims_; }

 private:
  std::map<std::string, Claim> claims_;
};

/// All of it is borrowed for the check; what is null is unknown, and checks
/// that need it find nothing.
struct Input {
  const state::State& state;
  std::string boot_id;                 ///< Of this boot.
  const PastDevices& past;             ///< As far as the history reaches.
  const CdiRegistry* specs = nullptr;  ///< Of all CDI directories.
  const RunningView* running = nullptr;
  std::vector<std::string> spec_dirs = {};  ///< Where `specs` is from.
};

/// Has the driver prepare the claim once more.
struct PrepareAgain {
  ClaimUid claim;
  std::string driver;
};
/// Has the driver unprepare the claim, and prepare it once more.
struct Renew {
  ClaimUid claim;
  std::string driver;
  claim::KnownIdle idle;
};
/// Sets a spec file aside that no claim needs any more.
struct SetAside {
  CdiSpecFile file;
  ClaimUid claim;  ///< Whose devices it defines.
  ObjectName name;
};
using Repair = std::variant<std::monostate, PrepareAgain, Renew, SetAside>;

struct Finding {
  FsckFinding shown;
  Repair repair;
};

/// Runs all checks. Errors come first, then by check and object.
std::vector<Finding> RunChecks(const Input& input);

/// CDI device IDs by driver.
using IdsByDriver = std::map<std::string, std::set<std::string>>;

/// Of all checks the one that must hold before a container starts on a claim:
/// what its drivers prepared in this boot and no spec file defines. Nothing
/// while some of the directories cannot be read.
IdsByDriver FindMissingSpecs(const state::ClaimRecord& claim,
                             const std::string& boot_id,
                             const CdiRegistry& specs);

/// What the check says of it, and what is to be done. The driver has prepared
/// the claim; `directories` are those that were searched.
Finding MissingSpecOf(const state::State& state,
                      const state::ClaimRecord& claim,
                      const std::string& driver,
                      const std::set<std::string>& ids,
                      const claim::KnownIdle& idle,
                      const std::vector<std::string>& directories);

/// Those of `findings` that `others` has too. A running node changes while it
/// is looked at: what was found with the state before the look as well as with
/// the state after it is no accident of time.
std::vector<Finding> Common(std::vector<Finding> findings,
                            const std::vector<Finding>& others);

/// The recorded decision of a repair, on the state that holds now. `found_by`
/// stands in the history.
///   FailedPrecondition  there is nothing to repair any more
absl::StatusOr<state::Decision> DecideRepair(
    const Finding& finding, const state::State& state,
    std::string_view found_by = "fsck");

/// A report of what was found; `repairs` are for the caller to fill in.
FsckReport ReportOf(const std::vector<Finding>& findings,
                    std::uint64_t ledger_sequence);

}  // namespace devmgr::fsck
