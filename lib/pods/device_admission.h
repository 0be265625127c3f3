// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/metrics.h>
#include <devmgr/persistent_map.h>
#include <devmgr/topology.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/aligned_plan.h"
#include "admission/claim_alignment.h"
#include "admission/device_verdict.h"
#include "admission/wait_queue.h"
#include "claim/device_booking.h"
#include "common/executor.h"
#include "device/pod_needs.h"
#include "device/pod_plan.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "plugin/plugins.h"
#include "pods/device_request.h"
#include "pods/local_claims.h"
#include "resources/device_book.h"
#include "state/state.h"
#include "upkeep/hardware_look.h"

namespace devmgr::pods {

/// Claims that are allocated in one batch with the devices of plugins.
struct ClaimsBeside {
  LocalClaims& from;
  Pod pod;
  LocalClaims::Judge judge;
};

/// What an operation ends with when the pod's claims are to be decided about
/// anew, with everything else about the pod.
absl::Status ClaimsDiffer();
bool IsClaimsDiffer(const absl::Status& status);

/// The pod transaction of device plugins: plan all devices of the pod, ask the
/// plugins for their preference, reserve in one batch, let the plugins allocate
/// in parallel, commit in one batch. Claims of the pod that this node has yet
/// to allocate are chosen with its plan, and are in the batch that reserves.
/// Whatever fails frees all that was reserved. Pods that cannot have their
/// devices now wait in the queue. Lives on the manager's thread.
class DeviceAdmission {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    plugin::Plugins& plugins;
    resources::DeviceBook& devices;
    events::EventLog& events;
    MetricsSink& metrics;
    admission::DevicePolicy policy;
    /// Which party allocates now; null: that of `policy`.
    std::function<Authority()> authority = nullptr;
    claim::Sharing sharing = claim::Sharing::kOneOwner;
    bool refuse_edit_conflicts = false;
    HardwareOptions hardware;
    /// Looks at the device nodes of answers. Null: they are not looked at.
    std::function<void(std::vector<upkeep::NodeQuestion>,
                       std::function<void(const upkeep::HardwareLook::Facts&)>)>
        look_at_hardware = nullptr;
    admission::WaitQueueOptions queue;
    std::function<std::int64_t()> now_ms;
    /// This pod is to be released. Null: none is.
    std::function<bool(const PodUid&)> is_ending;
    /// This pod should be admitted again.
    std::function<void(const PodUid&)> judge_again;
    /// How pods are aligned to NUMA nodes. Null: they are not.
    std::shared_ptr<const admission::AlignmentRules> alignment = nullptr;
    std::vector<const TopologyHintProvider*> hint_providers = {};
    /// Hints of a container's claims, or of the pod's. Null: there are none.
    /// The claims are those of the objects; null: as they are now.
    std::function<std::vector<topology::ResourceHints>(
        const Pod&, const ContainerName&, const ObjectSnapshot*)>
        claim_hints = nullptr;
  };
  explicit DeviceAdmission(Parts parts);
  ~DeviceAdmission();

  /// Frees what an earlier manager had reserved: it is not known what the
  /// plugins made of it. To be called once, at first.
  void FreeUnanswered();

  /// kAdmit: the pod holds all it needs. kWait: what is missing. An error: a
  /// plugin or the ledger failed; try again later, or when something of
  /// `waiting_for` changes.
  using Done = std::function<void(absl::StatusOr<Verdict>,
                                  std::vector<WaitingFor> waiting_for)>;

  /// Pods that want no devices are to be judged, too, by what embedders have.
  bool JudgesAll() const {
    return IsAligning() && !parts_.hint_providers.empty();
  }
  bool IsAligning() const {
    return parts_.alignment != nullptr && parts_.alignment->IsOn();
  }
  /// What the hints of pods came to when they were judged last.
  const PersistentMap<PodUid, std::shared_ptr<const PodAlignmentInfo>>&
  alignments() const {
    return alignments_;
  }
  /// To what the pod is aligned that was admitted last, for its record. Null:
  /// it was not aligned.
  std::shared_ptr<const PodAlignmentInfo> AlignmentOf(const PodUid& pod) const;

