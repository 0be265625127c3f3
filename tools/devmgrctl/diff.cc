// SPDX-License-Identifier: Apache-2.0
//
// diff --from SEQ|TIME [--to SEQ|TIME]: what changed in between.
#include <fmt/core.h>

#include <utility>
#include <variant>

#include "commands.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// `pod/default/a`.
std::string ChangedObject(const LedgerChange& change) {
  return (change.object_kind == "Pod" ? "pod/" : "claim/") +
         change.name.ToString();
}

std::string MomentOf(const LedgerView& view) {
  std::string text = fmt::format("after decision {}", view.sequence);
  const std::string time = TimeText(view.time);
  if (!time.empty()) text += " of " + time;
  return text;
}

void PrintChange(const Session& session, const LedgerChange& change) {
  const auto line = [&](const std::string& text, Tone tone) {
    session.out() << Painted(text, tone, session.color()) << "\n";
  };
  const std::string name =
      Clean(fmt::format("{}   uid {}", ChangedObject(change), change.uid));
  const bool added = change.kind == LedgerChange::Kind::kAdded;
  const bool removed = change.kind == LedgerChange::Kind::kRemoved;
  line((added     ? "+ "
        : removed ? "- "
                  : "~ ") +
           name,
       added     ? Tone::kGood
       : removed ? Tone::kBad
                 : Tone::kWarn);
  for (const LedgerChange::Field& field : change.fields) {
    std::string text = "    " + Clean(field.name) + ": ";
    if (!added) text += Shown(field.before);
    if (!added && !removed) text += " -> ";
    if (!removed) text += Shown(field.after);
    line(text, Tone::kPlain);
  }
}

void Print(const Session& session, const LedgerView& from, const LedgerView& to,
           const std::vector<LedgerChange>& changes) {
  if (session.is_document()) {
    std::vector<Json> items;
    for (const LedgerChange& change : changes) items.push_back(ItemOf(change));
    Json item;
    item["from"] = MomentItemOf(from);
    item["to"] = MomentItemOf(to);
    item["items"] = std::move(items);
    PrintDocument(session.out(), DocumentOf("Diff", item),
                  session.options().format);
    return;
  }
  if (session.options().format == Format::kName) {
    for (const LedgerChange& change : changes) {
      session.out() << Clean(ChangedObject(change)) << "\n";
    }
    return;
  }
  if (changes.empty()) return;
  if (!session.options().no_headers) {
    session.out() << "--- " << MomentOf(from) << "\n"
                  << "+++ " << MomentOf(to) << "\n";
  }
  for (const LedgerChange& change : changes) PrintChange(session, change);
}

absl::Status Compare(const Session& session, std::size_t* differences) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto from = (*inspector)->StateAt(session.options().from);
  if (!from.ok()) return from.status();
  const auto to = (*inspector)->StateAt(session.options().to);
  if (!to.ok()) return to.status();
  std::vector<LedgerChange> changes = DifferenceOf(*from, *to);
  if (const std::string& ns = session.options().ns; !ns.empty()) {
    std::erase_if(changes, [&](const LedgerChange& change) {
      return change.name.ns != ns;
    });
  }
  Print(session, *from, *to, changes);
  *differences = changes.size();
  return absl::OkStatus();
}

}  // namespace

absl::Status Diff(const Session& session) {
  std::size_t differences = 0;
  const absl::Status status = Compare(session, &differences);
  if (!status.ok()) return AsTrouble(status);
  if (differences == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   differences == 1
                       ? "1 pod or claim differs"
                       : fmt::format("{} pods and claims differ", differences));
}

}  // namespace devmgr::ctl
