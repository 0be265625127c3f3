// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "claim/backing.h"
#include "common/executor.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "state/state.h"

namespace devmgr::resources {

/// Who serves which extended resource, and when that changes. Lives on the
/// manager's thread.
class ResourceOwnership {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    claim::Sharing sharing = claim::Sharing::kOneOwner;
    std::function<std::int64_t()> now_ms;
    /// Who could serve the resource now.
    std::function<claim::Candidates(const ResourceName& resource)> candidates;
  };
  explicit ResourceOwnership(Parts parts) : parts_(std::move(parts)) {}

  /// A candidate came or left, or somebody holds less than before: has the
  /// hand-over recorded if it is time.
  void Consider(const ResourceName& resource);

  /// A plugin has connected: what is held of its resource keeps whether it is
  /// to be asked before containers start. After a failure of the disk that is
  /// tried again when a plugin connects.
  void OnConnected(const ResourceName& resource, bool pre_start_required);

  /// A plugin's name that is neither served nor held is dropped from the
  /// ledger.
  void Forget(const ResourceName& resource);

  /// As claim::HandOverByOperator. `done` runs on this thread, once it is on
  /// disk.
  void HandOver(const ResourceName& resource, ResourceOwner to,
                const std::string& reason,
                std::function<void(const absl::Status&)> done);

  /// Considers all: there are other classes now.
  void OnClasses();

  /// Pods hold other claims for resources, or owners were recorded.
  void OnCommitted(const ledger::Changes& changes);

  /// Why no device plugin serves the resource, for people; empty: one does, by
  /// what the ledger knows.
  std::string WhyNotServed(const ResourceName& resource) const;

 private:
  /// The ledger has `now` in place of `before` (null: nothing). What was
  /// decided may be behind what has come meanwhile, so it is considered again.
  void OnRecorded(const ResourceName& resource,
                  const state::ResourceRecord* before,
                  const state::ResourceRecord* now);
  /// The pod holds a claim for the resource from now on.
  void OnClaimed(const ResourceName& resource, const ObjectName& pod);

  const Parts parts_;
};

}  // namespace devmgr::resources
