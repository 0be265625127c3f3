// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "claim/object_uid.h"
#include "common/executor.h"
#include "common/executor_gate.h"
#include "common/mutex.h"
#include "control/local_objects.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "pods/identified_objects.h"
#include "pods/source_trust.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::pods {

/// The source's objects as this node sees them: only its own pods, and every
/// object with an identity. An object from a file may have no UID; it gets one
/// when it is first seen, and that is a decision of the ledger, so it holds
/// over restarts until a complete snapshot lacks the object. Where this node
/// allocates claims, they are shown as it decided.
/// Lives on the manager's thread, but for Current.
class ObjectBook {
 public:
  struct Options {
    ObjectSource* source = nullptr;      ///< Borrowed; may be null.
    events::EventLog* events = nullptr;  ///< Borrowed.
    std::string boot_id;
    std::string node_name;  ///< Empty: every pod counts.
    /// Whether this node allocates claims by now: then `changed` has classes
    /// and devices as well. Null: it never does.
    std::function<bool()> allocates = nullptr;
    std::map<std::string, bool> feature_gates;
    std::function<std::int64_t()> now_ms;
    /// New objects are published; what pods may wait for that changed with
    /// them.
    std::function<void(std::vector<WaitingFor> changed)> on_objects;
  };

  /// `executor` (the manager's), `ledger` and `state` (the durable projection
  /// as the manager's thread sees it) are borrowed and must outlive the book.
  ObjectBook(Executor& executor, ledger::Ledger& ledger,
             const state::State& state, Options options);

  /// Takes in what the source has now.
  void Refresh();

  /// Has the source read these claims anew. `done` runs on the manager's
  /// thread when Current shows what was read: at once where the source has
  /// nothing to read.
  ///   Unavailable  one of them cannot be read, and why
  void ReadAnew(const std::vector<ObjectName>& claims,
                std::function<void(const absl::Status&)> done);

  /// A pod has left the ledger; or the ledger has other identities: by our
  /// decision, or by one that failed and holds after all. Then the objects may
  /// have gone meanwhile, and so do these. Or it has rejected a pod, whose file
  /// may have been mended meanwhile.
  void OnCommitted(const ledger::Changes& changes);

  /// As SourceTrust::Confirm.
  void Confirm(const std::string& reason,
               std::function<void(const absl::Status&)> done);

  /// The same without what this node decided about claims.
  const ObjectSnapshot& of_source() const { return of_source_; }

  /// What was published last; never null. Thread-safe.
  std::shared_ptr<const ObjectSnapshot> Current() const;

 private:
  void OnIdentities();
  /// As claim/object_uid.h says.
  state::Decision DecideIdentities(const state::State& state,
                                   const ObjectSnapshot& snapshot) const;
  /// What the source has now, as far as it is trusted.
  std::shared_ptr<const ObjectSnapshot> Believed();
  void Publish(const ObjectSnapshot& snapshot);
  /// Makes what the source has, with what this node decided, the current one.
  void Show();
  bool Allocates() const { return options_.allocates && options_.allocates(); }
  /// That there are other objects than those that were told last.
  void Tell();
  /// Whether identities are to be decided for the snapshot.
  bool LacksIdentities(const std::shared_ptr<const ObjectSnapshot>& snapshot);

  Executor& executor_;
  ledger::Ledger& ledger_;
  const state::State& state_;
  const Options options_;
  const ExecutorGate gate_;
  const std::unique_ptr<SourceTrust> trust_;     ///< Null without a source.
  std::shared_ptr<const ObjectSnapshot> taken_;  ///< From the source, last.
  bool deciding_ = false;
  bool again_ = false;
  IdentifiedObjects identified_;
  ObjectSnapshot of_source_;  ///< As identified last.
  control::LocalObjects local_;
  /// `local_` has been asked: it shows what this node decides, and decided
  /// while it was the authority.
  bool shows_local_ = false;
  std::shared_ptr<const ObjectSnapshot> told_ =
      std::make_shared<ObjectSnapshot>();
  /// For this snapshot, and with these identities, there was none to decide.
  std::shared_ptr<const ObjectSnapshot> settled_;
  claim::Identities settled_identities_;

  mutable Mutex mutex_;
  std::shared_ptr<const ObjectSnapshot> current_ DEVMGR_GUARDED_BY(mutex_) =
      std::make_shared<ObjectSnapshot>();
};

}  // namespace devmgr::pods
