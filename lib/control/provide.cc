// SPDX-License-Identifier: Apache-2.0
#include "control/provide.h"

#include <devmgr/manifests.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "allocator/allocator.h"
#include "api/meta.h"
#include "claim/device_class.h"
#include "claim/pod_plan.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/uuid.h"
#include "control/explain_refusals.h"
#include "control/generated_claim.h"
#include "control/generated_name.h"
#include "control/obstacles.h"
#include "control/reservation.h"
#include "control/special_claim.h"

namespace devmgr::control {
namespace {

using state::ClaimOrigin;
using state::LocalClaimRecord;
using state::PodPhase;

/// The claim as it is read back from the ledger. Internal when it could not be.
absl::StatusOr<std::shared_ptr<const ResourceClaim>> AsStored(
    const ResourceClaim& claim) {
  DecodedManifest decoded =
      DecodeManifest(EncodeResourceClaim(claim), "ResourceClaim");
  auto* read = decoded.objects.size() == 1
                   ? std::get_if<ResourceClaim>(&decoded.objects[0].object)
                   : nullptr;
  if (read != nullptr) {
    return std::make_shared<const ResourceClaim>(std::move(*read));
  }
  return InternalError("claim {} cannot be written to the ledger: {}",
                       claim.metadata.FullName().ToString(),
                       decoded.errors.empty()
                           ? "it is no ResourceClaim"
                           : decoded.errors.front().ToString());
}

/// The pod has or is getting devices, so that it pays for them.
bool Pays(const Pod& pod, const state::State& state) {
  const state::PodRecord* record = state.FindPod(PodUid{pod.metadata.uid});
  return record != nullptr && record->phase != PodPhase::kWaiting &&
         record->phase != PodPhase::kRejected;
}

/// Waits while a quota of the pod's namespace does not allow it, and the claims
/// that would be made for it.
Provision CheckQuotas(const Pod& pod,
                      const std::vector<const ResourceClaim*>& made,
                      const ProvideInput& input) {
  const std::string& ns = pod.metadata.ns;
  const ObjectSnapshot& objects = input.objects;
  const auto first = objects.quotas.lower_bound(ObjectName{ns, ""});
  if (first == objects.quotas.end() || first->first.ns != ns) return {};
  QuotaObjects used;
  for (const auto& [name, other] : objects.pods) {
    const bool is_it = other->metadata.uid == pod.metadata.uid;
    if (name.ns == ns && !is_it && Pays(*other, input.state)) {
      used.pods.push_back(other.get());
    }
  }
  for (const auto& [name, claim] : objects.claims) {
    if (name.ns == ns) used.claims.push_back(claim.get());
  }
  const auto usage = [&](const QuotaObjects& of) {
    return UsageOf(ns, of, objects.device_classes, input.quota_rule);
  };
  const QuotaUsage before = usage(used);
  used.pods.push_back(&pod);
  used.claims.insert(used.claims.end(), made.begin(), made.end());
  Provision provision;
  provision.exceeded = ExceededQuotas(ns, objects.quotas, before, usage(used));
  for (const QuotaExcess& excess : provision.exceeded) {
    Verdict wait{Verdict::Kind::kWait, kExceededQuota, excess.ToString(), {}};
    for (const QuotaExcess::Figure& figure : excess.figures) {
      wait.waiting_for.push_back(QuotaAwaited(ns, figure.key));
    }
    claim::Worsen(provision.verdict, wait);
  }
  return provision;
}

using NoClaims = std::vector<const ResourceClaim*>;

/// No driver has published anything. A pod whose claims this node could
/// allocate otherwise is to be judged again when one does.
Provision WithoutDevices(bool wants_some) {
  Provision provision;
  if (wants_some) {
    provision.verdict.waiting_for.push_back(
        {WaitingFor::Kind::kDevices, WaitingFor::kAnyDriver});
  }
  return provision;
}

/// What the pod has, or is not to have, is decided already.
bool IsSettled(const Pod& pod, const state::State& state) {
  if (!pod.metadata.deletion_timestamp.empty()) return true;
  const state::PodRecord* record = state.FindPod(PodUid{pod.metadata.uid});
  return record != nullptr && record->phase != PodPhase::kWaiting &&
         record->phase != PodPhase::kAllocating &&
         record->phase != PodPhase::kAdmitted;
}

}  // namespace

/// What one pod is to get, as it is put together.
class ClaimProvider::Attempt {
 public:
  Attempt(const Pod& pod, const ProvideInput& input, const Node& node)
      : pod_(pod), input_(input), node_(node) {}

