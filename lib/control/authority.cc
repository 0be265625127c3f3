// SPDX-License-Identifier: Apache-2.0
#include "control/authority.h"

#include <devmgr/options.h>
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/counted.h"
#include "common/status.h"

namespace devmgr::control {
namespace {

using state::AuthorityRecord;
using state::Decision;
using state::Party;
using state::State;

std::string_view NameOf(Party party) {
  return AuthorityName(state::PublicOf(party));
}

Decision Put(std::string message, AuthorityRecord record) {
  Decision decision;
  decision.kind = state::DecisionKind::kAuthority;
  decision.message = std::move(message);
  decision.changes.push_back(state::PutAuthority{
      std::make_shared<const AuthorityRecord>(std::move(record))});
  return decision;
}

Decision Nothing() {
  Decision decision;
  decision.kind = state::DecisionKind::kAuthority;
  return decision;
}

/// The node has allocated, and there is no record: it was the authority.
bool WasAlwaysNode(const State& state, Party configured) {
  return configured == Party::kNode || !state.local_claims.empty();
}

/// What the parties have at that moment, for the history.
std::string HeldText(const State& state) {
  const auto prepared = std::count_if(
      state.claims.begin(), state.claims.end(),
      [](const auto& claim) { return !claim.second->pods.empty(); });
  return fmt::format(
      "{} allocated by this node and {} that pods hold stay as they are",
      Counted(state.local_claims.size(), "claim"),
      Counted(static_cast<std::size_t>(prepared), "claim"));
}

}  // namespace

Standing StandingOf(const State& state, Party configured) {
  const AuthorityRecord* record = state.FindAuthority();
  if (record == nullptr) {
    if (configured == Party::kNode || !WasAlwaysNode(state, configured)) {
      return {configured, std::nullopt};
    }
    return {Party::kNode, configured};
  }
  if (record->configured == configured) return {record->party, record->to};
  if (record->party == configured) return {record->party, std::nullopt};
  return {record->party, configured};
}

Decision DecideConfigured(const State& state, Party configured,
                          std::int64_t now_ms) {
  const AuthorityRecord* record = state.FindAuthority();
  if (record == nullptr && configured == Party::kNode) return Nothing();
  if (record != nullptr && record->configured == configured) return Nothing();
  const Standing standing = StandingOf(state, configured);
  AuthorityRecord next = record != nullptr ? *record : AuthorityRecord();
  if (record == nullptr && !standing.to.has_value()) next.since_ms = now_ms;
  next.party = standing.party;
  next.configured = configured;
  next.by_operator.clear();
  next.to = standing.to;
  next.to_since_ms = next.to.has_value() ? now_ms : 0;
  return Put(next.to.has_value()
                 ? fmt::format("the configuration hands over: {}",
                               ChangingText(standing))
                 : fmt::format("by the configuration {} is the authority",
                               NameOf(next.party)),
             std::move(next));
}

absl::StatusOr<Decision> DecideHandOver(const State& state, Party configured,
                                        Party to, const std::string& reason,
                                        std::int64_t now_ms) {
  if (reason.empty()) return InvalidArgumentError("a reason is required");
  const Standing standing = StandingOf(state, configured);
  if (to == Party::kSplit || standing.party == Party::kSplit ||
      standing.to == Party::kSplit) {
    return FailedPreconditionError(
        "the devices are split, or would be: only the configuration says which "
        "of them are for pods of this node");
  }
  if (to == standing.to) {
    return FailedPreconditionError("it is being handed over to {} already",
                                   NameOf(to));
  }
  if (to == standing.party && !standing.to.has_value()) {
    return FailedPreconditionError("{} is the authority already", NameOf(to));
  }
  const AuthorityRecord* record = state.FindAuthority();
  AuthorityRecord next = record != nullptr ? *record : AuthorityRecord();
  next.party = standing.party;
  next.configured = configured;
  next.by_operator = reason;
  next.to = to != standing.party ? std::optional<Party>(to) : std::nullopt;
  next.to_since_ms = next.to.has_value() ? now_ms : 0;
  return Put(fmt::format("an operator hands the authority over to {}: {}",
                         NameOf(to), reason),
             std::move(next));
}

Decision DecideHandedOver(const State& state, std::int64_t now_ms) {
  const AuthorityRecord* record = state.FindAuthority();
  if (record == nullptr || !record->to.has_value()) return Nothing();
  AuthorityRecord next = *record;
  next.party = *record->to;
  next.since_ms = now_ms;
  next.to.reset();
  next.to_since_ms = 0;
  const std::string why =
      fmt::format("{} is the authority, not {} any more; {}",
                  NameOf(next.party), NameOf(record->party), HeldText(state));
  return Put(why, std::move(next));
}

absl::Status CheckAllocates(const State& state, Party configured) {
  const Standing standing = StandingOf(state, configured);
  if (standing.party == Party::kNode && !standing.to.has_value()) {
    return absl::OkStatus();
  }
  return AbortedError(
      "{}", standing.to.has_value()
                ? ChangingText(standing)
                : fmt::format("authority: {}", NameOf(standing.party)));
}

bool HasClaimsOf(const State& state, const PodUid& pod) {
  return std::any_of(
      state.local_claims.begin(), state.local_claims.end(),
      [&](const auto& claim) {
        const auto& consumers = claim.second->object->status.reserved_for;
        return std::any_of(
            consumers.begin(), consumers.end(),
            [&](const auto& consumer) { return consumer.uid == pod.value; });
      });
}

std::string ChangingText(const Standing& standing) {
  return fmt::format("authority changing: from {} to {}",
                     NameOf(standing.party),
                     NameOf(standing.to.value_or(standing.party)));
}

}  // namespace devmgr::control
