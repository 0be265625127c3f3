// SPDX-License-Identifier: Apache-2.0
//
// From what the kubelet's checkpoint files hold to one decision of the ledger.
// Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "checkpoint/kubelet/dra_checkpoint.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::migration {

/// What the files of a kubelet hold; nothing of a file that is not there.
struct KubeletState {
  std::optional<kubelet_checkpoint::DeviceCheckpoint> devices;
  std::optional<kubelet_checkpoint::DraCheckpoint> claims;
};

/// How things stand when it is taken over.
struct ImportTerms {
  std::string boot_id;  ///< Of this boot.
  /// The file was written in this boot: what it holds is prepared in it. Else
  /// drivers are asked again.
  bool devices_of_this_boot = false;
  bool claims_of_this_boot = false;
  std::int64_t now_ms = 0;  ///< Unix time.
  std::string from;         ///< Directory of the files, for the history.
};

struct ImportPlan {
  state::Decision decision;
  std::size_t pods = 0;
  std::size_t devices = 0;  ///< Of device plugins, by container.
  std::size_t claims = 0;
  /// What the ledger cannot hold and is left out: one sentence for each.
  std::vector<std::string> losses;
};

/// The name under which the ledger remembers that files were imported.
inline constexpr std::string_view kImportedSource =
    "checkpoint files of the kubelet";
/// When they were; null: they were not.
const state::SourceRecord* FindImport(const state::State& state);

/// Whether an import would find nothing in its way.
///   AlreadyExists       files were imported before; the message says when
///   FailedPrecondition  the ledger holds pods, claims or foreign containers
absl::Status CheckMayImport(const state::State& state);

/// Each pod of the files is held by its UID, without a name, until a source
/// shows it (claim/imported_pod.h). One without claims is kReady, with what the
/// plugins had answered; one with claims is kPreparing, since the files do not
/// say which container wants which claim. A claim without pods is to be
/// unprepared. What kubelets resolve by the order of entries is resolved alike:
/// of two entries for one thing the later one counts. A device that two pods
/// would hold stays with the first.
///   Internal  the plan breaks an invariant; a bug of ours
absl::StatusOr<ImportPlan> PlanImport(const state::State& state,
                                      const KubeletState& kubelet,
                                      const ImportTerms& terms);

}  // namespace devmgr::migration