  /// Aligns a pod's claims, which are about to be allocated, with what it wants
  /// of device plugins; its `object` is given. A pod that has to wait for
  /// devices of plugins waits in their queue from then on. `dry`: nothing is
  /// done and shown. Only while IsAligning().
  ///   any error   that of a provider of hints, or of `hints`
  absl::StatusOr<admission::ClaimAlignment> AlignClaims(
      DeviceRequest request, const admission::ClaimHints& hints, bool dry);

  /// While an operation for the pod is under way, `done` gets its end.
  void Start(OperationId id, DeviceRequest request, Done done);

  /// Whether the pod would get its devices if it asked now, as far as no plugin
  /// has to be asked. Nothing is done.
  bool WouldAdmit(const DeviceRequest& request) const;

  /// Ends it with Cancelled. What is reserved then is freed once the plugins
  /// have answered.
  void Cancel(OperationId id);

  /// Ends all of them with Cancelled, and those that come later.
  void Stop();

  /// Pods that are gone leave the queue; resources that pods hold no claims for
  /// any more, or that have another owner, may be had.
  void OnCommitted(const ledger::Changes& changes);

  /// Something about the devices of a resource is different.
  void OnResource(const ResourceName& resource);

  /// As it is now.
  admission::DevicePolicy policy() const;
  const admission::WaitQueue& queue() const { return queue_; }

  /// The pod wants no devices (any more).
  void Forget(const PodUid& pod);
  /// The pod waits for something else: no device is kept for it meanwhile.
  void StepAside(const PodUid& pod);

 private:
  /// What is under way for one pod; a caller that asks meanwhile joins it. When
  /// no caller asks any more, it gives back what it has.
  struct Operation {
    DeviceRequest request;
    std::map<OperationId, Done> askers;
    std::map<device::NeedKey, std::vector<DeviceId>> preferences;
    int plans = 0;  ///< How often it was planned from scratch.
    std::vector<device::Reservation> plan;
    std::optional<LocalClaims::Proposal> proposal;  ///< Of its claims.
    claim::AllocateAnswers answers;
    claim::HardwareByNeed hardware;  ///< Which the answers are.
    int clashes = 0;          ///< How often another pod had that hardware.
    bool counted = false;     ///< Its alignment, by the metrics.
    std::size_t missing = 0;  ///< Answers still under way.
    /// The first one of a plugin, and whose.
    absl::Status failure;
    std::string failed_resource;
  };
  using Shared = std::shared_ptr<Operation>;

