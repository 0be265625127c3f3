// SPDX-License-Identifier: Apache-2.0
//
// status and version.
#include <devmgr/version.h>
#include <fmt/core.h>

#include "commands.h"
#include "objects.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

Cell LedgerCell(const NodeInfo& node) {
  if (!node.ledger_error.empty()) {
    return {fmt::format("takes no decisions: {}", node.ledger_error),
            Tone::kBad};
  }
  return {fmt::format("ok, sequence {}", node.ledger_sequence), Tone::kGood};
}

Cell RecoveryCell(const RecoveryInfo& recovery) {
  if (recovery.damaged) return {recovery.message, Tone::kBad};
  return {recovery.message,
          recovery.dropped.empty() ? Tone::kPlain : Tone::kWarn};
}

Cell SourceCell(const Session& session, const NodeInfo& node) {
  if (session.options().offline()) return {"<unknown>"};
  if (node.source_complete) {
    return {fmt::format("{}, complete", node.source), Tone::kGood};
  }
  return {fmt::format("{}, incomplete: nothing counts as gone", node.source),
          Tone::kWarn};
}

Cell RuntimeCell(const Session& session, const RuntimeSourceInfo& runtime) {
  const std::string age = session.Age(runtime.since);
  if (!runtime.known) {
    return {fmt::format("{}, not known for {} what it runs, releases wait: {}",
                        runtime.source, age, runtime.reason),
            Tone::kBad};
  }
  return {fmt::format("{}, {}, known for {}, {} pods", runtime.source,
                      runtime.runtime, age, runtime.pods),
          Tone::kGood};
}

/// What there is to say of those that are servers.
void AddServers(const Session& session, const std::vector<SourceInfo>& sources,
                Fields* fields) {
  for (const SourceInfo& info : sources) {
    if (info.server.empty()) continue;
    std::string text = info.server + ", " + info.state;
    if (!info.api_version.empty()) text += ", " + info.api_version;
    const std::pair<const char*, WallTime> times[] = {
        {", known as of", info.known_at},
        {", last list", info.last_list},
        {", last event", info.last_event}};
    for (const auto& [what, time] : times) {
      if (time == WallTime()) continue;
      text += fmt::format("{} {} ago", what, session.Age(time));
    }
    if (info.queued > 0) text += fmt::format(", {} queued", info.queued);
    fields->Add("API server", {text, ToneOf(info)});
    if (info.last_error.empty()) continue;
    fields->Add("Last error", {info.last_error, Tone::kWarn});
  }
}

/// `node since 3d`, and what is under way.
Cell AuthorityCell(const Session& session, const NodeInfo& node) {
  std::string text = AuthorityText(node);
  if (node.authority_since.has_value()) {
    text += fmt::format(" since {}", session.Age(*node.authority_since));
  }
  if (node.authority_to.has_value()) {
    text += fmt::format(", being handed over to {}: {}",
                        AuthorityName(*node.authority_to), node.authority_wait);
  }
  if (!node.authority_by_operator.empty()) {
    text += fmt::format(" (by an operator: {})", node.authority_by_operator);
  }
  return {std::move(text), node.authority_to ? Tone::kWarn : Tone::kPlain};
}

void PrintDashboard(const Session& session, const NodeInfo& node,
                    const std::vector<SourceInfo>& sources,
                    const std::vector<PluginInfo>& plugins) {
  Fields fields(session.color());
  fields.Add("Version", node.version);
  fields.Add("Uptime", session.Age(node.started));
  fields.Add("Node", node.node_name);
  fields.Add("Boot ID", node.boot_id);
  fields.Add("Authority", AuthorityCell(session, node));
  fields.Add("Profile", ProfileText(node));
  fields.Add("Actuate", std::string(ActuateName(node.actuate)));
  fields.Add("State directory", node.state_dir);
  fields.Add("Ledger", LedgerCell(node));
  if (!node.recovery.closed_cleanly) {
    fields.Add("Recovery", RecoveryCell(node.recovery));
  }
  fields.Add("Source", SourceCell(session, node));
  AddServers(session, sources, &fields);
  if (node.runtime.has_value()) {
    fields.Add("Runtime", RuntimeCell(session, *node.runtime));
  }
  for (const std::string& problem : node.source_problems) {
    fields.Add("Problem", {problem, Tone::kBad});
  }
  fields.Add("Pods", fmt::format("{} ({} ready, {} waiting, {} rejected)",
                                 node.pods, node.pods_ready, node.pods_waiting,
                                 node.pods_rejected));
  fields.Add("Claims", fmt::format("{}", node.claims));
  fields.Add("Plugins", session.options().offline()
                            ? std::string("<unknown>")
                            : fmt::format("{}", node.plugins));
  fields.Print(session.out());
  if (plugins.empty()) return;
  session.out() << "\n";
  Table table = session.MakeTable({"PLUGIN", "STATE", "VERSION", "LAST ERROR"});
  for (const PluginInfo& plugin : plugins) {
    table.Add({plugin.name,
               {plugin.state.name(), ToneOf(plugin)},
               plugin.version,
               {plugin.last_error,
                plugin.last_error.empty() ? Tone::kPlain : Tone::kBad}});
  }
  table.Print(session.out());
}

}  // namespace

absl::Status Status(const Session& session) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto node = (*inspector)->Node();
  if (!node.ok()) return node.status();
  if (session.is_document()) {
    Json document = DocumentOf("NodeStatus", ItemOf(*node));
    if (session.options().offline()) {
      // Unknown without a daemon, and so absent.
      document["status"].erase("plugins");
      document["status"].erase("source");
    }
    PrintDocument(session.out(), document, session.options().format);
    return absl::OkStatus();
  }
  if (session.options().format == Format::kName) {
    session.out() << "node/" << Clean(node->node_name) << "\n";
    return absl::OkStatus();
  }
  const auto plugins = (*inspector)->Plugins();
  if (!plugins.ok()) return plugins.status();
  const auto sources = (*inspector)->Sources();
  if (!sources.ok() && !absl::IsUnimplemented(sources.status())) {
    return sources.status();
  }
  PrintDashboard(session, *node,
                 sources.ok() ? *sources : std::vector<SourceInfo>(), *plugins);
  return absl::OkStatus();
}

absl::Status ShowVersion(const Session& session) {
  const std::string client(Version());
  std::string server;
  if (!session.options().offline()) {
    // Without a daemon there is still a version to tell.
    auto inspector = session.Open();
    absl::Status status = inspector.status();
    if (status.ok()) {
      const auto node = (*inspector)->Node();
      if (node.ok()) server = node->version;
      status = node.status();
    }
    if (!status.ok()) session.Note(MessageOf(status));
  }
  if (session.is_document()) {
    Json versions{{"client", client}};
    if (!server.empty()) versions["server"] = server;
    PrintDocument(session.out(), DocumentOf("Version", versions),
                  session.options().format);
    return absl::OkStatus();
  }
  if (session.options().format == Format::kName) {
    session.out() << "version/" << client << "\n";
    return absl::OkStatus();
  }
  Fields fields(session.color());
  fields.Add("Client", client);
  fields.Add("Server", server.empty() ? "<unknown>" : server);
  fields.Print(session.out());
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
