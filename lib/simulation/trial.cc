// SPDX-License-Identifier: Apache-2.0
#include "simulation/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "admission/aligned_plan.h"
#include "admission/changed_request.h"
#include "admission/claim_alignment.h"
#include "admission/device_request.h"
#include "admission/device_verdict.h"
#include "admission/kept_alignment.h"
#include "api/names.h"
#include "api/pod.h"
#include "api/quantity.h"
#include "api/quote.h"
#include "claim/claim_names.h"
#include "claim/device_booking.h"
#include "claim/eviction.h"
#include "claim/local_set.h"
#include "claim/prepare_intent.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/uuid.h"
#include "control/local_objects.h"
#include "device/pod_needs.h"

namespace devmgr::simulation {
namespace {

constexpr std::size_t kMaxMessageBytes = 4096;

bool Admits(const Verdict& verdict) {
  return verdict.kind == Verdict::Kind::kAdmit;
}

/// The identity that the pod has, or would get.
absl::Status GiveIdentity(const SimulatedNode& node, Pod* pod) {
  api::DefaultPod(*pod);
  const ObjectName name = pod->metadata.FullName();
  if (pod->metadata.name.empty()) {
    return InvalidArgumentError("a pod has no name");
  }
  if (api::FindInvalidUtf8(name.ToString()) != std::string::npos) {
    return InvalidArgumentError("pod {}: the name is not UTF-8",
                                api::Quoted(name.ToString()));
  }
  if (!node.is_present()) {
    pod->metadata.uid.clear();
    pod->status = {};
  }
  if (!pod->metadata.uid.empty()) {
    const std::string text = api::CheckUid(pod->metadata.uid);
    if (text.empty()) return absl::OkStatus();
    return InvalidArgumentError("pod {}: {}", api::Quoted(name.ToString()),
                                text);
  }
  const auto* known = node.objects().pods.Find(name);
  const bool is_known =
      node.is_present() && known != nullptr && !(*known)->metadata.uid.empty();
  const state::PodRecord* record =
      is_known ? node.state().FindPod(PodUid{(*known)->metadata.uid}) : nullptr;
  // A rejected pod that is mended is another pod.
  const bool is_over =
      record != nullptr && record->phase == state::PodPhase::kRejected;
  pod->metadata.uid = is_known && !is_over ? (*known)->metadata.uid
                                           : UuidText(node.moment().random(),
                                                      node.moment().random());
  return absl::OkStatus();
}

}  // namespace

/// One pod, as it is tried.
class Trials::One {
 public:
  One(Trials& trials, SimulatedNode& node, Pod pod)
      : trials_(trials),
        node_(node),
        moment_(node.moment()),
        pod_(std::move(pod)),
        outlook_{node.state(), node.objects()} {
    result_.pod = pod_.metadata.FullName();
    if (!trials_.steering_) return;
    for (const std::string& provider : moment_.hint_providers) {
      result_.notes.push_back(
          fmt::format("NUMA hints of provider {} count, and are not known here",
                      api::Quoted(provider)));
    }
  }

  absl::Status Run() {
    result_.verdict = claim::CheckEviction(node_.state(), Uid());
    if (!Admits(result_.verdict)) return absl::OkStatus();
    if (const auto broken = api::ValidatePod(pod_); !broken.empty()) {
      RejectMalformed(api::Summary(broken));
      return absl::OkStatus();
    }
    if (moment_.allocates && !ProvideClaims()) return absl::OkStatus();
    admission::Judgement judgement = admission::Judge(
        pod_, node_.JudgeInput(outlook_.state, outlook_.objects));
    result_.verdict = judgement.verdict;
    admission::CompleteWait(moment_.policy.authority, or_for_,
                            &result_.verdict);
    if (judgement.book_anew || !Admits(judgement.verdict)) {
      return absl::OkStatus();
    }
    is_from_ledger_ = judgement.from_ledger;
    needs_ = NeedsNow(judgement);
    if (!Admits(result_.verdict)) return absl::OkStatus();
    device::PodPlan plan;
    if (!needs_.needs.empty() && !PlanDevices(&plan)) return absl::OkStatus();
    return Keep(judgement, plan);
  }

