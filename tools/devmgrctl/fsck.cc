// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "commands.h"
#include "objects.h"
#include "runtime_ledger.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

std::size_t CountOf(const FsckReport& report, bool error) {
  return static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [&](const auto& f) { return f.error == error; }));
}

std::string Counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void PrintFindings(const Session& session, const FsckReport& report) {
  if (report.findings.empty()) return;
  Table table = session.MakeTable({"SEVERITY", "CHECK", "OBJECT", "MESSAGE"});
  for (const FsckFinding& finding : report.findings) {
    const Cell severity = finding.error ? Cell("error", Tone::kBad)
                                        : Cell("warning", Tone::kWarn);
    table.Add({severity, finding.check, finding.object, finding.message});
  }
  table.Print(session.out());
}

/// What `--repair --yes` would do, and what is left to people.
void PrintPlan(const Session& session, const FsckReport& report) {
  bool first = true;
  for (const FsckFinding& finding : report.findings) {
    for (const bool is_repair : {true, false}) {
      const std::string& text = is_repair ? finding.repair : finding.hint;
      if (text.empty()) continue;
      if (first) session.out() << "\nWhat to do:\n";
      first = false;
      session.out() << fmt::format(
          "  {}: {}{}\n", Clean(finding.object),
          is_repair ? "--repair " : "by hand: ", Clean(text));
    }
  }
}

void PrintRepairs(const Session& session, const FsckReport& report) {
  for (const FsckRepair& repair : report.repairs) {
    session.out() << fmt::format(
        "{}: {}: {}\n", Clean(repair.object), Clean(repair.action),
        repair.error.empty() ? "recorded and begun"
                             : "FAILED: " + Clean(repair.error));
  }
  if (!report.repairs.empty() && !report.findings.empty()) {
    session.out() << "\nWhat remains:\n";
  }
}

void PrintReport(const Session& session, const FsckReport& report) {
  const Format format = session.options().format;
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf("FsckReport", ItemOf(report)),
                  format);
  } else if (format == Format::kName) {
    for (const FsckFinding& finding : report.findings) {
      session.out() << Clean(finding.object) << "\n";
    }
  } else {
    PrintRepairs(session, report);
    PrintFindings(session, report);
    PrintPlan(session, report);
  }
}

/// What the runtime's containers add; errors stay first.
absl::Status AddRuntime(const Session& session, Inspector& inspector,
                        FsckReport* report) {
  if (session.options().runtime_endpoint.empty()) return absl::OkStatus();
  const auto findings = CheckRuntime(session, inspector);
  if (!findings.ok()) return findings.status();
  auto& all = report->findings;
  all.insert(all.end(), findings->begin(), findings->end());
  std::stable_partition(all.begin(), all.end(),
                        [](const FsckFinding& f) { return f.error; });
  return absl::OkStatus();
}

FsckRequest RequestOf(const Options& options) {
  FsckRequest request;
  if (options.repair && options.yes) request.mode = FsckMode::kRepair;
  request.cdi_spec_dirs.assign(options.cdi_spec_dirs.begin(),
                               options.cdi_spec_dirs.end());
  return request;
}

}  // namespace

absl::Status Fsck(const Session& session) {
  const Options& options = session.options();
  auto inspector = session.Open();
  if (!inspector.ok()) return AsTrouble(inspector.status());
  if (options.offline()) {
    session.Note("CDI specs are read from " +
                 Join(options.cdi_spec_dirs, ", ") + " (--cdi-spec-dir)");
  }
  auto report = (*inspector)->Fsck(RequestOf(options));
  if (!report.ok()) return AsTrouble(report.status());
  const absl::Status status = AddRuntime(session, **inspector, &*report);
  // Repairs that were made are told whatever becomes of the rest.
  PrintReport(session, *report);
  if (!status.ok()) return AsTrouble(status);
  const std::size_t errors = CountOf(*report, true);
  const auto failed = static_cast<std::size_t>(std::count_if(
      report->repairs.begin(), report->repairs.end(),
      [](const FsckRepair& repair) { return !repair.error.empty(); }));
  const std::string found = fmt::format(
      "{} and {} at ledger sequence {}", Counted(errors, "problem"),
      Counted(CountOf(*report, false), "warning"), report->ledger_sequence);
  if (errors == 0 && failed == 0) {
    session.Note(found);
    return absl::OkStatus();
  }
  const bool is_plan = options.repair && !options.yes;
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      found + (is_plan ? "; nothing was changed: add --yes to repair" : ""));
}

}  // namespace devmgr::ctl
