// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/host.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "events/event_log.h"
#include "ledger/ledger.h"
#include "pods/source_pods.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::pods {

/// How far the source is trusted when it says that pods are gone
/// (lib/admission/source_absence.h). Remembers in which watch a pod was seen,
/// and has the ledger remember the marker by which the source is recognised
/// after a restart. Lives on the manager's thread.
class SourceTrust {
 public:
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;
    events::EventLog& events;
    ObjectSource& source;
    std::string node_name;
    std::string boot_id;  ///< Makes markers unique.
    std::function<std::int64_t()> now_ms;
  };
  explicit SourceTrust(Parts parts);

  /// The snapshot, or when it is not trusted one that is incomplete and says
  /// why.
  std::shared_ptr<const ObjectSnapshot> Judge(
      std::shared_ptr<const ObjectSnapshot> snapshot);

  /// A snapshot was published as Judge returned it.
  void OnPublished(const ObjectSnapshot& snapshot);

  bool in_doubt() const { return !missing_.empty(); }

  /// An operator says that the pods which the source lacks are gone.
  ///   InvalidArgument     there is no reason
  ///   FailedPrecondition  the source is trusted already
  void Confirm(const std::string& reason,
               std::function<void(const absl::Status&)> done);

 private:
  /// The pods of the ledger that come from the source, and which of them it
  /// lacks without an explanation.
  struct Count {
    std::size_t held = 0;
    std::vector<ObjectName> unexplained;
  };
  /// The snapshot, with the pods among its `gone_pods` that one of the parts of
  /// the source had and is now complete without.
  std::shared_ptr<const ObjectSnapshot> WithGoneOfParts(
      std::shared_ptr<const ObjectSnapshot> snapshot) const;
  /// Nothing is counted where the source lacks none without an explanation.
  Count CountPods(const ObjectSnapshot& snapshot) const;
  bool CountsFor(const ObjectSnapshot& snapshot,
                 const state::PodRecord& pod) const;
  bool IsFromSource(const state::PodRecord& pod) const;
  const state::SourceRecord* Record() const;
  /// What the ledger is to know of the source from now on.
  state::PutSource NewRecord(const state::State& state,
                             const std::string& marker) const;
  void Remember(const std::string& marker);
  void OnDoubt(const std::string& why);

  const Parts parts_;
  const std::string name_;
  SourcePods pods_;
  /// Pods that an operator says are gone, until they are.
  std::set<ObjectName> confirmed_;
  /// Why it is not trusted: the pods that it lacks.
  std::vector<ObjectName> missing_;
  std::string found_marker_;  ///< Of the last snapshot.
  bool remembering_ = false;
};

}  // namespace devmgr::pods