  SimulatedPod Finish() && {
    const Verdict& verdict = result_.verdict;
    if (verdict.kind == Verdict::Kind::kWait &&
        !admission::WaitsForPlugins(verdict)) {
      node_.queue().StepAside(Uid());
    }
    return std::move(result_);
  }

 private:
  PodUid Uid() const { return PodUid{pod_.metadata.uid}; }
  bool IsSplit() const { return moment_.policy.authority == Authority::kSplit; }
  /// A pod of this node, where devices of plugins are split.
  bool IsLocal() const { return IsSplit() && !api::IsFromApiServer(pod_); }
  /// Of the party whose pod it is.
  admission::DevicePolicy Policy() const {
    admission::DevicePolicy policy = moment_.policy;
    if (IsSplit()) {
      policy.authority = IsLocal() ? Authority::kNode : Authority::kScheduler;
    }
    return policy;
  }
  const state::PodRecord* Record() const {
    return node_.state().FindPod(Uid());
  }

  void RejectMalformed(const api::PodProblem& problem) {
    // What the ledger decided about this UID stands: its containers may run.
    const state::PodRecord* record = Record();
    if (record != nullptr &&
        (state::IsLive(*record) || !record->claims.empty())) {
      return;
    }
    ManifestProblem shown;
    shown.field = problem.field;
    shown.message = problem.message;
    result_.verdict = {Verdict::Kind::kReject,
                       claim::kInvalidPod,
                       api::Readable(shown.ToString(), kMaxMessageBytes),
                       {}};
  }

  /// False: the pod does not get its claims.
  bool ProvideClaims() {
    pod_ = control::WithLocalStatus(pod_, node_.state());
    control::ProvideInput input = node_.ProvideInput();
    input.steps = trials_.left_;
    input.interrupted = trials_.stop_;
    input.before_step = moment_.pause;
    auto provision = Provide(input);
    trials_.left_ -= std::min(trials_.left_, result_.steps);
    if (!provision.ok()) {
      Interrupt(MessageOf(provision.status()));
      return false;
    }
    result_.verdict = provision->verdict;
    admission::SettleRejection(Record(), &result_.verdict);
    if (!Admits(provision->verdict)) {
      const Holders holders{node_, trials_.tried_};
      for (const auto& refused : provision->refusals) {
        result_.refusals.push_back(
            PublicOf(refused, provision->elsewhere, holders));
      }
      for (const control::QuotaExcess& excess : provision->exceeded) {
        AddRefusals(excess, &result_.refusals);
      }
      return false;
    }
    or_for_ = std::move(provision->verdict.waiting_for);
    if (provision->changes.empty()) return true;
    outlook_ = control::OutlookWith(provision->changes, node_.state(),
                                    node_.objects());
    pod_ = control::WithLocalStatus(pod_, outlook_.state);
    return true;
  }

  /// Along NUMA nodes where devices are aligned to these.
  absl::StatusOr<control::Provision> Provide(control::ProvideInput& input) {
    auto plain = trials_.provider_.Provide(pod_, input);
    result_.steps = trials_.provider_.last_steps();
    const bool has_choice =
        plain.ok() && Admits(plain->verdict) && !plain->changes.empty();
    if (!trials_.steering_ || !has_choice) return plain;
    *input.steps -= std::min(*input.steps, result_.steps);
    auto steered = trials_.steering_->Steer(
        pod_, input, *std::move(plain),
        [this](const std::shared_ptr<const Pod>& provided,
               std::vector<device::DeviceNeed> needs,
               const admission::ClaimHints& hints) {
          return AlignClaims(*provided, std::move(needs), hints);
        },
        /*explain=*/true);
    result_.steps += trials_.steering_->last_steps();
    return steered;
  }