  /// Finds what there is to do; a problem is in the verdict.
  void Collect() {
    for (const PodResourceClaim& entry : pod_.spec.resource_claims) {
      if (entry.resource_claim_name.has_value()) {
        Use(*entry.resource_claim_name);
      } else if (entry.resource_claim_template_name.has_value()) {
        UseTemplate(entry);
      }
    }
    const auto& special = pod_.status.extended_resource_claim_status;
    if (special.has_value()) {
      Use(special->resource_claim_name);
    } else if (input_.extended_resources) {
      MakeSpecialClaim();
    }
  }

  /// Nothing is to be done, or something is missing that others make.
  bool IsEmpty() const { return records_.empty() || lacks_; }
  /// Claims that would be there, and are not.
  std::vector<const ResourceClaim*> Made() const {
    std::vector<const ResourceClaim*> made;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const bool is_new = records_[i].origin != ClaimOrigin::kSource &&
                          records_[i].uid.value.empty();
      if (is_new) made.push_back(&claims_[i]);
    }
    return made;
  }
  const Verdict& verdict() const { return verdict_; }

  /// Those that have no allocation, in their order.
  std::vector<const ResourceClaim*> Open() const {
    std::vector<const ResourceClaim*> open;
    for (const std::size_t i : open_) open.push_back(&claims_[i]);
    return open;
  }

  /// Of the claim of this place among Open(): the containers that use the
  /// request.
  std::vector<ContainerName> UsersOf(std::size_t claim,
                                     std::string_view request) const;

  void Allocated(std::vector<allocator::Allocation> allocations) {
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      ResourceClaim& claim = claims_[open_[i]];
      allocator::Allocation& from = allocations[i];
      from.allocation.allocation_timestamp = api::TimestampOf(input_.now_ms);
      claim = Allocate(std::move(claim), std::move(from.allocation));
      records_[open_[i]].hardware = HardwareOf(*claim.status.allocation);
      for (allocator::DeviceCharge& charge : from.charges) {
        records_[open_[i]].counters.push_back(
            {{charge.device.driver, charge.device.pool, charge.device.device},
             std::move(charge.counters)});
      }
    }
  }

  absl::StatusOr<Provision> Finish() {
    Provision provision;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      claims_[i] = Reserve(std::move(claims_[i]), pod_);
      provision.claims.push_back(claims_[i].metadata.FullName());
      auto record = std::make_shared<LocalClaimRecord>(std::move(records_[i]));
      record->uid.value = claims_[i].metadata.uid;
      if (input_.read_back) {
        DEVMGR_ASSIGN_OR_RETURN(record->object, AsStored(claims_[i]));
      } else {
        record->object = std::make_shared<const ResourceClaim>(claims_[i]);
      }
      provision.changes.push_back(state::PutLocalClaim{std::move(record)});
    }
    return provision;
  }

  /// Those without an allocation, and where they come from.
  RefusedClaims Refused() const;

 private:
  /// What the claim keeps from others by its hardware.
  std::vector<state::DeviceHardware> HardwareOf(
      const AllocationResult& allocation) const;
  void Add(ResourceClaim claim, LocalClaimRecord record) {
    const bool twice = std::any_of(
        claims_.begin(), claims_.end(), [&](const ResourceClaim& other) {
          return other.metadata.uid == claim.metadata.uid;
        });
    if (twice) return;
    if (!claim.status.allocation.has_value()) open_.push_back(claims_.size());
    claims_.push_back(std::move(claim));
    records_.push_back(std::move(record));
  }

  /// A claim that is there.
  void Use(const std::string& name);
  void UseTemplate(const PodResourceClaim& entry);
  void MakeSpecialClaim();
  /// Gives a claim that is made its identity.
  void Create(const std::string& name, ResourceClaim* claim) const {
    claim->metadata.name = name;
    claim->metadata.uid = UuidText(input_.random(), input_.random());
    claim->metadata.creation_timestamp = api::TimestampOf(input_.now_ms);
  }
  /// Waits where the pods of an allocated claim have to leave it.
  Verdict CheckEvictions(const LocalClaimRecord& local) const;
  void Wait(std::string reason, std::string message, WaitingFor what) {
    claim::Worsen(verdict_, {Verdict::Kind::kWait,
                             std::move(reason),
                             std::move(message),
                             {std::move(what)}});
  }

  const Pod& pod_;
  const ProvideInput& input_;
  const Node& node_;
  Verdict verdict_;
  // Of each claim that changes, in the order of the pod.
  std::vector<ResourceClaim> claims_;
  std::vector<LocalClaimRecord> records_;
  std::vector<std::size_t> open_;  ///< Those to be allocated.
  bool lacks_ = false;             ///< Admission says what.
};

