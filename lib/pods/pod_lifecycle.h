// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_manager.h>
#include <devmgr/metrics.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "admission/judge.h"
#include "claim/pod_plan.h"
#include "claim/prepare_intent.h"
#include "claim/release.h"
#include "common/executor.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "pods/device_admission.h"
#include "pods/driver_calls.h"
#include "pods/local_claims.h"
#include "pods/object_book.h"
#include "state/state.h"
#include "view/moment.h"

namespace devmgr::dra {
class Drivers;
}

namespace devmgr::pods {

/// The operations on pods: admit, prepare, unprepare, release. Each goes
/// through the ledger first, then asks drivers, then records their answers.
/// Lives on the manager's thread; all completions run there.
class PodLifecycle {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    dra::Drivers& drivers;
    ObjectBook& objects;
    DeviceAdmission& devices;
    LocalClaims* claims;  ///< Null: another party allocates them.
    events::EventLog& events;
    MetricsSink& metrics;
    std::string boot_id;
    claim::PlanOptions plan_options;
    claim::DebtRules debt_rules;
    std::size_t calls_at_once = CallQueue::kCallsAtOnce;  ///< At one driver.
    bool keep_share_ids = true;  ///< As in DriverCalls.
    std::function<std::int64_t()> now_ms;
    /// As in DriverCalls.
    decltype(DriverCalls::Parts::look_at_answer) look_at_answer;
    /// The pod may look different to people now.
    std::function<void(const PodUid&)> on_pod_changed;
    /// As in DriverCalls.
    decltype(DriverCalls::Parts::look_at_hardware) look_at_hardware = nullptr;
    /// Null: nothing is ever handed over.
    const AuthorityKeeper* authority = nullptr;
  };
  explicit PodLifecycle(Parts parts);

  /// A pod that breaks an API rule is rejected, as by `Reject`.
  void Admit(OperationId id, Pod pod, DeviceManager::AdmitDone done);
  void Reject(OperationId id, const MalformedPod& pod,
              DeviceManager::AdmitDone done);
  /// Whether Admit would admit a pod that waits, as far as no plugin has to be
  /// asked. Nothing is done.
  bool WouldAdmit(Pod pod);
  void Prepare(OperationId id, const PodUid& pod, DeviceManager::Done done);
  void Unprepare(OperationId id, const PodUid& pod, DeviceManager::Done done);
  void Release(OperationId id, const PodUid& pod, DeviceManager::Done done);
  /// Unprepare and Release in one; the pod is forgotten in the write of the
  /// last driver's answer.
  void End(OperationId id, const PodUid& pod, DeviceManager::Done done);
  /// A pod that has to leave its devices has left them: its claims are
  /// unprepared, then it is rejected.
  void Evict(OperationId id, const PodUid& pod, DeviceManager::Done done);
  /// The pod is to be ended, or to leave, and waits for what `why` says.
  void HoldEnd(const PodUid& pod, const Verdict& why);
  void Cancel(OperationId id);
  /// Ends all operations with Cancelled, and those that come later, too; no
  /// driver is called or asked about from now on.
  void Stop();

  /// Why a pod is not Ready, as far as it is known beyond the ledger; null when
  /// nothing is.
  const Verdict* NoteOf(const PodUid& pod) const;

  /// What can be seen of pods, and of the calls to drivers.
  const view::Pods& known() const { return known_; }
  const view::Calls& calls() const { return calls_.known(); }

  /// Pods that left the ledger are forgotten. For pods that give up their
  /// claims the drivers are asked. Of claims that were dropped without an
  /// answer of their drivers the last errors go, and operations that wait for
  /// their end go on.
  void OnCommitted(const ledger::Changes& changes);

  /// Asks drivers for what they owe of these claims; joins calls under way.
  void Drive(const std::vector<ClaimUid>& claims) { calls_.Drive(claims); }
  /// The same, for a driver that came or connected.
  void DriveAnew(const std::string& driver,
                 const std::vector<ClaimUid>& claims) {
    calls_.DriveAnew(driver, claims);
  }

  /// How many unprepare calls for what is owed have failed.
  std::uint32_t Attempts(const ClaimUid& claim,
                         const std::string& driver) const {
    return calls_.Attempts(claim, driver);
  }

  /// Is a driver being asked about this claim?
  bool IsAsking(const ClaimUid& claim) const {
    return calls_.IsUnderWay(claim);
  }

  /// The last error of a driver about a claim; empty when there is none.
  std::string LastError(const ClaimUid& claim, const std::string& driver) const;

 private:
  /// A prepare or unprepare that waits for drivers.
  struct Operation {
    PodUid pod;
    bool prepare = true;
    bool ends = false;    ///< The pod is forgotten with its last claim.
    bool evicts = false;  ///< It is rejected after that.
    DeviceManager::Done done;
    bool recorded = false;  ///< The intent is on disk.
    std::chrono::steady_clock::time_point began = {};
    /// What the pod held then: as drivers let go, it holds less.
    std::vector<ClaimUid> claims = {};
  };