  /// See DeviceAdmission::AlignClaims of lib/pods.
  absl::StatusOr<admission::ClaimAlignment> AlignClaims(
      const Pod& provided, std::vector<device::DeviceNeed> needs,
      const admission::ClaimHints& hints) {
    LeaveOutUnserved(&needs);
    node_.HoldElsewhere(node_.state());
    const claim::WantedDevices wanted = WantedOf({std::move(needs)});
    auto aligned = Aligned(provided, wanted, node_.objects(), hints);
    if (!aligned.ok()) return aligned.status();
    auto result = admission::ClaimAlignmentOf(*aligned, *moment_.alignment);
    if (aligned->alignment != nullptr && !aligned->alignment->admitted) {
      result.verdict = RefuseClaims(*aligned, wanted.needs);
    }
    return result;
  }

  Verdict RefuseClaims(const admission::AlignedPlan& aligned,
                       const std::vector<device::DeviceNeed>& needs) {
    std::vector<device::Shortage> shortages = admission::InTheWayOf(aligned);
    NameHolders(&shortages);
    admission::DeviceVerdict judged = admission::JudgeUnaligned(
        aligned, shortages, Policy(),
        node_.queue().WaitedFor(Uid(), moment_.now_ms));
    if (aligned.plan.shortages.empty()) return std::move(judged.verdict);
    if (judged.verdict.kind == Verdict::Kind::kWait) {
      admission::WaitQueue::Place place =
          admission::ShortPlace(admission::PlaceOf(Record(), pod_.spec.priority,
                                                   needs, moment_.now_ms),
                                shortages);
      place.limit = judged.limit;
      node_.queue().Enter(Uid(), std::move(place), moment_.now_ms);
    }
    Refuse(shortages);
    return std::move(judged.verdict);
  }

  void Interrupt(const std::string& why) {
    trials_.interrupted_ = true;
    result_.verdict = {
        Verdict::Kind::kWait, std::string(kInterruptedReason), why, {}};
  }

  /// What it asks of plugins; the verdict is another one if it may not.
  admission::DeviceNeeds NeedsNow(const admission::Judgement& judgement) {
    const state::PodRecord* record = Record();
    admission::DeviceNeeds needs{
        device::NeedsOf(pod_, moment_.plan_options.extended_resources)};
    if (record != nullptr) {
      const Verdict refusal = admission::CheckUnchanged(
          pod_, *record, needs.needs, outlook_.state, outlook_.objects,
          moment_.plan_options, moment_.policy);
      if (!Admits(refusal)) {
        result_.verdict = refusal;
        return {};
      }
    }
    if (judgement.from_ledger && record != nullptr) {
      return admission::NeedsOfBooked(*record, moment_.boot_id);
    }
    needs.needs = admission::WithoutGivenBack(std::move(needs.needs), record,
                                              moment_.boot_id);
    LeaveOutUnserved(&needs.needs);
    return needs;
  }

  /// The kubelet gives none of what it has never heard of.
  void LeaveOutUnserved(std::vector<device::DeviceNeed>* needs) const {
    if (moment_.policy.profile != Profile::kStrictKubelet) return;
    std::erase_if(*needs, [&](const device::DeviceNeed& need) {
      return !node_.IsServedByPlugin(need.resource);
    });
  }

  /// False: there are none for it now.
  bool PlanDevices(device::PodPlan* plan) {
    node_.HoldElsewhere(outlook_.state);
    *plan = PlanNow();
    admission::WaitQueue::Place place = admission::PlaceOf(
        Record(), pod_.spec.priority, needs_.needs, moment_.now_ms);
    if (!plan->shortages.empty()) {
      LackDevices(std::move(place), std::move(plan->shortages));
      return false;
    }
    if (!plan->reservations.empty() && !IsAdoption(*plan) &&
        !MayGo(std::move(place))) {
      return false;
    }
    for (const device::Reservation& planned : plan->reservations) {
      if (!moment_.with_preference.contains(planned.resource)) continue;
      result_.notes.push_back(fmt::format(
          "the device plugin of {} may prefer other devices for container {}",
          planned.resource.value, planned.container.value));
    }
    return true;
  }

