// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "state/state.h"

namespace devmgr::state {

/// The name of a pod whose record is lost, as far as it is known.
using NameOfPod = std::function<std::optional<ObjectName>(const PodUid&)>;

/// Makes a state of which records are missing, or older than the others, hold
/// all invariants again (CheckInvariants). What cannot be known is resolved
/// such that nothing is answered that may be wrong, and nothing forgotten that
/// a driver may have prepared:
///
/// - A pod of which a claim is missing keeps its others and goes back to
///   kPreparing without needs: it is prepared once it is admitted anew.
/// - So does a pod that only claims know of.
/// - A pod whose claim is being unprepared is released.
/// - Of the pods that hold one device, all but the first give up what they
///   have, as does one whose plugin has not answered.
/// - A foreign holder keeps only what no pod but its own has.
/// - A claim that no pod holds is unprepared, for a pod made up to release it.
///
/// Returns how many records differ.
std::size_t Mend(State& state, const NameOfPod& name_of_pod);

}  // namespace devmgr::state
