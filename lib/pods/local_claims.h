// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/metrics.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/claim_alignment.h"
#include "admission/claim_steering.h"
#include "common/executor.h"
#include "control/outlook.h"
#include "control/provide.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "pods/authority_keeper.h"
#include "pods/device_request.h"
#include "pods/object_book.h"
#include "state/state.h"

namespace devmgr::pods {

/// The claims that this node makes, allocates and reserves itself: under
/// Authority::kNode, where no control plane does it. Those that it allocated
/// before another party was the authority it releases all the same. Lives on
/// the manager's thread.
class LocalClaims {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    const ObjectBook& objects;
    const AuthorityKeeper& authority;
    events::EventLog& events;
    MetricsSink& metrics;
    std::string node_name;
    std::string boot_id;
    std::map<std::string, bool> feature_gates;
    bool extended_resources = true;  ///< Feature gate DRAExtendedResource.
    std::function<bool(const ResourceName&)> served_by_class;
    std::function<bool(const std::string& driver)> driver_registered;
    std::function<std::int64_t()> now_ms;
    std::function<std::uint64_t()> random;
    /// Of the drivers that publish devices. Null: none is known.
    claim::PublishedHardware* hardware = nullptr;
    /// Devices that no claim gets now, because they do not work; their version
    /// rises with each change. May be null.
    std::function<std::set<state::DeviceKey>()> withheld = {};
    std::function<std::uint64_t()> withheld_version = {};
    /// As ProvideInput has it; may be null.
    const control::EvictionPlan* evictions = nullptr;
    /// As DeviceAdmission::AlignClaims, to the NUMA nodes of this machine.
    /// Null: devices are chosen wherever they are.
    std::function<absl::StatusOr<admission::ClaimAlignment>(
        const DeviceRequest& request, const admission::ClaimHints& hints,
        bool dry)>
        align = nullptr;
    NumaMask numa_nodes = {};
    /// What is to be decided for the pod's claims is decided, before `done` of
    /// Provide. May be null.
    std::function<void(const PodUid&)> on_decided;
  };
  explicit LocalClaims(Parts parts);
  LocalClaims(const LocalClaims&) = delete;
  LocalClaims& operator=(const LocalClaims&) = delete;

  /// Whether the pod would be admitted with these claims.
  using Judge = std::function<Verdict(const Pod&, const ObjectSnapshot&)>;
  /// kAdmit: the pod as its status is now; it has what this node provides.
  /// Should it wait for its claims all the same, it also waits for what the
  /// verdict lists.
  using Done = std::function<void(absl::StatusOr<Verdict>, Pod)>;

  /// What a pod would be given.
  struct Proposal {
    Pod pod;                                        ///< As its status would be.
    std::shared_ptr<const ObjectSnapshot> objects;  ///< With its claims.
    control::Provision provision;
    /// What it was chosen beside.
    decltype(state::State::local_claims) seen;
  };
  /// The pod wants something else with its claims, in the same batch. True: it
  /// is seen to by others from here on, and `done` of Provide is not called.
  /// They use Propose and Commit.
  using Join = std::function<bool(const Proposal&)>;

  /// Gives the pod the claims that it lacks, all of them or none: only when
  /// `judge` would admit it with them. `done` is called once, at once when
  /// there is nothing to be done. Unavailable when the search for devices was
  /// given up, or the ledger fails.
  /// While this node allocates nothing, kAdmit with nothing done, or the wait
  /// for the end of a hand-over. `join` may be null.
  void Provide(const Pod& pod, const Judge& judge, const Done& done,
               const Join& join = nullptr);

  /// What Provide would commit now; to be committed before anything else is
  /// done, or not at all. Nothing: it would not commit anything now.
  std::optional<Proposal> Propose(const Pod& pod, const Judge& judge);

  /// Makes the rest of a batch, on the ledger's thread; an error refuses all of
  /// it.
  using Rest =
      std::function<absl::StatusOr<state::Decision>(const state::State&)>;
  /// `stale`: nothing was written, as what was proposed cannot be had any more.
  using Written = std::function<void(const absl::Status&, bool stale)>;
  /// One batch with what was proposed and with `rest`; null: there is none.
  void Commit(const Proposal& proposal, const Rest& rest,
              const Written& written);

  /// The pod waits for other devices: what it was allocated goes to others.
  void GiveBack(const PodUid& pod);

