// SPDX-License-Identifier: Apache-2.0
//
// get sources: where objects come from, and how that goes.
#include <fmt/core.h>

#include <utility>

#include "commands.h"
#include "listing.h"
#include "objects.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

const Listing<SourceInfo> kSources = {
    "SourceList",
    "source",
    {"SOURCE", "STATE", "COMPLETE", "VERSION", "AGE", "LAST EVENT", "QUEUE"},
    {"SERVER", "RESOURCE VERSION", "LAST LIST", "RESTARTS", "LAST ERROR"},
    nullptr,
    [](const SourceInfo& info) { return info.name; },
    [](const Session& session, const SourceInfo& info) {
      return Row{info.name,
                 {info.state, ToneOf(info)},
                 info.complete ? "yes" : "no",
                 info.api_version,
                 AgeText(session, info.known_at),
                 AgeText(session, info.last_event),
                 fmt::format("{}", info.queued)};
    },
    [](const Session& session, const SourceInfo& info) {
      return Row{info.server,
                 info.resource_version,
                 AgeText(session, info.last_list),
                 fmt::format("{}", info.watch_restarts),
                 {info.last_error, Tone::kBad}};
    }};

}  // namespace

Tone ToneOf(const SourceInfo& info) {
  return info.state == "Watching" && info.complete ? Tone::kGood : Tone::kWarn;
}

std::string AgeText(const Session& session, WallTime time) {
  return time == WallTime() ? "" : session.Age(time);
}

absl::Status GetSources(const Session& session, Inspector& inspector) {
  auto sources = inspector.Sources();
  if (!sources.ok()) return sources.status();
  const std::string& name = session.options().name.name;
  std::erase_if(*sources, [&](const SourceInfo& info) {
    return !name.empty() && info.name != name;
  });
  if (sources->empty() && !name.empty()) {
    return MakeError(absl::StatusCode::kNotFound,
                     fmt::format("there is no source '{}'", name));
  }
  return List(session, *std::move(sources), kSources);
}

}  // namespace devmgr::ctl
