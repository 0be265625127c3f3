// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/objects.h>
#include <devmgr/options.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/executor.h"
#include "control/authority.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "state/state.h"

namespace devmgr::pods {

/// Which party allocates devices, as the ledger has it, and the hand-over to
/// another one: it is recorded that it begins, from then on pods that have
/// nothing decided wait, and it is recorded that it has ended, once all that
/// the other party has decided is known here. A restart goes on with it. Lives
/// on the manager's thread.
class AuthorityKeeper {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    Authority configured = Authority::kNode;
    std::function<std::int64_t()> now_ms;
    /// Why what the other party has decided is not known yet; empty: it is.
    std::function<std::string()> why_not_known;
    /// It is another party now, or that is being handed over.
    std::function<void()> on_changed;
  };
  explicit AuthorityKeeper(Parts parts);

  /// Takes up the configuration, and a hand-over that has not ended.
  void Start();

  /// As Maintenance::StartSetAuthority.
  void HandOver(Authority to, const std::string& reason,
                std::function<void(const absl::Status&)> done);

  /// The source has other objects.
  void OnObjects() { EndIfKnown(); }

  void OnCommitted(const ledger::Changes& changes);

  control::Standing standing() const {
    return control::StandingOf(parts_.state, configured_);
  }
  state::Party configured() const { return configured_; }
  Authority authority() const { return state::PublicOf(standing().party); }
  /// This node makes, allocates and reserves claims at this moment.
  bool Allocates() const {
    return standing() == control::Standing{state::Party::kNode};
  }

  /// The wait of a pod for which nothing is decided yet, during a hand-over.
  std::optional<Verdict> WhyPaused(const Pod& pod,
                                   bool extended_resources) const;

  /// Fills in what can be seen of it.
  void Show(NodeInfo* node) const;

 private:
  void Record();
  void EndIfKnown();
  void Report(const state::AuthorityRecord* before,
              const state::AuthorityRecord& now);

  const Parts parts_;
  const state::Party configured_;
  bool ending_ = false;
};

}  // namespace devmgr::pods