  claim::WantedDevices WantedOf(admission::DeviceNeeds needs) const {
    claim::WantedDevices wanted{
        Uid(), std::move(needs.needs), {}, {}, needs.trust_held};
    if (IsSplit()) wanted.kept = Kept(wanted.needs);
    return wanted;
  }

  device::PodPlan PlanNow() const {
    const claim::WantedDevices wanted = WantedOf(needs_);
    // What was decided about a pod stands, whatever the policy is now.
    const auto* const record = is_from_ledger_ ? Record() : nullptr;
    if (record != nullptr && record->alignment != nullptr) {
      return admission::PlanAsAligned(node_.Devices(), wanted,
                                      *record->alignment);
    }
    if (is_from_ledger_ || moment_.alignment == nullptr) {
      return claim::PlanDevices(node_.Devices(), wanted);
    }
    auto aligned = Aligned(pod_, wanted, outlook_.objects, {});
    // Only providers fail, and there are none.
    return aligned.ok() ? std::move(aligned->plan) : device::PodPlan();
  }

  /// By the hints of device plugins and of claims, as they are in `objects`:
  /// those of an embedder are known on the manager's thread only.
  absl::StatusOr<admission::AlignedPlan> Aligned(
      const Pod& pod, const claim::WantedDevices& wanted,
      const ObjectSnapshot& objects, const admission::ClaimHints& hints) const {
    admission::AlignmentInput input{*moment_.alignment,
                                    admission::ContainersOf(pod)};
    input.choices = hints.now;
    input.choices_when_empty = hints.when_empty;
    const auto is_local = [this](const ResourceClaim& claim) {
      return admission::IsAllocatedHere(claim, node_.state(), &node_.objects());
    };
    input.claims = [&](const ContainerName& container) {
      return admission::HintsOfClaims(
          pod, container, objects, moment_.plan_options,
          moment_.alignment->machine.nodes, is_local);
    };
    return admission::PlanAligned(node_.Devices(), wanted, input);
  }

  std::map<ResourceName, device::KeptDevices> Kept(
      const std::vector<device::DeviceNeed>& needs) const {
    std::map<ResourceName, device::KeptDevices> kept;
    for (const device::DeviceNeed& need : needs) {
      const auto set = moment_.local_sets.find(need.resource.value);
      kept.insert_or_assign(
          need.resource,
          claim::KeptFrom(IsLocal(), node_.Devices(), need.resource,
                          set != moment_.local_sets.end() ? set->second : 0,
                          [this](const PodUid& holder) {
                            const auto* record = node_.state().FindPod(holder);
                            return record != nullptr && record->local;
                          }));
    }
    return kept;
  }

  /// The plan takes only what the pod's own containers have already.
  bool IsAdoption(const device::PodPlan& plan) const {
    for (const device::Reservation& planned : plan.reservations) {
      for (const device::HeldDevice& device : planned.devices) {
        const auto* holder =
            node_.reservations().HolderOf(planned.resource, device.id);
        if (holder == nullptr) return false;
      }
    }
    return true;
  }

  void NameHolders(std::vector<device::Shortage>* shortages) const {
    for (device::Shortage& shortage : *shortages) {
      for (const PodUid& holder : shortage.holders) {
        shortage.holder_names.push_back(node_.NameOf(holder));
        shortage.held_elsewhere =
            shortage.held_elsewhere || node_.FindElsewhere(holder) != nullptr;
        const state::PodRecord* record = node_.state().FindPod(holder);
        shortage.holders_end =
            shortage.holders_end ||
            (record != nullptr && record->phase == state::PodPhase::kReleasing);
      }
    }
  }

