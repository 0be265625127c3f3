// SPDX-License-Identifier: Apache-2.0
//
// history [POD|CLAIM]: what was decided, oldest first.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "commands.h"
#include "listing.h"

namespace devmgr::ctl {
namespace {

bool Holds(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool IsAbout(const DecisionInfo& decision, const Subject& subject) {
  const std::string name = subject.name.ToString();
  const bool pod = subject.kind != Kind::kClaim && Holds(decision.pods, name);
  const bool claim = subject.kind != Kind::kPod && Holds(decision.claims, name);
  return pod || claim ||
         (!subject.uid.empty() && Holds(decision.uids, subject.uid));
}

bool IsInNamespace(const DecisionInfo& decision, const std::string& ns) {
  const auto inside = [&](const std::string& name) {
    return name.rfind(ns + "/", 0) == 0;
  };
  return std::any_of(decision.pods.begin(), decision.pods.end(), inside) ||
         std::any_of(decision.claims.begin(), decision.claims.end(), inside);
}

/// Whether the command line asks for it.
bool IsWanted(const DecisionInfo& decision, const Options& options) {
  const auto* since = std::get_if<WallTime>(&options.since);
  if (since != nullptr && decision.time < *since) return false;
  if (options.subject) return IsAbout(decision, *options.subject);
  return options.ns.empty() || IsInNamespace(decision, options.ns);
}

const Listing<DecisionInfo> kDecisions = {
    "DecisionList",
    "decision",
    {"SEQUENCE", "TIME", "DECISION", "PODS", "CLAIMS", "MESSAGE"},
    {"UIDS"},
    nullptr,
    [](const DecisionInfo& decision) {
      return fmt::format("{}", decision.sequence);
    },
    [](const Session&, const DecisionInfo& decision) {
      return Row{fmt::format("{}", decision.sequence),
                 TimeText(decision.time),
                 decision.kind.name(),
                 Join(decision.pods, ","),
                 Join(decision.claims, ","),
                 decision.message};
    },
    [](const Session&, const DecisionInfo& decision) {
      return Row{Join(decision.uids, ",")};
    }};

}  // namespace

absl::Status History(const Session& session) {
  const Options& options = session.options();
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto* after = std::get_if<std::uint64_t>(&options.since);
  auto decisions = (*inspector)->History(after == nullptr ? 0 : *after);
  if (!decisions.ok()) return decisions.status();
  std::erase_if(*decisions, [&](const DecisionInfo& decision) {
    return !IsWanted(decision, options);
  });
  return List(session, *std::move(decisions), kDecisions);
}

}  // namespace devmgr::ctl
