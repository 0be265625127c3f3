// SPDX-License-Identifier: Apache-2.0
//
// release claim --force, hand-over, confirm source, authority, free holder,
// recheck and convert: what an operator decides. Without --yes nothing is
// changed.
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
      "driver '{}' owes its unpreparing since {} ({} attempt{}): "
      "{}",
      debt.driver, TimeText(debt.since), debt.attempts,
      debt.attempts == 1 ? "" : "s", debt.last_error);
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
  return "what the rules say";
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

absl::Status SetAuthority(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("authority"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const std::string to(AuthorityName(options.authority));
  if (!options.yes) {
    return NotDone(fmt::format("devices would be allocated by: {}", to));
  }
  const absl::Status status =
      (*inspector)->SetAuthority(options.authority, options.reason);
  if (!status.ok()) return status;
  PrintResult(session, "authority", to,
              fmt::format("devices are allocated by: {}; devmgrctl status says "
                          "when the hand-over is complete",
                          to));
  return absl::OkStatus();
}

absl::Status ConfirmSource(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("confirm"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto node = (*inspector)->Node();
  if (!node.ok()) return node.status();
  if (!options.yes) {
    for (const std::string& problem : node->source_problems) {
      session.Note(Clean(problem));
    }
    return NotDone(fmt::format("pods that {} lacks would be released",
                               Clean(node->source)));
  }
  const absl::Status status = (*inspector)->ConfirmSource(options.reason);
  if (!status.ok()) return status;
  PrintResult(session, "source", node->source,
              fmt::format("{} is trusted; the pods that it lacks are released",
                          node->source));
  return absl::OkStatus();
}

absl::Status FreeHolder(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("free"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const std::string& id = options.name.name;
  if (!options.yes) {
    const auto holders = (*inspector)->ForeignHolders();
    if (!holders.ok()) return holders.status();
    for (const ForeignHolderInfo& info : *holders) {
      if (!info.holder.container_id.starts_with(id)) continue;
      session.Note(fmt::format(
          "container {} holds {}: {}", Clean(info.holder.container_id),
          Clean(DevicesText(info.holder)), Clean(info.holder.why)));
    }
    return NotDone(fmt::format(
        "devices of container '{}' would be free for pods though it may still "
        "use them",
        Clean(id)));
  }
  const absl::Status status = (*inspector)->FreeHolder(id, options.reason);
  if (!status.ok()) return status;
  PrintResult(session, "holder", id,
              fmt::format("devices of container '{}' are free for pods", id));
  return absl::OkStatus();
}

absl::Status Recheck(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("recheck"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const std::string& name = options.name.name;
  const absl::Status status =
      (*inspector)->RecheckDevices(name, options.device, options.reason);
  if (!status.ok()) return status;
  PrintResult(
      session, "device", name,
      fmt::format("{} of {} is offered to pods again as far as it works",
                  options.device.empty()
                      ? "what was withheld"
                      : fmt::format("device '{}'", options.device),
                  name));
  return absl::OkStatus();
}

absl::Status Convert(const Session& session) {
  const Options& options = session.options();
  if (!options.offline()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "convert needs the state directory of a stopped devmgrd: "
                     "devmgrctl --state-dir DIR convert --to 2");
  }
  const auto conversion = session.environment().convert_state_dir(
      options.state_dir, options.to_format, options.yes);
  if (!conversion.ok()) return conversion.status();
  for (const std::string& loss : conversion->lost) {
    session.Note((options.yes ? "lost: " : "would be lost: ") + Clean(loss));
  }
  const std::string what = fmt::format("the ledger in '{}'", options.state_dir);
  if (!options.yes) {
    return NotDone(fmt::format("{} would be converted to format {}", what,
                               options.to_format));
  }
  session.out() << Clean(fmt::format(
                       "{} has format {} now; {} decisions of its history are "
                       "left",
                       what, options.to_format, conversion->batches))
                << "\n";
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
