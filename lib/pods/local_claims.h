// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/executor.h"
#include "control/provide.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "pods/object_book.h"
#include "state/state.h"

namespace devmgr::pods {

/// The claims that this node makes, allocates and reserves itself: under
/// Authority::kNode, where no control plane does it. Lives on the manager's
/// thread.
class LocalClaims {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    const ObjectBook& objects;
    events::EventLog& events;
    std::string node_name;
    std::map<std::string, bool> feature_gates;
    bool extended_resources = true;  ///< Feature gate DRAExtendedResource.
    std::function<bool(const ResourceName&)> served_by_class;
    std::function<bool(const std::string& driver)> driver_registered;
    std::function<std::int64_t()> now_ms;
    std::function<std::uint64_t()> random;
    /// This pod should be admitted again.
    std::function<void(const PodUid&)> judge_again;
  };
  explicit LocalClaims(Parts parts);
  LocalClaims(const LocalClaims&) = delete;
  LocalClaims& operator=(const LocalClaims&) = delete;

  /// Whether the pod would be admitted with these claims.
  using Judge = std::function<Verdict(const Pod&, const ObjectSnapshot&)>;
  /// kAdmit: the pod as its status is now; it has what this node provides.
  using Done = std::function<void(absl::StatusOr<Verdict>, Pod)>;

  /// Gives the pod the claims that it lacks, all of them or none: only when
  /// `judge` would admit it with them. `done` is called once, at once when
  /// there is nothing to be done. Unavailable when the search for devices was
  /// given up, or the ledger fails.
  void Provide(const Pod& pod, const Judge& judge, const Done& done);

  /// The pod waits for other devices: what it was allocated goes to others.
  void GiveBack(const PodUid& pod);

  /// The source has other objects.
  void OnObjects();

  /// Pods that are gone have their claims released.
  void OnCommitted(const ledger::Changes& changes);

  /// What an earlier manager has left is released. Once, at first.
  void Start() { Release(); }

 private:
  control::ProvideInput Input(const ObjectSnapshot& objects) const;
  void Commit(const Pod& pod, const control::Provision& provision,
              const Judge& judge, const Done& done);
  void Release();
  void TellAllocated(const Pod& pod, const control::Provision& provision);

  const Parts parts_;
  control::ClaimProvider provider_;
  bool releasing_ = false;
  bool again_ = false;  ///< Something changed while it was being released.
  /// Pods that were judged while no slice was there.
  std::set<PodUid> without_slices_;
};

}  // namespace devmgr::pods
