// SPDX-License-Identifier: Apache-2.0
#include "fsck/fsck.h"

#include <algorithm>
#include <tuple>

#include "claim/spec_recovery.h"
#include "common/status.h"
#include "fsck/checks.h"

namespace devmgr::fsck {
namespace {

/// Add your check here.
constexpr Check kChecks[] = {
    CheckInvariants,       CheckAnswers,  // the ledger
    CheckUnreadableSpecs,  CheckMissingSpecs,  CheckOrphanedSpecs,
    CheckConflictingSpecs,                      // CDI directories
    CheckHeldDevices,      CheckAbsentPlugins,  // device plugins
    CheckSharedHardware,   CheckAbsentDrivers, CheckRefusals,
    CheckGonePods  // drivers, source
};

/// The decision of a repair, or nothing when there is nothing left to do.
struct Decider {
  const state::State& state;

  state::Decision operator()(std::monostate) const { return {}; }

  state::Decision operator()(const PrepareAgain& repair) const {
    return claim::PrepareAgain(state, repair.claim, repair.driver);
  }

  state::Decision operator()(const Renew& repair) const {
    return claim::Renew(state, repair.claim, repair.driver, repair.idle);
  }

  /// The deed is outside the ledger, so the record is all that it has of it.
  state::Decision operator()(const SetAside& repair) const {
    state::Decision decision;
    if (state.FindClaim(repair.claim) != nullptr) return decision;
    decision.kind = state::DecisionKind::kRepair;
    decision.claims = {repair.name};
    return decision;
  }
};

}  // namespace

std::vector<Finding> RunChecks(const Input& input) {
  std::vector<Finding> findings;
  for (const Check check : kChecks) {
    std::vector<Finding> found = check(input);
    std::move(found.begin(), found.end(), std::back_inserter(findings));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) {
                     const auto key = [](const FsckFinding& f) {
                       return std::tie(f.check, f.object, f.message);
                     };
                     if (a.shown.error != b.shown.error) return a.shown.error;
                     return key(a.shown) < key(b.shown);
                   });
  return findings;
}

std::vector<Finding> Common(std::vector<Finding> findings,
                            const std::vector<Finding>& others) {
  std::erase_if(findings, [&](const Finding& finding) {
    return std::none_of(
        others.begin(), others.end(),
        [&](const Finding& other) { return other.shown == finding.shown; });
  });
  return findings;
}

absl::StatusOr<state::Decision> DecideRepair(const Finding& finding,
                                             const state::State& state,
                                             std::string_view found_by) {
  state::Decision decision = std::visit(Decider{state}, finding.repair);
  if (!state::IsWorthWriting(decision)) {
    return FailedPreconditionError("{}: there is nothing to repair any more",
                                   finding.shown.object);
  }
  decision.message = fmt::format("{}: {}; {}", found_by, finding.shown.message,
                                 finding.shown.repair);
  return decision;
}

FsckReport ReportOf(const std::vector<Finding>& findings,
                    std::uint64_t ledger_sequence) {
  FsckReport report;
  report.ledger_sequence = ledger_sequence;
  for (const Finding& finding : findings) {
    report.findings.push_back(finding.shown);
  }
  return report;
}

}  // namespace devmgr::fsck
