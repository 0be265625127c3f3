// SPDX-License-Identifier: Apache-2.0
#include "control/explain_refusals.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <vector>

#include "common/counted.h"

namespace devmgr::control {
namespace {

using allocator::DeviceRefusal;
using allocator::Refusal;
using allocator::RequestRefusals;

constexpr std::size_t kMostHolders = 5;

using Elsewhere = std::map<std::string, claim::HeldHardware>;

std::string Holders(const RequestRefusals& request,
                    const ObjectSnapshot& objects, const Elsewhere& elsewhere) {
  std::set<std::string> holders;
  for (const DeviceRefusal& device : request.devices) {
    if (device.reason == Refusal::kBusy) {
      holders.insert(HolderText(device.detail, objects, elsewhere));
    }
  }
  std::vector<std::string> shown;
  for (const std::string& holder : holders) {
    if (shown.size() == kMostHolders) {
      shown.push_back(fmt::format("{} more", holders.size() - kMostHolders));
      break;
    }
    shown.push_back(holder);
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string TextOf(const RequestRefusals& request,
                   const ObjectSnapshot& objects, const Elsewhere& elsewhere) {
  std::string text =
      fmt::format("claim {}, request {}: {} wanted, {} found", request.claim,
                  request.request,
                  Counted(static_cast<std::size_t>(request.wanted), "device"),
                  request.found);
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : request.counts) {
    if (reason == Refusal::kNone) continue;
    std::string part =
        fmt::format("{} {}", count, allocator::RefusalName(reason));
    if (reason == Refusal::kBusy) {
      part +=
          fmt::format(" (held by {})", Holders(request, objects, elsewhere));
    }
    reasons.push_back(std::move(part));
  }
  if (reasons.empty()) return text;
  return fmt::format("{}; refused: {}", text, fmt::join(reasons, ", "));
}

}  // namespace

std::vector<const claim::HeldHardware*> HoldersElsewhere(
    const allocator::Outcome& outcome, const Elsewhere& elsewhere) {
  std::set<std::string> names;
  for (const RequestRefusals& request : outcome.refusals) {
    for (const DeviceRefusal& device : request.devices) {
      if (device.reason == Refusal::kBusy) names.insert(device.detail);
    }
  }
  std::vector<const claim::HeldHardware*> holders;
  for (const auto& [name, held] : elsewhere) {
    if (names.contains(name)) holders.push_back(&held);
  }
  return holders;
}

std::string HolderText(const std::string& claim, const ObjectSnapshot& objects,
                       const Elsewhere& elsewhere) {
  if (const auto held = elsewhere.find(claim); held != elsewhere.end()) {
    return claim::HolderText(held->second);
  }
  const std::size_t slash = claim.find('/');
  if (slash == std::string::npos) return claim;
  const ObjectName name{claim.substr(0, slash), claim.substr(slash + 1)};
  const auto* found = objects.claims.Find(name);
  if (found == nullptr || (*found)->status.reserved_for.empty()) {
    return "claim " + claim;
  }
  std::vector<std::string> pods;
  for (const ResourceClaimConsumer& consumer : (*found)->status.reserved_for) {
    pods.push_back(name.ns + "/" + consumer.name);
  }
  return fmt::format("{} {}", pods.size() == 1 ? "pod" : "pods",
                     fmt::join(pods, ", "));
}

std::string RefusalText(const allocator::Outcome& outcome,
                        const ObjectSnapshot& objects,
                        const Elsewhere& elsewhere) {
  std::vector<std::string> parts;
  if (!outcome.message.empty()) parts.push_back(outcome.message);
  for (const RequestRefusals& request : outcome.refusals) {
    if (request.found < request.wanted) {
      parts.push_back(TextOf(request, objects, elsewhere));
    }
  }
  if (parts.empty()) parts.emplace_back("no device can be allocated now");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace devmgr::control