  void Refuse(const std::vector<device::Shortage>& shortages) {
    const Holders holders{node_, trials_.tried_};
    for (const device::Shortage& shortage : shortages) {
      // Without a resource it is the pod's claims that cannot be aligned.
      if (shortage.resource.value.empty()) continue;
      result_.refusals.push_back(PublicOf(shortage, Uid(), holders));
    }
  }

  void LackDevices(admission::WaitQueue::Place place,
                   std::vector<device::Shortage> shortages) {
    NameHolders(&shortages);
    const admission::DeviceVerdict judged = admission::JudgeShortages(
        shortages, Policy(), node_.queue().WaitedFor(Uid(), moment_.now_ms));
    place = admission::ShortPlace(std::move(place), shortages);
    place.limit = judged.limit;
    node_.queue().Enter(Uid(), std::move(place), moment_.now_ms);
    result_.verdict = judged.verdict;
    admission::SettleRejection(Record(), &result_.verdict);
    Refuse(shortages);
  }

  bool MayGo(admission::WaitQueue::Place place) {
    if (!place.takes || (IsSplit() && !IsLocal())) return true;
    const auto first = node_.queue().FirstBefore(
        Uid(), place, moment_.now_ms, [this](const ResourceName& resource) {
          return claim::FreeDevices(node_.Devices(), resource);
        });
    if (!first.has_value()) return true;
    std::vector<ResourceName> resources;
    for (const auto& [resource, count] : place.needs) {
      resources.push_back(resource);
      place.short_of.insert(resource);
    }
    node_.queue().Enter(Uid(), std::move(place), moment_.now_ms);
    result_.verdict = admission::BehindVerdict(node_.NameOf(*first), resources);
    return false;
  }

  /// Its devices are reserved and answered for, its claims booked.
  absl::Status Keep(const admission::Judgement& judgement,
                    const device::PodPlan& plan) {
    const claim::PodIdentity identity{Uid(), pod_.metadata.FullName(),
                                      IsLocal()};
    const bool has_record = outlook_.state.FindPod(Uid()) != nullptr;
    node_.Take(pod_, std::move(outlook_.state), std::move(outlook_.objects));
    trials_.tried_.insert(Uid());
    if (!has_record) {
      DEVMGR_RETURN_IF_ERROR(node_.Apply(claim::RecordSeen(
          node_.state(), identity, moment_.now_ms, "simulated")));
    }
    node_.queue().Leave(Uid());
    if (!plan.reservations.empty()) {
      DEVMGR_RETURN_IF_ERROR(Reserve(identity, plan.reservations));
    }
    if (!judgement.from_ledger) {
      auto booked = claim::BookPod(node_.state(), identity, moment_.now_ms,
                                   &judgement.plan, moment_.boot_id);
      if (!booked.ok()) return booked.status();
      if (Admits(booked->verdict)) {
        DEVMGR_RETURN_IF_ERROR(node_.Apply(std::move(booked->decision)));
      }
    }
    Describe();
    return absl::OkStatus();
  }

  absl::Status Reserve(const claim::PodIdentity& identity,
                       const std::vector<device::Reservation>& plan) {
    const claim::HardwareByNeed hardware =
        claim::HardwareOf(node_.plugin_hardware(), plan);
    auto reserved =
        claim::ReserveDevices(node_.state(), identity, moment_.now_ms, plan,
                              moment_.plan_options.sharing, hardware);
    if (!reserved.ok()) return reserved.status();
    DEVMGR_RETURN_IF_ERROR(node_.Apply(*std::move(reserved)));
    claim::AllocateAnswers answers;
    for (const device::Reservation& planned : plan) {
      answers[{planned.container, planned.resource}] = {};
    }
    auto committed = claim::CommitDevices(node_.state(), Uid(), answers,
                                          std::nullopt, hardware);
    if (!committed.ok()) return committed.status();
    DEVMGR_RETURN_IF_ERROR(node_.Apply(*std::move(committed)));
    node_.Hold(plan);
    return absl::OkStatus();
  }

