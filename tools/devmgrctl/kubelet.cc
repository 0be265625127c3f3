// SPDX-License-Identifier: Apache-2.0
//
// import kubelet, export kubelet: a node changes from the kubelet's device side
// to this one, and back. What cannot be expressed is named first. verify
// kubelet looks at the files between them.
#include <fmt/core.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "raw_options.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

constexpr char kKubeletDirectory[] =
    "Root directory of the kubelet, such as /var/lib/kubelet";

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

/// Of files that a dry run has found damaged.
absl::Status WouldNotWrite(std::size_t damaged) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("{} damaged: nothing would be written without "
                               "--accept-losses",
                               damaged == 1 ? "a file is" : "both files are"));
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

struct ChecksumWords {
  Cell cell;         ///< In tables.
  const char* word;  ///< In documents.
};

ChecksumWords WordsOf(const KubeletFile& file) {
  switch (file.checksum) {
    case KubeletFile::Checksum::kRight:
      return {{"right", Tone::kGood}, "right"};
    case KubeletFile::Checksum::kWrong:
      return {{"wrong", Tone::kBad}, "wrong"};
    case KubeletFile::Checksum::kNotProven:
      return {{"not proven", Tone::kWarn}, "notProven"};
    case KubeletFile::Checksum::kUnknown:
      break;
  }
  return {{"<unknown>", Tone::kBad}, "unknown"};
}

Json FileAsJson(const KubeletFile& file) {
  Json item = {{"path", file.path.string()}, {"exists", file.exists}};
  if (!file.exists) return item;
  if (!file.format.empty()) item["format"] = file.format;
  if (!file.kubelets.empty()) item["kubelets"] = file.kubelets;
  item["checksum"] = WordsOf(file).word;
  if (file.pods) item["pods"] = *file.pods;
  if (file.claims) item["claims"] = *file.claims;
  if (file.devices) item["devices"] = *file.devices;
  if (!file.problem.empty()) item["problem"] = file.problem;
  return item;
}

void PrintFiles(const Session& session, const std::vector<KubeletFile>& files) {
  if (session.is_document()) {
    std::vector<Json> items;
    for (const KubeletFile& file : files) items.push_back(FileAsJson(file));
    PrintDocument(session.out(), ListOf("KubeletFileList", std::move(items)),
                  session.options().format);
    return;
  }
  const auto number = [](const std::optional<std::size_t>& count) {
    return count ? std::to_string(*count) : "";
  };
  Table table = session.MakeTable(
      {"FILE", "FORMAT", "KUBELETS", "CHECKSUM", "PODS", "CLAIMS", "DEVICES"});
  for (const KubeletFile& file : files) {
    table.Add({file.path.string(), file.format, file.kubelets,
               file.exists ? WordsOf(file).cell : Cell(""), number(file.pods),
               number(file.claims), number(file.devices)});
  }
  session.Print(table);
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
  CLI::App* verify = AddVerb(
      app, verbs, Verb::kVerify, "verify",
      "Check the checksums of checkpoint files; needs no daemon and changes "
      "nothing. Exit code 1: a file is damaged, or its checksum is not right; "
      "above 1: the check could not be done");
  verify->require_subcommand(1);
  verify
      ->add_subcommand("kubelet",
                       "Check both files of a kubelet: their layouts, their "
                       "checksums, and how many pods, claims and devices they "
                       "hold")
      ->add_option("KUBELET_DIR", raw.directory, kKubeletDirectory)
      ->required()
      ->check(NotEmpty);
  CLI::App* import = AddVerb(app, verbs, Verb::kImport, "import",
                             "With --state-dir: take over what pods hold");
  import->require_subcommand(1);
  CLI::App* from = import->add_subcommand(
      "kubelet",
      "Take over the devices and claims of a stopped kubelet's pods into a "
      "ledger that holds nothing, so that these pods run on");
  from->add_option("KUBELET_DIR", raw.directory, kKubeletDirectory)
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

absl::Status VerifyKubelet(const Session& session) {
  const auto files =
      session.environment().verify_kubelet(session.options().directory);
  if (!files.ok()) return AsTrouble(files.status());
  PrintFiles(session, *files);
  std::size_t bad = 0;
  for (const KubeletFile& file : *files) {
    const std::string path = file.path.string();
    if (!file.exists) {
      session.Note(fmt::format("'{}' is not there", path));
    } else if (file.checksum != KubeletFile::Checksum::kRight) {
      ++bad;
      session.Note(fmt::format("'{}': {}", path, file.problem));
    }
  }
  if (bad == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("{} damaged, or not proven to be whole",
                               bad == 1 ? "a file is" : "both files are"));
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
  const absl::Status status = PrintOutcome(
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
  if (!status.ok()) return status;
  // A preview shows the rest of what it leaves out; a file that is damaged is
  // what a check finds.
  const bool fails = options.dry_run && !options.accept_losses;
  if (!fails || result->damaged.empty()) return absl::OkStatus();
  return WouldNotWrite(result->damaged.size());
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