std::vector<state::DeviceHardware> ClaimProvider::Attempt::HardwareOf(
    const AllocationResult& allocation) const {
  std::vector<state::DeviceHardware> all;
  if (input_.hardware == nullptr) return all;
  for (const DeviceRequestAllocationResult& result : allocation.results) {
    if (result.admin_access || !result.share_id.empty()) continue;
    state::DeviceKey device(result.driver, result.pool, result.device);
    device::Hardware hardware = input_.hardware->Find(device);
    if (hardware.empty()) continue;
    all.push_back({std::move(device), std::move(hardware)});
  }
  return all;
}

void ClaimProvider::Attempt::Use(const std::string& name) {
  const ObjectName full_name{pod_.metadata.ns, name};
  const auto* found = input_.objects.claims.Find(full_name);
  if (found == nullptr) {
    lacks_ = true;
    return;
  }
  const ResourceClaim& claim = **found;
  const LocalClaimRecord* local =
      input_.state.FindLocalClaim({claim.metadata.uid});
  // The party that has allocated it reserves it, too.
  if (claim.status.allocation.has_value() && local == nullptr) return;
  if (claim.spec.old.has_value() || !claim.spec.controller.empty()) {
    lacks_ = true;
    return;
  }
  if (claim.status.allocation.has_value()) {
    if (IsReservedFor(claim, pod_)) return;
    claim::Worsen(verdict_, CheckReservation(pod_, claim, node_));
    claim::Worsen(verdict_, CheckEvictions(*local));
  } else if (!claim.metadata.deletion_timestamp.empty()) {
    claim::Worsen(
        verdict_,
        {Verdict::Kind::kWait,
         kClaimInUse,
         fmt::format("claim {} is being deleted", full_name.ToString()),
         {{WaitingFor::Kind::kClaim, full_name.ToString()}}});
  }
  Add(claim, local != nullptr ? *local : LocalClaimRecord{});
}

Verdict ClaimProvider::Attempt::CheckEvictions(
    const LocalClaimRecord& local) const {
  const DueEviction* due = input_.evictions != nullptr
                               ? input_.evictions->OfClaim(local.uid)
                               : nullptr;
  if (due == nullptr) return {};
  const std::string name = local.object->metadata.FullName().ToString();
  return {Verdict::Kind::kWait,
          kClaimInUse,
          fmt::format("claim {} is reserved for no more pods: {}", name,
                      due->message),
          {{WaitingFor::Kind::kClaim, name}}};
}

void ClaimProvider::Attempt::UseTemplate(const PodResourceClaim& entry) {
  for (const PodResourceClaimStatus& status :
       pod_.status.resource_claim_statuses) {
    if (status.name != entry.name) continue;
    if (status.resource_claim_name.has_value()) {
      Use(*status.resource_claim_name);
    }
    return;
  }
  const ObjectName name{pod_.metadata.ns, *entry.resource_claim_template_name};
  const auto* found = input_.objects.claim_templates.Find(name);
  if (found == nullptr) {
    Wait("ClaimTemplateNotFound",
         fmt::format("pod claim \"{}\": ResourceClaimTemplate {} not found",
                     entry.name, name.ToString()),
         {WaitingFor::Kind::kClaimTemplate, name.ToString()});
    return;
  }
  const std::string suffix = NameSuffix(input_.random());
  ResourceClaim claim = GenerateClaim(pod_, entry, **found, suffix);
  Create(std::string(claim.metadata.name), &claim);
  Add(std::move(claim), {.origin = ClaimOrigin::kTemplate,
                         .pod = PodUid{pod_.metadata.uid},
                         .pod_claim = entry.name});
}

