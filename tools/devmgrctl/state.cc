// SPDX-License-Identifier: Apache-2.0
//
// state --at SEQ|TIME: what the ledger held.
#include <fmt/core.h>

#include <utility>

#include "commands.h"
#include "listing.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// Without -n all namespaces are shown; devices have none.
void KeepNamespace(const std::string& ns, LedgerView& view) {
  if (ns.empty()) return;
  std::erase_if(view.pods, [&](const auto& pod) { return pod.name.ns != ns; });
  std::erase_if(view.claims,
                [&](const auto& claim) { return claim.name.ns != ns; });
}

void PrintTables(const Session& session, const LedgerView& view) {
  const bool names = session.options().format == Format::kName;
  if (!names) {
    Fields fields(session.color());
    fields.Add("Sequence", fmt::format("{}", view.sequence));
    fields.Add("Time", TimeText(view.time));
    fields.Print(session.out());
  }
  const auto print = [&](const auto& list) {
    if (list.empty()) return;
    if (!names) session.out() << "\n";
    PrintList(session, list);
  };
  print(view.pods);
  print(view.claims);
  print(view.devices);
}

}  // namespace

absl::Status State(const Session& session) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  auto view = (*inspector)->StateAt(session.options().at);
  if (!view.ok()) return view.status();
  KeepNamespace(session.options().ns, *view);
  Sort(view->pods);
  Sort(view->claims);
  Sort(view->devices);
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf("State", ItemOf(*view)),
                  session.options().format);
  } else {
    PrintTables(session, *view);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
