// SPDX-License-Identifier: Apache-2.0
#include "pods/authority_keeper.h"

#include <fmt/core.h>

#include <utility>

#include "device/pod_needs.h"
#include "state/views.h"

namespace devmgr::pods {
namespace {

std::string_view NameOf(state::Party party) {
  return AuthorityName(state::PublicOf(party));
}

/// Nothing is decided for it, and nothing held.
bool IsUndecided(const state::State& state, const PodUid& uid) {
  if (control::HasClaimsOf(state, uid)) return false;
  const state::PodRecord* record = state.FindPod(uid);
  return record == nullptr ||
         (record->phase == state::PodPhase::kWaiting && record->holds.empty());
}

}  // namespace

AuthorityKeeper::AuthorityKeeper(Parts parts)
    : parts_(std::move(parts)),
      configured_(state::PartyOf(parts_.configured)) {}

void AuthorityKeeper::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  Record();
  EndIfKnown();
}

void AuthorityKeeper::Record() {
  const auto decide =
      [configured = configured_, now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
    return control::DecideConfigured(state, configured, now);
  };
  if (decide(parts_.state)->changes.empty()) return;
  // The ledger reports itself what is wrong with it.
  parts_.ledger.Submit(
      decide, parts_.executor, [this](const absl::Status& status) {
        if (status.ok()) return;
        parts_.executor.PostAfter(ledger::kWriteRetry, [this] { Record(); });
      });
}

void AuthorityKeeper::HandOver(Authority to, const std::string& reason,
                               std::function<void(const absl::Status&)> done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  parts_.ledger.Submit(
      [configured = configured_, to = state::PartyOf(to), reason,
       now = parts_.now_ms()](const state::State& state) {
        return control::DecideHandOver(state, configured, to, reason, now);
      },
      parts_.executor, std::move(done));
}

void AuthorityKeeper::EndIfKnown() {
  DEVMGR_ASSERT_ON(parts_.executor);
  const state::AuthorityRecord* record = parts_.state.FindAuthority();
  if (ending_ || record == nullptr || !record->to.has_value()) return;
  if (record->configured != configured_) return;  // Record comes first.
  if (!parts_.why_not_known().empty()) return;
  ending_ = true;
  parts_.ledger.Submit(
      [to = record->to, now = parts_.now_ms()](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        const state::AuthorityRecord* last = state.FindAuthority();
        // The operator may have called it off.
        if (last == nullptr || last->to != to) return state::Decision();
        return control::DecideHandedOver(state, now);
      },
      parts_.executor,
      [this](const absl::Status& status) {
        ending_ = false;
        if (status.ok()) return EndIfKnown();
        parts_.executor.PostAfter(ledger::kWriteRetry,
                                  [this] { EndIfKnown(); });
      });
}

void AuthorityKeeper::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (changes.authority.empty()) return;
  for (const auto& [before, now] : changes.authority) {
    if (now != nullptr) Report(before.get(), *now);
  }
  parts_.on_changed();
  EndIfKnown();
}

void AuthorityKeeper::Report(const state::AuthorityRecord* before,
                             const state::AuthorityRecord& now) {
  const bool by_operator = !now.by_operator.empty();
  const std::string why =
      by_operator ? fmt::format("by an operator: {}", now.by_operator)
                  : std::string("by the configuration");
  if (now.to.has_value() && (before == nullptr || before->to != now.to)) {
    parts_.events.Add(by_operator, "AuthorityChanging", "Node", {},
                      fmt::format("devices are to be allocated by {}, not by "
                                  "{} any more, {}; pods that hold nothing "
                                  "wait until then",
                                  NameOf(*now.to), NameOf(now.party), why));
    return;
  }
  if (before == nullptr && !by_operator) return;
  if (before != nullptr && before->party == now.party) return;
  parts_.events.Add(
      by_operator, "AuthorityChanged", "Node", {},
      fmt::format("devices are allocated by {}, {}", NameOf(now.party), why));
}

std::optional<Verdict> AuthorityKeeper::WhyPaused(
    const Pod& pod, bool extended_resources) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  const control::Standing now = standing();
  if (!now.to.has_value()) return std::nullopt;
  const bool wants = !pod.spec.resource_claims.empty() ||
                     !device::NeedsOf(pod, extended_resources).empty();
  if (!wants || !IsUndecided(parts_.state, PodUid{pod.metadata.uid})) {
    return std::nullopt;
  }
  const std::string why = parts_.why_not_known();
  return Verdict{
      Verdict::Kind::kWait,
      "AuthorityChanging",
      fmt::format("{}{}{}", control::ChangingText(now), why.empty() ? "" : "; ",
                  why),
      {{WaitingFor::Kind::kAuthority, std::string(NameOf(*now.to))}}};
}

void AuthorityKeeper::Show(NodeInfo* node) const {
  const control::Standing now = standing();
  node->authority = state::PublicOf(now.party);
  if (now.to.has_value()) {
    node->authority_to = state::PublicOf(*now.to);
    node->authority_wait = parts_.why_not_known();
  }
  const state::AuthorityRecord* record = parts_.state.FindAuthority();
  if (record == nullptr) return;
  if (record->since_ms != 0) {
    node->authority_since = state::WallTimeOf(record->since_ms);
  }
  node->authority_by_operator = record->by_operator;
}

}  // namespace devmgr::pods
