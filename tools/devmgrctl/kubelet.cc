// SPDX-License-Identifier: Apache-2.0
//
// import kubelet, export kubelet: a node changes from the kubelet's device side
// to this one, and back. What cannot be expressed is named first.
#include <fmt/core.h>

#include <filesystem>
#include <string>

#include "commands.h"
#include "raw_options.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::Status NeedsStateDir(const char* form) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("the state directory of a stopped devmgrd is "
                               "needed: devmgrctl --state-dir DIR {}",
                               form));
}

/// With the options that both directions have.
template <typename Request>
absl::StatusOr<Request> RequestOf(const Session& session, const char* form,
                                  std::filesystem::path Request::*directory) {
  const Options& options = session.options();
  if (!options.offline()) return NeedsStateDir(form);
  Request request;
  request.state_dir = options.state_dir;
  request.*directory = options.directory;
  request.dry_run = options.dry_run;
  request.accept_losses = options.accept_losses;
  return request;
}

/// Of losses that were named, and not accepted.
absl::Status NotWritten(std::size_t losses) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      fmt::format("nothing was written: {} would be left out; add "
                  "--accept-losses to go on without {}",
                  losses == 1 ? "one thing" : fmt::format("{} things", losses),
                  losses == 1 ? "it" : "them"));
}

std::string Count(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

template <typename Result>
void NameLosses(const Session& session, const Result& result) {
  for (const std::string& loss : result.losses) {
    session.Note("left out: " + loss);
  }
}

/// Prints `text`, or the counts as a document with what `add` adds to it.
///   FailedPrecondition  nothing was written, because of losses
template <typename Result, typename Add>
absl::Status PrintOutcome(const Session& session, const char* kind,
                          const Result& result, const std::string& text,
                          const Add& add) {
  if (!result.written && !session.options().dry_run) {
    return NotWritten(result.losses.size());
  }
  if (!session.is_document()) {
    session.out() << Clean(text) << "\n";
    return absl::OkStatus();
  }
  Json document{{"written", result.written},
                {"pods", result.pods},
                {"devices", result.devices},
                {"claims", result.claims},
                {"losses", result.losses}};
  add(document);
  PrintDocument(session.out(), DocumentOf(kind, document),
                session.options().format);
  return absl::OkStatus();
}

void AddFlags(CLI::App* command, Raw& raw) {
  command->add_flag("--dry-run", raw.dry_run,
                    "Only show what would be written and what would be left "
                    "out");
  command->add_flag("--accept-losses", raw.accept_losses,
                    "Write although something has to be left out; without it, "
                    "nothing is written then");
}

}  // namespace

void AddKubelet(CLI::App& app, Raw& raw, VerbMap& verbs) {
  CLI::App* import = AddVerb(app, verbs, Verb::kImport, "import",
                             "With --state-dir: take over what pods hold");
  import->require_subcommand(1);
  CLI::App* from = import->add_subcommand(
      "kubelet",
      "Take over the devices and claims of a stopped kubelet's pods into a "
      "ledger that holds nothing, so that these pods run on");
  from->add_option("KUBELET_DIR", raw.directory,
                   "Root directory of the kubelet, such as /var/lib/kubelet")
      ->required()
      ->check(NotEmpty);
  AddFlags(from, raw);
  CLI::App* export_verb = AddVerb(app, verbs, Verb::kExport, "export",
                                  "With --state-dir: hand over what pods hold");
  export_verb->require_subcommand(1);
  CLI::App* to = export_verb->add_subcommand(
      "kubelet",
      "Write the checkpoint files with which a kubelet goes on with the "
      "devices and claims of running pods");
  to->add_option("OUT_DIR", raw.directory,
                 "Directory to make; if it is there, it has to be empty. "
                 "dra_manager_state is written into it and "
                 "kubelet_internal_checkpoint into its device-plugins")
      ->required()
      ->check(NotEmpty);
  AddFlags(to, raw);
}

absl::Status ImportFromKubelet(const Session& session) {
  const Options& options = session.options();
  const auto request = RequestOf(session, "import kubelet KUBELET_DIR",
                                 &KubeletImportOptions::kubelet_dir);
  if (!request.ok()) return request.status();
  const auto result = session.environment().import_kubelet(*request);
  if (!result.ok()) return result.status();
  for (const std::string& note : result->notes) session.Note(note);
  NameLosses(session, *result);
  for (const auto& path : result->kept) {
    session.Note(
        fmt::format("a copy of the damaged file is '{}'", path.string()));
  }
  return PrintOutcome(
      session, "KubeletImport", *result,
      fmt::format("{} {} with {} and {} ({} as prepared) into the "
                  "ledger in '{}'",
                  options.dry_run ? "would import" : "imported",
                  Count(result->pods, "pod"), Count(result->devices, "device"),
                  Count(result->claims, "claim"), result->adopted,
                  options.state_dir),
      [&](Json& document) {
        document["adoptedClaims"] = result->adopted;
        document["notes"] = result->notes;
        Json kept = Json::array();
        for (const auto& path : result->kept) {
          kept.push_back(path.string());
        }
        document["keptCopies"] = std::move(kept);
      });
}

absl::Status ExportToKubelet(const Session& session) {
  const Options& options = session.options();
  const auto request = RequestOf(session, "export kubelet OUT_DIR",
                                 &KubeletExportOptions::out_dir);
  if (!request.ok()) return request.status();
  const auto result = session.environment().export_kubelet(*request);
  if (!result.ok()) return result.status();
  NameLosses(session, *result);
  return PrintOutcome(
      session, "KubeletExport", *result,
      fmt::format("{} {} with {} and {} to '{}'",
                  options.dry_run ? "would export" : "exported",
                  Count(result->pods, "pod"), Count(result->devices, "device"),
                  Count(result->claims, "claim"), options.directory),
      [](Json& /*document*/) {});
}

}  // namespace devmgr::ctl
