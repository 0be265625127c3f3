// SPDX-License-Identifier: Apache-2.0
#include "admission/device_verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/quote.h"
#include "claim/booking.h"
#include "common/status.h"

namespace devmgr::admission {
namespace {

using device::EndpointState;
using device::Shortage;

std::string_view WaitReason(Shortage::Kind kind) {
  switch (kind) {
    case Shortage::Kind::kNotServed:
      return "PluginNotReady";
    case Shortage::Kind::kTooFewExist:
      return "NotEnoughDevices";
    case Shortage::Kind::kTooFewHealthy:
      return "NotEnoughHealthyDevices";
    case Shortage::Kind::kTooFewFree:
      return "NotEnoughFreeDevices";
    case Shortage::Kind::kChangedRequest:
      return "ChangedRequest";
    case Shortage::Kind::kHeldUnhealthy:
      return "HeldDevicesUnhealthy";
  }
  return "DevicesMissing";
}

/// The kubelet's words for an error of allocating.
Verdict Rejection(std::string_view cause) {
  return {Verdict::Kind::kReject,
          kUnexpectedAdmissionError,
          fmt::format("Allocate failed due to {}, which is unexpected", cause),
          {}};
}

/// Whom nobody can help by waiting longer is told so at once.
bool MayPass(const Shortage& shortage) {
  return shortage.kind == Shortage::Kind::kNotServed;
}

DeviceVerdict JudgeShortage(const Shortage& shortage,
                            const DevicePolicy& policy,
                            std::chrono::milliseconds waited) {
  const bool final_for_all = shortage.kind == Shortage::Kind::kChangedRequest ||
                             policy.profile == Profile::kStrictKubelet;
  const bool below_scheduler = policy.authority == Authority::kScheduler;
  const bool limited = below_scheduler && MayPass(shortage);
  if (final_for_all || (below_scheduler && !limited) ||
      (limited && waited >= policy.admission_wait)) {
    return {Rejection(device::KubeletShortageText(shortage)), std::nullopt};
  }
  DeviceVerdict judged{{Verdict::Kind::kWait,
                        std::string(WaitReason(shortage.kind)),
                        device::ShortageText(shortage),
                        {{WaitingFor::Kind::kResource, shortage.resource}}},
                       std::nullopt};
  if (limited) judged.limit = policy.admission_wait;
  return judged;
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

DeviceVerdict JudgeFailedCall(const std::string& resource,
                              const absl::Status& status,
                              const DevicePolicy& policy,
                              std::chrono::milliseconds waited) {
  // Nothing was sent: there is no connection, or it is not to be trusted now.
  const bool not_sent =
      absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  const bool below_scheduler = policy.authority == Authority::kScheduler;
  const bool limited =
      not_sent && below_scheduler && policy.profile == Profile::kDefault;
  if (policy.profile == Profile::kStrictKubelet ||
      (below_scheduler && !limited) ||
      (limited && waited >= policy.admission_wait)) {
    return {Rejection(MessageOf(status)), std::nullopt};
  }
  DeviceVerdict judged{{Verdict::Kind::kWait,
                        kFailedAllocate,
                        MessageOf(status),
                        {{WaitingFor::Kind::kResource, resource}}},
                       std::nullopt};
  if (limited) judged.limit = policy.admission_wait;
  return judged;
}

Verdict BehindVerdict(const PodUid& first,
                      const std::vector<std::string>& resources) {
  Verdict verdict{
      Verdict::Kind::kWait,
      "BehindInLine",
      fmt::format("the pod with UID {} waits for {} and goes first",
                  api::Quoted(first.value), fmt::join(resources, ", ")),
      {}};
  for (const std::string& resource : resources) {
    verdict.waiting_for.push_back({WaitingFor::Kind::kResource, resource});
  }
  return verdict;
}

}  // namespace devmgr::admission
