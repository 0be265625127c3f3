// SPDX-License-Identifier: Apache-2.0
#include "model/operation.h"

#include <fmt/core.h>

#include <array>

#include "support/random_lives.h"

namespace devmgr::model {
namespace {

using Kind = Operation::Kind;

struct Weighted {
  Kind kind;
  std::string_view name;
  int weight;
};

constexpr std::array<Weighted, 33> kKinds = {{
    {Kind::kPublishPod, "PublishPod", 100},
    {Kind::kChangePod, "ChangePod", 40},
    {Kind::kWithdrawPod, "WithdrawPod", 60},
    {Kind::kPublishClaim, "PublishClaim", 25},
    {Kind::kReallocateClaim, "ReallocateClaim", 15},
    {Kind::kReserveClaim, "ReserveClaim", 50},
    {Kind::kWithdrawClaim, "WithdrawClaim", 15},
    {Kind::kScan, "Scan", 20},
    {Kind::kRegister, "Register", 50},
    {Kind::kDeregister, "Deregister", 12},
    {Kind::kHangUp, "HangUp", 20},
    {Kind::kRoll, "Roll", 12},
    {Kind::kBehave, "Behave", 40},
    {Kind::kAnswer, "Answer", 90},
    {Kind::kFailWrite, "FailWrite", 15},
    {Kind::kFailReopen, "FailReopen", 20},
    {Kind::kAdmit, "Admit", 15},
    {Kind::kPrepare, "Prepare", 15},
    {Kind::kUnprepare, "Unprepare", 8},
    {Kind::kRelease, "Release", 8},
    {Kind::kEnd, "End", 8},
    {Kind::kForce, "Force", 6},
    {Kind::kCancel, "Cancel", 15},
    {Kind::kRunLoop, "RunLoop", 140},
    {Kind::kRunLedger, "RunLedger", 100},
    {Kind::kSettle, "Settle", 120},
    {Kind::kAdvance, "Advance", 60},
    {Kind::kRestart, "Restart", 5},
    {Kind::kKill, "Kill", 4},
    {Kind::kReboot, "Reboot", 3},
    {Kind::kReopen, "Reopen", 0},
    {Kind::kHeal, "Heal", 8},
    {Kind::kDrain, "Drain", 2},
}};

}  // namespace

std::string_view KindName(Kind kind) {
  for (const Weighted& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return "";
}

std::vector<Operation> RandomLife(Luck luck, std::size_t length,
                                  std::size_t reopen_every) {
  std::vector<Operation> life;
  life.reserve(length);
  while (life.size() < length) {
    Operation next{Draw(kKinds, luck).kind, luck(), luck()};
    if (life.size() % reopen_every == reopen_every - 1) {
      next.kind = Kind::kReopen;
    }
    if (life.size() + 1 == length) next.kind = Kind::kDrain;
    life.push_back(next);
  }
  return life;
}

std::string ToString(const std::vector<Operation>& operations) {
  std::string text = "{\n";
  for (const Operation& operation : operations) {
    text += fmt::format("    {{Kind::k{}, {}u, {}u}},\n",
                        KindName(operation.kind), operation.a, operation.b);
  }
  return text + "}";
}

}  // namespace devmgr::model
