// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/luck.h"

namespace devmgr::model {

/// One thing that happens to a node. What `a` and `b` mean depends on the kind:
/// `a` mostly picks whom, `b` is the luck of the operation. Any numbers do, and
/// so does any sequence, so a sequence can be shortened anywhere.
struct Operation {
  enum class Kind : std::uint8_t {
    // Objects. Each publishes a new snapshot.
    kPublishPod,  ///< A pod, or another one under a name that is taken.
    kChangePod,   ///< Its status goes on, or it is being deleted.
    kWithdrawPod,
    kPublishClaim,  ///< A claim, or another one under a name that is taken.
    kReallocateClaim,
    kReserveClaim,  ///< Or take the reservation back.
    kWithdrawClaim,
    kScan,  ///< The source sees some of the objects only, or all again.
    // Drivers.
    kRegister,
    kDeregister,
    kHangUp,
    kRoll,    ///< Another instance registers, and the one before leaves.
    kBehave,  ///< Another way to answer, from now on.
    kAnswer,  ///< One call that waits is answered.
    // The disk.
    kFailWrite,
    kFailReopen,
    // An embedder beside the actuator.
    kAdmit,
    kPrepare,
    kUnprepare,
    kRelease,
    kEnd,    ///< Both in one.
    kForce,  ///< An operator drops a claim.
    kCancel,
    // The order of things.
    kRunLoop,    ///< Some tasks of the manager's thread.
    kRunLedger,  ///< What the ledger has to write.
    kSettle,     ///< All of that, maybe answers, too, until nothing moves.
    kAdvance,    ///< Time passes.
    // Ends of the manager. The next one may have other debt policies and gates.
    kRestart,
    kKill,
    kReboot,
    kReopen,  ///< Restarts from a store on disk.
    // Looking closely.
    kHeal,   ///< All that was broken works; what can be Ready must become so.
    kDrain,  ///< And all objects go; nothing may be left.
  };
  Kind kind = Kind::kSettle;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string_view KindName(Operation::Kind kind);

/// A random life of a node. It looks closely now and then and at its end, and
/// reopens its store every `reopen_every`.
std::vector<Operation> RandomLife(Luck luck, std::size_t length,
                                  std::size_t reopen_every = 1'000);

/// As an initialiser to put into a test.
std::string ToString(const std::vector<Operation>& operations);

}  // namespace devmgr::model