  /// Gives claims of a pod that is Ready, which this container alone uses,
  /// other devices in place of theirs, which do not work: of the NUMA nodes
  /// that the pod is aligned to. On success the pod is Preparing, until its
  /// drivers have prepared them.
  ///   Unavailable         there are none now
  ///   FailedPrecondition  the claims are not as they were
  void Exchange(const state::PodRecord& pod, const ContainerName& container,
                const std::set<ClaimUid>& claims,
                std::function<void(const absl::Status&)> done);

  /// What Provide would say now, with nothing done.
  absl::StatusOr<Verdict> WouldProvide(const Pod& pod, const Judge& judge);

  /// The pod waits for devices, and what could be had of them is what it failed
  /// on when Provide was called last.
  bool FailsAlike(const PodUid& pod);

  /// Pods that are gone have their claims released.
  void OnCommitted(const ledger::Changes& changes);

  /// What pods may wait for that a batch has given back and that no object
  /// shows: devices that drivers have unprepared, those of a claim whose name
  /// another one has by now, and what pods paid.
  std::vector<WaitingFor> Freed(const ledger::Changes& changes) const;

  /// What an earlier manager has left is released. Once, at first.
  void Start() { Release(); }

 private:
  /// The objects, with a taint on each device that is withheld.
  std::shared_ptr<const ObjectSnapshot> Objects();
  control::ProvideInput Input(const state::State& state,
                              const ObjectSnapshot& objects) const;
  /// As Provide has it, along NUMA nodes where devices are aligned to these.
  absl::StatusOr<control::Provision> Along(const Pod& pod,
                                           const control::ProvideInput& input,
                                           bool dry);
  /// The same for a pod that was aligned when it was admitted.
  absl::StatusOr<control::Provision> AlongRecord(
      const state::PodRecord& record, const Pod& pod,
      const control::ProvideInput& input);
  /// Provides, and counts what that took.
  absl::StatusOr<control::Provision> Search(const Pod& pod,
                                            const control::Outlook& ahead);
  void CountCommit(const control::Provision& provision,
                   std::chrono::nanoseconds took, bool failed);
  /// A pod that is to be decided about.
  struct Attempt {
    Pod pod;
    Judge judge;
    Done done;
    Join join;
  };
  /// What a search came to: nothing proposed, and why, or a proposal.
  struct Found {
    absl::Status status;  ///< Of a search that was given up.
    Verdict verdict;
    control::FreeDevices failed_on;
    std::optional<Proposal> proposal;
  };
  /// State and objects as they are once what is being written is on disk.
  control::Outlook Ahead(const ObjectSnapshot& objects) const;
  /// For a pod as its status is now.
  Found Find(const Pod& pod, const Judge& judge);
  void Decide(const Attempt& attempt);
  void CommitAlone(const Attempt& attempt, const Proposal& proposal);
  /// A choice has been written, or has not; `then` hears of it first.
  void OnWritten(std::uint64_t write, const absl::Status& status,
                 const std::function<void()>& then);
  void DecideWaiting();
  void Release();
  void TellAllocated(const Pod& pod, const control::Provision& provision);

  const Parts parts_;
  control::ClaimProvider provider_;
  std::optional<admission::ClaimSteering> steering_;
  /// Choices that are being written, in their order. The next one is made as if
  /// they were on disk, so that pods that come together share syncs.
  std::map<std::uint64_t, std::vector<state::Change>> writes_;
  std::uint64_t last_write_ = 0;
  /// No other choice is made until they are written: one of them was made for
  /// what is not so, and those behind it fail, too; or a pod is not to have
  /// anything, which is said of what is on disk only.
  bool draining_ = false;
  std::vector<Attempt> waiting_;  ///< Until then, in the order they came.
  /// Once for each batch that is being written in which a pod loses its claims.
  std::multiset<PodUid> giving_back_;
  /// While a pod joins: it was found just now.
  const Proposal* offered_ = nullptr;
  bool releasing_ = false;
  bool again_ = false;  ///< Something changed while it was being released.
  // With the taints of withheld devices, and of what they were made.
  ObjectMap<DeviceTaintRule> rules_;
  ObjectMap<DeviceTaintRule> source_rules_;
  std::uint64_t rules_version_ = 0;
  /// Of pods that wait for devices.
  std::map<PodUid, control::FreeDevices> failed_on_;
};

}  // namespace devmgr::pods
