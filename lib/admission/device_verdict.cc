// SPDX-License-Identifier: Apache-2.0
#include "admission/device_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "api/quote.h"
#include "claim/held_hardware.h"
#include "claim/prepare_intent.h"
#include "common/enum_names.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "topology/merge.h"

namespace devmgr::admission {
namespace {

using device::EndpointState;
using device::Shortage;

std::string_view WaitReason(Shortage::Kind kind) {
  using enum Shortage::Kind;
  static constexpr auto kReasons = EnumTable<Shortage::Kind>({
      {kNotServed, "PluginNotReady"},
      {kHeldByClaims, "ResourceHeldByClaims"},
      {kHandedOver, "ResourceHandedOver"},
      {kTooFewExist, "NotEnoughDevices"},
      {kTooFewHealthy, "NotEnoughHealthyDevices"},
      {kTooFewFree, "NotEnoughFreeDevices"},
      {kChangedRequest, "ChangedRequest"},
      {kHeldUnhealthy, "HeldDevicesUnhealthy"},
      {kNotAligned, kNotAlignedNow},
      {kNeverAligned, topology::kAffinityReason},
  });
  return kReasons.Of(kind, "DevicesMissing");
}

/// What may end a shortage by itself.
enum class Remedy {
  kNone,
  kPlugin,   ///< It comes back: waited for below a scheduler, too, for a while.
  kOthers,   ///< Pods that end, devices that recover.
  kRelease,  ///< Of a pod that has ended: waited for by every policy.
};

/// Reason and message of a rejection, in the kubelet's words.
struct Rejection {
  std::string reason;
  std::string message;
};

Rejection FailedAllocation(std::string_view cause) {
  return {kUnexpectedAdmissionError,
          fmt::format("Allocate failed due to {}, which is unexpected", cause)};
}

bool IsOfAlignment(const Shortage& shortage) {
  return shortage.kind == Shortage::Kind::kNotAligned ||
         shortage.kind == Shortage::Kind::kNeverAligned;
}

Rejection RejectionFor(const Shortage& shortage) {
  if (IsOfAlignment(shortage)) {
    return {topology::kAffinityReason, topology::kAffinityText};
  }
  return FailedAllocation(device::KubeletShortageText(shortage));
}

/// The wait, or, where the policy is not to wait (any longer), the rejection.
DeviceVerdict WaitOrReject(Verdict wait, Rejection rejection, Remedy remedy,
                           const DevicePolicy& policy,
                           std::chrono::milliseconds waited) {
  const bool below_scheduler = policy.authority == Authority::kScheduler;
  const bool for_a_while =
      remedy == Remedy::kPlugin || remedy == Remedy::kRelease;
  const bool in_time = for_a_while && waited < policy.admission_wait;
  const bool may_wait =
      remedy == Remedy::kRelease || policy.profile != Profile::kStrictKubelet;
  if (remedy != Remedy::kNone && may_wait && (!below_scheduler || in_time)) {
    DeviceVerdict waits{std::move(wait), std::nullopt};
    if (below_scheduler) waits.limit = policy.admission_wait;
    return waits;
  }
  wait.kind = Verdict::Kind::kReject;
  // The kubelet has no word for that.
  if (wait.reason == claim::kDeviceHeldElsewhere) {
    return {std::move(wait), std::nullopt};
  }
  wait.reason = std::move(rejection.reason);
  wait.message = std::move(rejection.message);
  return {std::move(wait), std::nullopt};
}

Remedy RemedyFor(const Shortage& shortage) {
  const Shortage::Kind kind = shortage.kind;
  if (kind == Shortage::Kind::kChangedRequest ||
      kind == Shortage::Kind::kNeverAligned) {
    return Remedy::kNone;
  }
  // It may have connected before it has looked for its devices.
  const bool lists_none =
      kind == Shortage::Kind::kTooFewExist && shortage.listed == 0;
  const bool plugin = lists_none || kind == Shortage::Kind::kNotServed ||
                      kind == Shortage::Kind::kHeldByClaims ||
                      kind == Shortage::Kind::kHandedOver;
  if (plugin) return Remedy::kPlugin;
  const bool ends = (kind == Shortage::Kind::kTooFewFree ||
                     kind == Shortage::Kind::kNotAligned) &&
                    shortage.holders_end;
  return ends ? Remedy::kRelease : Remedy::kOthers;
}

DeviceVerdict JudgeShortage(const Shortage& shortage,
                            const DevicePolicy& policy,
                            std::chrono::milliseconds waited) {
  return WaitOrReject(
      {Verdict::Kind::kWait,
       shortage.held_elsewhere ? std::string(claim::kDeviceHeldElsewhere)
                               : std::string(WaitReason(shortage.kind)),
       device::ShortageText(shortage),
       {{WaitingFor::Kind::kResource, shortage.resource}}},
      RejectionFor(shortage), RemedyFor(shortage), policy, waited);
}

}  // namespace

DeviceVerdict JudgeShortages(const std::vector<Shortage>& shortages,
                             const DevicePolicy& policy,
                             std::chrono::milliseconds waited) {
  DeviceVerdict all;
  for (const Shortage& shortage : shortages) {
    const DeviceVerdict one = JudgeShortage(shortage, policy, waited);
    claim::Worsen(all.verdict, one.verdict);
    if (one.limit.has_value()) all.limit = one.limit;
  }
  if (all.verdict.kind != Verdict::Kind::kWait) all.limit.reset();
  return all;
}

DeviceVerdict JudgeFailedCall(const ResourceName& resource,
                              const absl::Status& status,
                              const DevicePolicy& policy,
                              std::chrono::milliseconds waited) {
  // Nothing was sent: there is no connection, or it is not to be trusted now.
  // The plugin itself may answer with the same codes.
  const bool not_sent =
      (absl::IsUnavailable(status) || absl::IsResourceExhausted(status)) &&
      !IsFromPeer(status);
  const std::string cause = MessageOf(status);
  return WaitOrReject({Verdict::Kind::kWait,
                       kFailedAllocate,
                       cause,
                       {{WaitingFor::Kind::kResource, resource}}},
                      FailedAllocation(cause),
                      not_sent ? Remedy::kPlugin : Remedy::kOthers, policy,
                      waited);
}

Verdict BehindVerdict(const std::string& first,
                      const std::vector<ResourceName>& resources) {
  Verdict verdict{Verdict::Kind::kWait,
                  "BehindInLine",
                  fmt::format("pod {} waits for {} and goes first",
                              api::Quoted(first), fmt::join(resources, ", ")),
                  {}};
  for (const ResourceName& resource : resources) {
    verdict.waiting_for.push_back({WaitingFor::Kind::kResource, resource});
  }
  return verdict;
}

bool WaitsForPlugins(const Verdict& verdict) {
  return std::any_of(verdict.waiting_for.begin(), verdict.waiting_for.end(),
                     [](const WaitingFor& what) {
                       return what.kind == WaitingFor::Kind::kResource;
                     });
}

}  // namespace devmgr::admission
