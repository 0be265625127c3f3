// SPDX-License-Identifier: Apache-2.0
//
// What the daemon would decide about the pods in files. It is the daemon that
// simulates; nothing is changed.
#include <devmgr/simulation.h>
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "manifest_files.h"
#include "output.h"
#include "refusals.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

absl::Status ReadDocuments(const Session& session,
                           const std::vector<std::string>& paths,
                           SimulationDocuments* request) {
  for (const std::string& path : paths) {
    // Problems are shown here as of any file; the text is what is sent.
    auto manifest = ReadManifest(session, path);
    if (!manifest.ok()) return manifest.status();
    auto text = session.environment().read_file(path);
    if (!text.ok()) return text.status();
    request->documents.push_back({path, *std::move(text)});
  }
  return absl::OkStatus();
}

absl::StatusOr<SimulationDocuments> RequestOf(const Session& session) {
  const Options& options = session.options();
  SimulationDocuments request;
  absl::Status status = ReadDocuments(session, options.files, &request);
  if (status.ok()) status = ReadDocuments(session, options.slices, &request);
  if (!status.ok()) return status;
  SimulationView& view = request.view;
  if (!options.like.empty()) {
    view.base = SimulationBase::kLikeNode;
    view.node_name = options.like;
  } else if (!options.node.empty()) {
    view.base = SimulationBase::kEmpty;
    view.node_name = options.node;
  }
  view.node_labels = options.node_labels;
  view.minus = options.minus;
  for (const auto& [resource, count] : options.plugin_devices) {
    view.plugins.push_back({ResourceName(resource), count, {}});
  }
  request.independent = options.independent;
  request.count_fits = options.count_fits;
  return request;
}

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

/// `driver/pool/device` and `resource/device`.
std::string DevicesOf(const Json& pod) {
  std::vector<std::string> devices;
  for (const Json& claim : pod.at("claims")) {
    for (const Json& result :
         claim.at("status").at("allocation").at("devices").at("results")) {
      devices.push_back(fmt::format("{}/{}/{}", Text(result, "driver"),
                                    Text(result, "pool"),
                                    Text(result, "device")));
    }
  }
  for (const Json& container : pod.at("containers")) {
    for (const auto& [resource, ids] : container.at("devices").items()) {
      for (const Json& id : ids) {
        devices.push_back(resource + "/" + id.get<std::string>());
      }
    }
  }
  return Join(devices, ", ");
}

RefusedRequest RefusalOf(const Json& shown) {
  RefusedRequest refused;
  refused.claim = Text(shown, "claim");
  refused.request = Text(shown, "request");
  refused.wanted = shown.at("wanted").get<std::int64_t>();
  refused.found = shown.at("found").get<std::int64_t>();
  for (const Json& device : shown.at("devices")) {
    refused.devices.push_back({Text(device, "driver"), Text(device, "pool"),
                               Text(device, "device"), Text(device, "reason"),
                               Text(device, "detail")});
  }
  for (const auto& [reason, count] : shown.at("counts").items()) {
    refused.counts.emplace_back(reason, count.get<std::size_t>());
  }
  return refused;
}

Tone ToneOfVerdict(const std::string& verdict) {
  if (verdict == "admit") return Tone::kGood;
  return verdict == "wait" ? Tone::kWarn : Tone::kBad;
}

void PrintTables(const Session& session, const Json& document) {
  Table table = session.MakeTable({"POD", "VERDICT", "REASON", "DEVICES"});
  for (const Json& pod : document.at("pods")) {
    const std::string verdict = Text(pod, "verdict");
    table.Add({Text(pod, "namespace") + "/" + Text(pod, "name"),
               Cell(verdict, ToneOfVerdict(verdict)), Text(pod, "reason"),
               DevicesOf(pod)});
  }
  session.Print(table);
  for (const Json& pod : document.at("pods")) {
    const std::string name = Text(pod, "namespace") + "/" + Text(pod, "name");
    if (Text(pod, "verdict") != "admit") {
      session.Note(fmt::format("pod {}: {}", name, Text(pod, "message")));
    }
    for (const Json& note : pod.at("notes")) {
      session.Note(fmt::format("pod {}: {}", name, note.get<std::string>()));
    }
    for (const Json& refused : pod.at("refusals")) {
      PrintRefusals(session, RefusalOf(refused));
    }
  }
}

/// `5 copies fit; then taken-in-this-run`.
void PrintFit(const Session& session, const Json& fit) {
  const auto copies = fit.at("copies").get<std::uint64_t>();
  const std::string ended_by = Text(fit, "endedBy");
  session.out() << fmt::format(
      "{} cop{} fit{}\n", copies, copies == 1 ? "y" : "ies",
      ended_by.empty() ? "; more were not tried" : "; then " + Clean(ended_by));
}

/// What the exit code says.
absl::Status Result(const Json& document) {
  if (document.at("interrupted").get<bool>()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "the simulation was given up before all pods were judged: "
                     "its steps or its time were spent");
  }
  // The last copy is the one that does not fit.
  if (document.contains("fit")) {
    if (document.at("fit").at("copies").get<std::uint64_t>() > 0) {
      return absl::OkStatus();
    }
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "not one copy of the pod would be admitted");
  }
  std::size_t refused = 0;
  for (const Json& pod : document.at("pods")) {
    if (Text(pod, "verdict") != "admit") ++refused;
  }
  if (refused == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("{} of {} pods would not be admitted", refused,
                               document.at("pods").size()));
}

}  // namespace

absl::Status Simulate(const Session& session) {
  absl::Status status = session.CheckOnline("simulate");
  if (!status.ok()) return AsTrouble(status);
  auto request = RequestOf(session);
  if (!request.ok()) return AsTrouble(request.status());
  auto inspector = session.Open();
  if (!inspector.ok()) return AsTrouble(inspector.status());
  const auto answer = (*inspector)->Simulate(*request);
  if (!answer.ok()) return AsTrouble(answer.status());
  // nlohmann throws; of a daemon of another version the answer may be any.
  try {
    const Json document = Json::parse(*answer);
    const absl::Status result = Result(document);
    if (session.is_document()) {
      PrintDocument(session.out(), DocumentOf("Simulation", document),
                    session.options().format);
    } else {
      PrintTables(session, document);
      if (document.contains("fit")) PrintFit(session, document.at("fit"));
    }
    return result;
  } catch (const Json::exception& error) {
    return MakeError(
        absl::StatusCode::kAborted,
        fmt::format("the daemon's answer cannot be read: {}", error.what()));
  }
}

}  // namespace devmgr::ctl