  /// The kubelet gives none of what it has never heard of.
  void LeaveOutUnserved(DeviceRequest* request) const;
  /// Once all lists that plugins have sent of what the pod needs are known of,
  /// goes on with `next`, at that moment; unless the operation ends over it.
  void CatchUp(const Shared& operation,
               void (DeviceAdmission::*next)(const Shared& operation));
  /// Frees what is reserved and ends it: a plugin is too late with its lists,
  /// or all askers have gone.
  void EndEarly(const Shared& operation);
  void Plan(const Shared& operation);
  void PlanNow(const Shared& operation);
  /// The devices by the hints of all that the pod wants.
  absl::StatusOr<admission::AlignedPlan> Aligned(
      const DeviceRequest& request,
      const std::map<device::NeedKey, std::vector<DeviceId>>& preferences,
      const admission::ClaimHints& hints = {}) const;
  /// Why claims cannot be allocated now, or at all, along these nodes.
  Verdict RefuseClaims(const DeviceRequest& request,
                       const admission::AlignedPlan& aligned, bool dry);
  /// The same for an operation: shown and counted. False: it has ended with
  /// that.
  bool Align(const Shared& operation, device::PodPlan* plan);
  void CountAlignment(Operation& operation,
                      const absl::StatusOr<admission::AlignedPlan>& aligned,
                      std::chrono::nanoseconds took);
  /// Whether a pod that waits for aligned devices could have them now. Pods
  /// that want the same are looked at once. Valid until the next change.
  admission::WaitQueue::Aligns AlignsNow() const;
  void DropAlignments(const ledger::Changes& changes);
  void Ask(const Shared& operation,
           const std::vector<device::PreferenceQuestion>& questions);
  /// Whether a plugin would refuse its call unsent. Then the operation has
  /// ended, and nothing was written for it.
  bool Refused(const Shared& operation);
  /// Chooses the claims that the pod is to have with its devices, if any.
  /// False: what it can have is not as it was, and the operation is over.
  bool ProposeClaims(const Shared& operation);
  /// Commits what was proposed with `rest`, then goes on with `next`, unless it
  /// is to be proposed anew.
  void CommitClaims(const Shared& operation, const LocalClaims::Rest& rest,
                    std::function<void(const absl::Status&)> next);
  /// The pod has the devices of plugins that it needs.
  void ReserveNothing(const Shared& operation);
  void Reserve(const Shared& operation);
  void OnReserved(const Shared& operation, const absl::Status& status);
  /// Something is not as it was when it was planned: `why`.
  void PlanAgain(const Shared& operation, const absl::Status& why);
  /// Frees what was planned, and plans again, if a device of it does not work
  /// any more. False: all do.
  bool IsOutdated(const Shared& operation);
  void Allocate(const Shared& operation);
  void OnAllocated(const Shared& operation);
  /// With answers that are fine.
  void Conclude(const Shared& operation);
  /// Finds out which hardware the answers are, then commits them, unless
  /// another pod has it by another name.
  void Identify(const Shared& operation);
  void OnIdentified(const Shared& operation,
                    const std::vector<device::NeedKey>& keys,
                    const upkeep::HardwareLook::Facts& facts);
  /// Gives back what another pod has, remembers which devices these are, and
  /// plans again without them.
  void YieldHardware(const Shared& operation, const device::NeedKey& key,
                     const claim::HeldHardware& held);
  void Commit(const Shared& operation);
  /// Plugins want different things of the same name in one container: an event,
  /// and, if that is refused, an error.
  ///   FailedPrecondition  names the first
  absl::Status CheckConflicts(Operation& operation) const;
  /// Gives back what is reserved, then goes on with `next`; ends if no caller
  /// asks any more.
  void Free(const Shared& operation, const std::string& why,
            std::function<void()> next);

  /// Frees what an earlier operation or run left reserved, then plans. True:
  /// there was something.
  bool FreeLeftovers(const Shared& operation);
  /// Frees what is reserved for a pod of which no operation is under way: the
  /// write had failed, and is on disk all the same.
  void FreeStray(const PodUid& pod);
  /// It has to wait, or has waited for too long.
  void Judge(const Shared& operation, std::vector<device::Shortage> shortages);
  /// False: it has to let another pod go first, and the operation is over.
  bool MayGo(const Shared& operation);
  void FailedCall(const Shared& operation);
  /// What counts for this pod, which is of one party or the other.
  admission::DevicePolicy PolicyFor(const DeviceRequest& request) const;
  std::string NameOf(const PodUid& uid) const;
  /// Fills in who the holders are.
  void NameHolders(std::vector<device::Shortage>* shortages) const;
  admission::WaitQueue::Place PlaceOf(const DeviceRequest& request) const;
  void EnterLine(const PodUid& pod, admission::WaitQueue::Place place);
  admission::WaitQueue::FreeCount FreeCount() const;
  /// Has those judged again that may go now; `but` has been just now.
  void GiveTurns(const std::set<ResourceName>& resources,
                 const PodUid& but = {});
  void ArmTimer();
  void OnTimer();

  void Finish(const Shared& operation, const absl::StatusOr<Verdict>& result,
              const std::vector<WaitingFor>& waiting_for = {});
  static plugin::PodIdentity IdentityFor(const claim::PodIdentity& pod,
                                         const ContainerName& container);

  const Parts parts_;
  admission::WaitQueue queue_;
  std::map<PodUid, Shared> operations_;
  PersistentMap<PodUid, std::shared_ptr<const PodAlignmentInfo>> alignments_;
  /// Pods that wait for aligned devices.
  std::map<PodUid, DeviceRequest> unaligned_;
  TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace devmgr::pods