void ClaimProvider::Attempt::MakeSpecialClaim() {
  auto special = BuildSpecialClaim(pod_, input_.objects.device_classes,
                                   input_.served_by_class);
  if (absl::IsInvalidArgument(special.status())) {
    claim::Worsen(verdict_, {Verdict::Kind::kReject,
                             kTooManyDevices,
                             MessageOf(special.status()),
                             {}});
    return;
  }
  // Without a class admission says what could serve the name.
  lacks_ = lacks_ || !special.ok();
  if (!special.ok() || !special->has_value()) return;
  ResourceClaim claim = std::move((*special)->claim);
  Create(SpecialClaimName(pod_, NameSuffix(input_.random())), &claim);
  Add(std::move(claim), {.origin = ClaimOrigin::kExtendedResources,
                         .pod = PodUid{pod_.metadata.uid},
                         .mappings = std::move((*special)->mappings)});
}

std::vector<ContainerName> ClaimProvider::Attempt::UsersOf(
    std::size_t claim, std::string_view request) const {
  const std::size_t place = open_[claim];
  const LocalClaimRecord& record = records_[place];
  // An alternative is used with its request.
  const std::string_view main = request.substr(0, request.find('/'));
  std::vector<ContainerName> users;
  for (const ContainerExtendedResourceRequest& mapping : record.mappings) {
    if (mapping.request_name == main) {
      users.emplace_back(mapping.container_name);
    }
  }
  const auto is_entry = [&](const PodResourceClaim& entry) {
    return entry.name == record.pod_claim ||
           entry.resource_claim_name == claims_[place].metadata.name;
  };
  const auto uses = [&](const Container& container) {
    const auto& references = container.resources.claims;
    return std::any_of(
        references.begin(), references.end(), [&](const auto& reference) {
          const auto& entries = pod_.spec.resource_claims;
          return (reference.request.empty() || reference.request == main) &&
                 std::any_of(entries.begin(), entries.end(),
                             [&](const PodResourceClaim& entry) {
                               return entry.name == reference.name &&
                                      is_entry(entry);
                             });
        });
  };
  for (const Container& one : pod_.spec.init_containers) {
    if (uses(one)) users.emplace_back(one.name);
  }
  for (const Container& one : pod_.spec.containers) {
    if (uses(one)) users.emplace_back(one.name);
  }
  return users;
}

RefusedClaims ClaimProvider::Attempt::Refused() const {
  RefusedClaims refused;
  for (const std::size_t i : open_) {
    refused.claims.push_back(&claims_[i]);
    if (records_[i].origin == ClaimOrigin::kSource) {
      refused.of_source.push_back(claims_[i].metadata.FullName());
    }
    if (records_[i].origin != ClaimOrigin::kTemplate) continue;
    for (const PodResourceClaim& entry : pod_.spec.resource_claims) {
      if (entry.name != records_[i].pod_claim ||
          !entry.resource_claim_template_name.has_value()) {
        continue;
      }
      refused.templates.push_back(
          {pod_.metadata.ns, *entry.resource_claim_template_name});
    }
  }
  return refused;
}

FreeDevices ClaimProvider::FreeNow(const std::set<std::string>& drivers) const {
  FreeDevices free;
  for (const std::string& driver : drivers) {
    free[driver] = {inventory_.VersionOf(driver), held_.SumOf(driver)};
  }
  return free;
}

bool ClaimProvider::IsSame(const FreeDevices& failed_on,
                           const ProvideInput& input) {
  inventory_.Follow(input.objects, input.node_name, input.driver_registered);
  held_.Follow(input.state, input.objects);
  std::set<std::string> drivers;
  for (const auto& [driver, numbers] : failed_on) drivers.insert(driver);
  return FreeNow(drivers) == failed_on;
}

