// SPDX-License-Identifier: Apache-2.0
//
// What must hold, said as simply as possible and without a word of how the
// manager goes about it. All of these return a complaint, or nothing.
#pragma once

#include <devmgr/container_devices.h>
#include <devmgr/objects.h>
#include <devmgr/status_types.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/drivers.h"
#include "model/objects.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::model {

/// The answers that Ready pods got, over the whole history: they never change
/// within a boot (invariant 6).
class AnswerHistory {
 public:
  /// `before` is the projection without `batch`.
  std::string Add(const state::State& before, const state::Batch& batch);

 private:
  struct Answer {
    std::string boot_id;
    std::shared_ptr<const PodDevices> answer;
  };
  std::map<PodUid, Answer> answers_;
};

/// Driver and claim: nobody waits for the driver to unprepare it any more.
using GivenUp = std::set<std::pair<std::string, std::string>>;

/// What makes a difference beside ledger and objects.
struct Rules {
  bool extended_resources = true;  ///< The feature gate.
  GivenUp given_up;
};

/// What a decision gives up, and what of that it takes up again. `before` is
/// the projection without `batch`.
void NoteGivenUp(const state::State& before, const state::Batch& batch,
                 GivenUp* given_up);

/// A call that reaches a driver: its intent is on disk, and nobody who is alive
/// is robbed.
std::string CheckCall(const state::State& ledger, bool prepare,
                      const std::string& driver, const std::string& claim);
/// A driver lets go of a claim now: no pod may be using it.
std::string CheckUnprepare(const state::State& ledger, const std::string& claim,
                           const std::string& boot_id);

/// What a Ready pod was told: every driver of its claims has them prepared and
/// said what the ledger remembers, and each container gets what it asks for and
/// nothing else, by one of the versions of its object.
std::string CheckAnswer(const state::State& ledger, const Drivers& drivers,
                        const Objects& objects, const PodDevices& answer);

/// Once nothing is broken and nothing moves: pods that can be Ready are, pods
/// that nobody wants are gone, drivers hold what the ledger says and nothing
/// else.
std::string CheckRest(const state::State& ledger, const Drivers& drivers,
                      const Objects& objects, const std::string& boot_id,
                      const std::set<std::string>& spared, const Rules& rules);

/// Whatever drivers do: pods that need nothing are Ready once all tasks ran and
/// all is written (invariant 7).
std::string CheckUndemanding(const state::State& ledger, const Objects& objects,
                             const std::string& boot_id,
                             const std::set<std::string>& spared,
                             const Rules& rules);

/// Does the pod wait for something that is really missing?
std::string CheckWait(const PodInfo& pod, const state::State& ledger,
                      const Objects& objects, const Rules& rules);

}  // namespace devmgr::model
