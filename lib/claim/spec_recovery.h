// SPDX-License-Identifier: Apache-2.0
//
// Decisions about CDI specs that are gone although a driver has prepared the
// claim: pure functions, as in prepare_intent.h. A driver prepares again first.
// One that answers from its memory, without writing them, is then to unprepare
// the claim and to prepare it once more, which is right only while no container
// runs with it.
#pragma once

#include <string>
#include <vector>

#include "claim/prepare_intent.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

enum class SpecRemedy {
  kPrepareAgain,  ///< The driver is asked to.
  kRenew,         ///< It is asked to unprepare the claim, and to prepare it.
  kStopPods,      ///< Containers may run with the claim: people have to act.
  kNothing,       ///< All that can be asked of the driver was.
};

/// What comes next for specs that are missing, of a claim that the driver has
/// prepared, or, with kPreparing, of whose preparing it has just reported. The
/// driver has to have a part in the claim.
SpecRemedy RemedyFor(const state::State& state, const state::ClaimRecord& claim,
                     const std::string& driver, const KnownIdle& known);

/// Names of the claim's pods that may have a container which runs with it:
/// those that were Ready in this boot and are not known to be idle.
std::vector<std::string> PodsThatMayRun(const state::State& state,
                                        const state::ClaimRecord& claim,
                                        const KnownIdle& known);

/// A repair: what `driver` prepared is void. It becomes kPreparing, and the
/// pods that were kReady with the claim do too. Nothing when the driver has
/// not prepared it.
state::Decision PrepareAgain(const state::State& state, const ClaimUid& claim,
                             const std::string& driver);

/// A repair: the same, and the driver is to unprepare the claim before. Of a
/// driver that has just reported the claim as prepared, and is still
/// kPreparing, `answered` is its report. Nothing unless RemedyFor says
/// kRenew.
state::Decision Renew(const state::State& state, const ClaimUid& claim,
                      const std::string& driver, const KnownIdle& known,
                      const std::vector<state::PreparedDevice>& answered = {});

/// The specs of these claims are there: should they get lost again, drivers are
/// asked anew. Nothing when they were not missed.
state::Decision RecordSpecsFound(const state::State& state,
                                 const std::vector<ClaimUid>& claims);

}  // namespace devmgr::claim