  /// The pod gives up its claims, says the ledger: has the drivers asked,
  /// unless an operation is about to. So neither an operation that is cancelled
  /// nor a write that holds although it failed leaves anything undone.
  void CarryOutRelease(const PodUid& pod);
  admission::JudgeInput Input(const ObjectSnapshot& objects) const;
  /// The pod was imported, and its object is here: the ledger takes its name
  /// from it, then `then` goes on.
  void Recognize(OperationId id, const Pod& pod, DeviceManager::AdmitDone done,
                 std::function<void(DeviceManager::AdmitDone)> then);
  /// It was imported, its drivers have answered, and its object is missing.
  void FinishUnshown(OperationId id, const state::PodRecord& pod);
  /// The pod is valid, and has the claims that this node provides.
  /// If it waits, then for what is in `or_for`, too.
  void AdmitWithClaims(OperationId id, Pod pod,
                       const std::vector<WaitingFor>& or_for,
                       DeviceManager::AdmitDone done);
  void ProvideClaims(OperationId id, const Pod& pod,
                     const DeviceManager::AdmitDone& done);
  /// The pod can have these claims; true: it wants devices of plugins, too, and
  /// both are decided about together.
  bool JoinDevices(OperationId id, const Pod& pod,
                   const LocalClaims::Judge& judge,
                   const LocalClaims::Proposal& proposal,
                   const DeviceManager::AdmitDone& done);
  /// The pod's claims can be had; now its devices, if it wants any.
  void AdmitDevices(OperationId id, DeviceRequest request,
                    DeviceManager::AdmitDone done);
  /// Why a pod is not admitted with what the ledger gave it: it asks for
  /// something else by now. Else admits.
  Verdict ChangedRequest(const Pod& pod,
                         const std::vector<device::DeviceNeed>& needs,
                         const ObjectSnapshot& objects) const;
  /// The same, and forgets why it was not admitted before.
  Verdict Refusal(const Pod& pod, const std::vector<device::DeviceNeed>& needs,
                  const ObjectSnapshot& objects);
  /// Says so, once. The ledger keeps what the pod holds until the pod goes: its
  /// containers may run with it.
  void Refuse(const claim::PodIdentity& pod, const Verdict& refusal);
  /// The devices that a pod has to have so that it can be admitted.
  DeviceRequest RequestOf(const admission::Judgement& judgement, const Pod& pod,
                          std::vector<device::DeviceNeed> needs) const;
  /// Those of a pod that is Ready since an earlier boot.
  DeviceRequest RequestOf(const state::PodRecord& pod) const;
  /// With the party whose devices the pod gets, where these are split.
  claim::PodIdentity WithSide(claim::PodIdentity identity,
                              const Pod& pod) const;
  /// Two parties have allocated one device: once for what is said of that.
  void ReportDoubleClaim(const claim::PodIdentity& pod, const Verdict& verdict);
  /// It waits for the end of a hand-over; nothing: it does not.
  std::optional<Verdict> WhyPaused(const Pod& pod) const;
  void OnDevices(OperationId id, const claim::PodIdentity& pod,
                 const absl::StatusOr<Verdict>& verdict,
                 std::vector<WaitingFor> waiting_for,
                 const DeviceManager::AdmitDone& done);
  void RecordVerdict(OperationId id, const claim::PodIdentity& pod,
                     const Verdict& verdict, DeviceManager::AdmitDone done);
  /// The pod holds claims that were replaced, and no container runs with them:
  /// they are unprepared. It is to be released, and then admitted anew.
  void ReleaseReplaced(OperationId id, const PodUid& pod,
                       const Verdict& verdict, DeviceManager::AdmitDone done);
  static claim::PodIdentity IdentityOf(const Pod& pod);
  static absl::Status Stopped();
  /// In this boot, and on disk.
  bool IsReady(const PodUid& pod) const;
  claim::ReleaseTerms Terms(const PodUid& pod) const;
  /// The pod gives up its claims, and with `ends` its place in the ledger.
  void GiveUp(OperationId id, const PodUid& pod, bool ends);
  /// The last claim of a pod that ends went without a driver's answer; or one
  /// that has to leave has no claims any more.
  void DecideLast(OperationId id, const PodUid& pod, bool evicts);
  /// Pods of these claims that are to be forgotten with their last one.
  std::set<PodUid> Ending(const std::set<ClaimUid>& claims) const;
  /// Claims of the pod that the ledger does not have yet: they are read anew
  /// before they are prepared.
  std::vector<ObjectName> ClaimsToRead(const PodUid& pod) const;
  void OnClaimsRead(OperationId id, const std::vector<ObjectName>& claims,
                    const absl::Status& status);
  /// Has the ledger take up what is to be prepared.
  void Book(OperationId id, const PodUid& pod);
  /// `book_anew`: it has to give up a claim that was replaced since it was
  /// admitted.
  void OnBooked(OperationId id, const absl::StatusOr<Verdict>& verdict,
                bool book_anew);
  /// It is not booked: says so, and gives back what was allocated for it.
  void OnHeldElsewhere(const PodUid& pod, const Verdict& verdict);
  /// Asks the drivers that the pod's claims need, unless all is done.
  void AskDrivers(OperationId id);
  void OnSettled(const std::set<ClaimUid>& claims);
  void CountSkipped(const ledger::Changes& changes);
  /// Ends the operation if nothing of it is under way any more.
  void EndIfSettled(OperationId id);
  absl::Status FailureOf(const state::PodRecord& pod, bool prepare);
  /// Drivers of the pod's claims that are not there, and why.
  std::map<std::string, std::string> AbsentDrivers(const PodUid& pod) const;
  Operation& Begin(OperationId id, const PodUid& pod, bool prepare,
                   DeviceManager::Done done);
  void Finish(OperationId id, const absl::Status& status);
  void Note(const PodUid& pod, Verdict verdict);
  void CountAsking(const PodUid& pod, int more);

  const Parts parts_;
  DriverCalls calls_;
  bool stopped_ = false;
  std::map<OperationId, Operation> operations_;
  /// Completions of admit and release operations under way.
  std::set<OperationId> simple_;
  /// As they were admitted; what for is judged again when they are prepared.
  std::map<PodUid, std::shared_ptr<const Pod>> admitted_;
  view::Pods known_;
};

}  // namespace devmgr::pods
