// SPDX-License-Identifier: Apache-2.0
//
// release claim --force and hand-over: what an operator decides over the
// manager's head. Without --yes nothing is changed.
#include <fmt/core.h>

#include "commands.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::Status NotDone(const std::string& what) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      fmt::format("{}; nothing was changed: add --yes to do it", what));
}

void PrintResult(const Session& session, const std::string& kind,
                 const std::string& name, const std::string& text) {
  if (session.is_document()) {
    PrintDocument(session.out(),
                  DocumentOf("OperatorDecision",
                             Json{{"kind", kind},
                                  {"name", name},
                                  {"reason", session.options().reason}}),
                  session.options().format);
  } else if (session.options().format == Format::kName) {
    session.out() << kind << "/" << Clean(name) << "\n";
  } else {
    session.out() << Clean(text) << "\n";
  }
}

std::string DebtText(const DebtInfo& debt) {
  return fmt::format(
      "driver '{}' owes its unpreparing since {} ({} attempts): "
      "{}",
      debt.driver, TimeText(debt.since), debt.attempts, debt.last_error);
}

std::string OwnerText(ResourceOwner owner) {
  switch (owner) {
    case ResourceOwner::kDevicePlugin:
      return "device plugins";
    case ResourceOwner::kDeviceClass:
      return "device classes";
    case ResourceOwner::kAutomatic:
      break;
  }
  return "whoever the rules say";
}

}  // namespace

absl::Status ForceRelease(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("release"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const std::string name = options.name.ToString();
  if (!options.yes) {
    const auto debts = (*inspector)->Debts();
    if (!debts.ok()) return debts.status();
    for (const DebtInfo& debt : *debts) {
      if (debt.claim == options.name) session.Note(DebtText(debt));
    }
    return NotDone(fmt::format("claim '{}' would be given up", name));
  }
  const absl::Status status =
      (*inspector)->ForceReleaseClaim(options.name, options.reason);
  if (!status.ok()) return status;
  PrintResult(session, "claim", name,
              fmt::format("claim '{}' is given up", name));
  return absl::OkStatus();
}

absl::Status HandOver(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("hand-over"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const std::string& name = options.name.name;
  const std::string owner = OwnerText(options.new_owner);
  if (!options.yes) {
    return NotDone(fmt::format("'{}' would be served by {}", name, owner));
  }
  const absl::Status status =
      (*inspector)->HandOverResource(name, options.new_owner, options.reason);
  if (!status.ok()) return status;
  PrintResult(session, "resource", name,
              fmt::format("'{}' is served by {} from now on", name, owner));
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