  /// What it has now.
  void Describe() {
    const state::PodRecord* record = Record();
    for (const ClaimUid& uid : record->claims) {
      const state::ClaimRecord* known = node_.state().FindClaim(uid);
      if (known == nullptr) continue;
      const auto* object = node_.objects().claims.Find(known->name);
      if (object == nullptr) continue;
      ResourceClaim claim = **object;
      if (claim.status.allocation.has_value()) {
        for (auto& device : claim.status.allocation->results) {
          device.share_id.clear();
          if (!device.binding_conditions.empty()) NoteBinding(claim, device);
        }
      }
      result_.claims.push_back(std::move(claim));
    }
    for (const state::DeviceHold& hold : record->holds) {
      if (!hold.Holds()) continue;
      auto& containers = result_.containers;
      auto found = std::find_if(
          containers.begin(), containers.end(),
          [&](const auto& each) { return each.container == hold.container; });
      if (found == containers.end()) {
        found = containers.insert(found, {hold.container, {}});
      }
      for (const device::HeldDevice& device : hold.devices) {
        found->devices[hold.resource].push_back(device.id);
      }
    }
  }

  void NoteBinding(const ResourceClaim& claim,
                   const DeviceRequestAllocationResult& device) {
    result_.notes.push_back(fmt::format(
        "claim {}: device {}/{}/{} would wait for {}",
        claim.metadata.FullName().ToString(), device.driver, device.pool,
        device.device, fmt::join(device.binding_conditions, ", ")));
  }

  Trials& trials_;
  SimulatedNode& node_;
  const NodeMoment& moment_;
  Pod pod_;
  control::Outlook outlook_;  ///< Once it has its claims.
  bool is_from_ledger_ = false;
  admission::DeviceNeeds needs_;
  std::vector<WaitingFor> or_for_;  ///< What could help its claims.
  SimulatedPod result_;
};

absl::StatusOr<SimulatedPod> Trials::Try(Pod pod, SimulatedNode& node) {
  if (node.moment().pause) node.moment().pause();
  DEVMGR_RETURN_IF_ERROR(GiveIdentity(node, &pod));
  const ObjectName name = pod.metadata.FullName();
  One one(*this, node, std::move(pod));
  const bool is_over = interrupted_ || (stop_ != nullptr && stop_->load());
  if (is_over) {
    interrupted_ = true;
    SimulatedPod result;
    result.pod = name;
    result.verdict = {Verdict::Kind::kWait,
                      std::string(kInterruptedReason),
                      "the simulation ended before the pod was judged",
                      {}};
    return result;
  }
  if (absl::Status status = one.Run(); !status.ok()) {
    return WithContext(status, "pod {}", name.ToString());
  }
  return std::move(one).Finish();
}

SimulatedFigures Trials::Figures(const SimulatedNode& node) {
  SimulatedFigures shown;
  const allocator::Figures figures = provider_.Figures(node.ProvideInput());
  for (const auto& [driver, devices] : figures.drivers) {
    shown.drivers.push_back({driver, static_cast<std::int64_t>(devices.free),
                             static_cast<std::int64_t>(devices.held)});
  }
  for (const auto& each : figures.counters) {
    shown.counters.push_back({each.pool.driver, each.pool.pool, each.name.first,
                              each.name.second, api::QuantityText(each.total),
                              api::QuantityText(each.left)});
  }
  for (const auto& [resource, inventory] : node.inventories()) {
    shown.resources.push_back(
        {resource, inventory.free_count(),
         static_cast<std::int64_t>(node.reservations().Held(resource).size())});
  }
  return shown;
}

}  // namespace devmgr::simulation