Verdict ClaimProvider::WhyNone(const allocator::Outcome& outcome,
                               const Attempt& attempt,
                               const ProvideInput& input,
                               const HeldElsewhere::Holders& elsewhere) const {
  const RefusedClaims refused = attempt.Refused();
  Verdict wait{Verdict::Kind::kWait, kCannotAllocate,
               RefusalText(outcome, input.objects, elsewhere),
               ObstaclesOf(refused, input.objects.device_classes, outcome)};
  for (const claim::HeldHardware* held : HoldersElsewhere(outcome, elsewhere)) {
    wait.reason = claim::kDeviceHeldElsewhere;
    wait.waiting_for.insert(wait.waiting_for.end(), held->waiting_for.begin(),
                            held->waiting_for.end());
  }
  const auto drivers = DriversOf(refused, input.objects.device_classes);
  for (const std::string& driver : inventory_.left_out()) {
    if (drivers.count(driver) == 0 &&
        drivers.count(WaitingFor::kAnyDriver) == 0) {
      continue;
    }
    wait.message += fmt::format(
        "; DRA driver {} has published devices and is not registered", driver);
    wait.waiting_for.push_back({WaitingFor::Kind::kDriver, driver});
  }
  return wait;
}

HeldElsewhere::Devices ClaimProvider::HeldFor(const PodUid& pod,
                                              const ProvideInput& input) {
  const allocator::AllocatedState& held =
      held_.Follow(input.state, input.objects);
  if (input.hardware == nullptr) return {held, {}};
  input.hardware->Follow(input.objects.resource_slices);
  return elsewhere_.Follow(input.state, *input.hardware, held, pod);
}

absl::StatusOr<Provision> ClaimProvider::Provide(const Pod& pod,
                                                 const ProvideInput& input) {
  last_steps_ = 0;
  if (IsSettled(pod, input.state)) return Provision();
  const allocator::Inventory& inventory = inventory_.Follow(
      input.objects, input.node_name, input.driver_registered);
  Attempt attempt(pod, input, inventory_.node());
  attempt.Collect();
  // Where no device is known, another party may allocate.
  const bool has_devices = !input.objects.resource_slices.empty();
  if (has_devices && attempt.verdict().kind != Verdict::Kind::kAdmit) {
    return Provision{attempt.verdict(), {}, {}};
  }
  const auto made = has_devices ? attempt.Made() : NoClaims();
  if (Provision wait = CheckQuotas(pod, made, input);
      wait.verdict.kind != Verdict::Kind::kAdmit) {
    return wait;
  }
  if (!has_devices) return WithoutDevices(!attempt.Open().empty());
  if (attempt.IsEmpty()) return Provision();
  const auto open = attempt.Open();
  if (open.empty()) return attempt.Finish();
  HeldElsewhere::Devices devices = HeldFor(PodUid{pod.metadata.uid}, input);
  std::vector<const DeviceClass*> classes;
  for (const auto& [name, item] : input.objects.device_classes) {
    classes.push_back(item.get());
  }
  allocator::Options options;
  options.limits.steps = input.steps.value_or(steps_);
  options.limits.interrupted = input.interrupted;
  options.limits.before_step = input.before_step;
  options.explain = true;
  options.selectors = &selectors_;
  if (input.admits) {
    options.admits = [&](std::size_t claim, std::string_view request,
                         const ResourceSlice& slice,
                         const SliceDevice& device) {
      const auto users = attempt.UsersOf(claim, request);
      return std::all_of(users.begin(), users.end(), [&](const auto& user) {
        return input.admits(user, slice, device);
      });
    };
  }
  if (input.none_held) devices = {};
  allocator::Outcome outcome =
      allocator::Allocate(inventory, classes, devices.held, open, options);
  last_steps_ = outcome.steps;
  figures_ += outcome.figures;
  if (outcome.result == allocator::Result::kInterrupted) {
    return UnavailableError(
        "the search for devices was given up after {}: the claims of the pod "
        "leave too many possibilities",
        Counted(outcome.steps, "step"));
  }
  if (outcome.result != allocator::Result::kSolved) {
    return Provision{
        WhyNone(outcome, attempt, input, devices.holders),
        {},
        {},
        FreeNow(DriversOf(attempt.Refused(), input.objects.device_classes)),
        std::move(outcome.refusals),
        std::move(devices.holders)};
  }
  attempt.Allocated(std::move(outcome.allocations));
  return attempt.Finish();
}

allocator::Figures ClaimProvider::Figures(const ProvideInput& input) {
  const allocator::Inventory& inventory = inventory_.Follow(
      input.objects, input.node_name, input.driver_registered);
  return allocator::FiguresOf(inventory, HeldFor({}, input).held);
}

}  // namespace devmgr::control
